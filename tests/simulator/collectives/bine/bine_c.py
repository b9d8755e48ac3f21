"""Bine trees as the authors' C++ has them, rank by rank and recursively.

Written from lib/libbine_coll.cc (get_peer_c, compute_step_info, build_tree, remap_ranks) and the
loops of lib/libbine_coll_*.cc and libbine_common.cc in HLC-Lab/bine_trees_fugaku, and not from
hopmap; for lengths that are powers of two and ranks of one port. Counts are bytes. What is put
needs no receive; receives are posted here in the beginning, as they are waited for.
"""

from __future__ import annotations

from support.rank_scripts import Script

RHOS = [1, -1, 3, -5, 11, -21, 43, -85]


def coordinates(rank, dims):
    nodes = 1
    for size in dims:
        nodes *= size
    at = []
    for size in dims:
        nodes //= size
        at.append(rank // nodes)
        rank %= nodes
    return at


def rank_of(at, dims):
    rank, multiplier = 0, 1
    for k in range(len(dims) - 1, -1, -1):
        rank += multiplier * at[k]
        multiplier *= dims[k]
    return rank


def mirrored(port, dimensions):
    return {3: port >= 3, 2: port in (2, 3), 1: port % 2 == 1}[dimensions]


def step_info(port, dims):
    steps, taken, info = sum(size.bit_length() - 1 for size in dims), [0] * len(dims), []
    now = port % len(dims)
    for i in range(steps):
        info.append((now, taken[now]))
        taken[now] += 1
        if i != steps - 1:
            now = (now + 1) % len(dims)
            while taken[now] >= dims[now].bit_length() - 1:
                now = (now + 1) % len(dims)
    return info


def peer_of(rank, step, port, dims, recdoub=False):
    dim, k = step_info(port, dims)[step]
    at = coordinates(rank, dims)
    rhos = RHOS[k] * (-1 if at[dim] & 1 else 1)
    distance = (at[dim] ^ (1 << k)) - at[dim] if recdoub else rhos
    at[dim] = (at[dim] + distance * (-1 if mirrored(port, len(dims)) else 1)) % dims[dim]
    return rank_of(at, dims)


class Tree:
    """Parents, steps at which ranks are reached, and numbers that make subtrees ranges."""

    def __init__(self, root, port, dims, decreasing):
        self.steps = len(step_info(port, dims))
        self.port, self.dims, self.decreasing = port, dims, decreasing
        self.size = 1 << self.steps
        self.parent, self.reached = [None] * self.size, [self.steps] * self.size
        self.build(root, 0)
        self.parent[root], self.reached[root] = None, -1
        self.remapped, self.highest = [0] * self.size, [0] * self.size
        self.following = self.size - 1
        self.remap(root, 0)

    def peer(self, rank, i):
        return peer_of(rank, self.steps - 1 - i if self.decreasing else i, self.port, self.dims)

    def build(self, rank, step):
        for i in range(step, self.steps):
            peer = self.peer(rank, i)
            if self.parent[peer] is None or i < self.reached[peer]:
                self.parent[peer], self.reached[peer] = rank, i
            self.build(peer, i + 1)

    def remap(self, rank, step):
        self.highest[rank] = self.following
        for i in range(step, self.steps):
            peer = self.peer(rank, i)
            if self.parent[peer] == rank:
                self.remap(peer, i + 1)
        self.remapped[rank] = self.following
        self.following -= 1

    def blocks(self, rank):
        """Ranks whose blocks a subtree has."""
        ranges = range(self.remapped[rank], self.highest[rank] + 1)
        return [other for other in range(self.size) if self.remapped[other] in ranges]


def parts(count, largest):
    rest = []
    while count > largest:
        rest.append(largest)
        count -= largest
    return [*rest, count]


def told_by_all(rank, size):
    """The MPI_Allgather of bine_utofu_exchange_buf_info_allgather, by recursive doubling."""
    do, mask = Script(), 1
    while mask < size:
        do.sendrecv(rank ^ mask, 16 * mask, rank ^ mask, 16 * mask)
        mask *= 2
    return do


def told_by_partners(rank, dims, recdoub=False):
    """Loops of bine_utofu_exchange_buf_info."""
    do = Script()
    peers = [peer_of(rank, step, 0, dims, recdoub) for step in range(len(step_info(0, dims)))]
    sends, receives = [], []
    for step, peer in enumerate(peers):
        if step == 0:
            receives.append(do.irecv(peer, 16))
        sends.append(do.isend(peer, 16))
    for step, peer in enumerate(peers):
        receive = receives.pop() if receives else do.irecv(peer, 16)
        do.wait(receive, *(sends if step == 0 else []))
    return do


def bcast(rank, root, count, port, dims, segment):
    tree = Tree(root, port, dims, decreasing=True)
    do = told_by_all(rank, tree.size)
    sizes = parts(count, segment)
    receives = [] if rank == root else [do.irecv(tree.parent[rank], size) for size in sizes]
    for k, size in enumerate(sizes):
        if receives:
            do.wait(receives[k])
        sends = []
        for step in range(tree.reached[rank] + 1, tree.steps):
            peer = tree.peer(rank, step)
            if tree.parent[peer] == rank:
                sends.append(do.isend(peer, size))
        do.wait(*sends)
    return do


def reduce(rank, root, count, port, dims, segment):
    """Above 1 KiB, with the puts of 0 bytes that say that a parent is ready."""
    tree, do = Tree(root, port, dims, decreasing=True), Script()
    sizes, sending = parts(count, segment), tree.steps - 1 - tree.reached[rank]
    children = [peer_of(rank, step, port, dims) for step in range(sending)]
    assert all(tree.parent[child] == rank for child in children)
    ready = None if rank == root else do.irecv(tree.parent[rank], 0)
    receives = [[do.irecv(child, size) for size in sizes] for child in children]
    if not children:
        do.wait(ready)
        for size in sizes:
            do.send(tree.parent[rank], size)
        return do
    for step, child in enumerate(children):
        do.send(child, 0)
        for k, size in enumerate(sizes):
            do.wait(receives[step][k])
            do.reduce(size)
            if step == sending - 1 and rank != root:
                if k == 0:
                    do.wait(ready)
                do.send(tree.parent[rank], size)
    return do


def gather(rank, root, counts, port, dims, decreasing):
    tree, do = Tree(root, port, dims, decreasing=not decreasing), Script()
    do.copy(counts[rank])
    steps, requests = tree.steps, []
    sending = steps - 1 - tree.reached[rank]
    for step in range(sending):
        real = steps - 1 - step if decreasing else step
        peer = peer_of(rank, real, port, dims)
        assert tree.parent[peer] == rank
        requests.append(do.irecv(peer, sum(counts[block] for block in tree.blocks(peer))))
    for request in requests:
        do.wait(request)
    if rank != root:
        do.send(tree.parent[rank], sum(counts[block] for block in tree.blocks(rank)))
    else:
        do.copy(sum(counts))
    return do


def scatter(rank, root, counts, port, dims, decreasing):
    tree, do = Tree(root, port, dims, decreasing), Script()
    if rank == root:
        do.copy(sum(counts))
    else:
        do.recv(tree.parent[rank], sum(counts[block] for block in tree.blocks(rank)))
    sends = []
    for step in range(tree.reached[rank] + 1, tree.steps):
        peer = tree.peer(rank, step)
        if tree.parent[peer] == rank:
            sends.append(do.isend(peer, sum(counts[block] for block in tree.blocks(peer))))
    do.wait(*sends)
    do.copy(counts[rank])
    return do


def exchanges(do, given):
    """Puts and receives of all steps: (peer, out, into, what is done behind)."""
    receives = [do.irecv(peer, into) for peer, _, into, _ in given]
    for receive, (peer, out, _, behind) in zip(receives, given, strict=True):
        do.wait(do.isend(peer, out), receive)
        behind()
    return do


def nothing():
    pass


def allgather_permute(rank, block, dims):
    steps = len(step_info(0, dims))
    do = Script()
    do.copy(block)
    peers = [peer_of(rank, steps - 1 - step, 0, dims) for step in range(steps)]
    exchanges(do, [(p, block << k, block << k, nothing) for k, p in enumerate(peers)])
    do.copy(block << steps)
    return do


def allgather_send(rank, block, dims):
    steps = len(step_info(0, dims))
    do, size = told_by_partners(rank, dims), 1 << steps
    tree = Tree(0, 0, dims, decreasing=False)
    to, source = tree.remapped.index(rank), tree.remapped[rank]
    if rank == 0:
        do.copy(block)
    else:
        do.sendrecv(source, 16, to, 16)
        do.sendrecv(to, block, source, block)
    assert sorted(tree.remapped) == list(range(size))
    peers = [peer_of(rank, steps - 1 - step, 0, dims) for step in range(steps)]
    return exchanges(do, [(p, block << k, block << k, nothing) for k, p in enumerate(peers)])


def reduce_scatter(rank, block, dims):
    steps = len(step_info(0, dims))
    do = Script()
    do.copy(block << steps)
    given = []
    for step in range(steps):
        count = block << (steps - step - 1)
        given.append(
            (peer_of(rank, step, 0, dims), count, count, lambda count=count: do.reduce(count))
        )
    return exchanges(do, given)


def allreduce_l(rank, count, dims, recdoub=False):
    do = Script()
    for step in range(len(step_info(0, dims))):
        peer = peer_of(rank, step, 0, dims, recdoub)
        if count > 1024:
            do.sendrecv(peer, 0, peer, 0)
        do.sendrecv(peer, count, peer, count)
        do.reduce(count)
    return do


def allreduce_b_cont(rank, count, dims, recdoub=False):
    steps = len(step_info(0, dims))
    do, given = told_by_partners(rank, dims, recdoub), []
    for step in range(steps):
        half = count >> (step + 1)
        peer = peer_of(rank, step, 0, dims, recdoub)
        given.append((peer, half, half, lambda half=half: do.reduce(half)))
    back = [(peer, out, into, nothing) for peer, out, into, _ in reversed(given)]
    return exchanges(do, given + back)


def alltoall(rank, block, dims):
    steps = len(step_info(0, dims))
    do, half = Script(), block << (steps - 1)
    do.copy(block << steps)
    for step in range(steps):
        peer = peer_of(rank, step, 0, dims)
        do.copy(2 * half)  # what is sent and what is kept
        do.sendrecv(peer, 0, peer, 0)
        do.sendrecv(peer, half, peer, half)
    do.copy(block << steps)
    return do


def bruck_alltoall(rank, size, block):
    do, mask = Script(), 1
    do.copy(block * size)
    while mask < size:
        count = block * sum(bool(i & mask) for i in range(size))
        do.copy(count)
        do.sendrecv((rank + mask) % size, count, (rank - mask) % size, count)
        do.copy(count)
        mask *= 2
    do.copy(block * size)
    return do


def negabinary(number):
    return (0xAAAAAAAA + number) ^ 0xAAAAAAAA


def from_negabinary(bits):
    return (0xAAAAAAAA ^ bits) - 0xAAAAAAAA


def one_dimensional(rank, root, size):
    """Partners of bine_gather_mpi nearest first, with the mask and whether a rank goes on there."""
    me, mask = negabinary((rank - root) % size), 1
    while mask < size:
        partner = (from_negabinary(me ^ (2 * mask - 1)) + root) % size
        low = me & (4 * mask - 1)
        goes_on = low in (0, 4 * mask - 1) and not (2 * mask >= size and rank != root)
        yield mask, partner, goes_on
        mask *= 2


def ranges(counts, begin, end):
    """Bytes of the one or two messages of a range of blocks that may pass the last."""
    if end >= begin:
        return [sum(counts[begin : end + 1])]
    return [sum(counts[begin:]), sum(counts[: end + 1])]


def gather_mpi(rank, root, counts):
    size, do = len(counts), Script()
    do.copy(counts[rank])
    first = last = rank
    down = rank % 2 == 0
    for mask, partner, goes_on in one_dimensional(rank, root, size):
        if not goes_on:
            for count in ranges(counts, first, last):
                do.send(partner, count)
            break
        if down:
            begin, end = (last + 1) % size, (last + mask) % size
            last = end
        else:
            begin, end = (first - mask) % size, (first - 1) % size
            first = begin
        for count in ranges(counts, begin, end):
            do.recv(partner, count)
        down = not down
    return do


def scatter_mpi(rank, root, counts):
    """bine_scatter_mpi: what bine_gather_mpi does, backwards, and no copy where nobody is below."""
    calls, do = gather_mpi(rank, root, counts), Script()
    moves = [(word, peer, size) for word, peer, size in calls if word in ("post", "send")]
    steps, rest = [], list(moves)
    while rest:  # both messages of a range stay in their order
        same = [move for move in rest if move[:2] == rest[0][:2]]
        steps.append(same)
        rest = rest[len(same) :]
    for step in reversed(steps):
        for word, peer, size in step:
            (do.recv if word == "send" else do.send)(peer, size)
    if rank == root or any(word == "post" for word, _, _ in moves):
        do.copy(counts[rank])
    return do
