"""Collectives made of others, for which Open MPI asks its own rules again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .allreduces import rabenseifner_reduce
from .broadcasts import BCAST
from .exchanges import bruck, doubling_allgather, neighbour_exchange, ring
from .gathers import GATHER, SCATTER, linear_gather, linear_scatter
from .reduces import REDUCE
from .schedules import Algorithm, Ints, Schedule, one_after_another, schedule
from .selection import select, size_of

_REDUCE = REDUCE | {"rabenseifner": rabenseifner_reduce}
ALLGATHER = {
    "bruck": bruck,
    "recursive_doubling": doubling_allgather,
    "neighbour_exchange": neighbour_exchange,
    "ring": ring,
}


def reduce_then_bcast(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Reduce to the first member and broadcast from there: allreduce_intra_nonoverlapping."""
    return one_after_another(
        _chosen("reduce", _REDUCE, members, volume), _chosen("bcast", BCAST, members, volume)
    )


def gather_then_bcast(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Gather to the first member and broadcast from there: allgather_intra_basic_linear."""
    return one_after_another(
        _chosen("gather", GATHER, members, volume),
        _chosen("bcast", BCAST, members, volume.sum(keepdims=True)),
    )


def gatherv_then_bcast(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As for equal blocks, the gather being linear: allgatherv_intra_basic_default."""
    return one_after_another(
        linear_gather(members, 0, volume),
        _chosen("bcast", BCAST, members, volume.sum(keepdims=True)),
    )


def allgather_then_reduce(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Allgather all buffers, then add them up: allreduce_intra_allgather_reduce of 6.0."""
    me = np.arange(members)
    gather = _chosen("allgather", ALLGATHER, members, np.full(members, volume[0]))
    add = schedule([], [(0, me, volume)], [(0, me, (members - 1) * volume)])
    return one_after_another(schedule([], [(-1, me, volume)]), gather, add)


def reduce_then_scatterv(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Reduce to the first member, which scatters: reduce_scatter_intra_nonoverlapping."""
    return one_after_another(
        _chosen("reduce", _REDUCE, members, volume.sum(keepdims=True)),
        linear_scatter(members, 0, volume),
    )


def reduce_then_scatter(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Reduce to the first member, which scatters: reduce_scatter_block_basic_linear."""
    return one_after_another(
        _chosen("reduce", _REDUCE, members, volume.sum(keepdims=True)),
        _chosen("scatter", SCATTER, members, volume),
    )


def _chosen(operation: str, table: Mapping[str, Algorithm], members: int, volume: Ints) -> Schedule:
    name = select(operation, members, size_of(operation, volume))
    return table[name](members, 0, volume)
