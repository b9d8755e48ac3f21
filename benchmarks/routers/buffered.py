"""hopmap's finite buffers on 8x8 networks under BookSim's traffic.

Routes go along x first, in both. A packet to a node itself goes through its router. Where both ways
round a ring are as long, each packet takes one at random, in either dimension.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
from booksim import HOP, IN, OUT
from numpy.typing import NDArray
from traffic import NODES, SIDE, injected, made, on_grid

from hopmap.simulator import Parameters
from hopmap.simulator.routes import ANY
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.topologies import Topology, both_ways, topology_from_spec

Ints = NDArray[np.int64]


@cache
def network(topology: str) -> tuple[Topology, Ints, Ints, Ints, int]:
    """Return the paths of all pairs of nodes.

    On a torus there is a block of paths for every choice of directions round the rings of x and y.

    Returns
    -------
    topology : Topology
    indptr, servers, classes : ndarray(int64)
        As `RunPlan` has them. On a torus packets that go over the wrap-around link of a dimension
        keep to one class of virtual channels in it, those that do not to the other, as BookSim's.
    ways : int
        Paths of each pair.
    """
    here = topology_from_spec(f"{topology}:{SIDE}x{SIDE}").with_links(bandwidth=1.0, latency=HOP)
    source, target = np.divmod(np.arange(NODES * NODES), NODES)
    corner = source // SIDE * SIDE + target % SIDE
    ways = both_ways(here) if topology == "torus" else [here]
    along = [legs(way, source, corner) for way in ways]
    across = [legs(way, corner, target) for way in ways]
    servers: list[int] = []
    classes: list[int] = []
    lengths: list[int] = []
    for legs_x, legs_y in product(along, across):
        for a, b, (x, kinds_x), (y, kinds_y) in zip(source, target, legs_x, legs_y, strict=True):
            servers += [here.links + a, *x, *y, here.links + NODES + b]
            classes += [ANY, *kinds_x, *kinds_y, ANY]
            lengths.append(len(x) + len(y) + 2)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return here, indptr, np.array(servers), np.array(classes), len(ways) ** 2


def legs(way: Topology, source: Ints, target: Ints) -> list[tuple[Ints, Ints]]:
    """Links from nodes to others of the same row or column, and the classes on them."""
    starts, links = way.routes(source, target)
    step = np.abs(way.link_from[links] - way.link_to[links])
    wraps = (step != 1) & (step != SIDE)
    return [
        (links[a:b], np.full(b - a, wraps[a:b].any(), dtype=np.int64)) for a, b in pairwise(starts)
    ]


def planned(
    topology: str,
    pattern: str,
    load: float,
    end: int,
    *,
    size: int,
    channels: int,
    buffer: int,
    seed: int = 1,
) -> RunPlan:
    """Plan the run of what is made until a cycle.

    Parameters
    ----------
    load : float
        Packets per source and cycle.
    end : int
        Cycles; one second is one.
    size : int
        Flits of a packet; one byte is one.
    buffer : int
        Packets of a buffer, 0 for any number.
    """
    here, indptr, servers, classes, ways = network(topology)
    parameters = Parameters(
        overhead_send=0.0,
        overhead_recv=0.0,
        packet_size=size,
        eager_limit=2**60,
        injection_bandwidth=1.0,
        injection_latency=IN,
        ejection_bandwidth=1.0,
        ejection_latency=OUT,
        network_buffer=buffer,
        network_virtual_channels=channels,
        network_flit=1,
    )
    rng = np.random.default_rng(seed)
    source, cycle = made(NODES, load, end, rng)
    program = injected(pattern, source, cycle, on_grid(pattern, source, rng), NODES, size)
    way = rng.integers(ways, size=len(source))
    ready = plan_run(program, here, np.arange(NODES), parameters)
    rows = program.sends()
    path = ready.path.copy()
    pair = program.rank_of_row()[rows].astype(np.int64) * NODES + program.peer[rows]
    path[rows] = pair + NODES * NODES * way
    if not buffer:
        classes = np.empty(0, dtype=np.int64)
    return replace(ready, path=path, back=path, indptr=indptr, servers=servers, classes=classes)
