"""Random sampling draws as often as it is told; RCM matches scipy's orders of both graphs."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from hopmap.mappers import cost_kernels, map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, nas_traffic


def line_of(ranks: int) -> Traffic:
    first = np.arange(ranks - 1)
    return Traffic.from_pairs(ranks, first, first + 1, [1] * len(first), [8] * len(first))


def test_more_samples_of_a_seed_are_never_worse_and_soon_better():
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology, map_ranks(traffic, topology, f"random_sampling(samples={n})"),
            "cardinality",
        )
        for n in (1, 30, 900)
    ]  # fmt: skip
    assert values == sorted(values)
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("seed", range(4))
def test_the_best_is_kept_over_all_batches(seed):
    """Samples are drawn a thousand at a time."""
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology,
            map_ranks(traffic, topology, f"random_sampling(samples={n})", seed=seed), "cardinality",
        )
        for n in range(1001, 8001, 1000)
    ]  # fmt: skip
    assert values == sorted(values)


@pytest.mark.parametrize("samples", [1, 2, 700, 2500])
def test_it_looks_at_as_many_mappings_as_it_is_told(monkeypatch, samples):
    looked = [1]  # the first, by itself
    costs = cost_kernels.total_costs

    def counted(model, drawn):
        looked.append(len(drawn))
        return costs(model, drawn)

    monkeypatch.setattr(cost_kernels, "total_costs", counted)
    map_ranks(line_of(9), topology_from_spec("mesh:3x3"), f"random_sampling(samples={samples})")
    assert sum(looked) == samples


@pytest.mark.parametrize("objective", ["cardinality", "hop_bytes"])
def test_enough_samples_of_few_mappings_find_the_best(objective):
    """Four ranks on a line have 24 mappings, two of them perfect."""
    traffic, topology = line_of(4), topology_from_spec("mesh:4")
    node_of = map_ranks(traffic, topology, f"random_sampling(samples=500, objective={objective})")
    assert node_of.tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])


def test_every_mapping_is_as_likely_as_any_other():
    """One sample each of 600 seeds: the six orders of three ranks come 100 times, give or take."""
    traffic, topology = line_of(3), topology_from_spec("mesh:3")
    drawn = [
        tuple(map_ranks(traffic, topology, "random_sampling(samples=1)", seed=seed).tolist())
        for seed in range(600)
    ]
    counts = [drawn.count(each) for each in sorted(set(drawn))]
    assert len(counts) == 6
    assert sum((n - 100) ** 2 / 100 for n in counts) < 20.5  # chi square of 5 degrees at 0.1 %


def test_its_mean_cardinality_on_a_torus_is_that_of_chance():
    """Of 63 other nodes 6 are neighbours: 10.7 of 112 pairs in the mean of one sample."""
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4")
    values = [
        objective_value(
            traffic, topology, map_ranks(traffic, topology, "random_sampling(samples=1)", seed=s),
            "cardinality",
        )
        for s in range(300)
    ]  # fmt: skip
    assert np.mean(values) == pytest.approx(112 * 6 / 63, rel=0.06)


def traffic_of(graph: nx.Graph, seed: int) -> Traffic:
    """Edges in one direction or the other, ranks renumbered at random."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(len(graph))
    ends = rng.permuted(number[np.array(graph.edges)], axis=1)
    return Traffic.from_pairs(len(graph), *ends.T, np.ones(len(ends), dtype=int), ends[:, 0] + 1)


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_path_is_laid_out_along_a_line(seed):
    traffic, topology = traffic_of(nx.path_graph(12), seed), topology_from_spec("mesh:12")
    node_of = map_ranks(traffic, topology, "rcm")
    assert (topology.distance(node_of[traffic.src], node_of[traffic.dst]) == 1).all()


@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:3x3x2", "fattree:3x3x2", "file"])
def test_what_is_at_one_place_in_both_orders_belongs_together(spec, tmp_path):
    if spec == "file":
        nx.write_graphml(nx.petersen_graph(), tmp_path / "net.graphml")
        spec = f"file:{tmp_path}/net.graphml"
    topology = topology_from_spec(spec)
    traffic = traffic_of(nx.gnm_random_graph(topology.nodes, 3 * topology.nodes, seed=1), 1)
    node_of = map_ranks(traffic, topology, "rcm")

    def order(source, target, vertices):
        dense = np.zeros((vertices, vertices))
        dense[source, target] = dense[target, source] = 1
        return reverse_cuthill_mckee(csr_array(dense), symmetric_mode=True)

    ranks = order(traffic.src, traffic.dst, traffic.ranks)
    vertices = order(topology.link_from, topology.link_to, topology.vertices)
    nodes = vertices[vertices < topology.nodes]
    assert node_of[ranks].tolist() == nodes.tolist()


def test_the_slots_of_a_node_take_ranks_that_follow_each_other():
    traffic, topology = traffic_of(nx.path_graph(12), 0), topology_from_spec("mesh:4*3")
    node_of = map_ranks(traffic, topology, "rcm")
    apart = topology.distance(node_of[traffic.src], node_of[traffic.dst])
    assert sorted(apart.tolist()) == [0] * 8 + [1] * 3


def placed_on(spec: str, names: tuple[str, ...], mapper: str) -> list[str]:
    topology = replace(topology_from_spec(spec), names=names)
    ranks = int(topology.slots.sum())
    return [names[node] for node in map_ranks(line_of(ranks), topology, mapper)]


def test_hosts_come_in_the_order_of_their_letters():
    """As torchrun does: 10 before 2."""
    names = tuple(f"node{n}" for n in range(1, 13))
    assert placed_on("cluster:12", names, "by_hostname") == sorted(names)
    assert placed_on("cluster:12", names, "by_hostname")[:4] == [
        "node1", "node10", "node11", "node12"
    ]  # fmt: skip
    long = tuple(f"{name}.site.org" for name in names)
    assert placed_on("cluster:12", long, "by_hostname") == sorted(long)


def test_short_names_are_compared_as_if_they_had_their_domain():
    """A dot comes behind a hyphen."""
    assert placed_on("cluster:2", ("n1", "n1-b"), "by_hostname") == ["n1-b", "n1"]
    full = ("n1.org", "n1-b.org")
    assert placed_on("cluster:2", full, "by_hostname") == ["n1-b.org", "n1.org"]


def test_gpus_of_a_host_keep_their_order():
    names = tuple(f"{host}-gpu{gpu}" for host in ("b", "a10", "a9") for gpu in range(11))
    expected = [f"{host}-gpu{gpu}" for host in ("a10", "a9", "b") for gpu in range(11)]
    assert placed_on("cluster:33", names, "by_hostname") == expected


def test_hosts_of_a_job_come_as_they_are_listed_or_by_name():
    topology = topology_from_spec("nodes:node[9-11,2]@torus:16*2")
    traffic = line_of(8)
    assert map_ranks(traffic, topology, "as_allocated").tolist() == [9, 9, 10, 10, 11, 11, 2, 2]
    assert map_ranks(traffic, topology, "by_hostname").tolist() == [10, 10, 11, 11, 2, 2, 9, 9]
