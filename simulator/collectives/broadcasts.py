"""Broadcasts and reductions to one member: whole buffers down or up a tree, in segments if wished.

Source: Open MPI, coll_base_bcast.c and coll_base_reduce.c in ompi/mca/coll/base, the same in 4.1
and 5.0; trees are from coll_base_topo.c, whose function is named with each. Behind
`scatter_allgather`: M. Barnett et al., Building a high-performance collective communication
library, 1994 (van de Geijn). Reductions are taken to commute, and not to be in place;
`rabenseifner` is in `reductions.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, equals_before

from .exchanges import ring
from .schedules import (
    Schedule,
    edges,
    equal_blocks,
    masks,
    merge,
    one_after_another,
    rotate,
    schedule,
    segments,
    work,
)


class Tree(NamedTuple):
    """A tree of members."""

    # shape (members - 1,): all but the root, by depth of their parents, then by parents, then in
    # their order there
    child: Ints
    # parent, place: shape (members - 1,): of each of these the parent, and its place among the
    # parent's children
    parent: Ints
    place: Ints
    # depth, children: shape (members,): of every member its distance from the root, and how many
    # children it has
    depth: Ints
    children: Ints


def tree_of(parent: Ints, order: Ints, root: int = 0) -> Tree:
    """Build a tree from every member's parent, that of the root being anything.

    Siblings come in the order of these numbers; both arrays have shape (members,).
    """
    members = len(parent)
    parent = parent.copy()
    parent[root] = root
    depth, above = np.zeros(members, dtype=np.int64), parent.copy()
    while (above != root).any():
        depth += above != root
        above = parent[above]
    depth += np.arange(members) != root
    child = np.delete(np.arange(members), root)
    child = child[np.lexsort((order[child], parent[child], depth[child]))]
    above = parent[child]
    return Tree(child, above, equals_before(above), depth, np.bincount(above, minlength=members))


def rotate_tree(tree: Tree, root: int) -> Tree:
    """Put this root in the place of member 0, and all others behind it in turn."""
    members = len(tree.depth)
    back = (np.arange(members) - root) % members
    return Tree(
        (tree.child + root) % members,
        (tree.parent + root) % members,
        tree.place,
        tree.depth[back],
        tree.children[back],
    )


def binomial(members: int) -> Tree:
    """Parents lack the highest bit; children nearest first: build_bmtree."""
    me = np.arange(members)
    return tree_of(me - _highest_bit(me), me)


def in_order_binomial(members: int) -> Tree:
    """Parents lack the lowest bit; children nearest first: build_in_order_bmtree."""
    me = np.arange(members)
    return tree_of(me & (me - 1), me)


def knomial(members: int, radix: int = 4) -> Tree:
    """Parents lack the lowest digit; children farthest first: build_kmtree."""
    me = np.arange(members)
    digit = np.ones(members, dtype=np.int64)  # weight of the lowest digit that is not 0
    weight = radix
    while weight < members:
        digit[me % weight == 0] = weight
        weight *= radix
    # The last digits' children come first, and of these the nearest.
    return tree_of(me - me // digit % radix * digit, me - digit * 2 * radix * members)


def binary(members: int) -> Tree:
    """Level after level, children of neighbours next to each other: build_tree with fan-out 2."""
    me = np.arange(members)
    above = (_highest_bit(me + 1) + 1) // 2  # members of the level above
    parent = np.where(me < 3, 0, above - 1 + (me + 1) % np.maximum(above, 1))
    return tree_of(parent, me)


def chains(members: int, fanout: int = 1) -> Tree:
    """So many chains from the root, the first ones longer by one: build_chain."""
    fanout = min(max(fanout, 1), 32, max(members - 1, 1))  # MAXTREEFANOUT is 32
    longest, longer = -(-(members - 1) // fanout), (members - 1) % fanout or fanout
    length = np.full(fanout, longest)
    length[longer:] -= 1
    me = np.arange(members)
    heads = 1 + np.concatenate(([0], np.cumsum(length)[:-1]))
    return tree_of(np.where(np.isin(me, heads), 0, me - 1), me)


def in_order_binary(members: int) -> Tree:
    """Every subtree is a range of members whose last is its root: build_in_order_bintree.

    The right half of what is left goes to the left child. Members count from 0, and the last one is
    the root.
    """
    parent, order = np.zeros(members, dtype=np.int64), np.arange(members)[::-1].copy()
    ranges = [(0, members)]
    while ranges:
        begin, size = ranges.pop()
        right = size >> 1
        if size > 1:
            parent[begin + size - 2] = begin + size - 1
            ranges.append((begin + right, size - right - 1))
        if size > 2:
            parent[begin + right - 1] = begin + size - 1
            ranges.append((begin, right))
    return tree_of(parent, order, members - 1)


def _highest_bit(numbers: Ints) -> Ints:
    """Largest power of two in each number; 0 of 0."""
    bits = np.frexp(numbers.astype(np.float64))[1]
    return np.where(numbers > 0, 1 << np.maximum(bits - 1, 0), 0).astype(np.int64)


SEGMENT = 128 * 1024  # bytes of a pipeline's segment, as in Open MPI until 4.0


def binomial_bcast(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Binomial tree from the root, children at 1, 2, 4, ...: bcast_intra_binomial."""
    return _send_down(rotate_tree(binomial(members), root), int(volume[0]), segment)


