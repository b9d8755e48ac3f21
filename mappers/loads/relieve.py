"""Relieve: exchanges that take load off the busiest link, until none helps.

After the idea of the congestion refinement of Deveci, Kaya, Ucar and Catalyurek, Fast and high
quality topology-aware task mapping, IPDPS 2015, whose text was not at hand. Take the busiest link
and a rank with a message over it; try to exchange it with whoever is near one of its peers, a few
candidates a rank; what gains is kept. It ends when nothing helps the busiest links.

An exchange gains if the highest load falls; or stays, on fewer links; or on as many, with less
load on all links together. Looking at one costs the routes of two ranks' messages. To
find who crosses the busiest links all routes are walked after each exchange, O(pairs * hops), so
that memory is linear. Any topology with routes, any slots; free slots take part.
"""

from __future__ import annotations

import numpy as np

from hopmap.mappers.budget import Interrupted, Progress, Watch
from hopmap.mappers.mapper import Count, Seconds, mapper
from hopmap.mappers.objectives import LOAD, LoadName
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .link_loads import load_bound, loads_and_assignment


@mapper("relieve", source="this project, after Deveci et al. 2015")
def relieve(
    traffic: Traffic,
    topology: Topology,
    *,
    rng: np.random.Generator,
    initial: Mapping,
    objective: LoadName = LOAD,  # noqa: ARG001 - for pipelines to name
    candidates: Count = 8,
    seconds: Seconds = None,
    progress: Progress | None = None,
) -> Mapping:
    """Exchanges that take load off the busiest link, until none helps.

    Parameters
    ----------
    traffic, topology, rng
        See `map_ranks`.
    initial : ndarray
        Mapping to start from; the result is never worse.
    objective : {"max_link_load"}
        Bytes on the busiest link.
    candidates : int
        Slots that are tried for a rank.
    seconds, progress
        Time budget, and whom to tell.
    """
    from .congestion_kernels import highest
    from .link_loads_kernels import crossing
    from .relieve_kernels import exchange

    watch = Watch(seconds, progress)
    loads, assignment = loads_and_assignment(traffic, topology, initial, rng)
    bound = load_bound(traffic, topology)
    found = np.empty(len(assignment.places), dtype=np.int64)
    made = 0
    try:
        while not watch.over():
            most, count = highest(loads.load)
            watch.report(made, None, f"{LOAD} {most}")
            if most <= bound:
                break
            ranks = found[: crossing(loads, assignment.places, most, found)]
            if not exchange(loads, assignment, ranks, candidates, most, count):
                break
            made += 1
    except KeyboardInterrupt:
        raise Interrupted(assignment.places[: traffic.ranks]) from None
    return assignment.places[: traffic.ranks]
