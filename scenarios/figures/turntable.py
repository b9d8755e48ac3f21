"""What `page.js` needs to draw a mapping on a three-dimensional box that the reader can turn."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hopmap.topologies import Topology
from hopmap.traces import Traffic

from .layout import coordinates
from .mapping import node_words
from .network import DRAWN

PAIRS = 400  # costliest pairs of ranks that are drawn


def turnable(
    topology: Topology, node_of: ArrayLike, traffic: Traffic, box: Sequence[int] = ()
) -> str:
    """Return the nodes' coordinates and ranks, and pairs that talk, as JSON; "" where flat or huge.

    Parameters
    ----------
    node_of : array_like of int, shape (ranks,)
        The mapping.
    box : sequence of int
        Left, top, width and height of what is turned, in CSS pixels of the figure.

    Returns
    -------
    str
        ``{"at": [[x, y, z], ...], "rank": [...], "ranks": n, "pairs": [[node, node, hops], ...],
        "says": [...], "box": [...]}``; the lowest rank of each node, -1 where there is none, and
        what a tooltip says of it.
    """
    if len(topology.dims) != 3 or topology.nodes > DRAWN:
        return ""
    places = np.asarray(node_of, dtype=np.int64)
    rank_at = np.full(topology.nodes, -1, dtype=np.int64)
    rank_at[places[::-1]] = np.arange(len(places))[::-1]
    sent = traffic.without_self()
    u, v = places[sent.src], places[sent.dst]
    hops = topology.distance(u, v)
    cost = hops * (sent.bytes if sent.bytes.any() else sent.messages)
    chosen = np.argsort(-cost, kind="stable")
    chosen = chosen[hops[chosen] > 0][: 2 * PAIRS]
    pairs = {
        (min(a, b), max(a, b)): h
        for a, b, h in zip(*(x[chosen].tolist() for x in (u, v, hops)), strict=True)
    }
    view = {
        "at": coordinates(topology).tolist(),
        "rank": rank_at.tolist(),
        "ranks": len(places),
        "pairs": [[*pair, h] for pair, h in list(pairs.items())[:PAIRS]],
        "says": node_words(topology, places),
        "box": list(box),
    }
    return json.dumps(view, separators=(",", ":"))
