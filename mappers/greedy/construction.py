"""What constructions share: the first node, a word on quadratic time, and the loop of three."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.cost_model import CostModel
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .minmd import centre

MANY = 2**15


def first_node(name: str, topology: Topology, start: int | None) -> int:
    """Return the given node, or the middle of the machine where none is given.

    Raises
    ------
    MappingError
        There is no such node.
    """
    if start is None:
        return centre(topology)
    if start >= topology.nodes:
        raise MappingError(
            f"mapper {name}: start={start}: expected a node of {topology.spec}, "
            f"0 to {topology.nodes - 1}"
        )
    return start


def heaviest_first(model: CostModel, ranks: int) -> NDArray[np.int64]:
    """Ranks by their traffic, the most first, equal ones in order."""
    before = np.concatenate(([0], np.cumsum(model.weight)))
    return np.argsort(-np.diff(before[model.indptr[: ranks + 1]]), kind="stable")


def announce_quadratic(name: str, ranks: int) -> None:
    """Warn where a construction whose time grows with the square of the ranks has very many."""
    if ranks > MANY:
        warnings.warn(
            f"mapper {name}: time grows with the square of the ranks, and {ranks} are more than "
            f"{MANY}: topdown takes far less",
            stacklevel=3,
        )


def most_connected_first(
    name: str, rule: int, traffic: Traffic, topology: Topology, weight: str
) -> Mapping:
    """Place rank after rank by a rule of `most_connected_kernels`."""
    from .most_connected_kernels import place

    announce_quadratic(name, traffic.ranks)
    model = cost_model(traffic, topology, f"hop_{weight}", few=True)
    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    place(model, topology.slots, centre(topology), rule, node_of)
    return node_of
