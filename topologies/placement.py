"""Mappings: ``node_of[rank]``, an integer array that places ranks on a topology's nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.errors import HopmapError

from .spec import FAMILIES
from .topology import Topology

Mapping = NDArray[np.int64]


class MappingError(HopmapError, ValueError):
    """A mapping, mapper or its parameters cannot be used as asked."""


def check_mapping(
    node_of: ArrayLike, topology: Topology, ranks: int | None = None, *, name: str = "mapping"
) -> Mapping:
    """Return the mapping as an int64 array, or say what is wrong with it.

    Parameters
    ----------
    node_of : array_like of int, shape (ranks,)
        Node of each rank.
    ranks : int, optional
        Number of ranks that are expected.
    name : str
        The file or mapper, for the message.

    Raises
    ------
    MappingError
        Wrong length, a node that does not exist, more ranks on a node than it has slots.
    """
    nodes = np.asarray(node_of)
    if nodes.ndim != 1 or (nodes.size and nodes.dtype.kind not in "iu"):
        raise MappingError(f"{name}: expected one whole node number per rank")
    if ranks is not None and len(nodes) != ranks:
        raise MappingError(f"{name}: places {len(nodes)} ranks: expected {ranks}")
    nodes = nodes.astype(np.int64)
    outside = np.flatnonzero((nodes < 0) | (nodes >= topology.nodes))
    if outside.size:
        rank = outside[0]
        raise MappingError(
            f"{name}: rank {rank} on node {nodes[rank]}: expected a node of {topology.spec}, "
            f"0..{topology.nodes - 1}"
        )
    used = np.bincount(nodes, minlength=topology.nodes)
    over = np.flatnonzero(used > topology.slots)
    if over.size:
        node = over[0]
        sitting = np.flatnonzero(nodes == node)[:4]
        raise MappingError(
            f"{name}: node {node} takes {used[node]} ranks ({', '.join(map(str, sitting))}"
            f"{', ...' if used[node] > 4 else ''}) but has {topology.slots[node]} slots"
        )
    return nodes


def check_fits(ranks: int, topology: Topology) -> None:
    """Raise `MappingError` if the topology has fewer slots than there are ranks."""
    slots = int(topology.slots.sum())
    if ranks > slots:
        used = int(np.count_nonzero(topology.slots))
        if used < topology.nodes:
            raise MappingError(
                f"{ranks} ranks do not fit on {used} of the {topology.nodes} nodes of "
                f"{topology.spec}, which have {slots} slots: expected more nodes, or more slots "
                "a node"
            )
        raise MappingError(
            f"{ranks} ranks do not fit on {topology.spec}, which has {slots} slots: "
            f"expected a larger topology or more slots a node{_like(topology, ranks)}"
        )


def _like(topology: Topology, ranks: int) -> str:
    """Spec of the network with enough slots, where a spec can say so."""
    slots = -(-ranks // topology.nodes)
    family = topology.spec.partition(":")[0]
    if family == "cluster":
        return f", like cluster:{topology.nodes}*{slots}"
    if family not in FAMILIES or not FAMILIES[family].slots:
        return ""
    shape, *options = topology.spec.split(",")
    wider = f"{shape.partition('*')[0]}*{slots}"
    return f", like {','.join((wider, *options))}"
