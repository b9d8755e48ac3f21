"""Networks given by all their routes, as lists of links, without a word of what joins the links.

Where a link follows another on a route, the one ends where the other begins; the first begins at
the source, the last ends at the target. Ends that are the same by this are one vertex (union-find),
and the vertices that are no nodes are switches. Links that no route takes are left out. The table
of routes has nodes x nodes rows, so that there may be 512 nodes at most: 256 nodes of a platform
file take 3 s and 0.4 GiB, most of it for the XML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.topologies.table_kernels import RouteRouter
from hopmap.topologies.topology import LinkKind, Topology, TopologyError, check_size

from .grid import DEFAULT_LINK

LARGEST = 512  # nodes
Routes = Mapping[tuple[int, int], Sequence[int]]


def from_routes(
    slots: Sequence[int], speeds: Sequence[tuple[float, float]], routes: Routes, spec: str
) -> Topology:
    """Network of the routes between all pairs of nodes: the links from each node to each other.

    Speeds are bandwidth (bytes/s) and latency (s) of every link.
    """
    nodes = len(slots)
    check_size(spec, nodes=nodes, links=0, slots=sum(slots))
    if not 1 <= nodes <= LARGEST:
        raise TopologyError(
            f"{spec}: {nodes} nodes: expected 1 to {LARGEST} where routes are listed"
        )
    missing = next(
        ((s, t) for s in range(nodes) for t in range(nodes) if s != t and not routes.get((s, t))),
        None,
    )
    if missing is not None:
        raise TopologyError(
            f"{spec}: no route from node {missing[0]} to node {missing[1]}: expected one each way"
        )
    pairs = [(s, t) for s in range(nodes) for t in range(nodes)]
    listed = [() if s == t else routes[s, t] for s, t in pairs]
    used = sorted({link for route in listed for link in route})
    number = {link: n for n, link in enumerate(used)}
    ends = _vertices(nodes, listed, number, spec)
    starts = np.cumsum([0, *map(len, listed)]).astype(np.int64)
    links = np.array([number[link] for route in listed for link in route], dtype=np.int32)
    link_from, link_to = ends[: len(used)], ends[len(used) :]
    _expect_simple(pairs, starts, links, link_from, spec)
    alike = {speed: k for k, speed in enumerate(dict.fromkeys(speeds[link] for link in used))}
    if len(alike) > 256:
        raise TopologyError(f"{spec}: {len(alike)} different speeds of links: expected 256 at most")
    named = tuple(
        LinkKind(f"link{k + 1}" if k else "link", *speed, ("given by the platform",) * 2)
        for speed, k in alike.items()
    )
    return Topology(
        spec=spec,
        slots=np.array(slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=np.array([alike[speeds[link]] for link in used], dtype=np.uint8),
        kinds=named or (DEFAULT_LINK,),
        router=RouteRouter(nodes, starts, links, link_from, link_to),
        switches=max(int(ends.max(initial=-1)) + 1 - nodes, 0),
    )


def _vertices(
    nodes: int, routes: Sequence[Sequence[int]], number: Mapping[int, int], spec: str
) -> Ints32:
    """Vertex at the begin of each link, then at the end of each; nodes first."""
    count = len(number)
    parent = list(range(nodes + 2 * count))  # nodes, begins, ends

    def root(end: int) -> int:
        while parent[end] != end:
            parent[end] = parent[parent[end]]
            end = parent[end]
        return end

    joined: set[tuple[int, int]] = set()
    for pair, route in enumerate(routes):
        if not route:
            continue
        source, target = divmod(pair, nodes)
        places = [number[link] for link in route]
        joined.add((source, nodes + places[0]))
        joined.add((target, nodes + count + places[-1]))
        joined |= {(nodes + count + low, nodes + high) for low, high in pairwise(places)}
    for one, other in sorted(joined):
        low, high = sorted((root(one), root(other)))
        if high < nodes and low != high:
            raise TopologyError(
                f"{spec}: by their routes nodes {low} and {high} are one place: expected links of "
                f"one direction, that no two nodes begin or end with alike"
            )
        parent[high] = low  # nodes have the lowest numbers and stay roots
    roots = [root(nodes + end) for end in range(2 * count)]
    switches = dict.fromkeys(vertex for vertex in roots if vertex >= nodes)
    of_switch = {vertex: nodes + n for n, vertex in enumerate(switches)}
    return np.array([of_switch.get(v, v) for v in roots], dtype=np.int32)


def _expect_simple(
    pairs: Sequence[tuple[int, int]], starts: Ints, links: Ints32, link_from: Ints32, spec: str
) -> None:
    """Raise `TopologyError` for a route that comes to a vertex twice."""
    route = np.repeat(np.arange(len(pairs)), np.diff(starts))
    left = np.stack((route, link_from[links]))
    _, first, times = np.unique(left, axis=1, return_index=True, return_counts=True)
    if (times > 1).any():
        s, t = pairs[route[first[np.argmax(times > 1)]]]
        raise TopologyError(
            f"{spec}: the route from node {s} to {t} comes to one place twice: expected no loops"
        )
