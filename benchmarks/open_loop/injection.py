"""Injection: packets that leave at moments of their own, as a plan for the engines.

Every flow of a traffic matrix, which is a pair of ranks over one route, is a stream of packets of
one byte: periodic from a random moment on, or Poisson. Rank r is on node r. No rank receives, so
only links delay a packet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import Op, Parameters, Program
from hopmap.simulator.run_plan import RunPlan, plan_run
from hopmap.topologies import Topology
from hopmap.traces import Traffic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PROCESSES = {"periodic": "equal gaps from a random moment on", "poisson": "exponential gaps"}


class Flows(NamedTuple):
    """Pairs of ranks over one route each, sorted by pair; all of shape (flows,).

    Attributes
    ----------
    src, dst : ndarray(int64)
        Ranks, and nodes.
    way : ndarray(int64)
        Which of the networks has the route.
    rate : ndarray(float64)
        Packets per packet time at a load of 1.
    """

    src: Ints
    dst: Ints
    way: Ints
    rate: Floats


def flows_of(traffic: Traffic, ways: Sequence[Topology]) -> Flows:
    """Give every pair a flow on each of its routes, which share its messages evenly."""
    routes = [way.routes(traffic.src, traffic.dst) for way in ways]
    indptr, first = routes[0]
    pair = np.repeat(np.arange(traffic.pairs), np.diff(indptr))
    parts = []
    for number, (_, links) in enumerate(routes):
        differs = np.bincount(pair[links != first], minlength=traffic.pairs) > 0
        parts.append(np.flatnonzero(differs) if number else np.arange(traffic.pairs))
    pairs, way = np.concatenate(parts), np.repeat(np.arange(len(ways)), [len(p) for p in parts])
    order = np.lexsort((way, pairs))
    pairs, way = pairs[order], way[order]
    weight = traffic.messages / np.bincount(pairs, minlength=traffic.pairs) / unit_of(traffic)
    return Flows(
        traffic.src[pairs].astype(np.int64),
        traffic.dst[pairs].astype(np.int64),
        way,
        weight[pairs],
    )


def unit_of(traffic: Traffic) -> int:
    """Messages of the rank that sends most: what a load of 1 is made of."""
    return int(np.bincount(traffic.src, traffic.messages, minlength=1).max())


def schedule(
    rate: Floats, end: float, process: str, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Flow and time of every packet before the end, by flow."""
    if process == "periodic":
        first = rng.random(len(rate)) / rate
        count = np.maximum(np.ceil((end - first) * rate), 0).astype(np.int64)
        flow = np.repeat(np.arange(len(rate)), count)
        nth = np.arange(len(flow)) - np.repeat(np.cumsum(count) - count, count)
        sent = first[flow] + nth / rate[flow]
    else:
        # For a known number of packets, the moments of a Poisson process are uniform.
        flow = np.repeat(np.arange(len(rate)), rng.poisson(rate * end))
        sent = rng.random(len(flow)) * end
    return flow, sent


def program_at(ranks: int, flows: Flows, flow: Ints, sent: Floats) -> Program:
    """Send at the moments `sent`, sorted by rank and time; no rank waits for a message."""
    source = flows.src[flow]
    offsets = np.searchsorted(source, np.arange(ranks + 1)) + np.arange(ranks + 1)
    rows = len(flow) + ranks
    row = np.arange(len(flow)) + source
    gaps = np.diff(sent, prepend=0.0)
    starts = np.flatnonzero(np.diff(source, prepend=-1))
    gaps[starts] = sent[starts]

    columns = {
        "kind": (np.uint8, int(Op.FINISH), int(Op.ISEND)),
        "compute": (np.float64, 0.0, gaps),
        "peer": (np.int32, -1, flows.dst[flow]),
        "tag": (np.int32, -1, 0),
        "context": (np.int32, -1, 0),
        "size": (np.int64, 0, 1),
    }
    filled: dict[str, Any] = {}
    for name, (dtype, missing, values) in columns.items():
        filled[name] = np.full(rows, missing, dtype=dtype)
        filled[name][row] = values
    return Program(
        name="open loop",
        offsets=offsets.astype(np.int64),
        rank_of=np.arange(ranks, dtype=np.int32),
        target=np.full(rows, -1, dtype=np.int64),
        **filled,
    )


def planned(
    program: Program, way_of: Ints, ways: Sequence[Topology], parameters: Parameters
) -> RunPlan:
    """Place the program on the network, each packet on its own way; links serve one a second."""
    node_of = np.arange(program.ranks)
    first, *others = (
        plan_run(program, way.with_links(bandwidth=1.0), node_of, parameters) for way in ways
    )
    path, indptr, servers = first.path.copy(), first.indptr, first.servers
    rows = program.sends()
    for number, other in enumerate(others, start=1):
        mine = rows[way_of == number]
        path[mine] = other.path[mine] + len(indptr) - 1
        indptr = np.concatenate((indptr, other.indptr[1:] + len(servers)))
        servers = np.concatenate((servers, other.servers))
    return replace(first, path=path, indptr=indptr, servers=servers)