def binary_bcast(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Binary tree from the root: bcast_intra_bintree."""
    return _send_down(rotate_tree(binary(members), root), int(volume[0]), segment)


def knomial_bcast(
    members: int, root: int, volume: Ints, /, *, segment: int = 0, radix: int = 4
) -> Schedule:
    """Tree in which a member's number lacks its parent's lowest digit: bcast_intra_knomial."""
    return _send_down(rotate_tree(knomial(members, radix), root), int(volume[0]), segment)


def chain_bcast(
    members: int, root: int, volume: Ints, /, *, segment: int = 0, fanout: int = 1
) -> Schedule:
    """Chains from the root, along which the buffer is passed on: bcast_intra_chain."""
    return _send_down(rotate_tree(chains(members, fanout), root), int(volume[0]), segment)


def pipeline_bcast(members: int, root: int, volume: Ints, /, *, segment: int = SEGMENT) -> Schedule:
    """One chain, in segments: bcast_intra_pipeline."""
    return _send_down(rotate_tree(chains(members), root), int(volume[0]), segment)


def linear_bcast(members: int, root: int, volume: Ints, /) -> Schedule:
    """Send from the root to everyone at once: bcast_intra_basic_linear."""
    dst = np.delete(np.arange(members), root)
    return schedule([(np.full_like(dst, root), dst, np.full_like(dst, volume[0]))])


def _send_down(tree: Tree, total: int, segment: int) -> Schedule:
    """Send each segment to all children, wait for that, go on: bcast_intra_generic.

    The receive of a segment is posted before the one before is waited for.
    """
    size = segments(total, segment)
    count, edges = len(size), len(tree.child)
    which = np.repeat(np.arange(count), edges)
    src, dst = np.tile(tree.parent, count), np.tile(tree.child, count)
    taken = 2 * which + 2
    return Schedule(
        round=2 * which + 3,
        src=src,
        dst=dst,
        size=np.repeat(size, edges),
        posted=taken if count == 1 else 2 * which,
        taken=taken,
        work=work(),
    )


def split_binary_bcast(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Each half down its side of a binary tree, then exchanged in pairs: bcast_intra_split_bintree.

    All sends are blocking. What cannot be halved goes along a chain.
    """
    whole = int(volume[0])
    halves = (whole - whole // 2, whole // 2)
    if not halves[1] or segment > halves[1]:
        return chain_bcast(members, root, volume, segment=segment)
    tree = binary(members)
    left = tree.child % 2
    sides = [np.flatnonzero(left != side) for side in (0, 1)]
    down = merge(
        *(
            _send_each(tree, of, segments(half, segment))
            for of, half in zip(sides, halves, strict=True)
        )
    )
    me = np.arange(1, members)
    pair = me + np.where(me % 2, 1, -1)
    size = np.where(me % 2, *halves)
    if members % 2 == 0:  # the last one has no pair but the root, which has all
        me[-1], pair[-1], size[-1] = 0, members - 1, halves[1]
    both = one_after_another(down, schedule([(me, pair, size)] if members > 1 else []))
    return rotate(both, members, root)


def _send_each(tree: Tree, of: Ints, size: Ints) -> Schedule:
    """Send segments to these members alone, child after child."""
    count = len(size)
    which = np.repeat(np.arange(count), len(of))
    src, dst, place = (np.tile(c[of], count) for c in (tree.parent, tree.child, tree.place))
    taken = 3 * which + 3
    at_once = (tree.children[dst] == 0) | (count == 1)
    return Schedule(
        round=taken + 1 + place,
        src=src,
        dst=dst,
        size=np.repeat(size, len(of)),
        posted=np.where(at_once, taken, 3 * which),
        taken=taken,
        work=work(),
    )


def scatter_allgather(members: int, root: int, volume: Ints, /) -> Schedule:
    """Scatter, then allgather by recursive doubling: bcast_intra_scatter_allgather.

    Where a partner is beyond the last member, those who lack what it would have sent get it from
    others of their half.
    """
    blocks = equal_blocks(int(volume[0]), members)
    before = edges(blocks)
    me = np.arange(members)
    rounds = []
    for mask in masks(members):
        here, there = me & -mask, (me ^ mask) & -mask
        far = np.minimum(there + mask, members)
        both = me[me ^ mask < members]
        size = before[np.minimum(here + mask, members)] - before[here]
        rounds.append((both, both ^ mask, size[both]))
        # Of the lower half, so many have heard of the upper one, which is not whole.
        heard = np.where((there > here) & (there + mask > members), members - there, mask)
        for half in reversed(masks(mask)):
            known = (me & -(2 * half)) + heard
            gives = (heard > 0) & (me & half == 0) & (me < known) & (me + half >= known)
            src = me[gives]
            rounds.append((src, src + half, before[far[src]] - before[there[src]]))
    rounds = [each for each in rounds if len(each[0])]
    return rotate(one_after_another(_scatter(blocks), schedule(rounds)), members, root)


def scatter_allgather_ring(members: int, root: int, volume: Ints, /) -> Schedule:
    """Scatter, then allgather in a ring: bcast_intra_scatter_allgather_ring."""
    blocks = equal_blocks(int(volume[0]), members)
    around = ring(members, 0, blocks)._replace(work=work())
    return rotate(one_after_another(_scatter(blocks), around), members, root)


def _scatter(blocks: Ints) -> Schedule:
    """In-order binomial tree from member 0, farthest child first; nothing is sent without bytes."""
    members, before = len(blocks), edges(blocks)
    rounds = []
    for mask in reversed(masks(members)):
        src = np.arange(0, members - mask, 2 * mask)
        size = before[np.minimum(src + 2 * mask, members)] - before[src + mask]
        src, size = src[size > 0], size[size > 0]
        rounds.append((src, src + mask, size))
    return schedule(rounds)


def binomial_reduce(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """In-order binomial tree towards the root: reduce_intra_binomial."""
    return _add_up(rotate_tree(in_order_binomial(members), root), int(volume[0]), segment)


def binary_reduce(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Binary tree towards the root: reduce_intra_binary."""
    return _add_up(rotate_tree(binary(members), root), int(volume[0]), segment)


def in_order_binary_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = 0
) -> Schedule:
    """Binary tree to the last member, and from there to the root: reduce_intra_in_order_binary."""
    whole, last = int(volume[0]), members - 1
    up = _add_up(in_order_binary(members), whole, segment)
    if root == last:
        return up
    return one_after_another(
        up, schedule([(np.array([last]), np.array([root]), np.array([whole]))])
    )


def chain_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = 0, fanout: int = 1
) -> Schedule:
    """Chains towards the root, along which partial results are passed on: reduce_intra_chain."""
    return _add_up(rotate_tree(chains(members, fanout), root), int(volume[0]), segment)


def pipeline_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = SEGMENT
) -> Schedule:
    """One chain, in segments: reduce_intra_pipeline."""
    return _add_up(rotate_tree(chains(members), root), int(volume[0]), segment)


def linear_reduce(members: int, root: int, volume: Ints, /) -> Schedule:
    """Receive from the last member to the first, adding each up: reduce_intra_basic_linear."""
    whole = volume[:1]
    at = np.array([root])
    src = np.delete(np.arange(members), root)[::-1]
    # The last member's contribution comes first, and is the first result.
    reduced = [(members - 1 - k, at, whole) for k in range(members - 1)]
    step = members - 1 - src
    copied = [(0, at, whole)] if root == members - 1 else []
    return Schedule(
        round=np.zeros_like(src),
        src=src,
        dst=np.full_like(src, root),
        size=np.full_like(src, whole[0]),
        posted=step,
        taken=step,
        work=work(copied, reduced),
    )


def _add_up(tree: Tree, total: int, segment: int) -> Schedule:
    """Add up each segment child after child, then send it on, blocking: reduce_generic.

    A receive is posted before the one before is waited for, and that is added up behind it.
    """
    size = segments(total, segment)
    count, edges = len(size), len(tree.child)
    which = np.repeat(np.arange(count), edges)
    src, dst, place = (np.tile(c, count) for c in (tree.child, tree.parent, tree.place))
    turn = which * tree.children[dst] + place  # of the message among all that the receiver gets
    taken = 2 * turn + 2
    bytes_ = np.repeat(size, edges)
    return Schedule(
        round=np.where(tree.children[src], 2 * (which + 1) * tree.children[src] + 1, which),
        src=src,
        dst=dst,
        size=bytes_,
        posted=np.where(count * tree.children[dst] == 1, taken, 2 * turn),
        taken=taken,
        work=work(reduced=[(taken, dst, bytes_)]),
    )
