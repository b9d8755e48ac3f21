"""MinMD, minimum Manhattan distance: heaviest pairs first, each next to what is already placed.

Source: HAEC thesis, section 3.2, Algorithm 2. Where that leaves things open:

- Pairs of equal weight come in the order of their ranks, the lower rank of a pair first.
- The centre of a box is floor(d / 2) in every dimension; of another network, the first node with
  the least sum of distances.
- The breadth-first search takes links in the order of the topology (x up, x down, y up, ...).
- The limit of ranks a node starts at one and rises by one, up to the slots, when all are full.
- Ranks without traffic come last, as near to the centre as there is room.

rule=published is that; O(pairs log pairs) and a search per rank, O(ranks * links) at worst.
order=maplib is that as the thesis' authors ran it, which is not what they print: their code sorts
the pairs by falling weight and takes them from the end, so that the *lightest* goes first, of equal
ones the last. Its "breadth-first" search goes on from the node met last, so that it runs away from
the root. So an oversight causes the poor figures of MinMD in the thesis, and what it says of them.
It weighs messages: preset=thesis. Left out, as it would take two places: a message of a
rank to itself, which MapLib places like a pair.

MapLib's graph (networkx) is filled by a walk through the matrix, row by row. It lists the ranks,
and the partners of each, in the order of a dict, and a pair with the rank that is listed earlier.
The thesis' rows come out with the dicts of its time, before Python 3.6, which list keys by their
hashes and not as they were inserted. Source: unibas-dmi-hpc/MapLib, mapper/graph.py,
mapper/mapping.py and mapper/topology.py (MIT).

It lets a rank drift away from all of its partners but one. rule=connected does not: next comes the
rank with the heaviest connection to placed ranks (of equals the one with the least traffic, then
the lower rank), and it goes where the sum of its pairs' weights times hops is least (of equals the
node farthest from node 0, then the lower node). The construction is Mueller-Merbach's (1970), as in
greedyAllC of Glantz, Meyerhenke and Noe (2015); the ties are ours, and so is that weights within a
factor of 1.5 count the same: one message more or less on LU's borders would decide every tie.
It fills the slots of a node at once; O(ranks * (ranks + nodes * peers)).
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.topologies.box_kernels import HAEC, BoxRouter
from hopmap.traces import Traffic

SAME_WEIGHT = 1.5
MANY = 2**15  # ranks from which on quadratic time is worth a warning


@mapper(
    "minmd",
    source="HAEC thesis, Algorithm 2",
    presets={"thesis": {"weight": "messages", "order": "maplib"}},
)
def minmd(
    traffic: Traffic,
    topology: Topology,
    *,
    weight: Literal["bytes", "messages"] = "bytes",
    rule: Literal["published", "connected"] = "published",
    order: Literal["printed", "maplib"] = "printed",
) -> Mapping:
    """Heaviest pairs first, as near as possible to each other, from the centre (MinMD).

    - `weight`: what makes a pair heavy; the thesis' tables were made by messages.
    - `rule`: Algorithm 2, or Mueller-Merbach's next rank and best node.
    - `order`: of pairs and of the search for a free node: as printed, or as the authors' code has
      it.
    """
    from . import greedy_kernels, most_connected_kernels

    node_of = np.full(traffic.ranks, -1, dtype=np.int64)
    if rule == "connected":
        if order == "maplib":
            raise MappingError(
                "mapper minmd: order=maplib and rule=connected are mutually exclusive"
            )
        model = cost_model(traffic, topology, f"hop_{weight}", few=True)
        model = model._replace(weight=group_weights(model.weight))
        most_connected_kernels.place_connected(model, topology.slots, node_of)
        return node_of
    last_first = order == "maplib"
    if last_first:
        ends = pairs_as_popped(traffic, traffic.bytes if weight == "bytes" else traffic.messages)
        links = links_as_visited(topology)
    else:
        pairs = traffic.without_self().undirected()
        weights = pairs.bytes if weight == "bytes" else pairs.messages
        heaviest = np.argsort(-weights, kind="stable")
        ends = np.stack((pairs.src, pairs.dst), axis=1).astype(np.int64)[heaviest]
        links = np.argsort(topology.link_from, kind="stable")
    vertices = max(topology.nodes, int(topology.link_to.max(initial=-1)) + 1)
    indptr = np.searchsorted(topology.link_from[links], np.arange(vertices + 1)).astype(np.int64)
    greedy_kernels.place_pairs(
        indptr, topology.link_to[links], topology.slots, centre(topology), last_first, ends, node_of
    )
    return node_of


def group_weights(weights: Ints) -> Ints:
    """Replace weights by the mean of their class: weights close to the heaviest left."""
    distinct, where = np.unique(weights, return_inverse=True)
    means = distinct.copy()
    end = len(distinct)
    while end > 0:
        begin = int(np.searchsorted(distinct, distinct[end - 1] / SAME_WEIGHT))
        means[begin:end] = round(float(distinct[begin:end].mean()))
        end = begin
    return means[where]


def centre(topology: Topology) -> int:
    """Node in the middle: floor(d / 2) in every dimension, or with the least sum of distances."""
    if topology.dims:
        middle = [nodes // 2 for nodes in topology.dims]
        return int(np.ravel_multi_index(middle, topology.dims, order="F"))
    every = np.arange(topology.nodes)
    candidates = topology.representatives()
    sums = [int(topology.distance(node, every).sum()) for node in candidates]
    return candidates[int(np.argmin(sums))]


def first_node(name: str, topology: Topology, start: int | None) -> int:
    """Return node `start`, or the middle of the machine; raise where there is no such node."""
    if start is None:
        return centre(topology)
    if start >= topology.nodes:
        raise MappingError(
            f"mapper {name}: start={start}: expected a node of {topology.spec}, "
            f"0 to {topology.nodes - 1}"
        )
    return start


def announce_quadratic(name: str, ranks: int) -> None:
    """Warn where a construction whose time grows with the square of the ranks has very many."""
    if ranks > MANY:
        warnings.warn(
            f"mapper {name}: time grows with the square of the ranks, and {ranks} are more than "
            f"{MANY}: topdown takes far less",
            stacklevel=3,
        )


def pairs_as_popped(traffic: Traffic, weight: Ints) -> Ints:
    """Ranks of every pair that talks, shape (pairs, 2), in the order in which MapLib places them.

    `weight`, shape (pairs,), is that of the directed pairs of `traffic`; a pair's two directions
    are added, as MapLib does. Pairs without weight and messages to oneself are no pairs.
    """
    from .greedy_kernels import list_partners, order_by_hash

    talks = weight > 0
    src, dst = traffic.src[talks].astype(np.int64), traffic.dst[talks].astype(np.int64)
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    _, met, pair = np.unique(low * traffic.ranks + high, return_index=True, return_inverse=True)
    both = np.zeros(len(met), dtype=np.int64)
    np.add.at(both, pair, weight[talks])

    mentioned = np.stack((src, dst), axis=1).ravel()
    distinct, since = np.unique(mentioned, return_index=True)
    ranks = distinct[np.argsort(since)]
    place = np.zeros(traffic.ranks, dtype=np.int64)  # of each rank in the list of ranks
    place[ranks[order_by_hash(ranks)]] = np.arange(len(ranks))

    # Every pair as its earlier listed rank and the other, and the other's place in that one's list.
    ends = np.stack((low[met], high[met]), axis=1)
    ends = np.where((place[ends[:, 0]] < place[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    itself = ends[:, 0] == ends[:, 1]
    rank = np.concatenate((ends[:, 0], ends[~itself, 1]))
    partner = np.concatenate((ends[:, 1], ends[~itself, 0]))
    rows = np.lexsort((np.concatenate((met, met[~itself])), rank))
    indptr = np.searchsorted(rank[rows], np.arange(traffic.ranks + 1))
    in_list = np.empty(len(rows), dtype=np.int64)
    list_partners(indptr.astype(np.int64), partner[rows], in_list)
    among = np.empty(len(rows), dtype=np.int64)
    among[rows] = in_list

    order = np.lexsort((among[: len(met)], place[ends[:, 0]], -both))[::-1]
    return np.ascontiguousarray(ends[order[~itself[order]]])


def links_as_visited(topology: Topology) -> NDArray[np.intp]:
    """Return the links sorted by the node that they leave; within each in MapLib's order.

    That is the topology's, but of a HAEC Box' wireless links, which come last in both: MapLib goes
    down before it goes up, and through a board with y fastest.
    """
    router = topology.router
    if not isinstance(router, BoxRouter) or router.family != HAEC:
        return np.argsort(topology.link_from, kind="stable")
    wireless = topology.link_kind > 0
    x, y, z = (topology.coords[topology.link_to] * wireless[:, None]).T
    return np.lexsort((y, x, z, wireless, topology.link_from))
