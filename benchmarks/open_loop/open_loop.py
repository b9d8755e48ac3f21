"""Open loop: sources send on their own schedule, independent of the network.

Every flow of a traffic matrix, which is a pair of ranks over one route, is a stream of packets:
periodic from a random moment on, or Poisson. Nothing holds a source back, so that beyond saturation
queues grow. Lengths are in packets, times in the time that a link takes for one packet: a load of
1/2 is a packet every two of these times from every rank.

The channel load gamma is what the busiest link carries of one packet from each source; no more than
1/gamma can be offered forever (Dally and Towles, Principles and Practices of Interconnection
Networks, 2004, sections 3.2 and 23.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from injection import PROCESSES, flows_of, planned, program_at, schedule, unit_of

from hopmap.errors import choice
from hopmap.simulator import ENGINES, ParameterError, Parameters, link_loads
from hopmap.simulator.operations import Record
from hopmap.topologies import Topology
from hopmap.traces import Traffic

# Only links take time.
ONLY_LINKS = Parameters(
    overhead_send=0.0,
    overhead_recv=0.0,
    packet_size=1,
    eager_limit=2,
    injection_bandwidth=1e9,
    injection_latency=0.0,
    ejection_bandwidth=1e9,
    ejection_latency=0.0,
    memory_bandwidth=1e9,
    memory_latency=0.0,
)


class Load(NamedTuple):
    """What came of an offered load.

    Attributes
    ----------
    offered : float
        Packets that each source sends per packet time.
    accepted : float
        `offered` times the least part that any flow got delivered in the window of what it sent
        there, at most all: the whole pattern is delivered at this rate.
    mean_accepted : float
        Packets delivered in the window per source and packet time, whichever flow they are of.
    latency : float
        Mean packet times from sending to delivery, of the packets sent in the window.
    packets : int
        Sent in the window.
    """

    offered: float
    accepted: float
    mean_accepted: float
    latency: float
    packets: int


def channel_load(traffic: Traffic, ways: Sequence[Topology]) -> Fraction:
    """Return gamma: packets over the busiest link when every source sends one.

    Parameters
    ----------
    traffic : Traffic
        Rank r is on node r; messages of pairs are their weights.
    ways : sequence of Topology
        The same network with routes that share the traffic evenly, see `both_ways`.
    """
    node_of = np.arange(traffic.ranks)
    loads = sum(link_loads(traffic, way, node_of)[0] for way in ways)
    return Fraction(int(np.max(loads, initial=0)), len(ways) * unit_of(traffic))


def open_loop(
    traffic: Traffic,
    ways: Sequence[Topology],
    offered: float,
    *,
    rng: np.random.Generator,
    process: str = "periodic",
    warm_up: float = 500.0,
    window: float = 2000.0,
    switching: str = "store_and_forward",
    engine: str = "compiled",
) -> Load:
    """Offer a load to a network and measure what it accepts.

    Parameters
    ----------
    traffic : Traffic
        Rank r is on node r; messages of pairs are their weights.
    ways : sequence of Topology
        The same network with routes that share the traffic evenly, see `both_ways`.
        All links take packets at the rate of 1 here, latencies are the topology's.
    offered : float
        Packets per packet time of the source that sends most.
    rng : Generator
        For moments and gaps.
    process : {"periodic", "poisson"}
        See `PROCESSES`.
    warm_up, window : float
        Packet times before the measurement, and of it; sources stop at its end.
    switching : {"store_and_forward", "cut_through"}
        When a packet moves on; saturation is the same, latency is not.
    engine : str
        A name in `ENGINES`; packet engines have queues.

    Raises
    ------
    ParameterError
        Unknown process, switching or engine, no load or no window.

    Notes
    -----
    Beyond saturation, `latency` grows with the window, as queues do.
    """
    for what, name, known in (("process", process, PROCESSES), ("engine", engine, ENGINES)):
        if name not in known:
            raise ParameterError(choice(f"unknown {what}", name, known))
    for what, value in (("offered load", offered), ("window", window)):
        if not 0 < value < np.inf:
            raise ParameterError(f"{what} {value}: expected more than 0")
    parameters = replace(ONLY_LINKS, switching=switching)
    flows = flows_of(traffic, ways)
    end = warm_up + window
    flow, sent = schedule(flows.rate * offered, end, process, rng)
    order = np.lexsort((sent, flows.src[flow]))
    flow, sent = flow[order], sent[order]
    ready = planned(program_at(traffic.ranks, flows, flow, sent), flows.way[flow], ways, parameters)
    outcome = ENGINES[engine].run(ready, Record(messages=True), None)
    times = outcome.messages

    inside = (times.sent >= warm_up) & (times.sent < end)
    arrived = (times.delivered >= warm_up) & (times.delivered < end)
    injected = np.bincount(flow[inside], minlength=len(flows.src))
    out = np.bincount(flow[arrived], minlength=len(flows.src))
    talks = injected > 0
    share = np.min(out[talks] / injected[talks], initial=1.0)
    return Load(
        offered=offered,
        accepted=offered * float(share),
        mean_accepted=float(out.sum()) / window / traffic.ranks,
        latency=float((times.delivered - times.sent)[inside].mean()),
        packets=int(injected.sum()),
    )
