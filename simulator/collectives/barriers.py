"""Barriers: messages without bytes.

Source: Open MPI, ompi/mca/coll/base/coll_base_barrier.c, the same in 4.1 and 5.0. Behind
`dissemination`: D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier synchronization, 1988.
"""

from __future__ import annotations

import numpy as np

from .schedules import Ints, Schedule, masks, one_after_another, schedule, work


def dissemination(members: int, _root: int, _volume: Ints, /) -> Schedule:
    """In round k tell the member 2^k further on: barrier_intra_bruck."""
    me = np.arange(members)
    return schedule((me, (me + mask) % members, np.zeros_like(me)) for mask in masks(members))


def doubling_barrier(members: int, _root: int, _volume: Ints, /) -> Schedule:
    """Exchange with the member whose number differs in bit k: barrier_intra_recursivedoubling.

    Members from the last power of two on tell those so many before them, and hear when all is done.
    """
    power = 1 << (members.bit_length() - 1)
    me, beyond = np.arange(power), np.arange(power, members)
    zero = np.zeros_like(beyond)
    rounds = [(me, me ^ mask, np.zeros_like(me)) for mask in masks(power)]
    whole = schedule([(beyond, beyond - power, zero), *rounds, (beyond - power, beyond, zero)])
    # They post the receive of that from the start.
    return whole._replace(posted=np.where(whole.dst >= power, 0, whole.posted))


def linear_barrier(members: int, _root: int, _volume: Ints, /) -> Schedule:
    """Tell the first member, which tells everyone, one by one: barrier_intra_basic_linear."""
    others = np.arange(1, members)
    zero = np.zeros_like(others)
    gather = schedule([(others, zero, zero)])
    answer = Schedule(others, zero, others, zero, zero, zero, work())
    return one_after_another(gather, answer)


def tree_barrier(members: int, _root: int, _volume: Ints, /) -> Schedule:
    """Binomial tree to the first member, and back: barrier_intra_tree."""
    rounds = []
    for mask in masks(members):
        parent = np.arange(0, members - mask, 2 * mask)
        rounds.append((parent + mask, parent, np.zeros_like(parent)))
    return schedule([*rounds, *((dst, src, size) for src, dst, size in reversed(rounds))])


def double_ring(members: int, _root: int, _volume: Ints, /) -> Schedule:
    """Send a message twice around the ring: barrier_intra_doublering."""
    if members == 1:
        return schedule([])
    at = np.arange(2 * members)[:, None] % members
    zero = np.zeros(1, dtype=np.int64)
    return schedule((src, (src + 1) % members, zero) for src in at)
