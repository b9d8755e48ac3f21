"""Objectives: values by definition, and exact gains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import OBJECTIVES, cost_kernels, map_ranks, objective_value
from hopmap.mappers.objectives import MOST, cost_model, with_free_slots
from hopmap.simulator import evaluate
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic

SPECS = ["mesh:3x2", "torus:5x3", "haec:2x3x2", "mesh:3*2", "torus:7"]


@st.composite
def placed(draw):
    topology = topology_from_spec(draw(st.sampled_from(SPECS)))
    places = np.repeat(np.arange(topology.nodes), topology.slots).tolist()
    ranks = draw(st.integers(1, len(places)))
    rank = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(rank, rank, st.integers(1, 9), st.integers(0, 99)), max_size=20))
    traffic = Traffic.from_pairs(ranks, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)
    return traffic, topology, np.array(draw(st.permutations(places))[:ranks])


@settings(deadline=None)
@given(placed())
def test_values_follow_their_definitions(case):
    traffic, topology, node_of = case
    hops = topology.distance(node_of[traffic.src], node_of[traffic.dst])
    assert (
        objective_value(traffic, topology, node_of, "hop_messages")
        == (hops * traffic.messages).sum()
    )
    assert objective_value(traffic, topology, node_of, "hop_bytes") == (hops * traffic.bytes).sum()
    loads = topology.loads(node_of[traffic.src], node_of[traffic.dst], traffic.bytes)
    assert objective_value(traffic, topology, node_of, "max_link_load") == loads.max(initial=0)
    near = {
        frozenset((int(s), int(d)))
        for s, d, h in zip(traffic.src, traffic.dst, hops, strict=True)
        if s != d and h <= 1
    }
    assert objective_value(traffic, topology, node_of, "cardinality") == len(near)


@settings(deadline=None)
@given(placed(), st.sampled_from(list(OBJECTIVES)), st.data())
def test_swap_gains_are_exact_moves_to_free_slots_included(case, objective, data):
    traffic, topology, node_of = case
    model = cost_model(traffic, topology, objective)
    places = with_free_slots(node_of, topology)
    slot = st.integers(0, len(places) - 1)
    u, v = data.draw(slot), data.draw(slot)
    gain = cost_kernels.swap_gain(model, places, u, v)
    before = cost_kernels.total_cost(model, places)
    places[u], places[v] = places[v], places[u]
    assert before - cost_kernels.total_cost(model, places) == gain


@st.composite
def heavy(draw):
    """Hierarchies of any D and up to 2^53 bytes, which together may be far beyond 64 bits."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    far = sorted(draw(st.lists(st.integers(0, 10**6), min_size=len(sizes), max_size=len(sizes))))
    topology = topology_from_spec(f"tree:{':'.join(map(str, sizes))}@{':'.join(map(str, far))}")
    rank = st.integers(0, topology.nodes - 1)
    volume = st.integers(0, 2 ** draw(st.integers(1, 50)))
    rows = draw(st.lists(st.tuples(rank, rank, st.just(1), volume), max_size=8))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    traffic = Traffic.from_pairs(topology.nodes, *columns)
    return traffic, topology, np.array(draw(st.permutations(range(topology.nodes))))


@settings(deadline=None)
@given(heavy())
def test_hop_bytes_are_exact_for_all_distances_and_bytes(case):
    traffic, topology, node_of = case
    far = topology.distance(node_of[traffic.src], node_of[traffic.dst])
    exact = sum(w * d for w, d in zip(traffic.bytes.tolist(), far.tolist(), strict=True))
    assert objective_value(traffic, topology, node_of, "hop_bytes") == exact
    measured = evaluate(traffic, topology, node_of).bytes
    assert measured.dilation.sum == exact
    hops = topology.hops(node_of[traffic.src], node_of[traffic.dst])
    links = sum(w * h for w, h in zip(traffic.bytes.tolist(), hops.tolist(), strict=True))
    assert measured.ienpc.total == links


@settings(deadline=None)
@given(heavy())
def test_searches_add_up_exactly_or_are_refused_before_they_begin(case):
    traffic, topology, node_of = case
    pairs = traffic.without_self()
    if int(pairs.bytes.sum()) * topology.diameter() > MOST:
        with pytest.raises(MappingError, match=r"objective hop_bytes: .* expected a product of"):
            cost_model(traffic, topology, "hop_bytes")
        return
    model = cost_model(traffic, topology, "hop_bytes")
    value = objective_value(traffic, topology, node_of, "hop_bytes")
    assert cost_kernels.total_cost(model, node_of) == value
    assert cost_kernels.own_costs(model, node_of).sum() == 2 * value


def test_sums_beyond_64_bits_are_printed_exactly_and_searches_refused():
    """64 pairs of 160 GB, each a million apart: 1.024 x 10^19."""
    topology, half = topology_from_spec("tree:2:2:2:2:2:2:2"), np.arange(64)
    traffic = Traffic.from_pairs(128, half, half + 64, [1] * 64, [160_000_000_000] * 64)
    node_of = np.arange(128)
    assert objective_value(traffic, topology, node_of, "hop_bytes") == 1024 * 10**16
    dilation = evaluate(traffic, topology, node_of).bytes.dilation
    assert (dilation.sum, dilation.avg, dilation.max) == (1024 * 10**16, 10**6, 10**6)
    with pytest.raises(MappingError, match=r"10,240,000,000,000 bytes .* up to 1,000,000 on tree"):
        map_ranks(traffic, topology, "kl")


def test_a_network_is_refused_by_its_diameter_and_not_by_its_size():
    """2^53 bytes on 2^12 nodes would be too much, had a fat tree ways through all of them."""
    topology = topology_from_spec("fattree:16x16x16")
    traffic = Traffic.from_pairs(2, [0], [1], [1], [2**53])
    assert cost_model(traffic, topology, "hop_bytes").weight.tolist() == [2**53] * 2
    line = topology_from_spec("mesh:4096")
    with pytest.raises(MappingError, match=r"up to 4,095 on mesh:4096"):
        cost_model(traffic, line, "hop_bytes")


def test_an_unknown_objective_is_named():
    traffic = Traffic.from_pairs(1, [], [], [], [])
    known = "cardinality, hop_messages, hop_bytes, max_link_load"
    with pytest.raises(MappingError, match=rf"'sums': expected one of {known}"):
        objective_value(traffic, topology_from_spec("mesh:1"), [0], "sums")
    with pytest.raises(MappingError, match=r"'hop_byte' \(did you mean hop_bytes\?\)"):
        objective_value(traffic, topology_from_spec("mesh:1"), [0], "hop_byte")
