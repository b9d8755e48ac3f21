"""Trees, broadcasts, reductions, gathers and scatters as Open MPI's C has them, rank by rank.

Written from ompi/mca/coll/base/coll_base_topo.c, coll_base_bcast.c, coll_base_reduce.c,
coll_base_gather.c and coll_base_scatter.c of 5.0.9 (the same in 4.1.6), and not from hopmap.
"""

from __future__ import annotations

from support.rank_scripts import Script


def build_tree(fanout, size, rank, root):
    shifted = (rank - root) % size
    level = seen = 0
    while seen + fanout**level <= shifted:
        seen += fanout**level
        level += 1
    delta = fanout**level
    children = [shifted + delta * (i + 1) for i in range(fanout)]
    parent = shifted
    if parent < fanout:
        parent = 0
    else:
        while parent >= seen:
            parent -= delta // fanout
    return (parent + root) % size, [(c + root) % size for c in children if c < size]


def build_bmtree(size, rank, root):
    index = (rank - root) % size
    mask = 1
    while mask <= index:  # opal_next_poweroftwo
        mask <<= 1
    parent = root if index == 0 else ((index ^ (mask >> 1)) + root) % size
    children = []
    while mask < size and index ^ mask < size:
        children.append(((index ^ mask) + root) % size)
        mask <<= 1
    return parent, children


def build_in_order_bmtree(size, rank, root):
    vrank = (rank - root) % size
    parent, children, mask = root, [], 1
    while mask < size:
        remote = vrank ^ mask
        if remote < vrank:
            parent = (remote + root) % size
            break
        if remote < size:
            children.append((remote + root) % size)
        mask <<= 1
    return parent, children


