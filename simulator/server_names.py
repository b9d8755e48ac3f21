"""Servers by name: what the numbers of a plan's servers stand for, see `run_plan.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology

ENDS = ("injection", "ejection", "memory")


class ServerName(NamedTuple):
    """What a server is.

    Attributes
    ----------
    kind : str
        Kind of a link, like "optical"; or "injection", "ejection", "memory".
    place : str
        "3 -> 4" of a link, "node 3" of the others.
    """

    kind: str
    place: str


def server_name(topology: Topology, server: int) -> ServerName:
    """Name a server."""
    if server < topology.links:
        ends = topology.link_from[server], topology.link_to[server]
        kind = topology.kinds[topology.link_kind[server]].name
        return ServerName(kind, " -> ".join(topology.vertex_name(int(end)) for end in ends))
    end, node = divmod(server - topology.links, topology.nodes)
    return ServerName(ENDS[end], f"node {node}")


def server_kinds(topology: Topology) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the kind of each server, as a place among the names that come second."""
    links = topology.link_kind.astype(np.int64)
    ends = len(topology.kinds) + np.repeat(np.arange(len(ENDS)), topology.nodes)
    names = (*(kind.name for kind in topology.kinds), *ENDS)
    return np.concatenate((links, ends)), names
