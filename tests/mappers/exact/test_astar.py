"""A*: optimal where it says so, checked by trying everything."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import OBJECTIVES, map_ranks, objective_value
from hopmap.mappers.stop import Ending
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from support.slow import examples

SMALL = ["mesh:3x2", "torus:5", "haec:2x1x3", "mesh:2*2", "torus:3x2", "mesh:6"]


def optimum(traffic: Traffic, topology, objective: str) -> int:
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    values = [
        objective_value(traffic, topology, np.array(nodes), objective)
        for nodes in set(permutations(slots.tolist(), traffic.ranks))
    ]
    return max(values) if OBJECTIVES[objective].maximised else min(values)


@st.composite
def cases(draw):
    topology = topology_from_spec(draw(st.sampled_from(SMALL)))
    ranks = draw(st.integers(1, int(topology.slots.sum())))
    rank = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(rank, rank, st.integers(1, 9), st.integers(0, 9)), max_size=12))
    traffic = Traffic.from_pairs(ranks, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)
    return traffic, topology


@examples(40)
@given(cases(), st.sampled_from(list(OBJECTIVES)))
def test_small_cases_are_solved_to_the_optimum(case, objective):
    traffic, topology = case
    why: list[Ending] = []
    node_of = map_ranks(traffic, topology, "astar", objective=objective, stopped=why.append)
    assert [each.reason for each in why] == ["optimal"]
    assert objective_value(traffic, topology, node_of, objective) == optimum(
        traffic, topology, objective
    )


def test_a_beam_does_not_claim_to_have_proved_what_it_cut_off():
    rng = np.random.default_rng(1)
    src, dst = np.nonzero(rng.random((12, 12)) < 0.5)
    traffic = Traffic.from_pairs(12, src, dst, np.ones_like(src), rng.integers(1, 99, len(src)))
    topology = topology_from_spec("mesh:4x3")
    why: list[Ending] = []
    node_of = map_ranks(traffic, topology, "astar(exact=0, beam=2)", stopped=why.append)
    assert why == []
    assert sorted(node_of.tolist()) == list(range(12))


@pytest.mark.parametrize("spec", ["mesh:4x4x4", "torus:4x4x4", "haec:4x4x4"])
def test_beyond_small_cases_the_beam_is_no_worse_than_its_start(compiled, spec):
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec(spec)
    start, end = (
        objective_value(traffic, topology, map_ranks(traffic, topology, mapper), "hop_bytes")
        for mapper in ("minmd(rule=connected)", "astar(seconds=5)")
    )
    assert end <= start
