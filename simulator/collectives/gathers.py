"""Gathers and scatters: a block of each member to or from the root.

Source: Open MPI, ompi/mca/coll/base/coll_base_gather.c and coll_base_scatter.c, the same in 4.1 and
5.0; gatherv and scatterv (coll/basic) are linear there. A member's own block is copied.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .broadcasts import Tree, in_order_binomial
from .schedules import Done, Schedule, edges, rotate, schedule, work


def binomial_gather(members: int, root: int, volume: Ints, /) -> Schedule:
    """In-order binomial tree, receiving child after child: gather_intra_binomial.

    A message carries all blocks of the sender's subtree. Members that may have children copy their
    own block, and a root that is not member 0 puts everything into place in the end.
    """
    tree, of_subtree, own = _subtrees(members, root, volume)
    me = np.arange(0, members, 2)
    copied: list[Done] = [(-1, me, own[me])]
    if root:
        end = tree.children[:1]
        copied.append((end, np.array([0]), own.sum(keepdims=True)))
    return rotate(
        Schedule(
            round=tree.children[tree.child],
            src=tree.child,
            dst=tree.parent,
            size=of_subtree[tree.child],
            posted=tree.place,
            taken=tree.place,
            work=work(copied),
        ),
        members,
        root,
    )


def binomial_scatter(members: int, root: int, volume: Ints, /) -> Schedule:
    """In-order binomial tree, sending to the farthest child first: scatter_intra_binomial.

    The other way round than `binomial_gather`, copies included.
    """
    tree, of_subtree, own = _subtrees(members, root, volume)
    inner = np.arange(2, members, 2)
    copied = [(0, inner, own[inner]), (-1, np.array([0]), own[:1] + bool(root) * own.sum())]
    at = np.zeros_like(tree.child)
    return rotate(
        Schedule(
            round=tree.children[tree.parent] - tree.place,
            src=tree.parent,
            dst=tree.child,
            size=of_subtree[tree.child],
            posted=at,
            taken=at,
            work=work(copied),
        ),
        members,
        root,
    )


def _subtrees(members: int, root: int, volume: Ints) -> tuple[Tree, Ints, Ints]:
    """In-order binomial tree, bytes of each member's subtree, and of its block; from the root."""
    own = np.roll(volume, -root)
    me = np.arange(members)
    before = edges(own)
    end = np.minimum(me + (me & -me), members)
    return in_order_binomial(members), before[end] - before[me], own


def linear_gather(members: int, root: int, volume: Ints, /) -> Schedule:
    """Receive from the first member to the last: gather_intra_basic_linear."""
    src = np.delete(np.arange(members), root)
    return Schedule(
        round=np.zeros_like(src),
        src=src,
        dst=np.full_like(src, root),
        size=volume[src],
        posted=src,
        taken=src,
        work=work([(root, np.array([root]), volume[[root]])]),
    )


def linear_sync_gather(members: int, root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Ask one member after the other for its block, in two parts: gather_intra_linear_sync.

    The first part, of so many bytes or of all, is waited for before the next member is asked; the
    second, of what is left, only in the end.
    """
    src = np.delete(np.arange(members), root)
    root_of = np.full_like(src, root)
    begin = np.minimum(volume[src], segment) if segment else volume[src]
    step = 2 * np.arange(len(src))  # of the root, for each
    last = np.full_like(src, 2 * len(src) + 1)
    zero = np.zeros_like(src)
    return Schedule(
        round=np.concatenate((step, zero + 1, zero + 2)),
        src=np.concatenate((root_of, src, src)),
        dst=np.concatenate((src, root_of, root_of)),
        size=np.concatenate((zero, begin, volume[src] - begin)),
        posted=np.concatenate((zero, step, step + 1)),
        taken=np.concatenate((zero, step + 1, last)),
        work=work([(2 * len(src), np.array([root]), volume[[root]])]),
    )


def linear_scatter(members: int, root: int, volume: Ints, /) -> Schedule:
    """Send to one member after the other, blocking: scatter_intra_basic_linear."""
    dst = np.delete(np.arange(members), root)
    zero = np.zeros_like(dst)
    return Schedule(
        round=dst,
        src=np.full_like(dst, root),
        dst=dst,
        size=volume[dst],
        posted=zero,
        taken=zero,
        work=work([(root, np.array([root]), volume[[root]])]),
    )


def linear_nb_scatter(members: int, root: int, volume: Ints, /) -> Schedule:
    """Send to all members at once: scatter_intra_linear_nb without a limit on requests."""
    dst = np.delete(np.arange(members), root)
    of_root = np.full_like(dst, root)
    return schedule([(of_root, dst, volume[dst])], [(-1, np.array([root]), volume[[root]])])
