"""Bine trees: binomial trees whose subtrees are near each other, along the dimensions of a torus.

In step k a member talks to the one (1 - (-2)^(k+1)) / 3 further on, or back if its number is odd:
1, -1, 3, -5, 11, ... On a torus every dimension takes its steps in turn, by coordinate. For powers
of two. A buffer may be cut for several ports, each of which begins with a dimension of its own, and
half of them go the other way; they take their steps together. With `puts` data go straight into
memory (uTofu), where no receive is posted; else as messages.

Source: D. De Sensi et al., Bine Trees: Enhancing Collective Operations by Optimizing Communication
Locality, SC25, arXiv 2508.17311; lib/libbine_coll.cc in HLC-Lab/bine_trees_fugaku (compute_peers,
build_tree, remap_ranks). With the partners of recursive doubling instead: the family RECDOUB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.collectives.schedules import (
    AlgorithmError,
    Done,
    Schedule,
    masks,
    merge,
    one_after_another,
    require,
    schedule,
    segments,
    work,
)

Dims = tuple[int, ...]  # lengths of a torus; none of one ring
LARGEST_PUT = 16777215  # bytes; longer transfers are cut, MAX_PUTGET_SIZE
ADDRESSES = 16  # bytes of a receive and a temporary buffer's


class BineTree(NamedTuple):
    """A tree that reaches twice as many members in every step; all of shape (members,)."""

    parent: Ints  # -1 of the root
    reached: Ints  # step in which a member is reached; -1 of the root
    place: Ints  # numbers by which every subtree is a range, its root the first


def ways(members: int, dims: Dims = (), port: int = 0, doubling: bool = False) -> Ints:
    """Return each member's partner in every step, nearest first, shape (steps, members).

    They may be the partners of recursive doubling. `dims` are the lengths of the torus, of whose
    coordinates the last changes first; one ring if left out. The port says which part of a buffer
    that is cut for several ports.
    """
    shape = dims or (members,)
    suits = members == np.prod(shape) and all(size & (size - 1) == 0 for size in shape)
    wanted = "as many as the dimensions make, each a power of two" if dims else "a power of two"
    require(suits, "a Bine tree", members, wanted)
    at = np.stack(np.unravel_index(np.arange(members), shape))
    mirror = -1 if _is_mirrored(port, len(shape)) else 1
    left = [size.bit_length() - 1 for size in shape]
    taken, dim, rows = [0] * len(shape), port % len(shape), []
    while any(left):
        if left[dim]:
            here = at[dim]
            if doubling:
                way = (here ^ (1 << taken[dim])) - here
            else:
                way = (1 - (-2) ** (taken[dim] + 1)) // 3 * (1 - 2 * (here % 2))
            there = at.copy()
            there[dim] = (here + mirror * way) % shape[dim]
            rows.append(np.ravel_multi_index(tuple(there), shape))
            left[dim] -= 1
            taken[dim] += 1
        dim = (dim + 1) % len(shape)
    return np.array(rows, dtype=np.int64).reshape(len(rows), members)


def _is_mirrored(port: int, dimensions: int) -> bool:
    if dimensions == 3:
        return port >= 3
    if dimensions == 2:
        return port in (2, 3)
    return dimensions == 1 and port % 2 == 1


def tree_from(root: int, way: Ints, nearest_first: bool) -> BineTree:
    """Let everyone who is reached tell its partner of each step, in either order."""
    steps, members = way.shape
    parent, reached = np.full(members, -1), np.full(members, -1)
    place = np.zeros(members, dtype=np.int64)
    known = np.array([root])
    for k in range(steps):
        partner = way[k if nearest_first else steps - 1 - k][known]
        parent[partner], reached[partner] = known, k
        place[partner] = place[known] + (1 << (steps - 1 - k))
        known = np.concatenate((known, partner))
    return BineTree(parent, reached, place)


def bytes_below(tree: BineTree, volume: Ints) -> Ints:
    """Bytes of the blocks of every subtree."""
    below = volume.astype(np.int64).copy()
    for k in range(int(tree.reached.max(initial=-1)), -1, -1):
        now = np.flatnonzero(tree.reached == k)
        np.add.at(below, tree.parent[now], below[now])
    return below


def by_port(ports: int, volume: Ints, of: Callable[[int, Ints], Schedule]) -> Schedule:
    """Cut every block for so many ports, the first ones longer by a byte; all take each step.

    Messages of several ports stand in the order of their senders' steps: what one member sends
    another meets receives that are posted in that order.
    """
    parts = [volume // ports + (port < volume % ports) for port in range(ports)]
    joined = merge(*(of(port, part) for port, part in enumerate(parts)))
    return joined if ports == 1 else joined.of(np.argsort(joined.round, kind="stable"))


def bine_bcast(
    members: int,
    root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
    puts: int = 0,
) -> Schedule:
    """Bine tree, farthest first; each segment to all children at once: bine_bcast_l.

    With puts, members first exchange the addresses of their buffers.
    """
    plan = _bcast(members, root, volume, dims, ports, segment)
    return post_early(plan, puts, announce_to_all(members, ports))


def _bcast(members: int, root: int, volume: Ints, dims: Dims, ports: int, segment: int) -> Schedule:
    def of(port: int, part: Ints) -> Schedule:
        tree = tree_from(root, ways(members, dims, port), nearest_first=False)
        return tree_down(tree, _segments(int(part[0]), segment))

    return by_port(ports, volume[:1], of)


def bine_bcast_increasing(members: int, root: int, volume: Ints, /, *, dims: Dims = ()) -> Schedule:
    """Bine tree, nearest first: bcast_bine_lat of the authors' library in HLC-Lab/pico."""
    tree = tree_from(root, ways(members, dims), nearest_first=True)
    return tree_down(tree, volume[:1])


