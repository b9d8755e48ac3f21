"""The order in which MapLib's MinMD meets pairs and links, worked out from its public code.

Its graph (networkx) is filled by a walk through the matrix, row by row. It lists the ranks, and the
partners of each, in the order of a dict, and a pair with the rank that is listed earlier. The list
of pairs is sorted by falling weight, equal ones staying as they were, and then taken from its end:
the lightest goes first, of equal ones the last. The thesis' rows come out with the dicts of its
time, before Python 3.6, which list keys by their hashes and not as they were inserted.
Source: unibas-dmi-hpc/MapLib, mapper/graph.py, mapper/mapping.py and mapper/topology.py (MIT).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology
from hopmap.topologies.box_kernels import HAEC, BoxRouter
from hopmap.traces import Traffic


def pairs_as_popped(traffic: Traffic, weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return both ranks of every pair that talks, the first to be placed first; shape (pairs, 2).

    Parameters
    ----------
    weight : ndarray(int64, shape=(pairs,))
        Of the directed pairs of `traffic`; a pair's two directions are added, as MapLib does. Pairs
        without weight and messages to oneself are no pairs.
    """
    from . import maplib_order_kernels

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
    place[ranks[maplib_order_kernels.listed_by_hash(ranks)]] = np.arange(len(ranks))

    # Every pair as its earlier listed rank and the other, and the other's place in that one's list.
    ends = np.stack((low[met], high[met]), axis=1)
    ends = np.where((place[ends[:, 0]] < place[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    itself = ends[:, 0] == ends[:, 1]
    rank = np.concatenate((ends[:, 0], ends[~itself, 1]))
    partner = np.concatenate((ends[:, 1], ends[~itself, 0]))
    rows = np.lexsort((np.concatenate((met, met[~itself])), rank))
    indptr = np.searchsorted(rank[rows], np.arange(traffic.ranks + 1))
    in_list = np.empty(len(rows), dtype=np.int64)
    maplib_order_kernels.list_partners(indptr.astype(np.int64), partner[rows], in_list)
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
