"""hopmap's finite buffers under BookSim's traffic: packets made at random cycles, patterns by node.

Node (x, y) is 8 y + x, and routes go along x first, in both. A packet to a node itself goes
through its router. Where both ways round a ring are as long, each packet takes one at random.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
from booksim import HOP, IN, OUT, Measured
from numpy.typing import NDArray

from hopmap.simulator import ENGINES, Op, Parameters, Program
from hopmap.simulator.record import Record
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.topologies import Topology, both_ways, topology_from_spec

Ints = NDArray[np.int64]
SIDE = 8
NODES = SIDE * SIDE


def targets(pattern: str, source: Ints, rng: np.random.Generator) -> Ints:
    """Draw BookSim's target of every packet."""
    y, x = np.divmod(source, SIDE)
    if pattern == "uniform":
        return rng.integers(NODES, size=len(source))
    if pattern == "transpose":
        return x * SIDE + y
    if pattern == "shuffle":
        return 2 * source % NODES + (2 * source >= NODES)
    step = {"tornado": SIDE // 2 - 1, "neighbor": 1}[pattern]
    return (y + step) % SIDE * SIDE + (x + step) % SIDE


def injected(pattern: str, load: float, end: int, size: int, seed: int) -> tuple[Program, Ints]:
    """Let every source make a packet in any cycle with the same probability."""
    rng = np.random.default_rng(seed)
    made = rng.random((NODES, end)) < load
    source, cycle = np.nonzero(made)
    target = targets(pattern, source, rng)
    rows = len(source) + NODES
    row = np.arange(len(source)) + source
    gap = np.diff(cycle, prepend=0)
    starts = np.flatnonzero(np.diff(source, prepend=-1))
    gap[starts] = cycle[starts]
    compute, peer = np.zeros(rows), np.full(rows, -1, dtype=np.int32)
    compute[row], peer[row] = gap, target
    message = peer >= 0
    program = Program(
        name=pattern,
        offsets=np.searchsorted(source, np.arange(NODES + 1)) + np.arange(NODES + 1),
        rank_of=np.arange(NODES, dtype=np.int32),
        kind=np.where(message, int(Op.ISEND), int(Op.FINISH)).astype(np.uint8),
        compute=compute,
        peer=peer,
        tag=np.where(message, 0, -1).astype(np.int32),
        context=np.where(message, 0, -1).astype(np.int32),
        size=np.where(message, size, 0).astype(np.int64),
        target=np.full(rows, -1, dtype=np.int64),
    )
    return program, rng.integers(2, size=len(source))


@cache
def network(topology: str, dateline: bool) -> tuple[Topology, Ints, Ints, Ints, int]:
    """Paths of all pairs of nodes, all on one way round rings behind all on the other.

    On a torus BookSim's packets that go over the wrap-around link of a dimension keep to one class
    of virtual channels in it, those that do not to the other; hopmap's (`dateline`) change theirs
    behind that link.
    """
    here = topology_from_spec(f"{topology}:{SIDE}x{SIDE}").with_links(bandwidth=1.0, latency=HOP)
    source, target = np.divmod(np.arange(NODES * NODES), NODES)
    ways = both_ways(here) if topology == "torus" else [here]
    servers: list[int] = []
    classes: list[int] = []
    lengths: list[int] = []
    for way in ways:
        starts, links = way.routes(source, target)
        begin, finish = way.link_from[links], way.link_to[links]
        along = (begin // SIDE == finish // SIDE).astype(np.int64)
        wraps = np.abs(begin - finish) > np.where(along, 1, SIDE)
        leg = 2 * np.repeat(np.arange(len(source)), np.diff(starts)) + along
        crosses = np.bincount(leg, wraps, minlength=2 * len(source)) > 0
        taken = crosses[leg]
        if dateline:
            passed = np.cumsum(wraps) - wraps
            first = np.searchsorted(leg, leg)
            taken = passed > passed[first]
        for pair, (a, b) in enumerate(pairwise(starts)):
            servers += [here.links + source[pair], *links[a:b]]
            servers.append(here.links + NODES + target[pair])
            classes += [0, *taken[a:b].astype(int), 0]
            lengths.append(b - a + 2)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return here, indptr, np.array(servers), np.array(classes), len(ways)


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
    program, way = injected(pattern, load, end, size, seed)
    ready = plan_run(program, here, np.arange(NODES), parameters)
    rows = program.sends()
    path = ready.path.copy()
    pair = program.rank_of_row()[rows].astype(np.int64) * NODES + program.peer[rows]
    path[rows] = pair + NODES * NODES * (way % ways)
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
    begin = time.process_time()
    outcome = ENGINES["compiled"].run(ready, Record(messages=True), None)
    seconds = time.process_time() - begin
    sent, there = outcome.messages.sent, outcome.messages.delivered
    inside = (sent >= window) & (sent < 3 * window)
    hops = size * (np.diff(ready.indptr)[ready.path[ready.program.sends()]] - 1).sum()
    return Measured(float((there - sent)[inside].mean()), float(hops), seconds)
