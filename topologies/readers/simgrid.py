"""Networks of SimGrid's platform files: clusters, tori, fat trees, and zones of routes.

What is read is one zone, of which the links become links and the speeds become kinds:

* ``<cluster>``: a switch with a link each way to every host, or two with the backbone between them;
  ``topology="TORUS"`` and ``"FAT_TREE"`` are hopmap's own, with d-mod-k and, half-way round a
  ring, hopmap's rule;
* ``<zone routing="Full">``: the routes as they are listed. Where every host has a link of its own
  at the begin of its routes, or at their end, and these are equal, they are its network interface,
  the parameters injection.* and ejection.*: so `simulator/export/simgrid.py` writes them;
* ``<zone routing="Floyd">``, ``"Dijkstra"``: a graph of hosts and routers, by shortest paths.

What is not there costs nothing: interfaces that the file does not have are endlessly fast. A link
that is SHARED by both directions is one each way here. What links cannot be here is refused: a
FATPIPE, which its messages do not share; in a graph one that several routes share, or whose
directions differ. So are zones next to hosts, and dragonflies. Bytes are B and bits b; a number
alone is in bytes/s or seconds.
Source: SimGrid 3.32, documentation, "Platform: XML reference" and "Networks: topologies";
src/kernel/xml/platf_parse.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element

from hopmap.topologies.families.graph import LARGEST, Routes, from_networkx, from_routes
from hopmap.topologies.families.grid import torus
from hopmap.topologies.families.switched import cluster, fat_tree
from hopmap.topologies.topology import Topology, TopologyError

ZONES = ("zone", "AS")
OTHERS = (*ZONES, "cluster", "cabinet", "peer", "bypassRoute", "bypassZoneRoute", "bypassASroute")

if TYPE_CHECKING:
    import networkx as nx


def from_platform(root: Element, spec: str) -> Topology:
    """Network of a platform file's root; messages begin with its spec."""
    element = root
    while element is root or (element.tag in ZONES and not element.findall("host")):
        inner = [child for child in element if child.tag in (*ZONES, "cluster")]
        if len(inner) != 1:
            raise TopologyError(
                f"{spec}: <{element.tag}> with {len(inner)} zones or clusters: expected one"
            )
        element = inner[0]
    if element.tag == "cluster":
        return from_cluster(element, spec)
    extra = [child.tag for child in element if child.tag in OTHERS]
    if extra:
        raise TopologyError(f"{spec}: <{extra[0]}> among hosts: expected hosts and routes only")
    routing = element.get("routing", "")
    if routing == "Full":
        return from_full(element, spec)
    if routing in ("Floyd", "Dijkstra", "DijkstraCache"):
        return from_graph(element, spec)
    raise TopologyError(f"{spec}: routing {routing!r}: expected Full, Floyd or Dijkstra")


NODES = 2**20


def from_cluster(element: Element, spec: str) -> Topology:
    """Network of a cluster."""
    where = f"{spec}: <cluster {element.get('id', '')}>"
    if element.get("limiter_link"):
        raise TopologyError(f"{where}: limiter_link: expected none, it is crossed at every hop")
    for policy in ("sharing_policy", "bb_sharing_policy"):
        if element.get(policy) == "FATPIPE":
            raise TopologyError(
                f"{where}: {policy}: FATPIPE: expected SHARED or SPLITDUPLEX, since links here are "
                f"shared"
            )
    names = _names(element, where)
    slots = whole_number(element.get("core", "1"), f"{where}: core")
    link = speed_of(element, "bw", "lat", spec)
    shape = element.get("topology", "FLAT")
    numbers = element.get("topo_parameters", "")
    if shape == "TORUS":
        (dims,) = _lists(numbers, 1, f"{where}: topo_parameters", "4,3,2")
        topology = torus(dims, slots=slots)
    elif shape == "FAT_TREE":
        height, *levels = _lists(numbers, 4, f"{where}: topo_parameters", "2;4,4;1,2;1,2")
        if any(len(level) != height[0] for level in levels):
            raise TopologyError(
                f"{where}: topo_parameters {numbers!r}: expected {height[0]} levels"
            )
        topology = fat_tree(*levels, slots=slots)
    elif shape in ("FLAT", "") and element.get("bb_bw"):
        topology = _backbone(element, len(names), slots, link, spec)
    elif shape in ("FLAT", ""):
        topology = cluster([slots] * len(names))
    else:
        raise TopologyError(f"{where}: topology {shape!r}: expected TORUS, FAT_TREE or none")
    if topology.nodes != len(names):
        raise TopologyError(
            f"{where}: {len(names)} hosts in radical: expected {topology.nodes} by topo_parameters"
        )
    if not element.get("bb_bw") or shape in ("TORUS", "FAT_TREE"):
        topology = topology.with_links(bandwidth=link.bandwidth, latency=link.latency)
        kinds = (replace(kind, sources=("from the platform",) * 2) for kind in topology.kinds)
        topology = replace(topology, kinds=tuple(kinds))
    memory = None
    if element.get("loopback_bw"):
        memory = speed_of(element, "loopback_bw", "loopback_lat", spec)
    return replace(topology, spec=spec, names=names, parameters=parameters_of(None, None, memory))


