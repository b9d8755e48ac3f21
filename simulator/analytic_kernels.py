"""A message alone in the network: the closed forms of docs/MODEL.md, for any bandwidths."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import model

packet_count = njit(cache=True)(model.packet_count)


@njit(cache=True)
def alone(
    bandwidth: NDArray[np.float64],
    latency: NDArray[np.float64],
    path: NDArray[np.int64],
    size: int,
    packet_size: int,
    cut_through: bool,
) -> float:
    """Seconds from handing a message to the first server of a path to its delivery.

    A store-and-forward pipeline of packets is a grid of (packet, server), each cell waiting for
    those above and to the left of it, so that its time is its longest path: full packets as far as
    some server, held up behind the slowest one there, and from that one on the last packet.
    """
    latencies = 0.0
    for server in path:
        latencies += latency[server]
    if cut_through:
        return float(latencies + size / bandwidth[path].min())
    packets = packet_count(size, packet_size)
    last = size - (packets - 1) * packet_size
    rest = 0.0
    for server in path:
        rest += last / bandwidth[server]
    if packets == 1:
        return float(latencies + rest)
    longest, full, slowest = 0.0, 0.0, np.inf
    for server in path:
        full += packet_size / bandwidth[server]
        slowest = min(slowest, bandwidth[server])
        longest = max(longest, full + (packets - 2) * packet_size / slowest + rest)
        rest -= last / bandwidth[server]
    return float(latencies + longest)


@njit(cache=True)
def hold(
    bandwidth: NDArray[np.float64],
    path: NDArray[np.int64],
    size: int,
    cut_through: bool,
    busy: NDArray[np.float64],
) -> None:
    """Add the seconds for which a message that is alone holds each server of a path."""
    slowest = np.inf
    for server in path:
        slowest = min(slowest, bandwidth[server])
        busy[server] += size / (slowest if cut_through else bandwidth[server])
