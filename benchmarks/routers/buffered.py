"""hopmap's finite buffers on 8x8 networks under BookSim's traffic.

Routes go along x first, in both. A packet to a node itself goes through its router. Where both ways
round a ring are as long, each packet takes one at random, in either dimension.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
from booksim import HOP, IN, OUT, Measured
from numpy.typing import NDArray
from traffic import NODES, SIDE, injected, made, on_grid, replayed

from hopmap.simulator import Parameters
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.simulator.virtual_channels import ANY
from hopmap.topologies import Topology, both_ways, topology_from_spec

Ints = NDArray[np.int64]


@cache
def network(topology: str, dateline: bool) -> tuple[Topology, Ints, Ints, Ints, int]:
    """Paths of all pairs of nodes, those of one way round the rings of x and y behind the others'.

    On a torus BookSim's packets that go over the wrap-around link of a dimension keep to one class
    of virtual channels in it, those that do not to the other; hopmap's (`dateline`) change theirs
    behind that link.
    """
    here = topology_from_spec(f"{topology}:{SIDE}x{SIDE}").with_links(bandwidth=1.0, latency=HOP)
    source, target = np.divmod(np.arange(NODES * NODES), NODES)
    corner = source // SIDE * SIDE + target % SIDE
    ways = both_ways(here) if topology == "torus" else [here]
    along = [legs(way, source, corner, dateline) for way in ways]
    across = [legs(way, corner, target, dateline) for way in ways]
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


def legs(way: Topology, source: Ints, target: Ints, dateline: bool) -> list[tuple[Ints, Ints]]:
    """Links from nodes to others of the same row or column, and the classes on them."""
    starts, links = way.routes(source, target)
    step = np.abs(way.link_from[links] - way.link_to[links])
    wraps = (step != 1) & (step != SIDE)
    found = []
    for a, b in pairwise(starts):
        passed = np.cumsum(wraps[a:b]) - wraps[a:b]
        kinds = passed if dateline else np.full(b - a, wraps[a:b].any())
        found.append((links[a:b], kinds.astype(np.int64)))
    return found


def planned(
    topology: str,
    pattern: str,
    load: float,
    end: int,
    *,
    size: int,
    channels: int,
    buffer: int,
    dateline: bool,
    credit_delay: float,
    seed: int,
) -> RunPlan:
    """Plan the run: one byte is a flit, one second a cycle; a buffer is in packets."""
    here, indptr, servers, classes, ways = network(topology, dateline)
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
        network_credit_delay=credit_delay,
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


def hopmap(
    topology: str,
    pattern: str,
    load: float,
    window: int,
    *,
    size: int,
    channels: int,
    buffer: int,
    dateline: bool = False,
    credit_delay: float = 0.0,
    seed: int = 1,
) -> Measured:
    """Replay: a window to warm up, two to measure, and one more in which traffic goes on."""
    ready = planned(
        topology,
        pattern,
        load,
        4 * window,
        size=size,
        channels=channels,
        buffer=buffer,
        dateline=dateline,
        credit_delay=credit_delay,
        seed=seed,
    )
    return replayed(ready, window)