def bine_bcast_blocking(members: int, root: int, volume: Ints, /, *, dims: Dims = ()) -> Schedule:
    """Bine tree, farthest first, child after child: bine_bcast_l_mpi, bcast_bine_lat_new."""
    tree = tree_from(root, ways(members, dims), nearest_first=False)
    child = order_of_reach(tree)
    step = tree.reached[child]
    return Schedule(step, tree.parent[child], child, volume[0] + 0 * child, step, step, work())


def bine_bcast_with_buffer(
    members: int,
    root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
    puts: int = 0,
) -> Schedule:
    """As the Bine tree, by way of a buffer from which everyone copies: bine_bcast_l_tmpbuf."""
    plan = post_early(_bcast(members, root, volume, dims, ports, segment), puts)
    others = np.delete(np.arange(members), root)
    return plan._replace(work=work([(plan.steps, others, volume[:1])]))


def tree_down(tree: BineTree, size: Ints) -> Schedule:
    """Send segments of these sizes down a tree, each to all children at once."""
    child = order_of_reach(tree)
    which, dst = np.repeat(np.arange(len(size)), len(child)), np.tile(child, len(size))
    taken = 2 * which + 1
    return Schedule(
        taken + 1, tree.parent[dst], dst, np.repeat(size, len(child)), taken, taken, work()
    )


def bine_reduce(
    members: int,
    root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
    puts: int = 0,
) -> Schedule:
    """Bine tree towards the root, nearest first: bine_reduce_utofu, bine_reduce_mpi.

    A segment goes on when the last child's is added. With puts above 1 KiB a parent first tells
    each child that it may send; without, everyone copies the buffer first. Several ports need puts,
    as in the authors' library: parts that wait for receives would wait for each other.
    """
    if ports > 1 and not puts:
        raise AlgorithmError(f"reduce=bine(ports={ports}) requires puts=1")
    asks = puts > 0 and int(volume[0]) > 1024

    def of(port: int, part: Ints) -> Schedule:
        tree = tree_from(root, ways(members, dims, port), nearest_first=False)
        child = order_of_reach(tree)[::-1]
        size = _segments(int(part[0]), segment)
        count, src = len(size), np.repeat(child, len(size))
        which = np.tile(np.arange(count), len(child))
        steps = int(tree.reached.max(initial=-1)) + 1
        # A member's children come in the last steps but those before it was reached itself.
        turn = (steps - 1 - tree.reached) * count  # of each member as a child, and when it sends
        taken = 4 * (turn[src] + which) + 1
        behind = np.maximum(turn - count, 0)  # where its last child's segments come in
        data = Schedule(
            round=4 * (behind[src] + which) + 3,
            src=src,
            dst=tree.parent[src],
            size=size[which],
            posted=taken,
            taken=taken,
            work=work(reduced=[(taken, tree.parent[src], size[which])]),
        )
        if not asks:
            return data
        when = 4 * behind[child] + 2
        zero = np.zeros_like(child)
        return merge(
            Schedule(4 * turn[child], tree.parent[child], child, zero, when, when, work()), data
        )

    plan = post_early(by_port(ports, volume[:1], of), puts)
    if puts:
        return plan
    copied = schedule([], [(-1, np.arange(members), volume[:1])])
    return merge(plan, copied)


