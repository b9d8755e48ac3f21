"""What leaves the nodes: messages or bytes that ranks send to ranks of other nodes.

The two measures of a mapping of a Cartesian grid (Lehr 2019, section 3.1): what leaves all nodes in
sum, and what leaves the worst node. Each direction counts by itself, as in ``evaluate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Mapping
from hopmap.traces import Traffic

if TYPE_CHECKING:
    from .off_node_kernels import Peers

Measure: TypeAlias = Literal["sum", "worst"]
Amount: TypeAlias = Literal["messages", "bytes"]


def peers_of(traffic: Traffic, amount: Amount, items: int) -> Peers:
    """Peers of every rank, with what it sends them and gets; O(pairs log pairs).

    Parameters
    ----------
    traffic : Traffic
        Who talks to whom.
    amount : {"messages", "bytes"}
        What is counted.
    items : int
        At least as many as ranks; those after the ranks have no peers.
    """
    from .off_node_kernels import Peers

    pairs = traffic.without_self()
    weight = (pairs.messages if amount == "messages" else pairs.bytes).astype(np.int64)
    talks = weight > 0
    src, dst, weight = (a[talks].astype(np.int64) for a in (pairs.src, pairs.dst, weight))
    key, at = np.unique(np.concatenate((src * items + dst, dst * items + src)), return_inverse=True)
    sent, got = np.zeros(len(key), dtype=np.int64), np.zeros(len(key), dtype=np.int64)
    sent[at[: len(src)]] = weight
    got[at[len(src) :]] = weight
    rank, peer = np.divmod(key, items)
    indptr = np.searchsorted(rank, np.arange(items + 1)).astype(np.int64)
    return Peers(indptr, peer, sent, got)


def leaving(peers: Peers, node_of: Mapping, nodes: int) -> NDArray[np.int64]:
    """Add up what every node's ranks send to others, shape (nodes,); `node_of` of every item."""
    rank = np.repeat(np.arange(len(peers.indptr) - 1), np.diff(peers.indptr))
    here, there = node_of[rank], node_of[peers.peer]
    load = np.zeros(nodes, dtype=np.int64)
    np.add.at(load, here[here != there], peers.sent[here != there])
    return load


def value(load: NDArray[np.int64], first: Measure) -> tuple[int, int]:
    """(sum, worst) or (worst, sum) of what leaves the nodes: less is better, the first first."""
    total, worst = int(load.sum()), int(load.max(initial=0))
    return (total, worst) if first == "sum" else (worst, total)