def build_kmtree(size, rank, root, radix):
    vrank = (rank - root) % size
    parent, mask = -1, 1
    while mask < size:
        if vrank % (radix * mask):
            parent = (vrank // (radix * mask) * (radix * mask) + root) % size
            break
        mask *= radix
    mask //= radix
    children = []
    while mask > 0:
        children += [
            (vrank + mask * r + root) % size for r in range(1, radix) if vrank + mask * r < size
        ]
        mask //= radix
    return parent, children


def build_chain(fanout, size, rank, root):
    fanout = min(fanout, size - 1)
    srank = (rank - root) % size
    if fanout == 1:
        return (srank - 1 + root) % size, [(srank + 1 + root) % size] * (srank + 1 < size)
    longest, mark = (size - 1) // fanout, fanout + 1
    if (size - 1) % fanout:
        longest, mark = longest + 1, (size - 1) % fanout
    if srank == 0:
        children = [(root + 1) % size]
        for i in range(1, fanout):
            children.append((children[-1] + longest - (i > mark)) % size)
        return -1, children
    if srank - 1 < mark * longest:
        head, length = 1 + (srank - 1) // longest * longest, longest
    else:
        column = mark + (srank - 1 - mark * longest) // (longest - 1)
        head, length = mark * longest + 1 + (column - mark) * (longest - 1), longest - 1
    parent = 0 if srank == head else srank - 1
    children = [] if srank == head + length - 1 or srank + 1 >= size else [srank + 1]
    return (parent + root) % size, [(c + root) % size for c in children]


def build_in_order_bintree(size, rank):
    mine, parent, delta = rank, size - 1, 0
    above = -1
    while True:
        right = size >> 1
        left_child = right_child = -1
        if size > 1:
            left_child = parent - 1
            if left_child > 0:
                right_child = right - 1
        if mine == parent:
            return above, [c + delta for c in (left_child, right_child) if c >= 0]
        if mine > right_child:
            if mine == left_child:
                above = parent + delta
            size, delta, mine = size - right - 1, delta + right, mine - right
            parent = size - 1
        else:
            if mine == right_child:
                above = parent + delta
            size, parent = right, right_child


def segments_of(count, segment):
    """Bytes of each segment, COLL_BASE_COMPUTED_SEGCOUNT of bytes."""
    segment = segment if 1 <= segment < count else count
    number = -(-count // segment)
    return [segment] * (number - 1) + [count - segment * (number - 1)]


def bcast_generic(rank, root, count, segment, parent, children):
    do, sizes = Script(), segments_of(count, segment)
    if rank == root:
        for size in sizes:
            do.wait(*[do.isend(child, size) for child in children])
        return do
    before = do.irecv(parent, sizes[0])
    for k in range(1, len(sizes)):
        following = do.irecv(parent, sizes[k])
        do.wait(before)
        do.wait(*[do.isend(child, sizes[k - 1]) for child in children])
        before = following
    do.wait(before)
    do.wait(*[do.isend(child, sizes[-1]) for child in children])
    return do


def bcast_split_bintree(rank, size, root, count, segment):
    counts = [(count + 1) // 2, count // 2]
    if 0 in counts or segment > counts[0] or segment > counts[1]:
        return bcast_generic(rank, root, count, segment, *build_chain(1, size, rank, root))
    parent, children = build_tree(2, size, rank, root)
    sizes = [segments_of(half, segment) for half in counts]
    do, side = Script(), ((rank + size - root) % size + 1) % 2
    if rank == root:
        for k in range(len(sizes[0])):
            for i, child in enumerate(children):
                if k < len(sizes[i]):
                    do.send(child, sizes[i][k])
    elif children:
        before = do.irecv(parent, sizes[side][0])
        for k in range(1, len(sizes[side])):
            following = do.irecv(parent, sizes[side][k])
            do.wait(before)
            for child in children:
                do.send(child, sizes[side][k - 1])
            before = following
        do.wait(before)
        for child in children:
            do.send(child, sizes[side][-1])
    else:
        for part in sizes[side]:
            do.recv(parent, part)
    pair = (rank + 1) % size if side == 0 else (rank - 1) % size
    if size % 2 == 0 and rank == root:
        do.send((root + size - 1) % size, counts[1])
    elif size % 2 == 0 and rank == (root + size - 1) % size:
        do.recv(root, counts[1])
    elif rank != root:
        do.sendrecv(pair, counts[side], pair, counts[1 - side])
    return do


def reduce_generic(rank, tree_root, count, segment, parent, children):
    do, sizes = Script(), segments_of(count, segment)
    if not children:
        for size in sizes:
            do.send(parent, size)
        return do
    before = None
    for k in range(len(sizes) + 1):
        for i, child in enumerate(children):
            following = do.irecv(child, sizes[k]) if k < len(sizes) else None
            do.wait(before)
            if i > 0:
                do.reduce(sizes[k])
            elif k > 0:
                do.reduce(sizes[k - 1])
                if rank != tree_root:
                    do.send(parent, sizes[k - 1])
                if k == len(sizes):
                    break
            before = following
    return do


def reduce_in_order_binary(rank, size, root, count, segment):
    do = reduce_generic(rank, size - 1, count, segment, *build_in_order_bintree(size, rank))
    if root != size - 1:
        if rank == root:
            do.recv(size - 1, count)
        elif rank == size - 1:
            do.send(root, count)
    return do


def reduce_basic_linear(rank, size, root, count):
    do = Script()
    if rank != root:
        do.send(root, count)
        return do
    if rank == size - 1:
        do.copy(count)
    else:
        do.recv(size - 1, count)
    for i in range(size - 2, -1, -1):
        if i != rank:
            do.recv(i, count)
        do.reduce(count)
    return do


def bcast_basic_linear(rank, size, root, count):
    do = Script()
    if rank != root:
        do.recv(root, count)
    else:
        do.wait(*[do.isend(i, count) for i in range(size) if i != root])
    return do


def subtree(size, root, block, rank, parent):
    """Bytes of a child's subtree, as its parent counts them."""
    child, above = (rank - root) % size, (parent - root) % size
    return min(child - above, size - child) * block


def gather_binomial(rank, size, root, block):
    do = Script()
    vrank = (rank - root) % size
    parent, children = build_in_order_bmtree(size, rank, root)
    if vrank % 2 == 0:
        do.copy(block)
    total = block
    for child in children:
        part = subtree(size, root, block, child, rank)
        do.recv(child, part)
        total += part
    if rank != root:
        do.send(parent, total)
    elif root != 0:
        do.copy(block * size)  # rotated, in two parts
    return do


def gather_linear_sync(rank, size, root, block, segment):
    do = Script()
    first = segment if 1 <= segment < block else block
    if rank != root:
        do.recv(root, 0)
        do.send(root, first)
        do.send(root, block - first)
        return do
    late = []
    for i in range(size):
        if i != rank:
            early = do.irecv(i, first)
            do.send(i, 0)
            late.append(do.irecv(i, block - first))
            do.wait(early)
    do.copy(block)
    do.wait(*late)
    return do


def gather_basic_linear(rank, size, root, block):
    do = Script()
    if rank != root:
        do.send(root, block)
        return do
    for i in range(size):
        if i == rank:
            do.copy(block)
        else:
            do.recv(i, block)
    return do


def scatter_binomial(rank, size, root, block):
    do = Script()
    vrank = (rank - root) % size
    parent, children = build_in_order_bmtree(size, rank, root)
    if vrank % 2:
        do.recv(parent, block)
        return do
    if rank != root:
        do.recv(parent, subtree(size, root, block, rank, parent))
    do.copy(block + (block * size if rank == root and root != 0 else 0))  # rotated, and its own
    for child in reversed(children):
        do.send(child, subtree(size, root, block, child, rank))
    return do


def scatter_basic_linear(rank, size, root, block):
    do = Script()
    if rank != root:
        do.recv(root, block)
        return do
    for i in range(size):
        if i == rank:
            do.copy(block)
        else:
            do.send(i, block)
    return do


def scatter_linear_nb(rank, size, root, block):
    """Without a limit on requests; where between the sends the root copies does not matter."""
    do = Script()
    if rank != root:
        do.recv(root, block)
        return do
    do.copy(block)
    do.wait(*[do.isend(i, block) for i in range(size) if i != rank])
    return do


def bcast_scatter_allgather(rank, size, root, count, ring):
    do = Script()
    vrank, length = (rank - root) % size, -(-count // size)

    def begin(block):
        return min(block * length, count)

    mask, held = 1, count if rank == root else 0
    while mask < size:
        if vrank & mask:
            held = begin(min(vrank + mask, size)) - begin(vrank)
            if count - vrank * length > 0:
                do.recv((rank - mask) % size, held)
            else:
                held = 0
            break
        mask <<= 1
    mask >>= 1
    while mask:
        if vrank + mask < size and held - length * mask > 0:
            do.send((rank + mask) % size, held - length * mask)
            held = length * mask
        mask >>= 1
    if ring:
        for i in range(size - 1):
            out, into = (vrank - i) % size, (vrank - i - 1) % size
            do.sendrecv(
                (rank + 1) % size,
                begin(out + 1) - begin(out),
                (rank - 1) % size,
                begin(into + 1) - begin(into),
            )
        return do
    held = begin(vrank + 1) - begin(vrank)
    mask = 1
    while mask < size:
        remote = vrank ^ mask
        here, there = vrank // mask * mask, remote // mask * mask
        came = begin(min(there + mask, size)) - begin(min(there, size))
        if remote < size:
            do.sendrecv((remote + root) % size, held, (remote + root) % size, came)
            held += came
        if there + mask > size:
            heard = size - here - mask
            half = mask >> 1
            while half:
                remote = vrank ^ half
                top = vrank // (2 * half) * (2 * half)
                if remote > vrank and vrank < top + heard <= remote:
                    do.send((remote + root) % size, came)
                elif remote < vrank and remote < top + heard <= vrank:
                    do.recv((remote + root) % size, came)
                    held += came
                half >>= 1
        mask <<= 1
    return do
