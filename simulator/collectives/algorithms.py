"""Collective operations as rounds of point-to-point messages, by named algorithms.

What an operation moves is a volume, see `volumes.py`: one whole buffer, a block of bytes per
member, or bytes per pair of members. Reductions take no time themselves. An operation for which no
algorithm is named takes the one that Open MPI would, see `selection.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hopmap.traces import Collective

from .broadcasts import (
    binary_bcast,
    binomial_bcast,
    chain_bcast,
    knomial_bcast,
    linear_bcast,
    pipeline_bcast,
    split_binary_bcast,
)
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
from .gathers import (
    binomial_gather,
    binomial_scatter,
    linear_gather,
    linear_nb_scatter,
    linear_scatter,
    linear_sync_gather,
)
from .naming import named
from .reduces import (
    binary_reduce,
    binomial_reduce,
    chain_reduce,
    in_order_binary_reduce,
    linear_reduce,
    pipeline_reduce,
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
from .scatter_allgather import scatter_allgather, scatter_allgather_ring
from .schedules import Algorithm, Ints, Schedule
from .selection import OPENMPI, select, size_of, suited
from .volumes import volume

_GATHER = {
    "binomial": binomial_gather,
    "linear": linear_gather,
    "linear_sync": linear_sync_gather,
}
_SCATTER = {
    "binomial": binomial_scatter,
    "linear": linear_scatter,
    "linear_nb": linear_nb_scatter,
}
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
        "linear": linear_bcast,
        "knomial": knomial_bcast,
        "binary": binary_bcast,
        "split_binary": split_binary_bcast,
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
        "linear": linear_reduce,
        "binary": binary_reduce,
        "in_order_binary": in_order_binary_reduce,
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
    bare, schedule_of = named(algorithm, ALGORITHMS[name])
    instead = suited(name, bare, members)
    if instead != bare:
        algorithm, schedule_of = instead, ALGORITHMS[name][instead]
    return Chosen(name, algorithm, schedule_of(members, max(root, 0), moved))
