"""Tabu search: Taillard's rules step by step, exact gains, and what `auto` makes of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.auto import portfolio
from hopmap.mappers.basic_kernels import draw, next_state
from hopmap.mappers.cost_kernels import own_costs, swap_gain, total_cost
from hopmap.mappers.exchanges import tabu as tabu_module
from hopmap.mappers.exchanges import tabu_kernels
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.exchanges.tabu import best_places, iterated_tabu, shuffle, start_search
from hopmap.mappers.exchanges.tabu_kernels import tabu_steps
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.portfolio_rounds import rounds_of
from hopmap.mappers.stop import Budget, Watch
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic
from support.slow import examples


def some_traffic(ranks: int, seed: int, density: float = 0.3, most: int = 99) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < density)
    volume = rng.integers(1, most, len(src))
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), volume)


def state_of(spec: str, objective: str, seed: int, free: int = 0, most: int = 99):
    topology = topology_from_spec(spec)
    slots = int(topology.slots.sum())
    model = cost_model(some_traffic(slots - free, seed, most=most), topology, objective)
    every = np.repeat(np.arange(topology.nodes), topology.slots)
    rng = np.random.default_rng(seed)
    return model, start_search(model, rng.permutation(every), rng)


def apart(slots: int) -> list[tuple[int, int]]:
    """Pairs of slots, the first of equal ones first: by how far apart they are in the circle."""
    return [(x, (x + k) % slots) for k in range(1, slots // 2 + 1) for x in range(slots)]


def plainly(model, places, until, random, shortest, longest, aspiration, steps):
    """Places after so many steps, by Taillard's rules as he states them."""
    cost = best = total_cost(model, places)
    silent = np.diff(model.indptr) == 0
    for step in range(1, steps + 1):
        allowed, forced = [], []
        for order, (u, v) in enumerate(apart(len(places))):
            if places[u] == places[v] or (silent[u] and silent[v]):
                continue
            gain = swap_gain(model, places, u, v)
            back = until[u, places[v]], until[v, places[u]]
            if min(back) < step or cost - gain < best:
                allowed.append((gain, -order, u, v))
            if max(back) < step - aspiration:
                forced.append((gain, -order, u, v))
        if not (forced or allowed):
            continue
        gain, _, u, v = max(forced or allowed)
        for rank in (u, v):
            random = np.uint64(next_state(random))
            until[rank, places[rank]] = step + shortest + draw(random, longest - shortest + 1)
        places[[u, v]] = places[[v, u]]
        cost -= gain
        best = min(best, cost)
    return places, best


