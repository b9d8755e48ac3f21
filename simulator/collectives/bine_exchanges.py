"""Collectives along Bine trees in which everyone takes part in every step, and blocks of trees.

Source: HLC-Lab/bine_trees_fugaku, lib/libbine_coll_*.cc and libbine_common.cc; the paper and what
`dims` and `ports` mean are in `bine_trees.py`. Puts go into memory that is there: all receives are
posted in the beginning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .bine_trees import (
    LARGEST_PUT,
    Ways,
    by_port,
    gathered,
    scattered,
    tree_from,
    ways,
)
from .broadcasts import shares
from .schedules import Done, Ints, Schedule, one_after_another, schedule, together, work

Dims = tuple[int, ...]


def _posted_early(given: Schedule) -> Schedule:
    return given._replace(posted=np.zeros_like(given.posted))


def _doubling(way: Ways, held: Ints, nearest_first: bool = False) -> Schedule:
    """Exchange all that is held with the partner of each step."""
    me, rounds = np.arange(len(held)), []
    for partner in way.peer if nearest_first else way.peer[::-1]:
        rounds.append((me, partner, held))
        held = held + held[partner]
    return schedule(rounds)


def _halving(way: Ways, volume: Ints, segment: int = 0) -> Schedule:
    """Send the partner what is its part of what is left, nearest first, and add up what comes."""
    me, held, sizes = np.arange(len(volume)), volume.astype(np.int64), []
    for partner in way.peer[::-1]:
        sizes.append(held[partner])
        held = held + held[partner]
    parts, begin = [], 0
    length = min(segment or LARGEST_PUT, LARGEST_PUT)
    for partner, size in zip(way.peer, reversed(sizes), strict=True):
        count = max(-(-int(size.max(initial=0)) // length), 1)
        for k in range(count):
            part = np.clip(size - k * length, 0, length)
            src = me[(part > 0) | (k == 0)]
            dst = partner[src]
            taken = np.full_like(src, begin + k)
            parts.append(
                Schedule(
                    round=np.full_like(src, begin),
                    src=src,
                    dst=dst,
                    size=part[src],
                    posted=np.zeros_like(src),
                    taken=taken,
                    work=work(reduced=[(taken, dst, part[src])]),
                )
            )
        begin += count
    return together(*parts) if parts else schedule([])


def _with(given: Schedule, copied: list[Done]) -> Schedule:
    return together(given, schedule([], copied))


def bine_allgather(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Exchange all that is held, farthest first; put into order in the end: CONT_PERMUTE."""
    me = np.arange(members)
    around = by_port(
        ports,
        volume,
        lambda port, part: _posted_early(_doubling(ways(members, dims, port), part)),
    )
    return _with(around, [(-1, me, volume), (around.steps, me, volume.sum(keepdims=True))])


def bine_allgather_sending(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = ()
) -> Schedule:
    """First send the own block to where it lies in order, then exchange: CONT_SEND."""
    me, way = np.arange(members), ways(members, dims)
    place = tree_from(0, way, nearest_first=True).place
    inverse = np.argsort(place)
    moves, stays = me[inverse != me], me[inverse == me]
    first = schedule([(moves, inverse[moves], volume[moves])])
    both = one_after_another(first, _posted_early(_doubling(way, volume[place])))
    return _with(both, [(-1, stays, volume[stays])])


