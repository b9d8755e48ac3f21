"""Allreduces, reduce-scatters, scans and barriers: what all have contributed to.

Source: Open MPI, coll_base_allreduce.c, coll_base_reduce.c, coll_base_reduce_scatter.c,
coll_base_reduce_scatter_block.c, coll_base_scan.c, coll_base_exscan.c and coll_base_barrier.c in
ompi/mca/coll/base, the same in 4.1 and 5.0; operations are taken to commute, and not to be in
place. Behind them: R. Rabenseifner, Optimization of collective reduction operations, 2004; R.
Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH,
2005, whose `pairwise` is; P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for
clusters of workstations, 2009 (ring); D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier
synchronization, 1988 (`dissemination`). A whole buffer is cut into blocks that differ by one byte
at most. Members beyond the last power of two fold first. Barriers are messages without bytes.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .broadcasts import linear_bcast, linear_reduce
from .exchanges import ring
from .schedules import (
    Done,
    Schedule,
    cut,
    edges,
    fold_members,
    masks,
    merge,
    one_after_another,
    renumber,
    schedule,
    work,
)


def halves(blocks: Ints) -> list[tuple[int, Ints, Ints]]:
    """Distance of the partner, and bytes that each member keeps and sends, round after round.

    Neighbours come first; there is a block for each member, a power of two of them.
    """
    power = len(blocks)
    me, before = np.arange(power), edges(blocks)
    begin = np.zeros(power, dtype=np.int64)
    rounds = []
    for mask in masks(power):
        width = power // (2 * mask)
        upper = me & mask != 0
        keep, send = begin + width * upper, begin + width * ~upper
        rounds.append(
            (mask, before[keep + width] - before[keep], before[send + width] - before[send])
        )
        begin = keep
    return rounds


def halving(blocks: Ints) -> Schedule:
    """Send what is not kept to the partner of each round, and add up what comes, see `halves`."""
    me, rounds = np.arange(len(blocks)), halves(blocks)
    return schedule(
        ((me, me ^ mask, sent) for mask, _, sent in rounds),
        reduced=[(k, me, kept) for k, (_, kept, _) in enumerate(rounds)],
    )


def ring_reduce(members: int, blocks: Ints, first: int) -> Schedule:
    """Let blocks travel once around the ring, added up on the way.

    Member r begins with block r - `first`. Each receive is posted before the one before is waited
    for, and sends are blocking.
    """
    me, turns = np.arange(members), members - 1
    src, turn = np.tile(me, turns), np.repeat(np.arange(turns), members)
    dst, size = (src + 1) % members, blocks[(src - first - turn) % members]
    taken = 2 * turn + 1
    return Schedule(
        round=2 * turn,
        src=src,
        dst=dst,
        size=size,
        posted=np.maximum(2 * turn - 1, 0),
        taken=taken,
        work=work(reduced=[(taken, dst, size)]),
    )


def ring_reduce_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Let blocks travel once around the ring to their members: reduce_scatter_intra_ring."""
    me = np.arange(members)
    around = ring_reduce(members, volume, 1)
    copies = [(-1, me, volume.sum(keepdims=True)), (around.steps, me, volume)]
    return merge(around, schedule([], copies))


def halving_reduce_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Send the other half of what is left to the member that is half of it away.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get their
    blocks in the end: reduce_scatter_intra_basic_recursivehalving.
    """
    everyone = np.arange(members)
    fold, active = fold_members(members, int(volume.sum()))
    power, extra = len(active), members - len(active)
    even = np.arange(0, 2 * extra, 2)
    before = edges(volume)[np.concatenate((even, np.arange(2 * extra, members + 1)))]
    me = np.arange(power)
    rounds, reduced = [], []
    for k, mask in enumerate(reversed(masks(power))):
        begin = (me ^ mask) & -mask
        size = before[begin + mask] - before[begin]
        rounds.append((active, active[me ^ mask], size))
        reduced.append((k, active[me ^ mask], size))
    return one_after_another(
        schedule([], [(-1, everyone, np.full(members, volume.sum()))]),
        fold,
        schedule(rounds, [(len(rounds) - 1, active, volume[active])], reduced),
        schedule([(even + 1, even, volume[even])] if extra else []),
    )


def butterfly_reduce_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Halve with neighbours first, then send blocks to their members: intra_butterfly.

    Members beyond the last power of two fold as in recursive halving.
    """
    everyone, total = np.arange(members), int(volume.sum())
    fold, active = fold_members(members, total)
    power, extra = len(active), members - len(active)
    me, levels = np.arange(power), (power - 1).bit_length()
    even = np.arange(0, 2 * extra, 2)
    before = edges(volume)[np.concatenate((even, np.arange(2 * extra, members + 1)))]
    # Each now has the block of the member whose number is its own with the bits reversed.
    mirror = np.array([int(f"{k:0{levels}b}"[::-1], 2) if levels else 0 for k in range(power)])
    two = mirror < extra
    to_folded = (active[two], active[mirror[two]] - 1, volume[active[mirror[two]] - 1])
    away = mirror != me
    to_own = (active[away], active[mirror[away]], volume[active[mirror[away]]])
    own = active[~away]
    end = schedule([to_folded, to_own], [(1, own, volume[own])])
    return one_after_another(
        schedule([], [(-1, everyone, np.full(members, total))]),
        fold,
        renumber(halving(np.diff(before)), active),
        end,
    )


