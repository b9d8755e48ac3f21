"""Link loads under exchanges, and the searches for the least load on the busiest link."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.loads import congestion
from hopmap.mappers.loads.congestion import load_bound, loads_and_assignment
from hopmap.mappers.loads.link_loads_kernels import (
    anneal_loads,
    crossing,
    highest,
    reroute,
    settle,
)
from hopmap.simulator import evaluate as measure
from hopmap.topologies import from_networkx, topology_from_spec
from hopmap.traces import Traffic

SPECS = [
    "mesh:3x3",
    "torus:4x3,ties=parity",
    "haec:2x2x3",
    "hypercube:3",
    "mesh:2x2*3",
    "tree:2:3:2@1:10:100",
    "fattree:3x4:1x2,routing=ecmp",
    "dragonfly:2x2x1",
    "cluster:4*3",
]


def some_traffic(ranks: int, seed: int) -> Traffic:
    """Directed traffic with silent ranks, self messages and empty messages."""
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 0.3)
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), rng.integers(0, 99, len(src)))


def congestion_of(traffic: Traffic, topology, node_of) -> int:
    return measure(traffic, topology, node_of).bytes.congestion.max


def laid_out(spec: str, free: int, seed: int):
    topology = topology_from_spec(spec)
    traffic = some_traffic(int(topology.slots.sum()) - free, seed)
    start = map_ranks(traffic, topology, "random", seed=seed)
    loads, assignment = loads_and_assignment(traffic, topology, start, np.random.default_rng(seed))
    return topology, traffic, loads, assignment


def loads_of(topology, traffic, places) -> np.ndarray:
    return topology.loads(places[traffic.src], places[traffic.dst], traffic.bytes)


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 99),
    free=st.integers(0, 3),
    listed=st.sampled_from([0, congestion.LISTED]),
    data=st.data(),
)
def test_loads_after_any_exchanges_are_those_of_a_full_count(spec, seed, free, listed, data):
    """With routes that are listed, and with those of the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(congestion, "LISTED", listed)
        topology, traffic, loads, assignment = laid_out(spec, free, seed)
    assert (loads.router is topology.router) == (listed == 0)
    places = assignment.places
    slot = st.integers(0, len(places) - 1)
    for _ in range(5):
        u, v = data.draw(slot), data.draw(slot)
        if places[u] == places[v]:
            continue
        count = reroute(loads, places, u, v)
        if data.draw(st.booleans()):
            settle(loads, count, True)
            places[[u, v]] = places[[v, u]]
        else:
            settle(loads, count, False)
        assert np.array_equal(loads.load, loads_of(topology, traffic, places))
        assert not loads.change.any()
        assert not loads.marked.any()


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_annealing_knows_all_loads_and_the_least_highest_one_met(spec, temperature):
    topology, traffic, loads, assignment = laid_out(spec, 1, 5)
    top, best = np.array(highest(loads.load)), assignment.places.copy()
    before = int(top[0])
    ranks = np.empty(len(best), dtype=np.int64)
    ranks = ranks[: crossing(loads, assignment.places, before, ranks)]
    anneal_loads(loads, assignment, ranks, float(before), temperature, 0.01, 500, top, best)
    assert np.array_equal(loads.load, loads_of(topology, traffic, assignment.places))
    assert top[0] == congestion_of(traffic, topology, best[: traffic.ranks]) <= before
    assert top[1] == (loads.load >= top[0]).sum()
    assert np.array_equal(assignment.item_at[assignment.slot_of], np.arange(len(best)))
    slots = np.repeat(np.arange(topology.nodes), topology.slots)
    assert np.array_equal(slots[assignment.slot_of], assignment.places)


