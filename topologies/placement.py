"""Mappings: ``node_of[rank]``, an integer array that places ranks on a topology's nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.arrays import Ints
from hopmap.errors import HopmapError

from .job import OVER
from .spec import FAMILIES
from .topology import Topology

Mapping = NDArray[np.int64]


class MappingError(HopmapError, ValueError):
    """A mapping, mapper or its parameters cannot be used as asked."""


def check_mapping(
    node_of: ArrayLike, topology: Topology, ranks: int | None = None, *, name: str = "mapping"
) -> Mapping:
    """Return the mapping as an int64 array of shape (ranks,), or raise `MappingError`.

    Its message begins with `name`, the file or mapper.
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
        expected = f"expected {topology.slots[node]} at most"
        if not topology.slots[node]:
            expected = "this node is down or not the job's: expected another one"
        raise MappingError(
            f"{name}: rank{'s' if used[node] > 1 else ''} {', '.join(map(str, sitting))}"
            f"{', ...' if used[node] > 4 else ''} on node {node}: {expected}"
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
            f"expected a larger topology or more slots a node{_similar_spec(topology, ranks)}"
        )


def with_room(topology: Topology, ranks: int, imbalance: float) -> Topology:
    """Return the network with room for more ranks than it has slots, as for a graph's blocks.

    Every node takes (1 + imbalance) times its share, both rounded as KaHIP and SharedMap do: what
    its slots are of all slots, of the ranks, rounded up; then that, rounded down. The spec says so.
    An imbalance of 0.03 is 3 %. Raises `MappingError` for one that is none, and for a network whose
    spec cannot say what a node takes.
    """
    if not 0 <= imbalance <= ranks:
        raise MappingError(f"imbalance {imbalance}: expected a number >= 0, 0.03 is 3 %")
    slots = topology.slots
    share = -(-ranks * slots // max(int(slots.sum()), 1))
    room = np.floor((1 + imbalance) * share + 1e-9).astype(np.int64)
    if np.array_equal(room, slots):
        return topology
    spec = spec_with_slots(topology.spec, room)
    if spec is None:
        raise MappingError(
            f"imbalance {imbalance:g}: {topology.spec} cannot say how many slots a node has: "
            "expected a network whose spec may end in *2"
        )
    return replace(topology, slots=room, spec=spec)


def spec_with_slots(spec: str, slots: Ints) -> str | None:
    """Return a spec with other slots; nodes that are not the job's may have some there.

    None where no spec can say so.
    """
    family, _, words = spec.partition(":")
    if family in OVER:
        over, _, machine = words.partition("@")
        inner = spec_with_slots(machine, slots)
        return inner and f"{family}:{over}@{inner}"
    if family == "cluster":
        runs = [(len(list(run)), most) for most, run in groupby(slots.tolist())]
        return "cluster:" + "+".join(f"{nodes}*{max(most, 1)}" for nodes, most in runs)
    if family not in FAMILIES or not FAMILIES[family].slots:
        return None
    shape, *options = spec.split(",")
    return ",".join((f"{shape.partition('*')[0]}*{slots.max()}", *options))


def _similar_spec(topology: Topology, ranks: int) -> str:
    """Spec of the network with enough slots, where a spec can say so."""
    slots = -(-ranks // topology.nodes)
    wider = spec_with_slots(topology.spec, np.full(topology.nodes, slots))
    return "" if wider is None or topology.spec.startswith(OVER) else f", like {wider}"