def pairwise_reduce_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """In round k send the member k further on its block, and add up what comes: MPICH's."""
    me = np.arange(members)
    rounds = [(me, (me + k) % members, volume[(me + k) % members]) for k in range(1, members)]
    return schedule(rounds, [(-1, me, volume)], [(k, me, volume) for k in range(members - 1)])


def linear_scan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Each member waits for the one before it: scan_intra_linear."""
    return _chain(members, volume, np.arange(members), np.arange(1, members))


def linear_exscan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As the scan; the ends add nothing: exscan_intra_linear."""
    inner = np.arange(1, members - 1)
    return _chain(members, volume, inner, inner)


def _chain(members: int, volume: Ints, copying: Ints, adding: Ints) -> Schedule:
    one = volume[:1]
    rounds = ((np.array([k]), np.array([k + 1]), one) for k in range(members - 1))
    return schedule(rounds, [(-1, copying, one)], [(adding - 1, adding, one)])


def doubling_scan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange with the member whose number differs in bit k: scan_intra_recursivedoubling.

    The later one of a pair adds what comes to its result; both add it to what they send next.
    """
    return _doubling(members, volume, exclusive=False)


def doubling_exscan(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As the scan; what comes first is the result so far: exscan_intra_recursivedoubling."""
    return _doubling(members, volume, exclusive=True)


def _doubling(members: int, volume: Ints, exclusive: bool) -> Schedule:
    me, one = np.arange(members), volume[:1]
    rounds: list[tuple[Ints, Ints, Ints]] = []
    copied: list[Done] = [(-1, me, one if exclusive else 2 * one)]
    reduced: list[Done] = []
    for k, mask in enumerate(masks(members)):
        src = me[me ^ mask < members]
        later = src[src & mask != 0]
        rounds.append((src, src ^ mask, np.full(len(src), one[0])))
        first = exclusive & (later & (mask - 1) == 0)
        copied.append((k, later[first], one))
        reduced += [(k, later[~first], one), (k, src, one)]
    return schedule(rounds, copied, reduced)


def recursive_doubling(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange all with the member whose number differs in bit k: intra_recursivedoubling.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get the
    result back in the end. Two buffers take turns; the result is copied if it ends in the other.
    """
    whole, me = volume[:1], np.arange(members)
    fold, active = fold_members(members, whole[0])
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
    return merge(both, schedule([], ends))


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


def _ring(members: int, total: int, phases: int) -> Schedule:
    me, blocks = np.arange(members), cut(total, members)
    parts = blocks[:, None] // phases + (np.arange(phases) < blocks[:, None] % phases)
    reducing = [ring_reduce(members, parts[:, phase], 0) for phase in range(phases)]
    copy = schedule([], [(-1, me, np.full(members, total))])
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
    reduced, active = _halve(members, blocks)
    me = np.arange(power)
    doubling = schedule((me, me ^ mask, kept) for mask, kept, _ in reversed(halves(blocks)))
    back = np.arange(0, 2 * extra, 2)
    rest = schedule([(back, back + 1, np.full(extra, volume[0]))] if extra else [])
    return one_after_another(reduced, renumber(doubling, active), rest)


def rabenseifner_reduce(members: int, root: int, volume: Ints, /) -> Schedule:
    """As for allreduce, then gather along the same binomial tree: reduce_intra_redscat_gather.

    A root that has folded takes the place of member 0, which gives it its block first.
    """
    power, extra = _power(members)
    blocks = cut(int(volume[0]), power)
    reduced, active = _halve(members, blocks)
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
    return one_after_another(reduced, first, renumber(schedule(gather), active))


def _halve(members: int, blocks: Ints) -> tuple[Schedule, Ints]:
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
    return one_after_another(fold, renumber(halving(blocks), active)), active


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