@examples(40)
@given(
    st.integers(0, 2**31),
    st.sampled_from(["torus:3x3", "mesh:3x2*2", "tree:3:4"]),
    st.sampled_from(["hop_bytes", "cardinality"]),
    st.integers(0, 3),
    st.integers(1, 40),
    st.sampled_from([5, 20, 10**6]),
    st.sampled_from([99, 10**12]),
)
def test_steps_are_those_of_the_plain_rules(seed, spec, objective, free, steps, aspiration, most):
    """In two calls as in one, of large numbers as of small ones, and every gain is known then."""
    model, state = state_of(spec, objective, seed, free, most)
    slots, nodes = len(state.spots), topology_from_spec(spec).nodes
    assert state.gains.dtype == (np.int64 if most > 99 and objective == "hop_bytes" else np.int32)
    until = np.zeros((slots, nodes), dtype=np.int64)
    with np.errstate(over="ignore"):
        places, best = plainly(
            model, state.nodes[state.spots], until, state.random[0],
            slots, slots + 3, aspiration, steps,
        )  # fmt: skip
    for part in (steps // 2, steps - steps // 2):
        tabu_steps(state, slots, slots + 3, aspiration, part)
    assert np.array_equal(state.nodes[state.spots], places)
    assert state.costs.tolist() == [total_cost(model, places), best]
    assert total_cost(model, best_places(state)) == best
    assert np.array_equal(np.diag(state.at), own_costs(model, places))
    for k in range(1, slots // 2 + 1):
        for u in range(slots):
            assert state.gains[k, u] == swap_gain(model, places, u, (u + k) % slots)


def test_tabu_refuses_machines_that_are_too_large():
    topology = topology_from_spec("mesh:50x50")
    with pytest.raises(MappingError, match=r"mapper tabu: .* 2500 slots: expected 2048 at most"):
        map_ranks(some_traffic(4, 0), topology, "tabu")


def test_tabu_goes_uphill_to_leave_a_local_optimum():
    topology, found = topology_from_spec("mesh:3x3"), []
    for seed in range(8):
        traffic = some_traffic(9, seed)
        stuck = map_ranks(traffic, topology, "random | local_search(neighbourhood=N2)", seed=seed)
        better = map_ranks(traffic, topology, "tabu(steps=100)", initial=stuck, seed=seed)
        values = [objective_value(traffic, topology, m, "hop_bytes") for m in (stuck, better)]
        assert values[1] <= values[0]
        found.append(values[1] < values[0])
    assert any(found)


@given(st.integers(0, 10**6))
def test_some_of_the_ranks_are_shuffled_among_themselves(seed):
    rng = np.random.default_rng(seed)
    new = shuffle(np.arange(100), rng)
    assert sorted(new) == list(range(100))
    assert 12 <= (new != np.arange(100)).sum() <= 71


@pytest.mark.parametrize("spec", ["mesh:4x4", "mesh:2x4*2", "tree:2:2:4@1:10:100"])
def test_iterated_tabu_makes_as_many_steps_as_it_may_and_keeps_the_best(spec):
    topology = topology_from_spec(spec)
    traffic = some_traffic(15, 1)
    start = map_ranks(traffic, topology, "random")
    rng = np.random.default_rng(0)
    search = AnnealingSearch(traffic, topology, start, "hop_bytes", rng, Watch())
    before = search.best_cost
    iterated_tabu(search, rng, moves=16 * 1500 + 7)
    assert search.moves == 16 * 1500
    assert search.best_cost == total_cost(search.model, search.best) < before
    assert sorted(search.best) == sorted(np.repeat(np.arange(topology.nodes), topology.slots))


@pytest.mark.parametrize(("patience", "elsewhere"), [(2, True), (10**9, False)])
def test_searches_begin_near_the_best_and_elsewhere_once_that_has_failed_often(
    patience, elsewhere, monkeypatch
):
    topology, traffic = topology_from_spec("mesh:5x8"), some_traffic(40, 3, 0.6)
    start = map_ranks(traffic, topology, "random")
    search = AnnealingSearch(
        traffic, topology, start, "hop_bytes", np.random.default_rng(0), Watch()
    )
    moved, begin = [], tabu_kernels.begin

    def noted(state):
        moved.append(int((state.nodes[state.spots] != search.best).sum()))
        begin(state)

    monkeypatch.setattr(tabu_module, "PATIENCE", patience)
    monkeypatch.setattr(tabu_kernels, "begin", noted)
    iterated_tabu(search, np.random.default_rng(1), moves=40 * 40 * 30 * 25)
    assert len(moved) == 25
    assert moved[0] == 0
    assert (max(moved) > 29) == elsewhere


def test_of_traffic_of_nobody_there_is_nothing_to_search():
    topology, traffic = topology_from_spec("mesh:4x4"), Traffic.from_pairs(16, [], [], [], [])
    rng = np.random.default_rng(0)
    search = AnnealingSearch(traffic, topology, np.arange(16), "hop_bytes", rng, Watch())
    iterated_tabu(search, rng, moves=1000)
    assert search.moves == 0


def members(spec: str, density: float) -> set[str]:
    topology = topology_from_spec(spec)
    traffic = some_traffic(topology.nodes, 0, density)
    run = portfolio(traffic, topology, rng=np.random.default_rng(0), stop=Budget(moves=100))
    assert run.stop_reason == "budget"
    return {step.member for step in run.steps}


@pytest.mark.parametrize(("spec", "looks"), [("mesh:16x16", True), ("mesh:1x257", False)])
def test_auto_looks_at_all_exchanges_where_slots_are_few(spec, looks):
    assert ("tabu from the best" in members(spec, 0.02)) == looks


@pytest.mark.parametrize(
    ("spec", "part"),
    [("mesh:10x10", 0.5), ("mesh:5x10", 0.8), ("mesh:16x16", 0.1323871), ("mesh:1x257", 0)],
)
def test_auto_looks_at_them_for_longer_the_fewer_they_are(spec, part):
    topology = topology_from_spec(spec)
    traffic, rng = some_traffic(topology.nodes, 0, 0.05), np.random.default_rng(0)
    start = np.arange(topology.nodes)
    search = AnnealingSearch(traffic, topology, start, "hop_bytes", rng, Watch())
    assert rounds_of(search, start, 1000, rng).tabu == pytest.approx(part)


@pytest.mark.parametrize("seed", range(3))
def test_auto_finds_of_dense_traffic_what_a_long_tabu_search_finds(seed, compiled):
    topology, traffic = topology_from_spec("mesh:6x5"), some_traffic(30, 2, 0.8)
    values = [
        objective_value(traffic, topology, map_ranks(traffic, topology, m, seed=seed), "hop_bytes")
        for m in ("auto(moves=3000000)", "tabu(steps=100000)")
    ]
    assert values[0] <= values[1]
