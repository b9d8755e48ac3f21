"""hopmap's dragonfly under BookSim's traffic, and BookSim's options for it.

BookSim's `dragonflynew` of k = 2: 9 groups of 4 routers, of 2 nodes and 2 global links each; a
local channel takes 10 cycles, a global one 100, and a router 2 before either.

BookSim has routing functions for minimal ways and for UGAL. Its UGAL routes minimally if the
minimal queue is at most twice the other plus 30 flits, and ignores the hops; a detour is to any
router of another group, the target's among them. It has none for Valiant's. `dragonfly.diff`
(`git apply` it in BookSim's folder) adds both as hopmap and Kim and others (ISCA 2008) have them,
`valiant_group` and `ugal_group`, and joins the groups as hopmap does, a palm tree.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from booksim import HOP, IN, OUT
from traffic import injected, made, on_dragonfly

from hopmap.simulator import Parameters
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.topologies import Topology, topology_from_spec

NODES = 72
ROUTINGS = {
    "min": "deterministic",
    "valiant_group": "valiant",
    "ugal_group": "ugal_l",
    "ugal": "ugal_l",
}
AT_ONCE = 1e12  # bandwidth of what is no link in BookSim


@cache
def network() -> Topology:
    here = topology_from_spec("dragonfly:2x4x2").with_links(bandwidth=1.0)
    for kind, cycles in (("node", IN), ("local", HOP + 9), ("global", HOP + 99)):
        here = here.with_links(kind, latency=cycles)
    return here


def planned(
    routing: str,
    pattern: str,
    load: float,
    end: int,
    *,
    size: int,
    channels: int,
    buffer: int,
    seed: int,
) -> RunPlan:
    """Plan the run, as `buffered.planned` does; links from and to nodes are the network's here."""
    parameters = Parameters(
        overhead_send=0.0,
        overhead_recv=0.0,
        packet_size=size,
        eager_limit=2**60,
        injection_bandwidth=AT_ONCE,
        injection_latency=0.0,
        ejection_bandwidth=AT_ONCE,
        ejection_latency=0.0,
        memory_bandwidth=1.0,
        memory_latency=float(IN + OUT),
        network_routing=ROUTINGS[routing],
        network_buffer=buffer,
        network_flit=1,
        network_virtual_channels=channels,
    )
    rng = np.random.default_rng(seed)
    source, cycle = made(NODES, load, end, rng)
    target = on_dragonfly(pattern, source, NODES, rng)
    program = injected(pattern, source, cycle, target, NODES, size)
    return plan_run(program, network(), np.arange(NODES), parameters)


def options(routing: str, pattern: str) -> dict[str, object]:
    """Return BookSim's options for this network, without the options of every network."""
    ring = pattern in ("tornado", "neighbor")
    return {
        "topology": "dragonflynew",
        "k": 2,
        "n": 1,
        "routing_function": routing,
        "traffic": f"{pattern}({NODES},1,1)" if ring else pattern,
    }
