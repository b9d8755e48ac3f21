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

from xml.etree.ElementTree import Element

from hopmap.topologies.topology import Topology, TopologyError

from .simgrid_clusters import from_cluster
from .simgrid_zones import from_full, from_graph

ZONES = ("zone", "AS")
BESIDE = (*ZONES, "cluster", "cabinet", "peer", "bypassRoute", "bypassZoneRoute", "bypassASroute")


def from_platform(root: Element, spec: str) -> Topology:
    """Network of a platform file.

    Parameters
    ----------
    root : Element
        ``<platform>``.
    spec : str
        Spec of the topology, which messages begin with.

    Raises
    ------
    TopologyError
        What is not understood, named by element and attribute.
    """
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
