"""Traffic that several tests map or replay."""

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.simulator import evaluate
from hopmap.topologies import Topology, topology_from_spec
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


@st.composite
def placed_anywhere(draw: Callable, specs: Sequence[str]) -> tuple[Traffic, Topology, np.ndarray]:
    """Draw traffic of few pairs, one of the networks, and a random mapping of one on the other."""
    topology = topology_from_spec(draw(st.sampled_from(specs)))
    ranks = draw(st.integers(1, int(topology.slots.sum())))
    rank = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(rank, rank, st.integers(1, 9), st.integers(0, 9)), max_size=40))
    traffic = Traffic.from_pairs(ranks, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)
    return traffic, topology, map_ranks(traffic, topology, "random", seed=draw(st.integers(0, 99)))