def _backbone(element: Element, nodes: int, slots: int, link: Ends, spec: str) -> Topology:
    """Hosts behind two switches, one up and one down, with the backbone from one to the other."""
    if nodes > LARGEST:
        raise TopologyError(f"{spec}: {nodes} hosts with a backbone: expected at most {LARGEST}")
    speeds: list[tuple[float, float]] = [link] * (2 * nodes)
    speeds.append(speed_of(element, "bb_bw", "bb_lat", spec))
    routes = {
        (s, t): (s, 2 * nodes, nodes + t) for s in range(nodes) for t in range(nodes) if s != t
    }
    return from_routes([slots] * nodes, speeds, routes, spec)


def _names(element: Element, location: str) -> tuple[str, ...]:
    """Hosts of a cluster, by its radical: "0-23,30"."""
    prefix, suffix, radical = (element.get(key, "") for key in ("prefix", "suffix", "radical"))
    numbers: list[int] = []
    for part in radical.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high or len(numbers) + high - low >= NODES:
            raise TopologyError(
                f"{location}: radical {radical[:40]!r}: expected a list like 0-23 of at most "
                f"{NODES}"
            )
        numbers += range(low, high + 1)
    return tuple(f"{prefix}{number}{suffix}" for number in numbers)


def _lists(text: str, count: int, location: str, like: str) -> list[list[int]]:
    """Read lists of whole numbers, semicolons between them."""
    parts = text.replace(" ", "").split(";")
    if len(parts) != count or not all(re.fullmatch(r"\d{1,9}(,\d{1,9})*", part) for part in parts):
        raise TopologyError(f"{location} {text[:40]!r}: expected numbers like {like}")
    return [[int(number) for number in part.split(",")] for part in parts]


