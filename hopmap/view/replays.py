"""A replay of one mapping with all that the page shows of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator import (
    Composition,
    Parameters,
    Program,
    Record,
    Result,
    composition,
    critical_path,
    simulate,
)
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import Topology
from hopmap.traces import Traffic
from hopmap.units import percent, show_bytes, show_seconds

from .timeline import path_points, timeline_of
from .units import Level

LEAST_BINS, BINS, BIN_CELLS = 16, 128, 4_000_000  # of time, at least, most, and times the links
PAIRS, HOPS = 250_000, 1_000_000  # rank pairs on the page, and links on their routes
LINKS = 60_000  # of a network of which the page holds all; of a larger one those in use
FULL = 255  # of a byte: a link that is busy all the time

# Parts of the critical path that a bar has, and the segments in each.
PARTS = {
    "computing": ("compute",),
    "overhead of messages": ("send_overhead", "recv_overhead"),
    "floor of the network": ("serialization", "latency", "end_point"),
    "queues": ("queue",),
    "waiting for room or start": ("room", "job_start"),
}


class Pairs(NamedTuple):
    """Rank pairs that the page holds, heaviest first, and the share of all bytes they have."""

    traffic: Traffic
    kept: Ints  # places in `traffic`
    of: int  # pairs that send bytes
    share: float


def heaviest_pairs(traffic: Traffic, topology: Topology, mappings: list[Ints]) -> Pairs:
    """Return the heaviest pairs, as many as a page can hold with their routes."""
    sends = np.flatnonzero(traffic.bytes > 0)
    kept = sends[np.argsort(-traffic.bytes[sends], kind="stable")][:PAIRS]
    for node_of in mappings:
        hops = topology.hops(node_of[traffic.src[kept]], node_of[traffic.dst[kept]])
        kept = kept[: int(np.searchsorted(np.cumsum(hops), HOPS, side="right"))]
    total = int(traffic.bytes.sum())
    share = int(traffic.bytes[kept].sum()) / total if total else 1.0
    return Pairs(traffic, kept, len(sends), share)


def links_shown(traffic: Traffic, topology: Topology, mappings: list[Ints]) -> Ints:
    """Return the links that the page holds: all, or of many those that messages or answers take."""
    if topology.links <= LINKS:
        return np.arange(topology.links)
    used = np.zeros(topology.links, dtype=np.bool_)
    for node_of in mappings:
        source, target = node_of[traffic.src], node_of[traffic.dst]
        for ends in ((source, target), (target, source)):
            used |= topology.loads(*ends, np.ones(traffic.pairs, dtype=np.int64)) > 0
    return np.flatnonzero(used)


def percent_of(share: float) -> str:
    """Write a share that may be tiny: 0.000034 is "0.0034 %"."""
    return percent(share) if share >= 0.01 else f"{100 * share:.2g}\u00a0%"


class Replay(NamedTuple):
    """A run, and what its critical path consists of."""

    name: str
    node_of: Ints
    result: Result
    path: Composition
    content: dict[str, Any]  # for `pack`


def replay(
    name: str,
    program: Program,
    topology: Topology,
    node_of: Ints,
    parameters: Parameters,
    pairs: Pairs,
    levels: list[Level],
    shown: Ints,
) -> Replay:
    """Replay a mapping with the compiled engine, operations and the use of links recorded."""
    bins = int(np.clip(BIN_CELLS // max(1, len(shown)), LEAST_BINS, BINS))
    record = Record(operations=True, bins=bins)
    result = simulate(
        program, topology, node_of, parameters=parameters, engine="compiled", record=record
    )
    path = critical_path(plan_run(program, topology, node_of, parameters), result)
    parts = composition(path, result, topology)
    timeline = timeline_of(program, result)
    use = result.link_use
    assert use is not None
    traffic, kept = pairs.traffic, pairs.kept
    source, target = node_of[traffic.src], node_of[traffic.dst]
    indptr, links = topology.routes(source[kept], target[kept])
    total = int(traffic.bytes.sum())
    leaving = {}
    for level in levels:
        away = level.of_node[source] != level.of_node[target]
        leaving[level.name] = int(traffic.bytes[away].sum())
    content = {
        "name": name,
        "makespan": result.makespan,
        "nodeOf": node_of,
        "bin": use.width,
        "bins": use.busy.shape[1],
        "busy": np.ceil(FULL * np.clip(use.fraction[shown], 0, 1)).astype(np.int64).ravel(),
        "busySeconds": result.link_busy[shown],
        "linkBytes": result.link_bytes[shown],
        "routeStart": indptr,
        "route": np.searchsorted(shown, links),
        "states": timeline.names,
        "state": timeline.state.ravel(),
        "steps": timeline.state.shape[1],
        "path": path_points(path, result.makespan),
        "parts": {
            part: sum(parts.seconds[segment] for segment in segments)
            for part, segments in PARTS.items()
        },
        "leaving": leaving,
        "facts": {
            "makespan": show_seconds(result.makespan),
            "computing, mean over ranks": show_seconds(float(result.compute.mean())),
            "waiting, mean over ranks": show_seconds(float(result.wait.mean())),
            "busiest link is busy": percent_of(
                float(result.link_busy.max(initial=0.0)) / (result.makespan or 1.0)
            ),
            **{
                f"bytes that leave their {name}": f"{show_bytes(left)} ({percent(left / total)})"
                for name, left in leaving.items()
                if total
            },
        },
    }
    return Replay(name, node_of, result, parts, content)
