"""What a network is made of: switches, links, the bandwidth of its bisection, and its price.

The bisection is the least bandwidth, in one direction, over which one half of the nodes reaches the
other (Dally and Towles, Principles and Practices of Interconnection Networks, 2004, 3.3.1). To find
it is NP-hard, so the halves looked at are those by node number and, in boxes, by each coordinate:
exact for meshes, tori and hypercubes with an even longest side, and for trees of even arity; else
an upper bound. Switches stand on the side that makes the cut least, which a maximum flow finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopmap.arrays import Bools, Floats

from .topology import Topology

MOST_LINKS = 100_000  # of a network with switches: a second or two
STEPS = 2**20  # in which the largest bandwidth is counted, since flows are whole numbers


@dataclass(frozen=True)
class Parts:
    """What a network is made of.

    Attributes
    ----------
    nodes, switches : int
        A direct network has no switches: its routers are part of its nodes.
    links : mapping of str to int
        Of each kind, both directions counted as one.
    bisection : float or None
        Bytes/s in one direction; None of a network with too many links.
    """

    nodes: int
    switches: int
    links: Mapping[str, int]
    bisection: float | None

    def price(self, prices: Mapping[str, float]) -> float:
        """Return what it costs by the prices of a "node", a "switch", a "link", a "link.KIND"."""
        of_links = sum(
            number * prices.get(f"link.{kind}", prices.get("link", 0.0))
            for kind, number in self.links.items()
        )
        of_nodes = self.nodes * prices.get("node", 0.0)
        return of_nodes + self.switches * prices.get("switch", 0.0) + of_links


def parts_of(topology: Topology) -> Parts:
    """Count switches and links, and find the bisection."""
    ends = np.sort(np.stack([topology.link_from, topology.link_to]), axis=0)
    numbers = np.bincount(topology.link_kind, minlength=len(topology.kinds))
    back = np.bincount(
        topology.link_kind, topology.link_from == ends[0], minlength=len(topology.kinds)
    )
    pairs = np.maximum(back, numbers - back).astype(int)
    named = {kind.name: int(n) for kind, n in zip(topology.kinds, pairs, strict=True) if n}
    return Parts(topology.nodes, topology.switches, named, bisection_of(topology))


def bisection_of(topology: Topology) -> float | None:
    """Return the least bandwidth between halves of the nodes, in bytes/s of one direction."""
    if topology.nodes < 2 or (topology.switches and topology.links > MOST_LINKS):
        return None
    bandwidth = np.array([kind.bandwidth for kind in topology.kinds])[topology.link_kind]
    if topology.switches:
        return min(_cut(topology, bandwidth, half) for half in _halves(topology))
    return min(
        float(bandwidth[half[topology.link_from] & ~half[topology.link_to]].sum())
        for half in _halves(topology)
    )


def _halves(topology: Topology) -> Iterator[Bools]:
    """Yield which nodes are in the first half: by number, and by each coordinate of a box."""
    orders = [np.arange(topology.nodes)]
    orders += [np.argsort(column, kind="stable") for column in topology.coords.T]
    for order in orders:
        half = np.zeros(topology.nodes, dtype=np.bool_)
        half[order[: topology.nodes // 2]] = True
        yield half


def _cut(topology: Topology, bandwidth: Floats, half: Bools) -> float:
    """Return the least cut between two sets of nodes, switches on whichever side is better."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    unit = bandwidth.max() / STEPS
    endless = np.iinfo(np.int32).max
    source, sink = topology.vertices, topology.vertices + 1
    nodes = np.arange(topology.nodes)
    start = np.concatenate([topology.link_from, np.where(half, source, nodes)])
    end = np.concatenate([topology.link_to, np.where(half, nodes, sink)])
    capacity = np.concatenate(
        [np.rint(bandwidth / unit).astype(np.int64), np.full(topology.nodes, endless)]
    )
    shape = (sink + 1, sink + 1)
    graph: Any = csr_array((capacity, (start, end)), shape=shape)
    graph.data = np.minimum(graph.data, endless)  # parallel links are one
    flow = maximum_flow(csr_array(graph, dtype=np.int32), source, sink)
    return float(flow.flow_value) * float(unit)