def gather_blocks(tree: BineTree, volume: Ints) -> Schedule:
    """Send the blocks of whole subtrees towards the root, last reached first."""
    child = order_of_reach(tree)[::-1]
    below = bytes_below(tree, volume)
    step = int(tree.reached.max(initial=-1)) - tree.reached[child]
    return Schedule(step, child, tree.parent[child], below[child], step, step, work())


def scatter_blocks(tree: BineTree, volume: Ints) -> Schedule:
    """Send the blocks of whole subtrees from the root; all children at once."""
    child = order_of_reach(tree)
    below = bytes_below(tree, volume)
    zero = np.zeros_like(child)
    return Schedule(zero + 1, tree.parent[child], child, below[child], zero, zero, work())


def order_of_reach(tree: BineTree) -> Ints:
    """All members but the root, as they are reached."""
    order = np.argsort(tree.reached, kind="stable")
    return order[tree.reached[order] >= 0]


def _segments(total: int, segment: int) -> Ints:
    return segments(total, min(segment or LARGEST_PUT, LARGEST_PUT))


def announce_to_all(members: int, ports: int) -> Schedule:
    """Everyone tells everyone where its buffer lies: bine_utofu_exchange_buf_info_allgather.

    An MPI_Allgather in place of 16 bytes for each port, taken to be by recursive doubling.
    """
    me, rounds = np.arange(members), []
    for mask in masks(members):
        rounds.append((me, me ^ mask, np.full_like(me, ADDRESSES * ports * mask)))
    return schedule(rounds)


def announce_to_partners(way: Ints, ports: int) -> Schedule:
    """Everyone tells the partner of each step where its buffer lies: bine_utofu_exchange_buf_info.

    All at once, with as many bytes for each port.
    """
    steps, members = way.shape
    me, step = np.tile(np.arange(members), steps), np.repeat(np.arange(steps), members)
    zero = np.zeros_like(me)
    size = np.full_like(me, ADDRESSES * ports)
    return Schedule(zero, me, way.ravel(), size, step, step, work())


def post_early(plan: Schedule, puts: int, announcements: Schedule | None = None) -> Schedule:
    """Post all receives in the beginning if data are put into memory that is there.

    Addresses have been exchanged before, unless the library keeps the buffer.
    """
    if not puts:
        return plan
    plan = plan._replace(posted=np.zeros_like(plan.posted), puts=True)
    return one_after_another(announcements, plan) if announcements else plan


def doubling(way: Ints, held: Ints) -> Schedule:
    """Exchange all that is held with the partner of each step, farthest first."""
    me, rounds = np.arange(len(held)), []
    for partner in way[::-1]:
        rounds.append((me, partner, held))
        held = held + held[partner]
    return schedule(rounds)


def halving(way: Ints, volume: Ints, segment: int = 0, puts: int = 0) -> Schedule:
    """Send the partner what is its part of what is left, nearest first, and add up what comes.

    A part is cut into segments, all under way at once; a put has its longest.
    """
    me, held, sizes = np.arange(len(volume)), volume.astype(np.int64), []
    for partner in way[::-1]:
        sizes.append(held[partner])
        held = held + held[partner]
    parts, begin = [], 0
    whole = max(int(volume.sum()), 1)
    length = min(segment or whole, LARGEST_PUT if puts else whole)
    for partner, size in zip(way, reversed(sizes), strict=True):
        count = max(-(-int(size.max(initial=0)) // length), 1)
        for k in range(count):
            part = np.clip(size - k * length, 0, length)
            src = me[(part > 0) | (k == 0)]
            dst = partner[src]
            taken = np.full_like(src, begin + k)
            parts.append(
                Schedule(
                    round=np.full_like(src, begin),
                    src=src,
                    dst=dst,
                    size=part[src],
                    posted=np.full_like(src, begin),
                    taken=taken,
                    work=work(reduced=[(taken, dst, part[src])]),
                )
            )
        begin += count
    return merge(*parts) if parts else schedule([])


def with_copies(plan: Schedule, copied: list[Done], blocks: list[Done] | None = None) -> Schedule:
    """Add what is copied, and how many blocks by themselves."""
    return merge(plan, schedule([], copied, blocks=blocks or ()))
