"""Collectives without a root as Open MPI's C has them, but for reductions, rank by rank.

Written from ompi/mca/coll/base/coll_base_{allgather,alltoall,barrier,scan,exscan}.c of 5.0.9 (the
same in 4.1.6), and not from hopmap. Counts are bytes.
"""

from __future__ import annotations

from support.rank_scripts import Script

from .openmpi_reductions import power_below


def allgather_ring(rank, size, counts):
    do = Script()
    do.copy(counts[rank])
    for i in range(size - 1):
        out, into = (rank - i) % size, (rank - i - 1) % size
        do.sendrecv((rank + 1) % size, counts[out], (rank - 1) % size, counts[into])
    return do


def allgather_bruck(rank, size, counts):
    do = Script()
    do.copy(counts[rank])
    distance = 1
    while distance < size:
        blocks = distance if distance <= size >> 1 else size - distance
        out = sum(counts[(rank + k) % size] for k in range(blocks))
        into = sum(counts[(rank + distance + k) % size] for k in range(blocks))
        do.sendrecv((rank - distance) % size, out, (rank + distance) % size, into)
        distance <<= 1
    if rank:
        shifted = sum(counts[(rank + k) % size] for k in range(size - rank))
        do.copy(shifted + (sum(counts) - shifted) + shifted)
    return do


def allgather_recursivedoubling(rank, size, counts):
    do = Script()
    do.copy(counts[rank])
    begin, distance = rank, 1
    while distance < size:
        remote = rank ^ distance
        there = begin + distance if rank < remote else begin - distance
        out, into = (sum(counts[at : at + distance]) for at in (begin, there))
        do.sendrecv(remote, out, remote, into)
        begin = min(begin, there)
        distance <<= 1
    return do


def allgather_neighborexchange(rank, size, counts):
    do = Script()
    do.copy(counts[rank])
    if rank % 2 == 0:
        neighbor = [(rank + 1) % size, (rank - 1) % size]
        recv_from, offset = [rank, rank], [2, -2]
    else:
        neighbor = [(rank - 1) % size, (rank + 1) % size]
        recv_from, offset = [(rank - 1) % size] * 2, [-2, 2]
    do.sendrecv(neighbor[0], counts[rank], neighbor[0], counts[neighbor[0]])
    send_from = rank if rank % 2 == 0 else recv_from[0]
    for i in range(1, size // 2):
        parity = i % 2
        recv_from[parity] = (recv_from[parity] + offset[parity]) % size
        out, into = (counts[at] + counts[at + 1] for at in (send_from, recv_from[parity]))
        do.sendrecv(neighbor[parity], out, neighbor[parity], into)
        send_from = recv_from[parity]
    return do


def allgather_sparbit(rank, size, counts):
    do = Script()
    do.copy(counts[rank])
    levels = (size - 1).bit_length()
    distance = 1 << (levels - 1)
    zeros = (size & -size).bit_length() - 1
    ignore = (~(size >> zeros) | 1) << zeros
    expected = 1
    for _ in range(levels):
        exclusion = int(distance & ignore == distance)
        out = [(rank - 2 * k * distance) % size for k in range(expected - exclusion)]
        into = [(block - distance) % size for block in out]
        # The C alternates between the two; a step of a schedule posts receives first.
        requests = [do.irecv((rank - distance) % size, counts[block]) for block in into]
        requests += [do.isend((rank + distance) % size, counts[block]) for block in out]
        do.wait(*requests)
        distance >>= 1
        expected = (expected << 1) - exclusion
    return do


def alltoall_pairwise(rank, size, pairs):
    do = Script()
    for step in range(1, size):
        to, source = (rank + step) % size, (rank - step) % size
        do.sendrecv(to, pairs[rank][to], source, pairs[source][rank])
    do.copy(pairs[rank][rank])  # the exchange with itself
    return do


def alltoall_basic_linear(rank, size, pairs):
    do = Script()
    do.copy(pairs[rank][rank])
    requests = [do.irecv((rank + k) % size, pairs[(rank + k) % size][rank]) for k in range(1, size)]
    requests += [
        do.isend((rank - k) % size, pairs[rank][(rank - k) % size]) for k in range(1, size)
    ]
    do.wait(*requests)
    return do


def alltoall_bruck(rank, size, block):
    """With what the derived datatypes of the C pack and unpack as copies."""
    do = Script()
    do.copy(size * block)  # rotated, in two parts
    distance = 1
    while distance < size:
        begins = range(distance, size, 2 * distance)
        moved = block * sum(min(distance, size - begin) for begin in begins)
        do.copy(moved)
        do.sendrecv((rank + distance) % size, moved, (rank - distance) % size, moved)
        do.copy(2 * moved)  # out of the datatype, and back to the other buffer
        distance <<= 1
    do.copy(size * block)
    return do


def barrier_doublering(rank, size):
    do = Script()
    left, right = (rank - 1) % size, (rank + 1) % size
    for _ in range(2):
        if rank:
            do.recv(left, 0)
        do.send(right, 0)
        if not rank:
            do.recv(left, 0)
    return do


def barrier_recursivedoubling(rank, size):
    do, adjusted = Script(), power_below(size)
    if adjusted != size:
        if rank >= adjusted:
            do.sendrecv(rank - adjusted, 0, rank - adjusted, 0)
        elif rank < size - adjusted:
            do.recv(rank + adjusted, 0)
    mask = 1
    while rank < adjusted and mask < adjusted:
        do.sendrecv(rank ^ mask, 0, rank ^ mask, 0)
        mask <<= 1
    if adjusted != size and rank < size - adjusted:
        do.send(rank + adjusted, 0)
    return do


def barrier_bruck(rank, size):
    do, distance = Script(), 1
    while distance < size:
        do.sendrecv((rank + distance) % size, 0, (rank - distance) % size, 0)
        distance <<= 1
    return do


def barrier_basic_linear(rank, size):
    do = Script()
    if rank:
        do.send(0, 0)
        do.recv(0, 0)
        return do
    do.wait(*[do.irecv(i, 0) for i in range(1, size)])
    for i in range(1, size):
        do.send(i, 0)
    return do


def barrier_tree(rank, size):
    do, depth = Script(), 1
    while depth < size:
        depth <<= 1
    jumps = [1 << k for k in range(depth.bit_length() - 1)]
    for way in (jumps, jumps[::-1]):
        for jump in way:
            partner = rank ^ jump
            if partner & (jump - 1) or partner >= size:
                continue
            if (partner > rank) == (way is jumps):
                do.recv(partner, 0)
            else:
                do.send(partner, 0)
    return do


def scan_linear(rank, size, count):
    do = Script()
    do.copy(count)
    if rank:
        do.recv(rank - 1, count)
        do.reduce(count)
    if rank < size - 1:
        do.send(rank + 1, count)
    return do


def exscan_linear(rank, size, count):
    do = Script()
    if rank == 0:
        do.send(1, count)
    elif rank == size - 1:
        do.recv(rank - 1, count)
    else:
        do.copy(count)
        do.recv(rank - 1, count)
        do.reduce(count)
        do.send(rank + 1, count)
    return do


def scan_recursivedoubling(rank, size, count, exclusive):
    do = Script()
    do.copy(count if exclusive else 2 * count)
    mask, first = 1, exclusive
    while mask < size:
        remote = rank ^ mask
        if remote < size:
            do.sendrecv(remote, count, remote, count)
            if rank > remote:
                if first:
                    do.copy(count)
                    do.reduce(count)
                else:
                    do.reduce(2 * count)
                first = False
            else:
                do.reduce(count)
        mask <<= 1
    return do