FAST = 1e15  # bytes/s of an interface that there is not
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 2.0 ** (10 * k) for k, prefix in enumerate("KMGTP", 1)
}
_BANDWIDTH = {f"{p}Bps": f for p, f in _PREFIX.items()} | {
    f"{p}bps": f / 8 for p, f in _PREFIX.items()
}
_LATENCY = {"ps": 1e12, "ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "m": 1 / 60}  # in a second


class Ends(NamedTuple):
    """Speed of a link: bytes/s and seconds."""

    bandwidth: float
    latency: float


def parameters_of(
    injection: Ends | None, ejection: Ends | None, memory: Ends | None = None
) -> dict[str, float]:
    """Return parameters of the model; of the memory's, none where the file does not say."""
    free = Ends(FAST, 0.0)
    ends = {"injection": injection or free, "ejection": ejection or free}
    ends |= {"memory": memory} if memory else {}
    return {
        f"{name}.{key}": value for name, end in ends.items() for key, value in end._asdict().items()
    }


def speed_of(element: Element, bandwidth: str, latency: str, spec: str) -> Ends:
    """Read the two attributes of these names."""
    where = f"{spec}: <{element.tag} {element.get('id', '')}>"
    return Ends(
        _quantity(element.get(bandwidth), _BANDWIDTH, False, f"{where}: {bandwidth}", "10Gbps"),
        _quantity(element.get(latency, "0"), _LATENCY, True, f"{where}: {latency}", "50us"),
    )


def _quantity(
    text: str | None, units: Mapping[str, float], per_second: bool, location: str, like: str
) -> float:
    match = re.fullmatch(r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([a-zA-Z]*)\s*", text or "")
    unit = (match[2] or ("s" if per_second else "Bps")) if match else ""
    if match is None or unit not in units:
        raise TopologyError(f"{location} {text!r}: expected a quantity like {like}")
    value = float(match[1])
    return value / units[unit] if per_second else value * units[unit]


def whole_number(text: str, location: str) -> int:
    """Read a number of at least 1."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise TopologyError(f"{location} {text[:40]!r}: expected a whole number of at least 1")
    return int(text)


def _hosts(zone: Element, spec: str) -> dict[str, int]:
    """Slots of every host."""
    hosts: dict[str, int] = {}
    for host in zone.findall("host"):
        name = host.get("id", "")
        if not name or name in hosts:
            raise TopologyError(f"{spec}: host {name!r}: expected an id of its own")
        hosts[name] = whole_number(host.get("core", "1"), f"{spec}: host {name}: core")
    return hosts


def _direction_speeds(zone: Element, spec: str) -> dict[tuple[str, str], Ends]:
    """Speeds by name and direction; only links that are split have directions of their own."""
    links: dict[tuple[str, str], Ends] = {}
    for link in zone.findall("link"):
        speed = speed_of(link, "bandwidth", "latency", spec)
        split = link.get("sharing_policy", "SHARED") in ("SPLITDUPLEX", "FULLDUPLEX")
        for direction in ("UP", "DOWN") if split else ("",):
            if (link.get("id", ""), direction) in links:
                raise TopologyError(f"{spec}: link {link.get('id')!r} twice: expected once")
            links[link.get("id", ""), direction] = speed
    return links


def _route_links(
    route: Element, links: Mapping[tuple[str, str], Ends], spec: str
) -> list[tuple[str, str]]:
    """Links of a route, in order."""
    crossed = []
    for part in route.findall("link_ctn"):
        link = (part.get("id", ""), part.get("direction", "").replace("NONE", ""))
        if link not in links:
            ends = f"{route.get('src')} to {route.get('dst')}"
            raise TopologyError(
                f"{spec}: route from {ends}: link {' '.join(link).strip()!r}: expected a link of "
                f"the zone, with direction UP or DOWN if it is SPLITDUPLEX"
            )
        crossed.append(link)
    return crossed


def _symmetrical(route: Element) -> bool:
    return route.get("symmetrical", "YES").upper() == "YES"


def _expect_shared(zone: Element, spec: str) -> None:
    """Raise `TopologyError` for a link between hosts that messages cross without sharing it."""
    fat = {link.get("id") for link in zone.findall("link[@sharing_policy='FATPIPE']")}
    for route in zone.findall("route"):
        for part in route.findall("link_ctn"):
            if part.get("id") in fat and route.get("src") != route.get("dst"):
                raise TopologyError(
                    f"{spec}: link {part.get('id')!r} is a FATPIPE: expected SHARED or SPLITDUPLEX "
                    f"between hosts, since links here are shared"
                )


_BACK = {"UP": "DOWN", "DOWN": "UP", "": "back", "back": ""}


def from_full(zone: Element, spec: str) -> Topology:
    """Network of listed routes."""
    _expect_shared(zone, spec)
    hosts, links = _hosts(zone, spec), _direction_speeds(zone, spec)
    links |= {(name, "back"): speed for (name, way), speed in links.items() if not way}
    number = {link: n for n, link in enumerate(links)}
    node = {name: n for n, name in enumerate(hosts)}
    routes: dict[tuple[int, int], list[int]] = {}
    for route in zone.findall("route"):
        ends = route.get("src", ""), route.get("dst", "")
        if not set(ends) <= set(node):
            raise TopologyError(f"{spec}: route from {ends[0]!r} to {ends[1]!r}: expected hosts")
        s, t = node[ends[0]], node[ends[1]]
        crossed = _route_links(route, links, spec)
        routes[s, t] = [number[link] for link in crossed]
        if _symmetrical(route) and s != t:
            routes[t, s] = [number[name, _BACK[way]] for name, way in reversed(crossed)]
    speeds = list(links.values())
    own = (routes.get((n, n), []) for n in range(len(node)))
    alone = [speeds[route[0]] for route in own if len(route) == 1]
    memory = alone[0] if alone and set(alone) == {alone[0]} else None
    inner, ends_of = _without_interfaces(len(node), speeds, routes)
    slots = list(hosts.values())
    try:
        topology = from_routes(slots, speeds, inner, spec)
    except TopologyError:
        # What looks like an interface may be the cable to a switch.
        ends_of = (None, None)
        topology = from_routes(slots, speeds, routes, spec)
    return replace(topology, names=tuple(hosts), parameters=parameters_of(*ends_of, memory))


def _without_interfaces(
    nodes: int, speeds: list[Ends], routes: Routes
) -> tuple[Routes, tuple[Ends | None, Ends | None]]:
    """Take the hosts' own links off, where all have one of a speed at that end of their routes."""
    away = {pair: list(route) for pair, route in routes.items() if pair[0] != pair[1] and route}
    found: list[Ends | None] = []
    for end, place in ((0, 0), (1, -1)):
        of_node: dict[int, set[int]] = {}
        for pair, route in away.items():
            of_node.setdefault(pair[end], set()).add(route[place])
        own = [min(chosen) for chosen in of_node.values() if len(chosen) == 1]
        long = all(len(route) > 1 for route in away.values())
        equal = len({speeds[link] for link in own}) == 1
        rest = {pair: route[1:] if end == 0 else route[:-1] for pair, route in away.items()}
        elsewhere = {link for route in rest.values() for link in route}
        if (
            len(own) == len(set(own)) == nodes
            and equal
            and long
            and not elsewhere.intersection(own)
        ):
            found.append(speeds[own[0]])
            away = rest
        else:
            found.append(None)
    return away, (found[0], found[1])


def from_graph(zone: Element, spec: str) -> Topology:
    """Network of hosts and routers, a link between any two that a route names."""
    import networkx as nx

    _expect_shared(zone, spec)
    hosts, links = _hosts(zone, spec), _direction_speeds(zone, spec)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((name, {"slots": slots}) for name, slots in hosts.items())
    graph.add_nodes_from((r.get("id", ""), {"host": False}) for r in zone.findall("router"))
    speeds: dict[tuple[str, str], Ends] = {}  # by direction
    joined: dict[str, tuple[str, str]] = {}  # by link
    for route in zone.findall("route"):
        ends = route.get("src", ""), route.get("dst", "")
        crossed = _route_links(route, links, spec)
        if not set(ends) <= set(graph) or len(crossed) != 1:
            raise TopologyError(
                f"{spec}: route from {ends[0]!r} to {ends[1]!r} over {len(crossed)} links: "
                f"expected one link between hosts or routers"
            )
        if ends[0] == ends[1]:
            continue
        before = joined.setdefault(crossed[0][0], ends)
        if set(before) != set(ends):
            raise TopologyError(
                f"{spec}: link {crossed[0][0]!r} joins {before[0]!r} and {before[1]!r}, and "
                f"{ends[0]!r} and {ends[1]!r}: expected a link for each route, that others do not "
                f"share"
            )
        speeds[ends] = links[crossed[0]]
        if _symmetrical(route):
            speeds[ends[::-1]] = links[crossed[0]]
    for ends, speed in speeds.items():
        if speeds.get(ends[::-1]) != speed:
            raise TopologyError(
                f"{spec}: between {ends[0]!r} and {ends[1]!r}: expected a route each way, of one "
                f"speed"
            )
        graph.add_edge(*ends, **speed._asdict())
    topology = from_networkx(graph, spec)
    return replace(topology, names=tuple(hosts), parameters=parameters_of(None, None))
