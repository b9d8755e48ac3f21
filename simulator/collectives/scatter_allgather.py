"""Broadcast of large buffers: blocks down a tree, then to everyone.

Sources: M. Barnett et al., Building a high-performance collective communication library, 1994 (van
de Geijn); Open MPI, ompi/mca/coll/base/coll_base_bcast.c, the same in 4.1 and 5.0.
"""

from __future__ import annotations

import numpy as np

from .exchanges import ring
from .schedules import Ints, Schedule, edges, masks, one_after_another, schedule, turned


def shares(whole: int, parts: int) -> Ints:
    """Cut a buffer into blocks of equal length, as far as it reaches."""
    length = -(-whole // parts)
    return np.clip(whole - length * np.arange(parts), 0, length)


def scatter_allgather(members: int, root: int, volume: Ints, /) -> Schedule:
    """Scatter, then allgather by recursive doubling: bcast_intra_scatter_allgather.

    Where a partner is beyond the last member, those who lack what it would have sent get it from
    others of their half.
    """
    blocks = shares(int(volume[0]), members)
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
    return turned(one_after_another(_scatter(blocks), schedule(rounds)), members, root)


def scatter_allgather_ring(members: int, root: int, volume: Ints, /) -> Schedule:
    """Scatter, then allgather in a ring: bcast_intra_scatter_allgather_ring."""
    blocks = shares(int(volume[0]), members)
    around = ring(members, 0, blocks)._replace(work=schedule([]).work)
    return turned(one_after_another(_scatter(blocks), around), members, root)


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
