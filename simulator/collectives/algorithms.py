"""Collective operations as rounds of point-to-point messages, by named algorithms.

What an operation moves is a volume, see `volumes.py`: one whole buffer, a block of bytes per
member, or bytes per pair of members. Reductions take no time themselves. An operation for which no
algorithm is named takes the one that Open MPI would, see `selection.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hopmap.traces import Collective

from .allreduces import (
    linear_allreduce,
    rabenseifner_allreduce,
    rabenseifner_reduce,
    recursive_doubling,
    ring_allreduce,
    segmented_ring_allreduce,
)
from .barriers import (
    dissemination,
    double_ring,
    doubling_barrier,
    linear_barrier,
    tree_barrier,
)
from .bine.blocks import (
    bine_gather,
    bine_gather_increasing,
    bine_gather_ranges,
    bine_reduce_then_gather,
    bine_scatter,
    bine_scatter_decreasing,
    bine_scatter_ranges,
    bine_scatter_then_allgather,
)
from .bine.clusters import (
    bine_allgather_any_even,
    bine_allgather_joined,
    bine_allreduce_any_even,
    bine_allreduce_folded,
    bine_bcast_at_once,
    bine_in_turns,
    bine_reduce_scatter_any_even,
    bine_reduce_scatter_gather_copied,
    bine_reduce_scatter_sending,
    bine_reduce_whole,
    bine_scatter_allgather_blocking,
    bine_scatter_allgather_once,
)
from .bine.exchanges import (
    bine_allgather,
    bine_allgather_blocks,
    bine_allgather_ranges,
    bine_allgather_sending,
    bine_allreduce,
    bine_halving_allreduce,
    bine_reduce_scatter,
    torus_doubling_allreduce,
    torus_halving_allreduce,
)
from .bine.trees import (
    bine_bcast,
    bine_bcast_blocking,
    bine_bcast_increasing,
    bine_bcast_with_buffer,
    bine_reduce,
)
from .broadcasts import BCAST
from .composed import (
    allgather_then_reduce,
    gather_then_bcast,
    gatherv_then_bcast,
    reduce_then_bcast,
    reduce_then_scatter,
    reduce_then_scatterv,
)
from .exchanges import (
    bine_alltoall,
    bruck,
    bruck_alltoall,
    bruck_alltoall_by_blocks,
    doubling_allgather,
    linear_exchange,
    linear_sync_exchange,
    neighbour_exchange,
    pairwise,
    ring,
    sparbit,
)
from .gathers import GATHER, SCATTER
from .naming import named
from .reduce_scatters import (
    butterfly_reduce_scatter,
    doubling_exscan,
    doubling_scan,
    halving_reduce_scatter,
    linear_exscan,
    linear_scan,
    pairwise_reduce_scatter,
    ring_reduce_scatter,
)
from .reduces import REDUCE
from .schedules import Algorithm, Ints, Schedule
from .selection import OPENMPI, called, enough, select, size_of, suited
from .temporaries import Call, buffers_of
from .volumes import volume

_ALLGATHER = {
    "bruck": bruck,
    "recursive_doubling": doubling_allgather,
    "neighbour_exchange": neighbour_exchange,
    "ring": ring,
    "sparbit": sparbit,
    "bine": bine_allgather,
    "bine_sending": bine_allgather_sending,
    "bine_blocks": bine_allgather_blocks,
    "bine_ranges": bine_allgather_ranges,
    "bine_joined": bine_allgather_joined,
    "bine_any_even": bine_allgather_any_even,
}
_EXCHANGE = {
    "pairwise": pairwise,
    "linear": linear_exchange,
    "linear_sync": linear_sync_exchange,
    "bruck": bruck_alltoall,
    "bruck_by_blocks": bruck_alltoall_by_blocks,
    "bine": bine_alltoall,
}
_REDUCE_SCATTER = {
    "pairwise": pairwise_reduce_scatter,
    "recursive_halving": halving_reduce_scatter,
    "butterfly": butterfly_reduce_scatter,
    "ring": ring_reduce_scatter,
    "bine": bine_reduce_scatter,
    "bine_sending": bine_reduce_scatter_sending,
    "bine_any_even": bine_reduce_scatter_any_even,
}
_BCAST = BCAST | {
    "bine": bine_bcast,
    "bine_increasing": bine_bcast_increasing,
    "bine_blocking": bine_bcast_blocking,
    "bine_with_buffer": bine_bcast_with_buffer,
    "bine_scatter_allgather": bine_scatter_then_allgather,
    "bine_at_once": bine_bcast_at_once,
    "bine_scatter_allgather_once": bine_scatter_allgather_once,
    "bine_scatter_allgather_blocking": bine_scatter_allgather_blocking,
}
_GATHER = GATHER | {
    "bine": bine_gather,
    "bine_increasing": bine_gather_increasing,
    "bine_ranges": bine_gather_ranges,
}
_SCATTER = SCATTER | {
    "bine": bine_scatter,
    "bine_decreasing": bine_scatter_decreasing,
    "bine_ranges": bine_scatter_ranges,
}

ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    "barrier": {
        "dissemination": dissemination,
        "recursive_doubling": doubling_barrier,
        "double_ring": double_ring,
        "tree": tree_barrier,
        "linear": linear_barrier,
    },
    "bcast": _BCAST,
    "gather": _GATHER,
    "gatherv": _GATHER,
    "scatter": _SCATTER,
    "scatterv": _SCATTER,
    "allgather": _ALLGATHER | {"gather_bcast": gather_then_bcast},
    "allgatherv": _ALLGATHER | {"gather_bcast": gatherv_then_bcast},
    "alltoall": _EXCHANGE,
    "alltoallv": _EXCHANGE,
    "alltoallw": _EXCHANGE,
    "allreduce": {
        "recursive_doubling": recursive_doubling,
        "rabenseifner": rabenseifner_allreduce,
        "ring": ring_allreduce,
        "segmented_ring": segmented_ring_allreduce,
        "reduce_bcast": reduce_then_bcast,
        "linear": linear_allreduce,
        "allgather_reduce": allgather_then_reduce,
        "bine": bine_allreduce,
        "bine_folded": bine_allreduce_folded,
        "bine_halving": bine_halving_allreduce,
        "bine_halving_in_turns": bine_in_turns,
        "bine_any_even": bine_allreduce_any_even,
        "torus_doubling": torus_doubling_allreduce,
        "torus_halving": torus_halving_allreduce,
    },
    "reduce": REDUCE
    | {
        "rabenseifner": rabenseifner_reduce,
        "bine": bine_reduce,
        "bine_reduce_scatter_gather": bine_reduce_then_gather,
        "bine_whole": bine_reduce_whole,
        "bine_reduce_scatter_gather_copied": bine_reduce_scatter_gather_copied,
    },
    "reduce_scatter": _REDUCE_SCATTER | {"reduce_scatter": reduce_then_scatterv},
    "reduce_scatter_block": _REDUCE_SCATTER | {"reduce_scatter": reduce_then_scatter},
    "scan": {"recursive_doubling": doubling_scan, "linear": linear_scan},
    "exscan": {"recursive_doubling": doubling_exscan, "linear": linear_exscan},
}


class Chosen(NamedTuple):
    """Messages of a collective, and the operation and algorithm that they carry out."""

    operation: str
    algorithm: str
    schedule: Schedule


def choose(
    operation: Collective,
    root: int,
    sent: Ints,
    received: Ints,
    algorithms: Mapping[str, str] | None = None,
    moved: Ints | None = None,
) -> Chosen:
    """Choose the algorithm of one collective call, and list its messages.

    Creating, destroying, allocating and freeing handles synchronise: they are barriers. An
    algorithm that is not for so many members is replaced, see `selection.suited`.

    Parameters
    ----------
    root : int
        Position of the root, or -1.
    sent, received : ndarray(int64, shape=(members,))
        Bytes as recorded at each member, see `volume`.
    algorithms : mapping of str to str, optional
        Algorithms by operation, where Open MPI's choice is not wanted, as `named` reads them.
    moved : ndarray(int64), optional
        What is really moved, where more is known of it than this one call's record.
    """
    name = operation.name.lower()
    if name not in ALGORITHMS:
        name, operation = "barrier", Collective.BARRIER
    members = len(sent)
    if moved is None:
        moved = volume(operation, root, sent, received)
    algorithm = (algorithms or {}).get(name, OPENMPI)
    if algorithm == OPENMPI:
        algorithm = select(name, members, size_of(name, moved))
    return scheduled(name, algorithm, members, max(root, 0), moved)


def scheduled(
    operation: str,
    algorithm: str,
    members: int,
    root: int,
    moved: Ints,
    elements: int | None = None,
) -> Chosen:
    """List the messages of one collective call by an algorithm that is named.

    Parameters
    ----------
    operation : str
        A key of `ALGORITHMS`.
    algorithm : str
        With its options, as `named` reads them.
    moved : ndarray(int64)
        What is moved, see `volume`.
    elements : int, optional
        Elements of the buffer, of a call that is what its name says: it is replaced only where
        Open MPI's function of that name calls another, for so few elements or so many members.
        When left out, what is not for so many members is replaced, see `selection.suited`.

    Raises
    ------
    AlgorithmError
        An unknown algorithm or option, or one that is not for so many members.
    """
    bare, schedule_of = named(algorithm, ALGORITHMS[operation])
    if elements is None:
        instead = suited(operation, bare, members)
    else:
        instead = called(operation, enough(operation, bare, members, elements), members)
    if instead != bare:
        algorithm, schedule_of = instead, ALGORITHMS[operation][instead]
    listed = schedule_of(members, root, moved)
    buffers = buffers_of(operation, instead, Call(listed, members, root, moved))
    return Chosen(operation, algorithm, listed._replace(buffers=buffers))
