"""A network: nodes, directed links of several kinds, distances and routes.

Distances and routes are computed on demand by the compiled `Router`; nothing of size n x n is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.errors import HopmapError, choice

from .box_kernels import HAEC, BoxRouter
from .tree_kernels import TreeRouter

if TYPE_CHECKING:
    from .routing import Router

# Beyond these a spec is a slip of the pen, and building it would take all memory.
MOST_NODES, MOST_SLOTS = 2**24, 2**26
MOST_LINKS = 2**26
MOST_LEVELS = 32  # dimensions of a box, levels of a tree
AS_LINKS = "as links"  # of injection.bandwidth, ejection.bandwidth: that of the first kind of link
DEFAULT = "DEFAULT"  # source of a speed that no user and no machine has set
USER = "set by the user"  # source of a speed from `with_links`


def provenance(source: str) -> str:
    """Return "assumed", "measured" or "sourced": what the words behind a figure begin with."""
    word = source.replace(DEFAULT, "assumed").partition(":")[0].strip()
    return word if word in ("assumed", "measured") else "sourced"


class TopologyError(HopmapError, ValueError):
    """A topology cannot be built or used as asked."""


def check_size(label: str, *, nodes: int, links: int, slots: int) -> None:
    """Raise `TopologyError` for a network that is too large in all, before anything is made."""
    for name, number, most in (
        ("nodes", nodes, MOST_NODES),
        ("links", links, MOST_LINKS),
        ("slots", slots, MOST_SLOTS),
    ):
        if number > most:
            raise TopologyError(f"{label}: {number:,} {name}: expected at most {most:,}")


def check_slots(label: str, slots: int, on: str = "node") -> None:
    """Raise `TopologyError` unless there is a slot on each node."""
    (slots,) = whole(f"{label}: slots", slots)
    if slots < 1:
        raise TopologyError(f"{label}: {slots} slots a {on}: expected at least 1")


def times(slots: int) -> str:
    """Return how a spec says how many slots a node has."""
    return f"*{slots}" if slots > 1 else ""


def by_x(sizes: Iterable[int]) -> str:
    """Return sizes as a spec says them, like 4x4x4."""
    return "x".join(map(str, sizes))


def whole(label: str, *numbers: SupportsIndex) -> list[int]:
    """Return sizes as ints, or raise `TopologyError` where one is none, such as 8 / 2."""
    try:
        return [index(number) for number in numbers]
    except TypeError:
        shown = ", ".join(map(str, numbers))
        raise TopologyError(f"{label} {shown}: expected whole numbers") from None


@dataclass(frozen=True)
class LinkKind:
    """Links of one technology.

    Attributes
    ----------
    name : str
        "link" on meshes and tori; "optical" and "wireless" in the HAEC Box.
    bandwidth : float
        bytes/s, each direction.
    latency : float
        seconds from a packet's head entering the link to its reaching the next node.
    sources : (str, str)
        Where bandwidth and latency are from; "DEFAULT" without a source.
    of, share : str, float
        Of degraded links: the kind that they were, and the share of its bandwidth that is left,
        which stays what it is where that kind's bandwidth is set.
    """

    name: str
    bandwidth: float
    latency: float
    sources: tuple[str, str] = (DEFAULT, DEFAULT)
    of: str = ""
    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.bandwidth < np.inf:
            raise TopologyError(f"link kind {self.name}: bandwidth {self.bandwidth}: expected > 0")
        if not 0 <= self.latency < np.inf:
            raise TopologyError(f"link kind {self.name}: latency {self.latency}: expected >= 0")

    @property
    def provenance(self) -> str:
        """Where the two figures are from, in one line."""
        bandwidth, latency = self.sources
        return bandwidth if bandwidth == latency else f"bandwidth: {bandwidth}; latency: {latency}"

    def to_dict(self) -> dict[str, Any]:
        """Return it, JSON-serialisable; `of` and `share` of degraded links only."""
        columns = asdict(self) | {"sources": list(self.sources)}
        if not self.of:
            del columns["of"], columns["share"]
        return columns


def _nothing() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Topology:
    """Vertices joined by directed links 0..links-1: nodes 0..nodes-1, then the switches.

    Attributes
    ----------
    spec : str
        How the command line writes it, e.g. "torus:4x4x4" or "mesh:8x8*2".
    slots : ndarray(int64, shape=(nodes,))
        Ranks that each node can take.
    link_from, link_to : ndarray(int32, shape=(links,))
        Vertices at the ends of each link.
    link_kind : ndarray(uint8, shape=(links,))
        Index into `kinds`.
    kinds : tuple of LinkKind
        Technologies of the links.
    router : Router
        For kernels: distance and routes.
    switches : int
        Vertices that host no ranks, nodes..vertices-1; direct networks have none.
    names : tuple of str
        What the file that describes the machine calls its nodes; empty where there is none.
    parameters : mapping of str to float or str
        What it says of the model's parameters, by key ("injection.bandwidth").
    order : ndarray(int64)
        Nodes in the order in which a job lists them; empty where that is their numbers'.
    carried : ndarray(int64)
        Bytes that other jobs have on each link; empty where there are none. `loads` are without.
    """

    spec: str
    slots: NDArray[np.int64]
    link_from: NDArray[np.int32]
    link_to: NDArray[np.int32]
    link_kind: NDArray[np.uint8]
    kinds: tuple[LinkKind, ...]
    router: Router = field(repr=False)
    switches: int = 0
    names: tuple[str, ...] = field(default=(), repr=False)
    parameters: Mapping[str, float | str] = field(default_factory=dict, repr=False)
    order: NDArray[np.int64] = field(default_factory=_nothing, repr=False)
    carried: NDArray[np.int64] = field(default_factory=_nothing, repr=False)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.slots)

    @property
    def vertices(self) -> int:
        """Number of nodes and switches."""
        return self.nodes + self.switches

    @property
    def links(self) -> int:
        """Number of directed links."""
        return len(self.link_from)

    @property
    def dims(self) -> tuple[int, ...]:
        """Nodes per dimension, x first; empty where the network is no box."""
        router = self.router
        return tuple(int(d) for d in router.dims) if isinstance(router, BoxRouter) else ()

    @property
    def coords(self) -> NDArray[np.int32]:
        """Coordinates of each node, shape (nodes, dimensions); no columns where there are none."""
        router = self.router
        if isinstance(router, BoxRouter):
            return router.coords
        return np.empty((self.nodes, 0), dtype=np.int32)

    def vertex_name(self, vertex: int) -> str:
        """Return the number of a node, or "switch" and its number among the switches."""
        return str(vertex) if vertex < self.nodes else f"switch {vertex - self.nodes}"

    def distance(self, source: ArrayLike, target: ArrayLike) -> NDArray[np.int64]:
        """Hops from each source to each target node, or the cost in a hierarchy, shape (pairs,)."""
        from . import routing

        u, v = self._node_pairs(source, target)
        return routing.distances(self.router, u, v)

    def hops(self, source: ArrayLike, target: ArrayLike) -> NDArray[np.int64]:
        """Links on the route from each source to each target node, shape (pairs,)."""
        from . import routing

        u, v = self._node_pairs(source, target)
        return routing.route_lengths(self.router, u, v)

    def routes(
        self, source: ArrayLike, target: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Links from each source to each target node.

        Returns
        -------
        indptr : ndarray(int64, shape=(pairs + 1,))
        links : ndarray(int32, shape=(total hops,))
            Pair i takes ``links[indptr[i]:indptr[i + 1]]``, in order.
        """
        from . import routing

        u, v = self._node_pairs(source, target)
        indptr = np.zeros(len(u) + 1, dtype=np.int64)
        np.cumsum(routing.route_lengths(self.router, u, v), out=indptr[1:])
        links = np.empty(indptr[-1], dtype=np.int32)
        routing.walk_routes(self.router, u, v, indptr, links)
        return indptr, links

    def loads(self, source: ArrayLike, target: ArrayLike, weight: ArrayLike) -> NDArray[np.int64]:
        """Sum of the weights of all pairs whose route uses a link.

        Parameters
        ----------
        source, target : array_like of int, shape (pairs,)
            Nodes.
        weight : array_like of int, shape (pairs,) or (kinds, pairs)
            Several kinds, as messages and bytes, take one walk.

        Returns
        -------
        ndarray(int64), shape (links,) or (kinds, links)
        """
        from . import routing

        u, v = self._node_pairs(source, target)
        weights = np.asarray(weight, dtype=np.int64)
        rows = np.ascontiguousarray(np.atleast_2d(weights).T)
        loads = np.zeros((self.links, rows.shape[1]), dtype=np.int64)
        routing.add_loads(self.router, u, v, rows, loads)
        return np.ascontiguousarray(loads.T).reshape(*weights.shape[:-1], self.links)

    def diameter(self) -> int:
        """Longest distance between two nodes."""
        from .graph_kernels import GraphRouter

        router = self.router
        if isinstance(router, BoxRouter):
            longest = np.where(router.wraps, router.dims // 2, router.dims - 1)
            if router.family == HAEC:
                return int(max(longest[0] + longest[1], longest[2]))
            return int(longest.sum())
        if isinstance(router, GraphRouter):
            return int(router.hops[:, : self.nodes].max())
        every = np.arange(self.nodes)
        return max(int(self.distance(node, every).max()) for node in self.representatives())

    def representatives(self) -> range:
        """Nodes that, by symmetry, stand for all others in their distances; where unknown, all."""
        from .switch_kernels import DragonflyRouter, FatTreeRouter

        router = self.router
        if isinstance(router, FatTreeRouter | TreeRouter):
            return range(1)
        if isinstance(router, DragonflyRouter):
            return range(0, router.hosts * router.routers, router.hosts)
        return range(self.nodes)

    def with_links(
        self,
        kind: str | None = None,
        *,
        bandwidth: float | None = None,
        latency: float | None = None,
    ) -> Topology:
        """Return the same network with other speeds, of one link kind or of all."""
        names = [k.name for k in self.kinds]
        if kind is not None and kind not in names:
            raise TopologyError(choice(f"{self.spec} has no links of kind", kind, names))
        kinds = []
        for each in self.kinds:
            new, meant = each, kind in (None, each.name, each.of)
            if meant and bandwidth is not None:
                wide = bandwidth if kind == each.name else bandwidth * each.share
                new = replace(new, bandwidth=wide, sources=(USER, each.sources[1]))
            if meant and latency is not None:
                new = replace(new, latency=latency, sources=(new.sources[0], USER))
            kinds.append(new)
        return replace(self, kinds=tuple(kinds))

    def only(self, nodes: ArrayLike) -> Topology:
        """Return the same network with ranks on these nodes alone, such as a job's nodes.

        All links stay, since messages pass by the nodes of others, which have no slots any more.
        """
        chosen, _ = self._node_pairs(nodes, nodes)
        if not chosen.size:
            raise TopologyError(f"{self.spec}: no nodes to sit on: expected at least one")
        slots = np.zeros_like(self.slots)
        slots[chosen] = self.slots[chosen]
        return replace(self, slots=slots)

    def evenly(self, ranks: int) -> Topology:
        """Return the same network with a slot for each rank, as many on every node as it has room.

        Where they do not come out even, the first nodes have one more. With fewer slots than ranks
        it is the network itself. Source: HAEC thesis, section 2.2; MapLib's option ``--block``.
        """
        if ranks >= int(self.slots.sum()):
            return self
        levels = range(int(self.slots.max(initial=0)) + 1)
        filled = bisect_right(levels, ranks, key=lambda k: int(np.minimum(self.slots, k).sum())) - 1
        slots = np.minimum(self.slots, filled)
        slots[np.flatnonzero(self.slots > filled)[: ranks - int(slots.sum())]] += 1
        return replace(self, slots=slots)

    def _node_pairs(
        self, source: ArrayLike, target: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        u, v = np.broadcast_arrays(
            np.atleast_1d(np.asarray(source, dtype=np.int64)),
            np.atleast_1d(np.asarray(target, dtype=np.int64)),
        )
        for nodes in (u, v):
            if nodes.size and not (nodes.min() >= 0 and nodes.max() < self.nodes):
                raise TopologyError(f"{self.spec} has nodes 0..{self.nodes - 1} only")
        return np.ascontiguousarray(u), np.ascontiguousarray(v)
