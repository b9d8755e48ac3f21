"""Allreduces and barriers: what all have contributed to before any of them goes on.

Source: Open MPI, coll_base_allreduce.c, coll_base_reduce.c and coll_base_barrier.c in
ompi/mca/coll/base, the same in 4.1 and 5.0; operations are taken to commute, and not to be in
place. Behind them: R. Rabenseifner, Optimization of collective reduction operations, 2004; P.
Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009
(ring); D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier synchronization, 1988
(`dissemination`). A whole buffer is cut into blocks that differ by one byte at most. Members beyond
the last power of two fold first. Barriers are messages without bytes.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .broadcasts import linear_bcast, linear_reduce
from .exchanges import ring
from .reduce_scatters import folded, halves, halving, ring_reduce
from .schedules import Schedule, cut, masks, one_after_another, renumbered, schedule, together, work


def recursive_doubling(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange all with the member whose number differs in bit k: intra_recursivedoubling.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get the
    result back in the end. Two buffers take turns; the result is copied if it ends in the other.
    """
    whole, me = volume[:1], np.arange(members)
    fold, active = folded(members, whole[0])
    power, extra = len(active), members - len(active)
    rank = np.arange(power)
    rounds, reduced = [], []
    for k, mask in enumerate(masks(power)):
        rounds.append((active, active[rank ^ mask], np.full(power, whole[0])))
        reduced.append((k, active, whole))
    even = np.arange(0, 2 * extra, 2)
    back = schedule([(even + 1, even, np.full(extra, whole[0]))] if extra else [])
    both = one_after_another(fold, schedule(rounds, reduced=reduced), back)
    swaps = len(rounds) - np.array([number.bit_count() for number in range(power)])
    ends = [(-1, me, whole), (both.steps, active[swaps % 2 == 0], whole)]
    return together(both, schedule([], ends))


def ring_allreduce(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Reduce-scatter in a ring, then allgather in a ring: allreduce_intra_ring."""
    return _ring(members, int(volume[0]), 1)


def segmented_ring_allreduce(
    members: int, root: int, volume: Ints, /, *, segment: int = 0
) -> Schedule:
    """As ring, the reduce-scatter of each segment for itself: allreduce_intra_ring_segmented.

    Segments are about as long as asked for. What has less than one for each member goes as ring.
    """
    whole, once = int(volume[0]), members * segment
    if not segment or whole < once:
        return ring_allreduce(members, root, volume)
    rest = whole % once
    return _ring(members, whole, whole // once + (rest >= members and rest > once // 2))


def _ring(members: int, whole: int, phases: int) -> Schedule:
    me, blocks = np.arange(members), cut(whole, members)
    parts = blocks[:, None] // phases + (np.arange(phases) < blocks[:, None] % phases)
    reducing = [ring_reduce(members, parts[:, phase], 0) for phase in range(phases)]
    copy = schedule([], [(-1, me, np.full(members, whole))])
    gathering = ring(members, 0, np.roll(blocks, -1))._replace(work=work())
    return one_after_another(copy, *reducing, gathering)


def linear_allreduce(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Everyone sends to the first member, which sends everyone: allreduce_intra_basic_linear."""
    return one_after_another(linear_reduce(members, 0, volume), linear_bcast(members, 0, volume))


def rabenseifner_allreduce(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Halve with neighbours first, then allgather the same way: allreduce_intra_redscat_allgather.

    Beyond the last power of two, members 1, 3, 5, ... fold: they and their neighbours 0, 2, 4, ...
    add up one half of the buffer each.
    """
    power, extra = _power(members)
    blocks = cut(int(volume[0]), power)
    reduced, active = _halved(members, blocks)
    me = np.arange(power)
    doubling = schedule((me, me ^ mask, kept) for mask, kept, _ in reversed(halves(blocks)))
    back = np.arange(0, 2 * extra, 2)
    rest = schedule([(back, back + 1, np.full(extra, volume[0]))] if extra else [])
    return one_after_another(reduced, renumbered(doubling, active), rest)


def rabenseifner_reduce(members: int, root: int, volume: Ints, /) -> Schedule:
    """As for allreduce, then gather along the same binomial tree: reduce_intra_redscat_gather.

    A root that has folded takes the place of member 0, which gives it its block first.
    """
    power, extra = _power(members)
    blocks = cut(int(volume[0]), power)
    reduced, active = _halved(members, blocks)
    first = schedule([])
    vroot = root // 2 if root < 2 * extra else root - extra
    if root < 2 * extra and root % 2:
        vroot = 0
        first = schedule([(np.array([0]), np.array([root]), blocks[:1])])
        active = np.concatenate(([root], active[1:]))
    gather, me = [], np.arange(power)
    for mask, kept, _ in reversed(halves(blocks)):
        # Who is in the same part as the root of what remains receives, its partner sends.
        ends = (me ^ vroot) & (mask - 1) == (me ^ vroot)
        dst = me[ends]
        gather.append((dst ^ mask, dst, kept[dst ^ mask]))
    return one_after_another(reduced, first, renumbered(schedule(gather), active))


def _halved(members: int, blocks: Ints) -> tuple[Schedule, Ints]:
    """Reduce-scatter whose first partners are neighbours, and the members that take part in it."""
    power, extra = _power(members)
    even, whole = np.arange(0, 2 * extra, 2), int(blocks.sum())
    active = np.concatenate((even, np.arange(2 * extra, members)))
    everyone = np.arange(members)
    fold = schedule([], [(-1, everyone, np.full(members, whole))])
    if extra:
        first = int(blocks[: power // 2].sum())
        sizes, pair = np.tile([whole - first, first], extra), everyone[: 2 * extra]
        rounds = [
            (pair, pair ^ 1, sizes),
            (even + 1, even, np.full(extra, whole - first)),
        ]
        fold = one_after_another(fold, schedule(rounds, reduced=[(0, pair, whole - sizes)]))
    return one_after_another(fold, renumbered(halving(blocks), active)), active


def _power(members: int) -> tuple[int, int]:
    """Last power of two, and how many members are beyond it."""
    power = 1 << (members.bit_length() - 1)
    return power, members - power


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
