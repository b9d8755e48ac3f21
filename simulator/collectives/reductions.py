"""Collectives that add up: allreduce, reduce by halves, reduce-scatter; composed ones.

Members beyond the last power of two fold first: they hand over what they have, leave the others
alone, and get their result in the end. A whole buffer is cut into blocks that differ by one byte at
most. Addition commutes.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
in MPICH, 2005; R. Rabenseifner, Optimization of collective reduction operations, 2004;
P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009
(ring).
"""

from __future__ import annotations

import numpy as np

from .broadcasts import binomial_bcast, linear_bcast
from .exchanges import pairwise, ring
from .gathers import binomial_scatter, linear_gather
from .reduces import binomial_reduce, linear_reduce
from .schedules import Ints, Schedule, cut, edges, masks, one_after_another, renumbered, schedule


def recursive_doubling(members: int, _root: int, volume: Ints) -> Schedule:
    """Exchange all with the member whose number differs in bit k.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get the
    result back in the end.
    """
    whole = int(volume[0])
    power, extra = _power(members)
    folded = np.arange(0, 2 * extra, 2)
    active = np.concatenate((folded + 1, np.arange(2 * extra, members)))
    rounds = [(folded, folded + 1, np.full(extra, whole))] if extra else []
    me = np.arange(power)
    for mask in masks(power):
        rounds.append((active[me], active[me ^ mask], np.full(power, whole)))
    if extra:
        rounds.append((folded + 1, folded, np.full(extra, whole)))
    return schedule(rounds)


def rabenseifner_allreduce(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter by recursive halving, then allgather by recursive doubling.

    Beyond the last power of two, members 1, 3, 5, ... fold: they and their neighbours 0, 2, 4, ...
    add up one half of the buffer each.
    """
    power, extra = _power(members)
    blocks = cut(int(volume[0]), power)
    halves, active = _halved(members, blocks)
    me = np.arange(power)
    doubling = schedule((me, me ^ mask, kept) for mask, kept, _ in reversed(_halves(blocks)))
    back = np.arange(0, 2 * extra, 2)
    rest = schedule([(back, back + 1, np.full(extra, volume[0]))] if extra else [])
    return one_after_another(halves, renumbered(doubling, active), rest)


def rabenseifner_reduce(members: int, root: int, volume: Ints) -> Schedule:
    """Reduce-scatter by recursive halving, then gather along the same binomial tree.

    Members count from the root, which thereby never folds; see `rabenseifner_allreduce`.
    """
    power, _ = _power(members)
    blocks = cut(int(volume[0]), power)
    halves, active = _halved(members, blocks)
    gather = []
    for mask, kept, _ in reversed(_halves(blocks)):
        src = np.arange(mask, 2 * mask)
        gather.append((src, src - mask, kept[src]))
    both = one_after_another(halves, renumbered(schedule(gather), active))
    return renumbered(both, (np.arange(members) + root) % members)


def _halved(members: int, blocks: Ints) -> tuple[Schedule, Ints]:
    """Reduce-scatter whose first partners are neighbours, and the members that take part in it."""
    power, extra = _power(members)
    even = np.arange(0, 2 * extra, 2)
    active = np.concatenate((even, np.arange(2 * extra, members)))
    fold = []
    if extra:
        first, second = blocks[: power // 2].sum(), blocks[power // 2 :].sum()
        fold = [
            (
                np.concatenate((even, even + 1)),
                np.concatenate((even + 1, even)),
                np.repeat([second, first], extra),
            ),
            (even + 1, even, np.full(extra, second)),
        ]
    me = np.arange(power)
    halving = schedule((me, me ^ mask, sent) for mask, _, sent in _halves(blocks))
    return one_after_another(schedule(fold), renumbered(halving, active)), active


def _halves(blocks: Ints) -> list[tuple[int, Ints, Ints]]:
    """Distance of the partner, and bytes that each member keeps and sends, round after round."""
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


def _power(members: int) -> tuple[int, int]:
    """Last power of two, and how many members are beyond it."""
    power = 1 << (members.bit_length() - 1)
    return power, members - power


def ring_allreduce(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter in a ring, then allgather in a ring."""
    blocks = cut(int(volume[0]), members)
    return one_after_another(ring_reduce_scatter(members, 0, blocks), ring(members, 0, blocks))


def linear_allreduce(members: int, _root: int, volume: Ints) -> Schedule:
    """Everyone sends the whole buffer to the first member, which sends everyone the result."""
    return one_after_another(linear_reduce(members, 0, volume), linear_bcast(members, 0, volume))


def reduce_then_bcast(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce to the first member and broadcast from there, along a binomial tree."""
    return one_after_another(
        binomial_reduce(members, 0, volume), binomial_bcast(members, 0, volume)
    )


def gather_then_bcast(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: all blocks to the first member at once, and from there along a binomial tree."""
    return one_after_another(
        linear_gather(members, 0, volume), binomial_bcast(members, 0, volume.sum(keepdims=True))
    )


def ring_reduce_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: blocks travel once around the ring and end at their members, added up."""
    me = np.arange(members)
    return schedule(
        (me, (me + 1) % members, volume[(me - 1 - k) % members]) for k in range(members - 1)
    )


def halving_reduce_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: send the other half of what is left to the member that is half of it away.

    Beyond the last power of two, members 0, 2, 4, ... first fold into 1, 3, 5, ... and get their
    blocks in the end.
    """
    power, extra = _power(members)
    folded = np.arange(0, 2 * extra, 2)
    active = np.concatenate((folded + 1, np.arange(2 * extra, members)))
    before = edges(volume)[np.concatenate((folded, np.arange(2 * extra, members + 1)))]
    whole = before[-1]
    rounds = [(folded, folded + 1, np.full(extra, whole))] if extra else []
    me = np.arange(power)
    for mask in masks(power)[::-1]:
        begin = (me ^ mask) & -mask
        rounds.append((active, active[me ^ mask], before[begin + mask] - before[begin]))
    if extra:
        rounds.append((folded + 1, folded, volume[folded]))
    return schedule(rounds)


def pairwise_reduce_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: in round k send the member k further on its own contribution's block."""
    return pairwise(members, 0, np.broadcast_to(volume, (members, members)))


def reduce_then_scatter(members: int, _root: int, volume: Ints) -> Schedule:
    """Reduce-scatter: binomial reduction to the first member, which scatters the blocks."""
    return one_after_another(
        binomial_reduce(members, 0, volume.sum(keepdims=True)),
        binomial_scatter(members, 0, volume),
    )
