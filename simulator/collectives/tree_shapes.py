"""Trees of members: who is whose parent, and in which order a member's children come.

Members count from the root, but for the in-order binary tree. Source: Open MPI,
ompi/mca/coll/base/coll_base_topo.c, the same in 4.1 and 5.0; the function is named with each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints


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
    """Build a tree.

    Parameters
    ----------
    parent : ndarray(int64, shape=(members,))
        Of every member; what stands for the root does not matter.
    order : ndarray(int64, shape=(members,))
        Siblings come in the order of these numbers.
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
    first = np.flatnonzero(np.diff(above, prepend=-1))
    place = np.arange(len(child)) - np.repeat(first, np.diff(first, append=len(child)))
    return Tree(child, above, place, depth, np.bincount(above, minlength=members))


def rooted(tree: Tree, root: int) -> Tree:
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
    """Level after level, children of neighbours beside each other: build_tree with fan-out 2."""
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
