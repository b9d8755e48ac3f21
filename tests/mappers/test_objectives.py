"""Objectives: values by definition, and exact gains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import OBJECTIVES, cost_kernels, objective_value
from hopmap.mappers.objectives import cost_model, with_free_slots
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


def test_an_unknown_objective_is_named():
    traffic = Traffic.from_pairs(1, [], [], [], [])
    known = "cardinality, hop_messages, hop_bytes, max_link_load"
    with pytest.raises(MappingError, match=rf"'sums': expected one of {known}"):
        objective_value(traffic, topology_from_spec("mesh:1"), [0], "sums")
    with pytest.raises(MappingError, match=r"'hop_byte' \(did you mean hop_bytes\?\)"):
        objective_value(traffic, topology_from_spec("mesh:1"), [0], "hop_byte")
