"""Networks that are listed: any connected graph, by shortest paths; or routes, as lists of links.

Of a graph there is a table of hops, nodes x vertices numbers of 16 bits, so that the size is
limited: 8,192 x 8,192 at most, 128 MiB. Of several shortest paths the one is taken that goes to the
lowest vertex first (nodes come before switches, both in the order of the graph); the two directions
may differ.

Routes do not say what joins the links. Where a link follows another on a route,
the one ends where the other begins; the first begins at the source, the last ends at the target.
Ends that are the same by this are one vertex (union-find), and the vertices that are no nodes are
switches. Links that no route takes are left out. The table of routes has nodes x nodes rows, so
that there may be 512 nodes at most: 256 nodes of a platform file take 3 s and 0.4 GiB, most of it
for the XML.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring

import numpy as np

from hopmap.arrays import Ints, Ints32
from hopmap.topologies.table_kernels import RouteRouter
from hopmap.topologies.topology import DEFAULT, LinkKind, Topology, TopologyError, check_size

from .grid import DEFAULT_LINK

if TYPE_CHECKING:
    import networkx as nx

LIMIT = 2**26  # nodes x vertices of a graph
LARGEST = 512  # nodes whose routes are listed
# What the parsers of XML and networkx raise for files that are not what they seem.
_UNREADABLE = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def from_networkx(graph: nx.Graph, spec: str = "graph") -> Topology:
    """Network of an undirected networkx graph; every edge is a link each way.

    Parameters
    ----------
    graph : networkx.Graph
        Attributes of a vertex: ``host`` (true when left out; switches have false) and ``slots`` (1
        when left out). Of an edge: ``kind`` (name of the technology), ``bandwidth`` (bytes/s) and
        ``latency`` (s); edges of one kind are equal. Edges without a kind share one a speed.
    spec : str
        Name for messages; only ``file:PATH`` can be read back.
    """
    from hopmap.topologies.graph_kernels import FARTHEST, GraphRouter, breadth_first

    if graph.is_directed() or graph.is_multigraph():
        what = "directed" if graph.is_directed() else "has parallel edges"
        raise TopologyError(f"{spec}: the graph is {what}: expected simple undirected edges")
    labels = list(graph.nodes)
    hosts = [v for v in labels if _host(graph.nodes[v].get("host", True), v, spec)]
    if not hosts:
        raise TopologyError(f"{spec}: no vertex is a host: expected at least one")
    if len(hosts) * len(labels) > LIMIT:
        raise TopologyError(
            f"{spec}: {len(hosts)} hosts and {len(labels)} vertices: expected a product of at most "
            f"{LIMIT} for the table of distances; larger networks need a family of their own"
        )
    here = set(hosts)
    number = {v: n for n, v in enumerate((*hosts, *(v for v in labels if v not in here)))}
    slots = [_whole(graph.nodes[v].get("slots", 1), f"{spec}: slots of {v!r}") for v in hosts]

    check_size(spec, nodes=len(hosts), links=2 * graph.number_of_edges(), slots=sum(slots))

    kinds: dict[str, LinkKind] = {}
    edges = [
        (number[u], number[v], _kind(kinds, attributes, f"{spec}: edge {u!r} - {v!r}"))
        for u, v, attributes in graph.edges(data=True)
        if u != v
    ]
    both = np.array(edges + [(v, u, k) for u, v, k in edges], dtype=np.int64).reshape(-1, 3)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    link_from, link_to = both[:, 0].astype(np.int32), both[:, 1].astype(np.int32)
    starts = np.searchsorted(link_from, np.arange(len(labels) + 1)).astype(np.int64)
    hops = np.empty((len(hosts), len(labels)), dtype=np.int16)
    if not breadth_first(starts, link_to, hops):
        raise TopologyError(f"{spec}: a way of more than {FARTHEST:,} links: expected shorter ones")
    if (hops[0] < 0).any():
        lost = sorted(number, key=number.__getitem__)[int(np.argmax(hops[0] < 0))]
        raise TopologyError(
            f"{spec}: no way from {hosts[0]!r} to {lost!r}: expected a connected graph"
        )
    return Topology(
        spec=spec,
        slots=np.array(slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=both[:, 2].astype(np.uint8),
        kinds=tuple(kinds.values()) or (DEFAULT_LINK,),
        router=GraphRouter(hops, starts, link_to),
        switches=len(labels) - len(hosts),
        names=tuple(hosts) if all(isinstance(v, str) for v in hosts) else (),
    )


def from_graphml(root: Element, spec: str) -> Topology:
    """Network of a GraphML document; see `from_networkx`."""
    import networkx as nx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types left out: values are checked below
            graph = nx.parse_graphml(tostring(root, encoding="unicode"))
    except (nx.NetworkXException, *_UNREADABLE) as error:
        reason = str(error).partition("\n")[0]
        raise TopologyError(f"{spec}: cannot be read as GraphML ({reason})") from None
    return from_networkx(graph, spec)


def _host(value: object, vertex: object, spec: str) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
        value = value.lower() in ("true", "1")
    if value not in (True, False):
        raise TopologyError(f"{spec}: host of {vertex!r} is {value!r}: expected true or false")
    return bool(value)


def _whole(value: Any, label: str) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    if number < 1 or number != value:
        raise TopologyError(f"{label}: {value!r}: expected a whole number of at least 1")
    return number


def _kind(kinds: dict[str, LinkKind], attributes: Mapping[str, Any], label: str) -> int:
    """Index of an edge's kind; a new one is added."""
    speeds = [DEFAULT_LINK.bandwidth, DEFAULT_LINK.latency]
    for i, key in enumerate(("bandwidth", "latency")):
        try:
            speeds[i] = float(attributes.get(key, speeds[i]))
        except (TypeError, ValueError):
            unit = ("bytes/s", "s")[i]
            raise TopologyError(
                f"{label}: {key} {attributes[key]!r}: expected a number in {unit}"
            ) from None
    wide, late = (
        "from the graph" if key in attributes else DEFAULT for key in ("bandwidth", "latency")
    )
    name = str(attributes.get("kind", ""))
    if not name:
        same_speed = [k.name for k in kinds.values() if [k.bandwidth, k.latency] == speeds]
        name = same_speed[0] if same_speed else "link" + (str(len(kinds) + 1) if kinds else "")
    try:
        kind = kinds.setdefault(name, LinkKind(name, speeds[0], speeds[1], (wide, late)))
    except TopologyError as error:
        raise TopologyError(f"{label}: {error}") from None
    if [kind.bandwidth, kind.latency] != speeds:
        raise TopologyError(f"{label}: other speeds than kind {name!r} before: expected the same")
    if len(kinds) > 256:
        raise TopologyError(f"{label}: more than 256 kinds of links: expected fewer")
    return list(kinds).index(name)


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
    pairs = [(s, t) for s in range(nodes) for t in range(nodes)]
    missing = [(s, t) for s, t in pairs if s != t and not routes.get((s, t))]
    if missing:
        s, t = missing[0]
        raise TopologyError(f"{spec}: no route from node {s} to node {t}: expected one each way")
    listed = [() if s == t else routes[s, t] for s, t in pairs]
    used = sorted({link for route in listed for link in route})
    number = {link: n for n, link in enumerate(used)}
    ends = _vertices(nodes, listed, number, spec)
    starts = np.cumsum([0, *map(len, listed)]).astype(np.int64)
    links = np.array([number[link] for route in listed for link in route], dtype=np.int32)
    link_from, link_to = ends[: len(used)], ends[len(used) :]
    _expect_simple(pairs, starts, links, link_from, spec)
    different = dict.fromkeys(speeds[link] for link in used)
    index = {speed: k for k, speed in enumerate(different)}
    if len(index) > 256:
        raise TopologyError(f"{spec}: {len(index)} different speeds of links: expected 256 at most")
    named = tuple(
        LinkKind(f"link{k + 1}" if k else "link", *speed, ("from the platform",) * 2)
        for speed, k in index.items()
    )
    return Topology(
        spec=spec,
        slots=np.array(slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=np.array([index[speeds[link]] for link in used], dtype=np.uint8),
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
                f"one direction, and no link that is the first or last of two nodes"
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
