"""IeNPC as it was published: the thesis' and MapLib's way, kept to reproduce their tables.

What they did (worked out from MapLib's public code, and checked against every published row):

1. the two directions of a rank pair are added, and the pair is routed once, from the
   lexicographically smaller node (x, then y, then z) to the larger;
2. nodes at Manhattan distance 0 or 1 use the direct link; a pair on one node loads a link (u, u);
3. otherwise x, then y, then z: per axis, with coordinates a here and b there on a ring of d,
   first ``while a < b: a = (a + s) mod d``, then ``while a > b: a = (a - s) mod d``, with s = +1
   if abs(a - b) <= d // 2 on tori and HAEC boards, and s = -1 otherwise and always on the mesh;
4. across HAEC boards the first hop lands on the target's (x, y), the others go straight.

IaNLC counts what each pair of ranks on one node exchanges, as MapLib does, not what each node does.
So mesh figures run through wrap-around links that no mesh has, and on rings of five and more a
route can end short of its target. Use the convention "hopmap" for anything but comparison.
MapLib itself prints its averages one higher than the thesis (``total // used + 1``) and, on the
mesh, replaces IeNPC's total by the true number of hops. Both are reported with the thesis' figures
as ``maplib_avg`` and ``maplib_total``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies import MappingError, Topology
from hopmap.topologies.box_kernels import HAEC, BoxRouter
from hopmap.traces import Traffic, exact_sum, largest_product, sum_by_key

from .metrics import Dilation, Measure, Spread, congestion_of, off_node_of, spread_of

MOST_HOPS = 2**25
"""Rank pairs times nodes a line, which bounds the hops of rule 3; what was published has 10^5."""


@dataclass(frozen=True)
class PublishedSpread(Spread):
    """A `Spread` in the thesis' way, also with MapLib's own total and average."""

    maplib_total: int
    maplib_avg: int


def maplib_measure(traffic: Traffic, topology: Topology, mapping: Ints, weight: Ints) -> Measure:
    """Measure one quantity, of each directed pair, shape (pairs,), by rules 1 to 4."""
    from . import load_kernels

    router = topology.router
    if not isinstance(router, BoxRouter):
        raise MappingError(
            f"convention maplib: {topology.spec} has no coordinates: expected a mesh, a torus or "
            "a HAEC Box, or the convention hopmap"
        )
    hops = np.count_nonzero(weight) * sum(topology.dims)
    if hops > MOST_HOPS:
        raise MappingError(
            f"convention maplib: published routes of up to {hops:,} hops on {topology.spec}: "
            f"expected at most {MOST_HOPS:,}, or the convention hopmap"
        )
    u, v, both = _route_once(traffic, topology, mapping, weight)
    nodes = topology.nodes
    on_node = u == v
    indptr = np.zeros(len(u) + 1, dtype=np.int64)
    rings = router.family == HAEC or bool(router.wraps.any())
    load_kernels.maplib_walk(router, rings, u, v, indptr, np.empty(0, np.int64), False)
    length = indptr[1:].copy()
    np.cumsum(length, out=indptr[1:])
    keys = np.empty(indptr[-1], dtype=np.int64)
    load_kernels.maplib_walk(router, rings, u, v, indptr, keys, True)
    links, load = sum_by_key(keys, np.repeat(both, length))
    over = np.unique(keys, return_counts=True)[1]

    mesh = router.family != HAEC and not rings
    true_hops = exact_sum(both, topology.distance(u, v)) if len(u) else 0
    total = int(both.sum())
    hop_sum = exact_sum(load)
    return Measure(
        ieplc=_publish(both),
        ianlc=_publish(both[on_node]),
        ienlc=_publish(sum_by_key(u[~on_node] * nodes + v[~on_node], both[~on_node])[1]),
        ienpc=_publish(load, true_hops if mesh else None),
        dilation=Dilation(
            sum=hop_sum,
            avg=hop_sum / total if total else 0.0,
            max=int(length[both > 0].max(initial=0)),
            max_pair=largest_product(length, both),
        ),
        congestion=congestion_of(load, over, np.divmod(links, nodes), topology),
        off_node=off_node_of(traffic, topology, mapping, weight),
    )


def _route_once(
    traffic: Traffic, topology: Topology, mapping: Ints, weight: Ints
) -> tuple[Ints, Ints, Ints]:
    """Rule 1: lexicographically smaller node, larger node and weight of each rank pair."""
    talks = weight > 0
    low = np.minimum(traffic.src, traffic.dst)[talks].astype(np.int64)
    high = np.maximum(traffic.src, traffic.dst)[talks]
    pairs, both = sum_by_key(low * traffic.ranks + high, weight[talks])
    u, v = mapping[pairs // traffic.ranks], mapping[pairs % traffic.ranks]
    # Lexicographic order of (x, y, z): x counts most, although it is fastest in the node index.
    coords = topology.coords.astype(np.int64)
    order = np.zeros(topology.nodes, dtype=np.int64)
    for k, d in enumerate(topology.dims):
        order = order * d + coords[:, k]
    swap = order[u] > order[v]
    return np.where(swap, v, u), np.where(swap, u, v), both


def _publish(entries: Ints, total: int | None = None) -> PublishedSpread:
    plain = spread_of(entries, truncate=True)
    return PublishedSpread(
        plain.total,
        plain.avg,
        plain.min,
        plain.max,
        maplib_total=plain.total if total is None else total,
        maplib_avg=int(plain.avg) + 1 if plain.total else 0,
    )
