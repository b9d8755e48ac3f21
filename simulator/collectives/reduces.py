"""Reductions to one member: whole buffers up a tree, in segments if wished.

Source: Open MPI, ompi/mca/coll/base/coll_base_reduce.c, the same in 4.1 and 5.0. Operations are
taken to commute, and not to be in place. `rabenseifner` is among the allreduces.
"""

from __future__ import annotations

import numpy as np

from . import tree_shapes as shapes
from .broadcasts import SEGMENT
from .schedules import Ints, Schedule, one_after_another, schedule, segments, work
from .tree_shapes import Tree, rooted


def binomial_reduce(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """In-order binomial tree towards the root: reduce_intra_binomial."""
    return _up(rooted(shapes.in_order_binomial(members), root), int(volume[0]), segment)


def binary_reduce(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Binary tree towards the root: reduce_intra_binary."""
    return _up(rooted(shapes.binary(members), root), int(volume[0]), segment)


def in_order_binary_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = 0
) -> Schedule:
    """Binary tree to the last member, and from there to the root: reduce_intra_in_order_binary."""
    whole, last = int(volume[0]), members - 1
    up = _up(shapes.in_order_binary(members), whole, segment)
    if root == last:
        return up
    return one_after_another(
        up, schedule([(np.array([last]), np.array([root]), np.array([whole]))])
    )


def chain_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = 0, fanout: int = 1
) -> Schedule:
    """Chains towards the root, along which partial results are passed on: reduce_intra_chain."""
    return _up(rooted(shapes.chains(members, fanout), root), int(volume[0]), segment)


def pipeline_reduce(
    members: int, root: int, volume: Ints, /, *, segment: int = SEGMENT
) -> Schedule:
    """One chain, in segments: reduce_intra_pipeline."""
    return _up(rooted(shapes.chains(members), root), int(volume[0]), segment)


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


def _up(tree: Tree, whole: int, segment: int) -> Schedule:
    """Add up each segment child after child, then send it on, blocking: reduce_generic.

    A receive is posted before the one before is waited for, and that is added up behind it.
    """
    size = segments(whole, segment)
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


REDUCE = {
    "binomial": binomial_reduce,
    "linear": linear_reduce,
    "binary": binary_reduce,
    "in_order_binary": in_order_binary_reduce,
    "chain": chain_reduce,
    "pipeline": pipeline_reduce,
}
