"""UDFS: its recursion in plain Python, and by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


def walked(weight, topology) -> list[int]:
    """Recursive, as MapLib writes it; equal ranks and nodes the lower one."""
    node_of: dict[int, int] = {}
    free = topology.slots.tolist()

    def put(rank, beside):
        nodes = [x for x in range(topology.nodes) if free[x]]
        node = min(nodes, key=lambda x: (int(topology.distance(beside, x)[0]), x))
        node_of[rank] = node
        free[node] -= 1
        while True:
            peers = [u for u in np.flatnonzero(weight[rank]) if u not in node_of]
            if not peers:
                return
            put(max(peers, key=lambda u: (weight[rank, u], -u)), node)

    for root in sorted(range(len(weight)), key=lambda r: (-weight[r].sum(), r)):
        if root not in node_of:
            put(root, topology.nodes // 2)
    return [node_of[r] for r in range(len(weight))]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["mesh:3x3", "torus:7", "tree:2:3:2@1:10:100", "mesh:2x2*2", "haec:2x2x3"]),
    st.integers(0, 2**16),
)
def test_every_step_is_that_of_the_recursion(spec, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(rng.integers(1, topology.slots.sum() + 1))
    weight = np.triu(rng.integers(0, 4, (ranks, ranks)) * (rng.random((ranks, ranks)) < 0.5), 1)
    src, dst = weight.nonzero()
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), weight[src, dst])
    assert map_ranks(traffic, topology, "udfs").tolist() == walked(weight + weight.T, topology)


def test_a_branch_is_followed_to_its_end_before_the_next():
    """0 with branches 1-2-3 (heavier) and 4: 4 comes last, as near to 0 as there is room."""
    traffic = Traffic.from_pairs(5, [0, 1, 2, 0], [1, 2, 3, 4], [1] * 4, [9, 1, 1, 8])
    assert map_ranks(traffic, topology_from_spec("mesh:9"), "udfs").tolist() == [4, 3, 2, 1, 5]


def test_a_long_chain_needs_no_recursion(compiled):
    ranks = 5000
    ones = np.ones(ranks - 1, dtype=int)
    traffic = Traffic.from_pairs(ranks, np.arange(ranks - 1), np.arange(1, ranks), ones, ones)
    node_of = map_ranks(traffic, topology_from_spec("mesh:5000"), "udfs")
    assert sorted(node_of.tolist()) == list(range(ranks))