def bine_allgather_blocks(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Exchange block after block, farthest partner first: BLOCKS."""
    me = np.arange(members)

    def of(port: int, part: Ints) -> Schedule:
        rounds, held = [], me[:, None]
        for partner in ways(members, dims, port).peer[::-1]:
            sent = np.sort(held, axis=1)
            src = np.repeat(me, sent.shape[1])
            rounds.append((src, partner[src], part[sent.ravel()]))
            held = np.concatenate((held, held[partner]), axis=1)
        return _posted_early(schedule(rounds))

    return _with(by_port(ports, volume, of), [(-1, me, volume)])


def bine_reduce_scatter(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Put blocks into order, then halve, nearest first: CONT_PERMUTE."""
    me = np.arange(members)
    around = by_port(ports, volume, lambda port, part: _halving(ways(members, dims, port), part))
    return _with(around, [(-1, me, volume.sum(keepdims=True))])


def bine_allreduce(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Exchange all with the partner of each step, nearest first: bine_coll_l, BINE-L."""
    return _whole(members, volume, ports, lambda port: ways(members, dims, port))


def torus_doubling_allreduce(
    members: int, _root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """As Bine's, with the partners of recursive doubling in each dimension: RECDOUB-L."""
    return _whole(members, volume, ports, lambda port: ways(members, dims, port, doubling=True))


def _whole(members: int, volume: Ints, ports: int, way_of: Callable[[int], Ways]) -> Schedule:
    """Above 1 KiB partners first tell each other that they may send."""
    me, asks = np.arange(members), int(volume[0]) > 1024

    def of(port: int, part: Ints) -> Schedule:
        rounds, reduced = [], []
        for partner in way_of(port).peer:
            if asks:
                rounds.append((me, partner, np.zeros_like(me)))
            reduced.append((len(rounds), me, part))
            rounds.append((me, partner, np.full_like(me, part[0])))
        return schedule(rounds, reduced=reduced)

    return by_port(ports, volume[:1], of)


def bine_halving_allreduce(
    members: int,
    _root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
) -> Schedule:
    """Halve, nearest first, then exchange what is held back: bine_coll_b_cont, BINE-B_CONT."""
    return _halving_then_doubling(
        members, volume, ports, segment, lambda port: ways(members, dims, port)
    )


def torus_halving_allreduce(
    members: int,
    _root: int,
    volume: Ints,
    /,
    *,
    dims: Dims = (),
    ports: int = 1,
    segment: int = 0,
) -> Schedule:
    """As Bine's, with the partners of recursive doubling in each dimension: RECDOUB-B_CONT."""
    return _halving_then_doubling(
        members, volume, ports, segment, lambda port: ways(members, dims, port, doubling=True)
    )


def _halving_then_doubling(
    members: int, volume: Ints, ports: int, segment: int, way_of: Callable[[int], Ways]
) -> Schedule:
    def of(port: int, part: Ints) -> Schedule:
        way, blocks = way_of(port), shares(int(part[0]), members)
        return one_after_another(
            _halving(way, blocks, segment), _posted_early(_doubling(way, blocks))
        )

    return by_port(ports, volume[:1], of)


def bine_reduce_then_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Halve, nearest first, then gather along the tree: REDUCE_SCATTER_GATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(_halving(way, blocks), gathered(tree, blocks))

    return by_port(ports, volume[:1], of)


def bine_scatter_then_allgather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Scatter along the tree, then exchange what is held: SCATTER_ALLGATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), shares(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(scattered(tree, blocks), _posted_early(_doubling(way, blocks)))

    return by_port(ports, volume[:1], of)


def bine_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: gather CONT_PERMUTE-DEC."""
    return _gather(members, root, volume, dims, ports, nearest_first=True)


def bine_gather_increasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: gather CONT_PERMUTE-INC."""
    return _gather(members, root, volume, dims, ports, nearest_first=False)


def _gather(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, nearest_first: bool
) -> Schedule:
    around = by_port(
        ports,
        volume,
        lambda port, part: gathered(
            tree_from(root, ways(members, dims, port), nearest_first), part
        ),
    )
    me = np.arange(members)
    return _with(
        around,
        [(-1, me, volume), (around.steps, np.array([root]), volume.sum(keepdims=True))],
    )


def bine_scatter(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: scatter CONT_PERMUTE-INC."""
    return _scatter(members, root, volume, dims, ports, nearest_first=True)


def bine_scatter_decreasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: scatter CONT_PERMUTE-DEC."""
    return _scatter(members, root, volume, dims, ports, nearest_first=False)


def _scatter(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, nearest_first: bool
) -> Schedule:
    around = by_port(
        ports,
        volume,
        lambda port, part: scattered(
            tree_from(root, ways(members, dims, port), nearest_first), part
        ),
    )
    me = np.arange(members)
    return _with(
        around,
        [(-1, np.array([root]), volume.sum(keepdims=True)), (around.steps, me, volume)],
    )
