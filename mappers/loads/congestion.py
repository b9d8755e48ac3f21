"""Least load on the busiest link: `congestion` anneals link loads, `relieve` only descends.

The congestion of a mapping, `max_link_load`, is what the busiest directed link carries in bytes, as
in ``evaluate`` (HAEC thesis, section 2.6). It does not look at bandwidths, which are assumptions
until somebody sets them; a simulated time does.

Both mappers walk the routes of two ranks' messages to look at an exchange, and keep what links
carry exact at every moment. Any topology with routes, any slots; free slots take part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopmap.mappers.exchanges.annealing import heat_at
from hopmap.mappers.exchanges.assignment import assignment_of
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import LOAD, LoadName, cost_model, with_free_slots
from hopmap.mappers.options import Count, NonNegative
from hopmap.mappers.orders.node_orders import random_mapping
from hopmap.mappers.stop import Moves, Stop, keep, part_spent
from hopmap.topologies import Mapping, Topology
from hopmap.topologies.table_kernels import RouteRouter
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from hopmap.mappers.exchanges.annealing_kernels import Assignment
    from hopmap.topologies import Router

    from .link_loads_kernels import LinkLoads


PER_RANK = 1_000  # proposals
BUSY = 0.8  # of the highest load: such links are among the busiest
SAMPLE = 500  # proposals that a temperature scale is taken from
SLICE = 1 << 11  # proposals between two looks at the clock, and at who crosses busy links
NO_RANKS = np.zeros(0, dtype=np.int64)
LISTED = 256  # nodes up to which all routes are listed: kernels are compiled once for all networks


@mapper("congestion", source="this project")
def congestion(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping | None = None,
    objective: LoadName = LOAD,  # noqa: ARG001 - for pipelines to name
    hot: NonNegative = 0.1,
    cold: NonNegative = 0.001,
    stop: Moves,
) -> Mapping:
    """Anneal link loads for the least load on the busiest link, from random by default.

    Exchanges as in `annealing`; every other one is of a rank with a message over one of the busiest
    links (the idea of Deveci et al. 2015, see `relieve`). The highest load alone is no guide, for
    most exchanges leave it as it is, so that what is annealed is the sum over all links of the load
    to the power of 8: high loads dominate it, and every link counts a little. What is kept is the
    mapping with the least highest load met, beginning with the initial one. O(peers * hops) a
    proposal. Memory is linear, except for the table of distances that all annealing has on up to a
    few thousand nodes.

    - `initial`: mapping to start from, never worsened; random by default.
    - `moves`: proposals; by default as many as the time budget allows, or 1,000 a rank without one.
    - `hot`, `cold`: first and last temperature, in units of what a proposal that costs something
      costs on average where the search starts.
    """
    from .link_loads_kernels import anneal_loads, crossing, highest

    if initial is None:
        initial = random_mapping(traffic, topology, rng=rng)
    moves = stop.or_usual(stop.moves, PER_RANK * traffic.ranks)
    loads, assignment = loads_and_assignment(traffic, topology, initial, rng)
    best, top = assignment.places.copy(), np.array(highest(loads.load))
    bound = load_bound(traffic, topology)
    if top[0] <= bound or len(assignment.places) < 2:
        return initial
    unit, found = float(top[0]), np.empty(len(best), dtype=np.int64)

    def proposals(ranks: np.ndarray, start: float, end: float, number: int) -> float:
        return anneal_loads(loads, assignment, ranks, unit, start, end, number, top, best)

    ranks = found[: crossing(loads, assignment.places, int(top[0]), found)]
    proposals(ranks, 0.0, 0.0, 0)  # all is compiled before the watch starts
    watch = stop.watch()
    made, part = 0, 0.0
    with keep(lambda: best[: traffic.ranks]):
        scale = 0.0 if watch.over() or moves == 0 else proposals(NO_RANKS, 0.0, 0.0, SAMPLE)
        while part < 1 and top[0] > bound and not watch.over() and (moves is None or made < moves):
            number = SLICE if moves is None else min(SLICE, moves - made)
            ahead = part_spent(made + number, moves, watch.now() - watch.begin, stop.seconds)
            ahead = min(max(ahead, part), 1.0)
            busy = int(BUSY * loads.load.max())
            ranks = found[: crossing(loads, assignment.places, busy, found)]
            start, end = (scale * heat_at(hot, cold, p) for p in (part, ahead))
            proposals(ranks, start, end, number)
            part, made = ahead, made + number
            watch.report(made, moves, f"{LOAD} {top[0]}")
    return best[: traffic.ranks]


@mapper("relieve", source="this project, after Deveci et al. 2015")
def relieve(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping,
    objective: LoadName = LOAD,  # noqa: ARG001 - for pipelines to name
    candidates: Count = 8,
    stop: Stop,
) -> Mapping:
    """Exchanges that take load off the busiest link, until none helps.

    After the idea of the congestion refinement of Deveci, Kaya, Ucar and Catalyurek, Fast and high
    quality topology-aware task mapping, IPDPS 2015, whose text was not at hand. Take the busiest
    link and a rank with a message over it; try to exchange it with a rank near one of its
    peers, a few candidates a rank; what gains is kept.

    An exchange gains if the highest load falls; or stays, on fewer links; or on as many, with less
    load on all links together. To find who crosses the busiest links all routes are walked after
    each exchange, O(pairs * hops), so that memory is linear.

    - `candidates`: slots that are tried for a rank.
    """
    from .link_loads_kernels import crossing, exchange, highest

    watch = stop.watch()
    loads, assignment = loads_and_assignment(traffic, topology, initial, rng)
    bound = load_bound(traffic, topology)
    found = np.empty(len(assignment.places), dtype=np.int64)
    made = 0
    with keep(lambda: assignment.places[: traffic.ranks]):
        while not watch.over():
            most, count = highest(loads.load)
            watch.report(made, None, f"{LOAD} {most}")
            if most <= bound:
                break
            ranks = found[: crossing(loads, assignment.places, most, found)]
            if not exchange(loads, assignment, ranks, candidates, most, count):
                break
            made += 1
    return assignment.places[: traffic.ranks]


def loads_and_assignment(
    traffic: Traffic, topology: Topology, initial: Mapping, rng: np.random.Generator
) -> tuple[LinkLoads, Assignment]:
    """Lay out what searches over link loads work on; O(pairs * hops + ranks + links)."""
    from .link_loads_kernels import LinkLoads

    directed = traffic.without_self()
    model = cost_model(directed, topology, "hop_bytes")
    slots = len(model.indptr) - 1
    source = np.repeat(np.arange(slots), np.diff(model.indptr))
    key = directed.src.astype(np.int64) * slots + directed.dst
    order = np.argsort(key)
    key, volume = np.append(key[order], -1), np.append(directed.bytes[order], 0)

    def bytes_of(wanted: np.ndarray) -> np.ndarray:
        at = np.searchsorted(key[:-1], wanted)
        return np.where(key[at] == wanted, volume[at], 0).astype(np.int64)

    links = topology.links
    load = topology.loads(initial[directed.src], initial[directed.dst], directed.bytes)
    if len(topology.carried):
        load += topology.carried
    loads = LinkLoads(
        router=_routes_of(topology),
        indptr=model.indptr,
        peer=model.peer,
        sent=bytes_of(source * slots + model.peer),
        got=bytes_of(model.peer * slots + source),
        load=load,
        change=np.zeros(links, dtype=np.int64),
        touched=np.zeros(links, dtype=np.int64),
        marked=np.zeros(links, dtype=np.bool_),
    )
    return loads, assignment_of(model, topology, with_free_slots(initial, topology), rng)


def _routes_of(topology: Topology) -> Router:
    """Return a router with all routes listed, or of many nodes their own."""
    if topology.nodes > LISTED:
        return topology.router
    ends = np.indices((topology.nodes, topology.nodes)).reshape(2, -1)
    starts, links = topology.routes(*ends)
    return RouteRouter(topology.nodes, starts, links, topology.link_from, topology.link_to)


def load_bound(traffic: Traffic, topology: Topology) -> int:
    """Highest load that no mapping can undercut: what other jobs have on a link stays there.

    Where every node takes one rank, the heaviest pair also takes one route, and what a rank
    sends or gets shares the links of its node.
    """
    bound = int(topology.carried.max(initial=0))
    if topology.slots.max(initial=0) > 1:
        return bound
    directed = traffic.without_self()
    bound = max(bound, int(directed.bytes.max(initial=0)))
    for ranks, ends in ((directed.src, topology.link_from), (directed.dst, topology.link_to)):
        volume = np.zeros(traffic.ranks, dtype=np.int64)
        np.add.at(volume, ranks, directed.bytes)
        ports = int(np.bincount(ends[ends < topology.nodes], minlength=1).max())
        bound = max(bound, -(-int(volume.max(initial=0)) // max(ports, 1)))
    return bound
