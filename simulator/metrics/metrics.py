"""Static metrics: what a mapping costs before anything is replayed.

Everything follows from traffic, topology and mapping, for messages and for bytes:

* IePLC, inter-process logical communication: what each directed rank pair exchanges;
* IaNLC, intra-node logical communication: what stays on each node (self messages included);
* IeNLC, inter-node logical communication: what each directed pair of nodes exchanges;
* IeNPC, inter-node physical communication: what each directed link carries;
* dilation: hops, weighted by traffic; its sum over bytes is hop-bytes (= Coco);
* congestion: the highest link load, and the most rank pairs on one link;
* cardinality: rank pairs that talk and sit at most one hop apart;
* off-node traffic: what leaves each node.

Source: HAEC thesis, section 2.6; Lehr's thesis for off-node traffic. The convention "maplib" is
IeNPC as the thesis and MapLib computed it, see `maplib.py`; "hopmap" is correct and directed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Ints, Ints32
from hopmap.errors import HopmapError, expect_one_of
from hopmap.notebook import ShownMixin
from hopmap.topologies import Topology, check_mapping
from hopmap.traces import Traffic, exact_sum, largest_product, sum_by_key
from hopmap.units import show_bytes

if TYPE_CHECKING:
    import pandas as pd

    from .failure_impact import FailureImpact

CONVENTIONS = ("hopmap", "maplib")


@dataclass(frozen=True)
class Spread:
    """Total, average, minimum and maximum over the entries that are not 0.

    The average is a float in the convention "hopmap" and a truncated integer in "maplib".
    """

    total: int
    avg: float
    min: int
    max: int


@dataclass(frozen=True)
class Dilation:
    """Hops weighted by traffic: sum, average per message (or byte), longest distance, largest pair.

    The average is over what another rank gets; "maplib" has what ranks send themselves in it, as
    one hop. ``max_pair`` is the most that hops times weight come to for one pair: the maximum that
    the HAEC thesis, section 2.6, names next to the sum.
    """

    sum: int
    avg: float
    max: int
    max_pair: int


@dataclass(frozen=True)
class Congestion:
    """Highest link load, the nodes that this link joins, links with any load, links in all.

    ``pairs`` is the most rank pairs that use one link, which is what the HAEC thesis, section 2.6,
    calls congestion.
    """

    max: int
    max_link: list[int] | None
    pairs: int
    used_links: int
    links: int


@dataclass(frozen=True)
class OffNode:
    """What leaves nodes: in all, and from the worst node."""

    total: int
    max: int


@dataclass(frozen=True)
class Measure:
    """All metrics for one quantity, messages or bytes."""

    ieplc: Spread
    ianlc: Spread
    ienlc: Spread
    ienpc: Spread
    dilation: Dilation
    congestion: Congestion
    off_node: OffNode


def spread_of(entries: Ints, *, truncate: bool = False) -> Spread:
    """Summarise the entries that are not 0."""
    used = entries[entries > 0]
    if not used.size:
        return Spread(0, 0 if truncate else 0.0, 0, 0)
    total = exact_sum(used)
    average = total // used.size if truncate else total / used.size
    return Spread(total, average, int(used.min()), int(used.max()))


class MetricsError(HopmapError, ValueError):
    """The metrics cannot be computed as asked."""


@dataclass(frozen=True, repr=False)
class Metrics(ShownMixin):
    """All static metrics of one mapping.

    Attributes
    ----------
    convention : str
        "hopmap" or "maplib".
    ranks, nodes : int
        Ranks of the traffic, nodes of the topology.
    cardinality, pairs : int
        Rank pairs, in either direction, that talk and sit at most one hop apart; that talk.
    messages, bytes : Measure
        The same metrics for numbers of messages and for bytes.
    link_messages, link_bytes : ndarray(int64, shape=(links,)), optional
        What each link carries; only by the convention "hopmap".
    network : Topology, optional
        What was measured on.
    hot_links : list of HotLink
        The busiest links, if they were asked for.
    failure_impact : FailureImpact, optional
        What failures cost, if that was asked for.
    """

    convention: str
    ranks: int
    nodes: int
    cardinality: int
    pairs: int
    messages: Measure
    bytes: Measure
    link_messages: Ints | None = field(default=None, compare=False)
    link_bytes: Ints | None = field(default=None, compare=False)
    network: Topology | None = field(default=None, compare=False)
    hot_links: list[HotLink] = field(default_factory=list, compare=False)
    failure_impact: FailureImpact | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        sizes = self.bytes
        return (
            f"<Metrics of {self.ranks} ranks on {self.nodes} nodes, convention {self.convention}: "
            f"{sizes.dilation.avg:.4g} mean hops of bytes, busiest link "
            f"{show_bytes(sizes.congestion.max)}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics with the keys of ``evaluate --json``."""
        found = {
            "convention": self.convention,
            "ranks": self.ranks,
            "nodes": self.nodes,
            "cardinality": self.cardinality,
            "pairs": self.pairs,
            "messages": asdict(self.messages),
            "bytes": asdict(self.bytes),
            "hot_links": [asdict(link) for link in self.hot_links],
        }
        if self.failure_impact is not None:
            found["losses"] = self.failure_impact.to_dict()
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each figure, like ``ienpc_total``, and columns messages and bytes."""
        import pandas as pd

        columns = {
            quantity: {
                f"{group}_{part}": value
                for group, parts in self.to_dict()[quantity].items()
                for part, value in parts.items()
                if part != "max_link"
            }
            for quantity in ("messages", "bytes")
        }
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class HotLink:
    """A loaded link, the nodes that it joins, its technology, what it carries, and who loads it."""

    link: int
    source: int
    target: int
    kind: str
    messages: int
    bytes: int
    # (src rank, dst rank, messages, bytes) of the rank pairs behind it, heaviest first
    pairs: list[tuple[int, int, int, int]]


def evaluate(
    traffic: Traffic, topology: Topology, node_of: ArrayLike, convention: str = "hopmap"
) -> Metrics:
    """Measure a mapping, by correct directed metrics or the published ones, see `maplib.py`.

    Time is linear in the hops of all pairs, memory in pairs + links.
    """
    expect_one_of(MetricsError, "convention", convention, CONVENTIONS)
    mapping = check_mapping(node_of, topology, traffic.ranks)
    if convention == "maplib":
        from .maplib import maplib_measure

        measures = [
            maplib_measure(traffic, topology, mapping, weight)
            for weight in (traffic.messages, traffic.bytes)
        ]
    else:
        weights = (traffic.messages, traffic.bytes)
        amounts = (*weights, *(weight > 0 for weight in weights))
        u, v = mapping[traffic.src], mapping[traffic.dst]
        *carried, by_messages, by_bytes = topology.loads(u, v, amounts)
        measures = [
            _measure(traffic, topology, mapping, weight, load, pairs)
            for weight, load, pairs in zip(weights, carried, (by_messages, by_bytes), strict=True)
        ]
    loads = carried if convention == "hopmap" else (None, None)
    pairs = traffic.without_self().undirected()
    near = topology.distance(mapping[pairs.src], mapping[pairs.dst]) <= 1
    return Metrics(
        convention,
        traffic.ranks,
        topology.nodes,
        cardinality=int(near.sum()),
        pairs=pairs.pairs,
        messages=measures[0],
        bytes=measures[1],
        link_messages=loads[0],
        link_bytes=loads[1],
        network=topology,
    )


def link_loads(traffic: Traffic, topology: Topology, node_of: ArrayLike) -> tuple[Ints, Ints]:
    """Messages and bytes that each directed link carries, two arrays of shape (links,)."""
    mapping = check_mapping(node_of, topology, traffic.ranks)
    u, v = mapping[traffic.src], mapping[traffic.dst]
    messages, size = topology.loads(u, v, (traffic.messages, traffic.bytes))
    return messages, size


def hot_links(
    traffic: Traffic,
    topology: Topology,
    node_of: ArrayLike,
    *,
    top: int = 10,
    by: str = "bytes",
    pairs: int = 5,
) -> list[HotLink]:
    """Find the most loaded links, by bytes or messages, and the rank pairs behind them.

    The other quantity breaks ties, then the lower link number. Returned are `top` links at most,
    unused ones left out, and `pairs` rank pairs of each.
    """
    from . import load_kernels

    mapping = check_mapping(node_of, topology, traffic.ranks)
    link_messages, link_bytes = link_loads(traffic, topology, mapping)
    first, second = (link_bytes, link_messages) if by == "bytes" else (link_messages, link_bytes)
    order = np.lexsort((-second, -first))[:top]
    u, v = mapping[traffic.src], mapping[traffic.dst]
    columns = (traffic.src, traffic.dst, traffic.messages, traffic.bytes)
    hot = []
    for link in order[link_messages[order] > 0]:
        behind = np.flatnonzero(load_kernels.pairs_over_link(topology.router, u, v, int(link)))
        weight = traffic.bytes if by == "bytes" else traffic.messages
        behind = behind[np.argsort(-weight[behind], kind="stable")][:pairs]
        behind_it = zip(*(column[behind].tolist() for column in columns), strict=True)
        hot.append(
            HotLink(
                link=int(link),
                source=int(topology.link_from[link]),
                target=int(topology.link_to[link]),
                kind=topology.kinds[topology.link_kind[link]].name,
                messages=int(link_messages[link]),
                bytes=int(link_bytes[link]),
                pairs=list(behind_it),
            )
        )
    return hot


def _measure(
    traffic: Traffic, topology: Topology, mapping: Ints, weight: Ints, load: Ints, pairs: Ints
) -> Measure:
    u, v = mapping[traffic.src], mapping[traffic.dst]
    hops = topology.distance(u, v)
    off = u != v
    between_ranks = exact_sum(weight[traffic.src != traffic.dst])
    hop_sum = exact_sum(weight, hops)
    talking = weight > 0
    staying = np.zeros(topology.nodes, dtype=np.int64)
    np.add.at(staying, u[~off], weight[~off])
    return Measure(
        ieplc=spread_of(weight),
        ianlc=spread_of(staying),
        ienlc=spread_of(sum_by_key(u[off] * topology.nodes + v[off], weight[off])[1]),
        ienpc=spread_of(load),
        dilation=Dilation(
            sum=hop_sum,
            avg=hop_sum / between_ranks if between_ranks else 0.0,
            max=int(hops[talking].max(initial=0)),
            max_pair=largest_product(hops, weight),
        ),
        congestion=congestion_of(load, pairs, (topology.link_from, topology.link_to), topology),
        off_node=off_node_of(traffic, topology, mapping, weight),
    )


def congestion_of(
    load: Ints, pairs: Ints, ends: tuple[Ints | Ints32, Ints | Ints32], topology: Topology
) -> Congestion:
    """Congestion of links, of which `ends` are where they begin and end."""
    busiest = int(load.argmax()) if load.any() else None
    return Congestion(
        max=int(load.max(initial=0)),
        max_link=None if busiest is None else [int(end[busiest]) for end in ends],
        pairs=int(pairs.max(initial=0)),
        used_links=int((load > 0).sum()),
        links=topology.links,
    )


def off_node_of(traffic: Traffic, topology: Topology, mapping: Ints, weight: Ints) -> OffNode:
    """Add up what leaves each node."""
    u, v = mapping[traffic.src], mapping[traffic.dst]
    leaving = np.zeros(topology.nodes, dtype=np.int64)
    np.add.at(leaving, u[u != v], weight[u != v])
    return OffNode(total=int(leaving.sum()), max=int(leaving.max(initial=0)))
