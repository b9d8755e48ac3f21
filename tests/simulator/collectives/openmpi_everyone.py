"""Collectives without a root as Open MPI's C has them, rank by rank.

Written from ompi/mca/coll/base/coll_base_{allgather,alltoall,allreduce,reduce,reduce_scatter,
barrier,scan,exscan}.c of 5.0.9 (the same in 4.1.6), and not from hopmap. Counts are bytes.
"""

from __future__ import annotations

from support.rank_scripts import Script


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


def power_below(size):
    return 1 << (size.bit_length() - 1)


def allreduce_recursivedoubling(rank, size, count):
    do = Script()
    do.copy(count)
    adjusted = power_below(size)
    extra, sending, in_rbuf = size - adjusted, "temporary", "rbuf"
    if rank < 2 * extra:
        if rank % 2 == 0:
            do.send(rank + 1, count)
            do.recv(rank + 1, count)
            return do  # its result is in place
        do.recv(rank - 1, count)
        do.reduce(count)
        new = rank >> 1
    else:
        new = rank - extra
    distance = 1
    while distance < adjusted:
        remote = new ^ distance
        remote = remote * 2 + 1 if remote < extra else remote + extra
        do.sendrecv(remote, count, remote, count)
        do.reduce(count)
        if rank < remote:
            sending, in_rbuf = in_rbuf, sending
        distance <<= 1
    if rank < 2 * extra:
        do.send(rank - 1, count)
    if sending != "rbuf":
        do.copy(count)
    return do


