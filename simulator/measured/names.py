"""Names of algorithms in measured data, and what they are here.

Names that begin with default- are those of Fujitsu MPI 4.0.1, which is Open MPI: what Open MPI
does not have (3dtorus, trix3, blacc3d, crp, gtbc, doublespread, simple, use-bcast, ...) has no
public definition, and neither has what leaves a part of the work to the library's own choice
(default, and linear, nonoverlapping, rdbc, non-overlapping where that is a call of another
collective). A forced algorithm is not segmented: coll_tuned_*_algorithm_segmentsize is 0 by
default, and coll_tuned_*_algorithm_chain_fanout is 4 (Open MPI, ompi/mca/coll/tuned).
Names that end in _ompi are Open MPI's, in _over those of the authors of PICO (arXiv 2508.16809), in
_mpich those of Cray MPICH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Known(NamedTuple):
    """An algorithm that is known.

    Attributes
    ----------
    operation : str
        A key of `ALGORITHMS`.
    algorithm : str
        With its options, as `naming.named` reads them.
    """

    operation: str
    algorithm: str


FUJITSU: Mapping[str, Mapping[str, str]] = {
    "allgather": {
        "bruck": "bruck",
        "neighbor": "neighbour_exchange",
        "recursive-doubling": "recursive_doubling",
        "ring": "ring",
    },
    "allreduce": {
        "basic_linear": "linear",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "alltoall": {
        "linear": "linear",
        "linear-sync": "linear",
        "modified-bruck": "bruck",
        "pairwise": "pairwise",
    },
    "bcast": {
        "basic-linear": "linear",
        "binary-tree": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "pipeline": "pipeline(segment=0)",
        "split-binary-tree": "split_binary(segment=0)",
    },
    "gather": {"basic-linear": "linear", "binomial": "binomial", "linear-sync": "linear_sync"},
    "reduce": {
        "binary": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "in-order-binary": "in_order_binary(segment=0)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
    },
    "reduce_scatter": {"recursive-halving": "recursive_halving", "ring": "ring"},
    "scatter": {"basic-linear": "linear", "binomial": "binomial"},
}


OPEN_MPI: Mapping[str, Mapping[str, str]] = {
    "allgather": {
        "bruck": "bruck",
        "neighbor": "neighbour_exchange",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "allreduce": {
        "linear": "linear",
        "rabenseifner": "rabenseifner",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "alltoall": {
        "linear": "linear",
        "linear_sync": "linear",
        "modified_bruck": "bruck",
        "pairwise": "pairwise",
    },
    "bcast": {
        "binary": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "knomial": "knomial(segment=0)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
        "scatter_allgather": "scatter_allgather",
        "scatter_allgather_ring": "scatter_allgather_ring",
        "split_binary": "split_binary(segment=0)",
    },
    "gather": {"binomial": "binomial", "linear": "linear", "linear_synch": "linear_sync"},
    "reduce": {
        "binary": "binary(segment=0)",
        "binomial": "binomial(segment=0)",
        "chain": "chain(fanout=4, segment=0)",
        "in_order": "in_order_binary(segment=0)",
        "linear": "linear",
        "pipeline": "pipeline(segment=0)",
        "rabenseifner": "rabenseifner",
    },
    "reduce_scatter": {"recursive_halving": "recursive_halving", "ring": "ring"},
    "scatter": {"binomial": "binomial", "linear": "linear", "linear_nb": "linear_nb"},
}
# Of the authors' own library and of Cray's MPICH those that are the same messages.
OTHERS: Mapping[str, Mapping[str, str]] = {
    "allgather": {"recursive_doubling": "recursive_doubling", "ring": "ring", "brucks": "bruck"},
    "allreduce": {
        "rabenseifner": "rabenseifner",
        "recursive_doubling": "recursive_doubling",
        "ring": "ring",
    },
    "bcast": {"scatter_allgather": "scatter_allgather"},
    "reduce": {"binomial": "binomial(segment=0)", "rabenseifner": "rabenseifner"},
    "reduce_scatter": {
        "pairwise": "pairwise",
        "recursive_halving": "recursive_halving",
        "ring": "ring",
    },
}


def known(collective: str, algorithm: str) -> Known | None:
    """Find an algorithm by its name in measured data; None if it has no public definition."""
    found = None
    name, _, library = algorithm.rpartition("_")
    if algorithm.startswith("default-"):
        found = FUJITSU.get(collective, {}).get(algorithm.removeprefix("default-"))
    elif algorithm == "BRUCK-LOG-MPI-0-1":
        found = "bruck"
    elif library == "ompi":
        found = OPEN_MPI.get(collective, {}).get(name)
    elif library in ("over", "mpich"):
        found = OTHERS.get(collective, {}).get(name)
    return Known(collective, found) if found else None
