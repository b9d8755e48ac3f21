"""Alltoalls: a block from every member to every other; a member's own is copied.

Source: Open MPI, ompi/mca/coll/base/coll_base_alltoall.c and coll_base_alltoallv.c, the same in 4.1
and 5.0. Behind `bruck`: J. Bruck et al., Efficient algorithms for all-to-all communications, 1997.
`bine` is in lib/libbine_coll_alltoall.cc of HLC-Lab/bine_trees_fugaku, see `bine_trees.py`.
"""

from __future__ import annotations

import numpy as np

from .bine_trees import ways
from .schedules import Done, Ints, Schedule, masks, schedule


def pairwise(members: int, _root: int, volume: Ints, /) -> Schedule:
    """In round k send to the member k further on: alltoall_intra_pairwise, own block last."""
    me = np.arange(members)
    rounds = ((me, (me + k) % members, volume[me, (me + k) % members]) for k in range(1, members))
    return schedule(rounds, [(members, me, volume[me, me])])


def linear_exchange(members: int, root: int, volume: Ints, /) -> Schedule:
    """Post everything at once, receives forwards, sends backwards: alltoall_intra_basic_linear."""
    return linear_sync_exchange(members, root, volume)


def linear_sync_exchange(members: int, _root: int, volume: Ints, /, *, window: int = 0) -> Schedule:
    """As linear, so many at a time: alltoall_intra_linear_sync.

    The C begins the next as soon as any is done; here a batch is done before the next begins.
    """
    me = np.arange(members)
    shift = np.arange(1, members)
    src, k = np.tile(me, members - 1), np.repeat(shift, members)
    dst = (src - k) % members
    step = (k - 1) // window if window else np.zeros_like(k)
    at_once = schedule([(src, dst, volume[src, dst])], [(-1, me, volume[me, me])])
    return at_once._replace(round=step, posted=step, taken=step)


def bruck_alltoall(members: int, _root: int, volume: Ints, /) -> Schedule:
    """In round k send 2^k further on all blocks whose way to go has bit k: alltoall_intra_bruck.

    A block that has d members to go travels the set bits of d, the lowest first. All blocks are
    rotated in the beginning and in the end. What is sent lies scattered: it is packed, unpacked
    into another buffer, and copied back from there.
    """
    me = np.arange(members)
    rounds, copied = [], [(-1, me, volume.sum(axis=1))]
    for k, mask in enumerate(masks(members)):
        way = np.flatnonzero(me & mask)
        source = (me[:, None] - way % mask) % members
        size = volume[source, (source + way) % members].sum(axis=1)
        rounds.append((me, (me + mask) % members, size))
        copied += [(k - 1, me, size), (k, (me + mask) % members, 2 * size)]
    copied.append((len(rounds), me, volume.sum(axis=0)))
    return schedule(rounds, copied)


def bine_alltoall(
    members: int, _root: int, volume: Ints, /, *, dims: tuple[int, ...] = ()
) -> Schedule:
    """Send the partner of each step, nearest first, what is for its part of the tree: BINE-LOG.

    Partners first tell each other that they may send. What is sent and what is kept is moved
    before, and everything in the beginning and in the end.
    """
    me, way = np.arange(members), ways(members, dims)
    reach = [np.eye(members, dtype=np.bool_)]  # whom members reach with the last steps
    for partner in way.peer[::-1]:
        reach.append(reach[-1] | reach[-1][partner])
    at = np.broadcast_to(me[:, None], (members, members)).copy()  # where each pair's block is
    target = np.broadcast_to(me, (members, members))
    rounds: list[tuple[Ints, Ints, Ints]] = []
    copied: list[Done] = [(-1, me, volume.sum(axis=1))]
    for partner, beyond in zip(way.peer, reach[-2::-1], strict=True):
        leaves = beyond[partner[at], target]
        size = np.bincount(at[leaves], volume[leaves], members).astype(np.int64)
        held = np.bincount(at.ravel(), volume.ravel(), members).astype(np.int64)
        copied.append((len(rounds) - 1, me, held))
        rounds += [(me, partner, np.zeros_like(me)), (me, partner, size)]
        at = np.where(leaves, partner[at], at)
    copied.append((len(rounds) - 1, me, volume.sum(axis=0)))
    return schedule(rounds, copied)
