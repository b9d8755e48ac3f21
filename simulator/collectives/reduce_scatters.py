"""Reduce-scatters and scans: everybody's buffer added up, a block or a part of it for everyone.

Source: Open MPI, coll_base_reduce_scatter.c, coll_base_reduce_scatter_block.c, coll_base_scan.c and
coll_base_exscan.c in ompi/mca/coll/base, the same in 4.1 and 5.0; operations are taken to commute,
and not to be in place. Behind them: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of
collective communication operations in MPICH, 2005; `pairwise` is MPICH's.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .schedules import (
    Done,
    Schedule,
    edges,
    masks,
    one_after_another,
    renumbered,
    schedule,
    together,
    work,
)


def folded(members: int, whole: int) -> tuple[Schedule, Ints]:
    """Fold members 0, 2, 4, ... into 1, 3, 5, ... until a power of two is left; return who is."""
    extra = members - (1 << (members.bit_length() - 1))
    even, size = np.arange(0, 2 * extra, 2), np.full(extra, whole)
    active = np.concatenate((even + 1, np.arange(2 * extra, members)))
    return schedule(
        [(even, even + 1, size)] if extra else [], reduced=[(0, even + 1, size)]
    ), active


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
    return together(around, schedule([], copies))


def halving_reduce_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Send the other half of what is left to the member that is half of it away.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get their
    blocks in the end: reduce_scatter_intra_basic_recursivehalving.
    """
    everyone = np.arange(members)
    fold, active = folded(members, int(volume.sum()))
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
    fold, active = folded(members, total)
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
        renumbered(halving(np.diff(before)), active),
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
