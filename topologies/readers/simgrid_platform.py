"""Networks of SimGrid's platform files: clusters, tori, fat trees, and zones of routes.

What is read is one zone, of which the links become links and the speeds become kinds:

* ``<cluster>``: a switch with a link each way to every host, or two with the backbone between them;
  ``topology="TORUS"`` and ``"FAT_TREE"`` are hopmap's own, with d-mod-k and, half-way round a
  ring, hopmap's rule;
* ``<zone routing="Full">``: the routes as they are listed. Where every host has a link of its own
  at the begin of its routes, or at their end, and these are alike, they are its network interface,
  the parameters injection.* and ejection.*: so `simulator/export/simgrid.py` writes them;
* ``<zone routing="Floyd">``, ``"Dijkstra"``: a graph of hosts and routers, by shortest paths.

What is not there costs nothing: interfaces that the file does not have are endlessly fast. A link
that is SHARED by both directions is one each way here. What links cannot be here is refused: a
FATPIPE, which its messages do not share; in a graph one that several routes share, or whose
directions differ. So are zones beside hosts, and dragonflies.
Source: SimGrid 3.32, documentation, "Platform: XML reference" and "Networks: topologies".
"""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree.ElementTree import Element

from hopmap.topologies.families.grid import torus
from hopmap.topologies.families.routed import LARGEST, from_routes
from hopmap.topologies.families.switched import cluster, fat_tree
from hopmap.topologies.topology import Topology, TopologyError

from .simgrid_zones import Ends, from_full, from_graph, parameters_of, speed_of, whole_number

ZONES = ("zone", "AS")
BESIDE = (*ZONES, "cluster", "cabinet", "peer", "bypassRoute", "bypassZoneRoute", "bypassASroute")


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
    beside = [child.tag for child in element if child.tag in BESIDE]
    if beside:
        raise TopologyError(f"{spec}: <{beside[0]}> beside hosts: expected hosts and routes only")
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
        kinds = (replace(kind, sources=("given by the platform",) * 2) for kind in topology.kinds)
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


def _names(element: Element, where: str) -> tuple[str, ...]:
    """Hosts of a cluster, by its radical: "0-23,30"."""
    prefix, suffix, radical = (element.get(key, "") for key in ("prefix", "suffix", "radical"))
    numbers: list[int] = []
    for part in radical.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high or len(numbers) + high - low >= NODES:
            raise TopologyError(
                f"{where}: radical {radical[:40]!r}: expected a list like 0-23 of at most {NODES}"
            )
        numbers += range(low, high + 1)
    return tuple(f"{prefix}{number}{suffix}" for number in numbers)


def _lists(text: str, count: int, where: str, like: str) -> list[list[int]]:
    """Read lists of whole numbers, semicolons between them."""
    parts = text.replace(" ", "").split(";")
    if len(parts) != count or not all(re.fullmatch(r"\d{1,9}(,\d{1,9})*", part) for part in parts):
        raise TopologyError(f"{where} {text[:40]!r}: expected numbers like {like}")
    return [[int(number) for number in part.split(",")] for part in parts]
