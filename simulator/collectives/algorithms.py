"""Collective operations as rounds of point-to-point messages, by named algorithms.

What an operation moves is a volume, see `volumes.py`: one whole buffer, a block of bytes per
member, or bytes per pair of members. Reductions take no time themselves. An operation for which no
algorithm is named takes the one that Open MPI would, see `selection.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hopmap.traces import Collective

from .exchanges import (
    bruck,
    bruck_alltoall,
    chain,
    dissemination,
    doubling_allgather,
    doubling_scan,
    linear_exchange,
    neighbour_exchange,
    pairwise,
    ring,
)
from .reductions import (
    gather_then_bcast,
    halving_reduce_scatter,
    linear_allreduce,
    pairwise_reduce_scatter,
    rabenseifner_allreduce,
    rabenseifner_reduce,
    recursive_doubling,
    reduce_then_bcast,
    reduce_then_scatter,
    ring_allreduce,
    ring_reduce_scatter,
)
from .schedules import Algorithm, Ints, Schedule
from .selection import OPENMPI, select, size_of, suited
from .trees import (
    binary_bcast,
    binary_reduce,
    binomial_bcast,
    binomial_gather,
    binomial_reduce,
    binomial_scatter,
    chain_bcast,
    chain_reduce,
    knomial_bcast,
    linear_gather,
    linear_scatter,
    pipeline_bcast,
    pipeline_reduce,
    scatter_allgather,
    scatter_allgather_ring,
)
from .volumes import volume

_GATHER = {"binomial": binomial_gather, "linear": linear_gather}
_SCATTER = {"binomial": binomial_scatter, "linear": linear_scatter}
_ALLGATHER = {
    "bruck": bruck,
    "recursive_doubling": doubling_allgather,
    "neighbour_exchange": neighbour_exchange,
    "ring": ring,
    "gather_bcast": gather_then_bcast,
}
_EXCHANGE = {"pairwise": pairwise, "linear": linear_exchange, "bruck": bruck_alltoall}
_REDUCE_SCATTER = {
    "pairwise": pairwise_reduce_scatter,
    "recursive_halving": halving_reduce_scatter,
    "ring": ring_reduce_scatter,
    "reduce_scatter": reduce_then_scatter,
}
_SCAN = {"recursive_doubling": doubling_scan, "linear": chain}

ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    "barrier": {
        "dissemination": dissemination,
        "recursive_doubling": recursive_doubling,
        "tree": reduce_then_bcast,
        "linear": linear_allreduce,
    },
    "bcast": {
        "binomial": binomial_bcast,
        "linear": linear_scatter,
        "knomial": knomial_bcast,
        "binary": binary_bcast,
        "chain": chain_bcast,
        "pipeline": pipeline_bcast,
        "scatter_allgather": scatter_allgather,
        "scatter_allgather_ring": scatter_allgather_ring,
    },
    "gather": _GATHER,
    "gatherv": _GATHER,
    "scatter": _SCATTER,
    "scatterv": _SCATTER,
    "allgather": _ALLGATHER,
    "allgatherv": _ALLGATHER,
    "alltoall": _EXCHANGE,
    "alltoallv": _EXCHANGE,
    "alltoallw": _EXCHANGE,
    "allreduce": {
        "recursive_doubling": recursive_doubling,
        "rabenseifner": rabenseifner_allreduce,
        "ring": ring_allreduce,
        "reduce_bcast": reduce_then_bcast,
        "linear": linear_allreduce,
    },
    "reduce": {
        "binomial": binomial_reduce,
        "linear": linear_gather,
        "binary": binary_reduce,
        "chain": chain_reduce,
        "pipeline": pipeline_reduce,
        "rabenseifner": rabenseifner_reduce,
    },
    "reduce_scatter": _REDUCE_SCATTER,
    "reduce_scatter_block": _REDUCE_SCATTER,
    "scan": _SCAN,
    "exscan": _SCAN,
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
        Algorithms by operation, where Open MPI's choice is not wanted.
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
    else:
        algorithm = suited(name, algorithm, members)
    return Chosen(name, algorithm, ALGORITHMS[name][algorithm](members, max(root, 0), moved))
