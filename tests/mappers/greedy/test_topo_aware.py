"""TopoLB: its table of ranks x nodes in plain Python, and MapLib's stored mappings."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.graph_kernels import GraphRouter
from hopmap.traces import Traffic


def placed(weight, topology, second) -> list[int]:
    """Every estimate anew at every step, in fractions."""
    ranks, nodes = len(weight), range(topology.nodes)
    far = np.array([topology.distance(x, nodes) for x in nodes])
    mean = [Fraction(int(far[x] @ topology.slots), int(topology.slots.sum())) for x in nodes]
    free, node_of = topology.slots.copy(), {}

    def estimate(rank, x):
        cost = Fraction(0)
        for other in range(ranks):
            if other in node_of:
                cost += int(weight[rank, other] * far[x, node_of[other]])
            elif second:
                cost += int(weight[rank, other]) * mean[x]
        return cost

    while len(node_of) < ranks:
        rows = {
            r: {x: estimate(r, x) for x in nodes if free[x]}
            for r in range(ranks)
            if r not in node_of
        }

        def critical(r):
            row = rows[r]  # noqa: B023
            return sum(int(free[x]) * row[x] for x in row) / int(free.sum()) - min(row.values())

        rank = max(rows, key=lambda r: (critical(r), -r))
        node = min(rows[rank], key=lambda x: (rows[rank][x], x))
        node_of[rank] = node
        free[node] -= 1
    return [node_of[r] for r in range(ranks)]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["mesh:3x2", "torus:5", "tree:2:3@1:10", "mesh:2x2*2", "cluster:1*3+2*1"]),
    st.sampled_from(["first", "second"]),
    st.integers(0, 2**16),
)
def test_every_step_is_that_of_the_table(spec, estimate, seed):
    topology, rng = topology_from_spec(spec), np.random.default_rng(seed)
    ranks = int(rng.integers(1, topology.slots.sum() + 1))
    weight = np.triu(rng.integers(1, 5, (ranks, ranks)) * (rng.random((ranks, ranks)) < 0.5), 1)
    src, dst = weight.nonzero()
    traffic = Traffic.from_pairs(ranks, src, dst, np.ones_like(src), weight[src, dst])
    node_of = map_ranks(traffic, topology, f"topo_aware(estimate={estimate})")
    assert node_of.tolist() == placed(weight + weight.T, topology, estimate == "second")


def test_the_second_order_begins_in_the_middle_with_the_most_traffic():
    """The first has nothing to tell ranks and nodes apart by until one rank is placed."""
    traffic = Traffic.from_pairs(3, [0, 1], [1, 2], [1, 1], [5, 5])
    topology = topology_from_spec("mesh:3")
    assert map_ranks(traffic, topology, "topo_aware").tolist() == [0, 1, 2]
    first = map_ranks(traffic, topology, "topo_aware(estimate=first)")
    assert first.tolist() == [0, 1, 2]
    swapped = Traffic.from_pairs(3, [1, 0], [0, 2], [1, 1], [5, 5])  # 0 in the middle
    assert map_ranks(swapped, topology, "topo_aware").tolist() == [1, 0, 2]
    assert map_ranks(swapped, topology, "topo_aware(estimate=first)").tolist() == [0, 1, 2]


def with_manhattan_distance(topology: Topology) -> Topology:
    """MapLib's distance: 1 between neighbours, or else |dx| + |dy| + |dz|, on every network."""
    coords = topology.coords.astype(int)
    apart = np.abs(coords[:, None] - coords[None]).sum(axis=2)
    apart[topology.link_from, topology.link_to] = 1
    order = np.argsort(topology.link_from, kind="stable")
    starts = np.searchsorted(topology.link_from[order], np.arange(topology.nodes + 1))
    router = GraphRouter(apart.astype(np.int16), starts.astype(np.int64), topology.link_to[order])
    return replace(topology, router=router)


def test_maplib_s_stored_mappings(compiled, maplib, family, weight):
    """Equal with MapLib's distance, which is wrong on all but meshes."""
    traffic, topology, stored = maplib
    pipeline = f"topo_aware(estimate=first, weight={weight})"
    theirs = map_ranks(traffic, with_manhattan_distance(topology), pipeline)
    assert theirs.tolist() == stored("topo_aware")
    ours = map_ranks(traffic, topology, pipeline)
    assert (ours.tolist() == stored("topo_aware")) == (family == "mesh")
