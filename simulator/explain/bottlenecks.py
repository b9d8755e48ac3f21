"""Bottlenecks of a run: the servers that need longest, or are queued for longest, and for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import (
    ParameterError,
    unknown,
)
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.result import Result
from hopmap.simulator.run_plan import speeds
from hopmap.simulator.server_names import ENDS, server_name
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic


@dataclass(frozen=True)
class Bottleneck:
    """A server and who loads it.

    Attributes
    ----------
    kind, place : str
        See `ServerName`.
    bytes : int
        Of data.
    seconds : float
        That they take: bytes / bandwidth.
    busy : float
        Seconds for which the server was held, requests and grants included.
    queued : float
        Seconds that all packets together stood in its queue.
    pairs : list of (int, int, int)
        (source rank, target rank, bytes) of the rank pairs behind it, heaviest first.
    """

    kind: str
    place: str
    bytes: int
    seconds: float
    busy: float
    queued: float
    pairs: list[tuple[int, int, int]]


def bottlenecks(
    result: Result,
    traffic: Traffic,
    topology: Topology,
    node_of: Mapping,
    parameters: Parameters,
    *,
    by: str = "bytes",
    top: int = 5,
    pairs: int = 3,
) -> list[Bottleneck]:
    """Find the servers that hold a run up.

    Parameters
    ----------
    result : Result
        Of a replay of that traffic on that topology.
    by : {"bytes", "queued"}
        Whether bytes / bandwidth counts, or the time that packets queued.
    top, pairs : int
        Servers to return, and rank pairs of each, at most; what is 0 is left out.

    Raises
    ------
    ParameterError
        Unknown order.
    """
    load, busy, queued = (
        np.concatenate((links, *(getattr(getattr(result, end), field) for end in ENDS)))
        for links, field in (
            (result.link_bytes, "bytes"),
            (result.link_busy, "busy"),
            (result.link_waited, "waited"),
        )
    )
    seconds = load / speeds(topology, parameters)[0]
    measures = {"bytes": seconds, "queued": queued}
    if by not in measures:
        raise ParameterError(unknown("order of bottlenecks", by, measures))
    measure = measures[by]
    order = np.argsort(-measure, kind="stable")[:top]
    return [
        Bottleneck(
            *server_name(topology, server),
            bytes=int(load[server]),
            seconds=float(seconds[server]),
            busy=float(busy[server]),
            queued=float(queued[server]),
            pairs=_pairs(traffic, topology, node_of, server, pairs),
        )
        for server in order[measure[order] > 0].tolist()
    ]


def _pairs(
    traffic: Traffic, topology: Topology, node_of: Mapping, server: int, most: int
) -> list[tuple[int, int, int]]:
    """Rank pairs whose messages cross a server, heaviest first."""
    crosses = _crossing(topology, node_of[traffic.src], node_of[traffic.dst], server)
    behind = np.flatnonzero(crosses & (traffic.bytes > 0))
    behind = behind[np.argsort(-traffic.bytes[behind], kind="stable")][:most]
    columns = traffic.src[behind], traffic.dst[behind], traffic.bytes[behind]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _crossing(
    topology: Topology, source: NDArray[np.int64], target: NDArray[np.int64], server: int
) -> NDArray[np.bool_]:
    from hopmap.simulator.metrics import load_kernels

    if server < topology.links:
        return np.asarray(load_kernels.pairs_over_link(topology.router, source, target, server))
    end, node = divmod(server - topology.links, topology.nodes)
    away = source != target
    kept = {"injection": away & (source == node), "ejection": away & (target == node)}
    return np.asarray(kept.get(ENDS[end], ~away & (source == node)))
