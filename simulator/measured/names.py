"""Names of algorithms in measured data, and what they are here."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """An algorithm that is known.

    Attributes
    ----------
    operation, algorithm : str
        Keys of `ALGORITHMS`.
    """

    operation: str
    algorithm: str


_OMPI = {
    "bcast": {"binomial": "binomial", "binary-tree": "binary", "pipeline": "pipeline"},
    "allgather": {"ring": "ring", "recursive-doubling": "recursive_doubling", "bruck": "bruck", "neighbor": "neighbour_exchange"},
    "gather": {"binomial": "binomial", "simple":"linear"},
    "scatter": {"binomial": "binomial"},
    "reduce": {"binomial": "binomial"},
    "alltoall": {"linear": "linear", "linear-sync": "linear", "pairwise": "pairwise"},
    "allreduce": {"ring": "ring", "recursive_doubling": "recursive_doubling"},
    "reduce_scatter": {"ring": "ring", "recursive-halving": "recursive_halving"},
}


def known(collective: str, algorithm: str) -> Known | None:
    """Find an algorithm by its name in measured data; None if it has no public definition."""
    found = _OMPI.get(collective, {}).get(algorithm.removeprefix("default-"))
    return Known(collective, found) if found else None
