"""Collectives along Bine trees in which everyone takes part in every step.

Source: HLC-Lab/bine_trees_fugaku, lib/libbine_coll_*.cc and libbine_common.cc; the paper and what
`dims`, `ports` and `puts` mean are in `trees.py`. Where members are no power of two, `bine_folded`
and `bine_in_turns` (libbine_allreduce.c in HLC-Lab/pico) fold as recursive doubling does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.collectives.schedules import (
    Done,
    Schedule,
    cut,
    edges,
    equal_blocks,
    fold_members,
    merge,
    one_after_another,
    renumber,
    schedule,
    work,
)

from .trees import (
    ADDRESSES,
    Dims,
    announce_to_all,
    announce_to_partners,
    by_port,
    doubling,
    halving,
    post_early,
    tree_from,
    ways,
    with_copies,
)


def bine_allgather(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Exchange all that is held, farthest first; put into order in the end: CONT_PERMUTE."""
    me = np.arange(members)
    around = by_port(
        ports,
        volume,
        lambda port, part: doubling(ways(members, dims, port), part),
    )
    around = post_early(around, puts)
    return with_copies(
        around,
        [(-1, me, volume), (around.steps, me, volume.sum(keepdims=True))],
        [(around.steps, me, np.array([members]))],
    )


def bine_allgather_sending(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), puts: int = 0
) -> Schedule:
    """First send the own block to where it lies in order, then exchange: CONT_SEND.

    With puts, partners tell each other first where their buffers are, and all but member 0 put,
    those whose block stays where it is to themselves.
    """
    me, way = np.arange(members), ways(members, dims)
    place = tree_from(0, way, nearest_first=True).place
    inverse = np.argsort(place)
    stays = me == 0 if puts else inverse == me
    moves, own = me[~stays], [(-1, me[stays], volume[stays])]
    first = schedule([(moves, inverse[moves], volume[moves])], own)
    around = post_early(doubling(way, volume[place]), puts)
    if not puts:
        return one_after_another(first, around)
    back = schedule([(moves, place[moves], np.full_like(moves, ADDRESSES))])
    return one_after_another(announce_to_partners(way, 1), back, first, around)


def bine_allgather_ranges(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = ()
) -> Schedule:
    """Exchange ranges of blocks, nearest first, in two messages where they pass the last member.

    In one dimension only: allgather_bine_2_blocks of the authors' library in HLC-Lab/pico.
    """
    me, way = np.arange(members), ways(members, dims)
    before, first, rounds = edges(volume), me.copy(), []
    for k, partner in enumerate(way):
        mask = 1 << k
        end = np.minimum(first + mask, members)
        beyond = np.maximum(first + mask - members, 0)
        wraps = me[beyond > 0]
        rounds.append(
            (
                np.concatenate((wraps, me)),
                np.concatenate((partner[wraps], partner)),
                np.concatenate((before[beyond[wraps]], before[end] - before[first])),
            )
        )
        first = np.where(k % 2 == me % 2, first, (first - mask) % members)
    return with_copies(schedule(rounds), [(-1, me, volume)])


