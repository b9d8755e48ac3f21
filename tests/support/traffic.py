"""Traffic that several tests map or replay."""

import numpy as np

from hopmap.simulator import evaluate
from hopmap.topologies import Topology
from hopmap.traces import Traffic


def grid_traffic(*dims: int, seed: int = 0) -> Traffic:
    """Unit traffic between neighbours of a grid whose ranks are numbered at random."""
    number = np.random.default_rng(seed).permutation(int(np.prod(dims))).reshape(dims)
    pairs = [
        (np.delete(number, -1, axis).ravel(), np.delete(number, 0, axis).ravel())
        for axis in range(len(dims))
    ]
    src, dst = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return Traffic.from_pairs(number.size, src, dst, np.ones(len(src)), np.ones(len(src)))


def published_hops(traffic: Traffic, topology: Topology, node_of: np.ndarray) -> int:
    """Hops of all pairs that talk as the HAEC thesis counted them, through links of no mesh."""
    pairs = traffic.undirected()
    once = Traffic.from_pairs(traffic.ranks, pairs.src, pairs.dst, *np.ones((2, pairs.pairs)))
    return evaluate(once, topology, node_of, "maplib").messages.ienpc.total
