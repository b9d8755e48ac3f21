"""A message alone in the network: the closed forms of docs/MODEL.md, for any bandwidths."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import subroutine
from hopmap.simulator.model_kernels import packet_count
from hopmap.simulator.row_pointers import nth


@subroutine
def alone(
    servers: Any, stops: Any, begin: int, end: int, size: int, packet_size: int, cut_through: bool
) -> float:
    """Seconds from handing a message to the first server of a path to its delivery.

    A store-and-forward pipeline of packets is a grid of (packet, server), each cell waiting for
    those above and to the left of it, so that its time is its longest path: full packets as far as
    some server, held up behind the slowest one there, and from that one on the last packet.
    """
    packets = packet_count(size, packet_size)
    last = size - (packets - 1) * packet_size
    latencies, rest, slowest = 0.0, 0.0, np.inf
    for stop in range(begin, end):
        server = nth(servers, nth(stops, stop)["server"])
        latencies += server["latency"]
        rest += last / server["bandwidth"]
        slowest = min(slowest, server["bandwidth"])
    if cut_through:
        return latencies + size / slowest
    if packets == 1:
        return latencies + rest
    longest, full, slowest = 0.0, 0.0, np.inf
    for stop in range(begin, end):
        bandwidth = nth(servers, nth(stops, stop)["server"])["bandwidth"]
        full += packet_size / bandwidth
        slowest = min(slowest, bandwidth)
        longest = max(longest, full + (packets - 2) * packet_size / slowest + rest)
        rest -= last / bandwidth
    return latencies + longest


@subroutine
def charge(
    servers: Any, stops: Any, begin: int, end: int, size: int, cut_through: bool, data: bool
) -> float:
    """Count a message at the servers of a path; return the sum of their latencies.

    Alone, cut-through holds a fast server behind a slow one for as long as the slow one.
    """
    latencies, slowest = 0.0, np.inf
    for stop in range(begin, end):
        server = nth(servers, nth(stops, stop)["server"])
        latencies += server["latency"]
        slowest = min(slowest, server["bandwidth"])
        server["busy"] += size / (slowest if cut_through else server["bandwidth"])
        if data:
            server["messages"] += 1
            server["bytes"] += size
    return latencies