@pytest.mark.parametrize("spec", SPECS)
def test_ranks_that_cross_a_link_are_those_whose_routes_have_it(spec):
    topology, traffic, loads, assignment = laid_out(spec, 1, 3)
    most = int(loads.load.max())
    indptr, links = topology.routes(assignment.places[traffic.src], assignment.places[traffic.dst])
    full = loads.load[links] == most
    over = [
        pair
        for pair in range(traffic.pairs)
        if traffic.bytes[pair] and full[indptr[pair] : indptr[pair + 1]].any()
    ]
    found = np.empty(len(assignment.places), dtype=np.int64)
    found = found[: crossing(loads, assignment.places, most, found)]
    assert found.tolist() == np.union1d(traffic.src[over], traffic.dst[over]).tolist()


@pytest.mark.parametrize("mapper", ["relieve", "congestion(moves=2000)", "auto(moves=3000)"])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("start", ["random", "recursive_bisection"])
def test_the_busiest_link_never_gets_busier(mapper, spec, start):
    topology = topology_from_spec(spec)
    traffic = some_traffic(int(topology.slots.sum()) - 1, 7)
    first = map_ranks(traffic, topology, start)
    last = map_ranks(traffic, topology, mapper, initial=first, objective="max_link_load")
    before, after = (congestion_of(traffic, topology, m) for m in (first, last))
    assert after <= before
    assert objective_value(traffic, topology, last, "max_link_load") == after


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SPECS), st.integers(0, 999), st.integers(0, 3))
def test_no_mapping_undercuts_the_bound(spec, seed, free):
    topology = topology_from_spec(spec)
    traffic = some_traffic(int(topology.slots.sum()) - free, seed)
    node_of = map_ranks(traffic, topology, "random | relieve", seed=seed)
    assert load_bound(traffic, topology) <= congestion_of(traffic, topology, node_of)


@pytest.mark.parametrize(
    ("mapper", "most_seeds"),
    [
        ("congestion", 9),
        pytest.param("relieve", 3, marks=pytest.mark.slow),
        pytest.param("auto(moves=20_000)", 9, marks=pytest.mark.slow),
    ],
)
def test_six_ranks_load_the_busiest_link_as_little_as_in_any_order(mapper, most_seeds, compiled):
    topology, reached = topology_from_spec("mesh:3x2"), 0
    for seed in range(10):
        traffic = some_traffic(6, seed)
        least = min(
            int(loads_of(topology, traffic, np.array(order)).max())
            for order in permutations(range(6))
        )
        stage = f"recursive_bisection | {mapper}"
        found = map_ranks(traffic, topology, stage, objective="max_link_load", seed=seed)
        reached += congestion_of(traffic, topology, found) == least
    assert reached >= most_seeds


def test_annealing_loads_beats_annealing_hop_bytes_at_its_own_objective(compiled):
    topology, wins = topology_from_spec("torus:4x4"), 0
    for seed in range(5):
        traffic = some_traffic(16, seed)
        short, spread = (
            map_ranks(traffic, topology, f"auto(moves=30000, objective={objective})")
            for objective in ("hop_bytes", "max_link_load")
        )
        least = congestion_of(traffic, topology, spread)
        wins += least < congestion_of(traffic, topology, short)
        assert least <= congestion_of(traffic, topology, short)
    assert wins >= 3


def test_umc_moves_a_rank_off_the_busiest_link():
    """0 sends 5 bytes to 2 and 1 to 3, all in a row: link 1 -> 2 carries them all."""
    traffic = Traffic.from_pairs(4, [0, 1], [2, 3], [1, 1], [5, 5])
    topology = topology_from_spec("mesh:4")
    assert congestion_of(traffic, topology, [0, 1, 2, 3]) == 10
    node_of = map_ranks(traffic, topology, "relieve", initial=[0, 1, 2, 3])
    assert congestion_of(traffic, topology, node_of) == 5


def test_arbitrary_graphs_have_routes_too():
    networkx = pytest.importorskip("networkx")
    topology = from_networkx(networkx.petersen_graph())
    traffic = some_traffic(9, 0)
    start = map_ranks(traffic, topology, "random")
    node_of = map_ranks(traffic, topology, "relieve | congestion(moves=1000)", initial=start)
    before, after = (congestion_of(traffic, topology, m) for m in (start, node_of))
    assert after < before