def bine_allgather_blocks(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Exchange block after block, farthest partner first: BLOCKS."""
    me = np.arange(members)

    def of(port: int, part: Ints) -> Schedule:
        rounds, held = [], me[:, None]
        for partner in ways(members, dims, port)[::-1]:
            sent = np.sort(held, axis=1)
            src = np.repeat(me, sent.shape[1])
            rounds.append((src, partner[src], part[sent.ravel()]))
            held = np.concatenate((held, held[partner]), axis=1)
        return schedule(rounds)

    around = post_early(by_port(ports, volume, of), puts, announce_to_all(members, ports))
    return with_copies(around, [(-1, me, volume)])


def bine_reduce_scatter(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Put blocks into order, then halve, nearest first: CONT_PERMUTE."""
    me = np.arange(members)
    around = by_port(
        ports, volume, lambda port, part: halving(ways(members, dims, port), part, puts=puts)
    )
    around = post_early(around, puts)
    end = [] if puts else [(around.steps, me, volume)]
    return with_copies(
        around, [(-1, me, volume.sum(keepdims=True)), *end], [(-1, me, np.array([members]))]
    )


def bine_allreduce(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Exchange all with the partner of each step, nearest first: bine_coll_l, BINE-L."""
    return _whole(members, volume, dims, ports, puts)


def bine_allreduce_folded(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange all with the partner of each step, nearest first; fold beyond a power of two."""
    return _fold(members, volume, lambda power: bine_allreduce(power, 0, volume))


def bine_in_turns(members: int, _root: int, volume: Ints, /, *, segment: int = 0) -> Schedule:
    """Halve and exchange, a part in segments one after the other: bdw_remap_segmented.

    The next receive is posted before the last is waited for; a segment is added before the next is
    sent. Less than a segment that is left over goes with the last one.
    """

    def inner(power: int) -> Schedule:
        way, blocks = ways(power), cut(int(volume[0]), power)
        me, held, sizes = np.arange(power), blocks, []
        for partner in way[::-1]:
            sizes.append(held[partner])
            held = held + held[partner]
        parts, begin = [], 0
        for partner, size in zip(way, reversed(sizes), strict=True):
            count = max(int(size.max(initial=0)) // segment, 1) if segment else 1
            for k in range(count):
                part = size // count + (size % count > k)
                now = np.full(power, begin + k)
                adding = work(reduced=[(now, partner, part)])
                early = np.full(power, begin + max(k - 1, 0))
                parts.append(Schedule(now, me, partner, part, early, now, adding))
            begin += count
        both = one_after_another(merge(*parts), doubling(way, blocks)) if parts else schedule([])
        return with_copies(both, [(-1, me, volume[:1])])

    return _fold(members, volume, inner)


def _fold(members: int, volume: Ints, inner: Callable[[int], Schedule]) -> Schedule:
    fold, active = fold_members(members, int(volume[0]))
    even = np.arange(0, 2 * (members - len(active)), 2)
    back = schedule([(even + 1, even, np.full(len(even), volume[0]))] if len(even) else [])
    return one_after_another(fold, renumber(inner(len(active)), active), back)


def torus_doubling_allreduce(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """As Bine's, with the partners of recursive doubling in each dimension: RECDOUB-L."""
    return _whole(members, volume, dims, ports, puts, on_torus=True)


def _whole(
    members: int, volume: Ints, dims: Dims, ports: int, puts: int, on_torus: bool = False
) -> Schedule:
    """With puts above 1 KiB partners first tell each other that they may send.

    Without, the buffer is copied in the beginning and in the end.
    """
    me, asks = np.arange(members), puts > 0 and int(volume[0]) > 1024

    def of(port: int, part: Ints) -> Schedule:
        rounds, reduced = [], []
        for partner in ways(members, dims, port, on_torus):
            if asks:
                rounds.append((me, partner, np.zeros_like(me)))
            reduced.append((len(rounds), me, part))
            rounds.append((me, partner, np.full_like(me, part[0])))
        return schedule(rounds, reduced=reduced)

    around = by_port(ports, volume[:1], of)._replace(puts=puts > 0)
    copies: list[Done] = [(-1, me, volume[:1]), (around.steps, me, volume[:1])]
    return with_copies(around, [] if puts else copies)


def bine_halving_allreduce(
    members: int,
    _root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
    puts: int = 0,
) -> Schedule:
    """Halve, nearest first, then exchange what is held back: bine_coll_b_cont, BINE-B_CONT."""
    return _halving_then_doubling(members, volume, dims, ports, puts, segment)


def torus_halving_allreduce(
    members: int,
    _root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
    puts: int = 0,
) -> Schedule:
    """As Bine's, with the partners of recursive doubling in each dimension: RECDOUB-B_CONT."""
    return _halving_then_doubling(members, volume, dims, ports, puts, segment, on_torus=True)


def _halving_then_doubling(
    members: int,
    volume: Ints,
    dims: Dims,
    ports: int,
    puts: int,
    segment: int,
    on_torus: bool = False,
) -> Schedule:
    """Without puts the buffer is copied first; with puts, partners tell where theirs are."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port, on_torus), equal_blocks(int(part[0]), members)
        return one_after_another(halving(way, blocks, segment, puts), doubling(way, blocks))

    copies: list[Done] = [] if puts else [(-1, np.arange(members), volume[:1])]
    announced = announce_to_partners(ways(members, dims, doubling=on_torus), ports)
    return with_copies(post_early(by_port(ports, volume[:1], of), puts, announced), copies)


def bine_alltoall(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), puts: int = 0
) -> Schedule:
    """Send the partner of each step, nearest first, what is for its part of the tree: BINE-LOG.

    With puts partners first tell each other that they may send. What is sent and what is kept is
    moved before, and everything in the beginning and in the end.
    """
    me, way = np.arange(members), ways(members, dims)
    reach = [np.eye(members, dtype=np.bool_)]  # whom members reach with the last steps
    for partner in way[::-1]:
        reach.append(reach[-1] | reach[-1][partner])
    at = np.broadcast_to(me[:, None], (members, members)).copy()  # where each pair's block is
    target = np.broadcast_to(me, (members, members))
    rounds: list[tuple[Ints, Ints, Ints]] = []
    copied: list[Done] = [(-1, me, volume.sum(axis=1))]
    blocks: list[Done] = []
    for partner, beyond in zip(way, reach[-2::-1], strict=True):
        leaves = beyond[partner[at], target]
        size = np.bincount(at[leaves], volume[leaves], members).astype(np.int64)
        held = np.bincount(at.ravel(), volume.ravel(), members).astype(np.int64)
        copied.append((len(rounds) - 1, me, held))
        blocks.append((len(rounds) - 1, me, np.array([members])))
        if puts:
            rounds.append((me, partner, np.zeros_like(me)))
        rounds.append((me, partner, size))
        at = np.where(leaves, partner[at], at)
    copied.append((len(rounds) - 1, me, volume.sum(axis=0)))
    blocks.append((len(rounds) - 1, me, np.array([members])))
    return schedule(rounds, copied, blocks=blocks)._replace(puts=puts > 0)