def cut(count, parts):
    """COLL_BASE_COMPUTE_BLOCKCOUNT: the early ones are longer by one."""
    return [count // parts + (k < count % parts) for k in range(parts)]


def allreduce_ring_segmented(rank, size, count, segment):
    phases = 1
    if segment and count >= size * segment:
        phases = count // (size * segment)
        if count % (size * segment) >= size and count % (size * segment) > size * segment / 2:
            phases += 1
    do, blocks = Script(), cut(count, size)
    do.copy(count)
    right, left = (rank + 1) % size, (rank - 1) % size
    for phase in range(phases):
        part = [cut(block, phases)[phase] for block in blocks]
        before = do.irecv(left, part[left])
        do.send(right, part[rank])
        for k in range(2, size):
            previous = (rank - k + 1) % size
            following = do.irecv(left, part[(rank - k) % size])
            do.wait(before)
            do.reduce(part[previous])
            do.send(right, part[previous])
            before = following
        do.wait(before)
        do.reduce(part[(rank + 1) % size])
    for k in range(size - 1):
        do.sendrecv(right, blocks[(rank + 1 - k) % size], left, blocks[(rank - k) % size])
    return do


def redscat(rank, size, count, do):
    """Steps 1 and 2 of both of Rabenseifner's algorithms; windows of each step."""
    pof2 = power_below(size)
    rem = size - pof2
    do.copy(count)
    vrank = rank - rem
    if rank < 2 * rem:
        lower, upper = count // 2, count - count // 2
        if rank % 2:
            do.sendrecv(rank - 1, lower, rank - 1, upper)
            do.reduce(upper)
            do.send(rank - 1, upper)
            return None, rem, []
        do.sendrecv(rank + 1, upper, rank + 1, lower)
        do.reduce(lower)
        do.recv(rank + 1, upper)
        vrank = rank // 2
    window, windows, mask = count, [], 1
    while mask < pof2:
        vdest = vrank ^ mask
        dest = vdest * 2 if vdest < rem else vdest + rem
        kept = window // 2 if rank < dest else window - window // 2
        do.sendrecv(dest, window - kept, dest, kept)
        do.reduce(kept)
        windows.append((mask, kept, window - kept))
        window, mask = kept, mask << 1
    return vrank, rem, windows


def allreduce_redscat_allgather(rank, size, count):
    do = Script()
    vrank, rem, windows = redscat(rank, size, count, do)
    for mask, kept, sent in reversed(windows):
        vdest = vrank ^ mask
        dest = vdest * 2 if vdest < rem else vdest + rem
        do.sendrecv(dest, kept, dest, sent)
    if rank < 2 * rem:
        if rank % 2:
            do.recv(rank - 1, count)
        else:
            do.send(rank + 1, count)
    return do


def reduce_redscat_gather(rank, size, root, count):
    do = Script()
    vrank, rem, windows = redscat(rank, size, count, do)
    folded_root = root < 2 * rem and root % 2
    steps = power_below(size).bit_length() - 1
    if folded_root:
        vroot = 0
        if rank == root:
            windows, window = [], count
            for k in range(steps):
                windows.append((1 << k, window // 2, window - window // 2))
                window //= 2
            do.recv(0, windows[-1][1])
            vrank = 0
        elif vrank == 0:
            do.send(root, windows[-1][1])
            vrank = None
    else:
        vroot = root // 2 if root < 2 * rem else root - rem
    if vrank is None:
        return do
    for step in range(steps - 1, -1, -1):
        mask, kept, sent = windows[step]
        vdest = vrank ^ mask
        dest = vdest * 2 if vdest < rem else vdest + rem
        if vdest == 0 and folded_root:
            dest = root
        if vdest >> step == vroot >> step:
            do.send(dest, kept)
            break
        do.recv(dest, sent)
    return do


def allreduce_basic_linear(rank, size, count):
    do = Script()
    if rank:
        do.send(0, count)
        do.recv(0, count)
        return do
    if size > 1:
        do.recv(size - 1, count)
    for i in range(size - 2, 0, -1):
        do.recv(i, count)
        do.reduce(count)
    do.reduce(count)
    do.wait(*[do.isend(i, count) for i in range(1, size)])
    return do


def reduce_scatter_ring(rank, size, counts):
    do = Script()
    do.copy(sum(counts))
    left, right = (rank - 1) % size, (rank + 1) % size
    before = do.irecv(left, counts[(rank - 2) % size])
    do.send(right, counts[left])
    for k in range(2, size):
        previous = (rank - k) % size
        following = do.irecv(left, counts[(rank - 1 - k) % size])
        do.wait(before)
        do.reduce(counts[previous])
        do.send(right, counts[previous])
        before = following
    do.wait(before)
    do.reduce(counts[rank])
    do.copy(counts[rank])
    return do


def fold(rank, size, total, do):
    remain = size - power_below(size)
    do.copy(total)
    if rank < 2 * remain:
        if rank % 2 == 0:
            do.send(rank + 1, total)
            return None, remain
        do.recv(rank - 1, total)
        do.reduce(total)
        return rank // 2, remain
    return rank - remain, remain


def reduce_scatter_recursivehalving(rank, size, counts):
    do = Script()
    mine, remain = fold(rank, size, sum(counts), do)
    if mine is None:
        do.recv(rank + 1, counts[rank])
        return do
    pof2 = power_below(size)
    blocks = [
        counts[2 * i] + counts[2 * i + 1] if i < remain else counts[i + remain] for i in range(pof2)
    ]
    mask, send_index, recv_index, last_index = pof2 >> 1, 0, 0, pof2
    while mask:
        other = mine ^ mask
        peer = other * 2 + 1 if other < remain else other + remain
        if mine < other:
            send_index = recv_index + mask
            out, into = sum(blocks[send_index:last_index]), sum(blocks[recv_index:send_index])
        else:
            recv_index = send_index + mask
            out, into = sum(blocks[send_index:recv_index]), sum(blocks[recv_index:last_index])
        do.sendrecv(peer, out, peer, into)
        do.reduce(into)
        send_index, last_index, mask = recv_index, recv_index + mask, mask >> 1
    do.copy(counts[rank])
    if rank < 2 * remain:
        do.send(rank - 1, counts[rank - 1])
    return do


def reduce_scatter_butterfly(rank, size, counts):
    do = Script()
    pof2 = power_below(size)
    levels = pof2.bit_length() - 1

    def mirror(number):
        return sum(1 << (levels - 1 - k) for k in range(levels) if number >> k & 1)

    mine, rem = fold(rank, size, sum(counts), do)
    if mine is None:
        other = mirror((rank + 1) // 2)
        do.recv(other * 2 + 1 if other < rem else other + rem, counts[rank])
        return do

    def total(low, high):
        low = low * 2 if low < rem else low + rem
        high = high * 2 + 1 if high < rem else high + rem
        return sum(counts[low : high + 1])

    blocks, send_index, recv_index, mask = pof2, 0, 0, 1
    while mask < pof2:
        other = mine ^ mask
        peer = other * 2 + 1 if other < rem else other + rem
        blocks //= 2
        if mine & mask:
            recv_index += blocks
        else:
            send_index += blocks
        into = total(recv_index, recv_index + blocks - 1)
        do.sendrecv(peer, total(send_index, send_index + blocks - 1), peer, into)
        do.reduce(into)
        send_index, mask = recv_index, mask << 1
    other = mirror(mine)
    peer = other * 2 + 1 if other < rem else other + rem
    index = 2 * send_index if send_index < rem else rem + send_index
    if other < rem:
        do.send(peer - 1, counts[index])
        index += 1
    if other != mine:
        do.sendrecv(peer, counts[index], peer, counts[rank])
    else:
        do.copy(counts[rank])
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
