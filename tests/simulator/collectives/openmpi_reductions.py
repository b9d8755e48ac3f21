"""Reductions without a root, and one that gathers to it, as Open MPI's C has them, rank by rank.

Written from ompi/mca/coll/base/coll_base_{allreduce,reduce,reduce_scatter}.c of 5.0.9 (the same in
4.1.6), and not from hopmap. Counts are bytes.
"""

from __future__ import annotations

from support.rank_scripts import Script


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
