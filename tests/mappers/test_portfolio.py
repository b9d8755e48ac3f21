"""The portfolio of sums over pairs: who takes part, who goes on, and what threads change."""

from __future__ import annotations

import multiprocessing
import sys
import time
from threading import Event, get_ident

import numpy as np
import pytest
from generated import traffic_of

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.auto import portfolio
from hopmap.mappers.bisections.recursive_bisection import MOST
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.lanes import LANES, race
from hopmap.mappers.objectives import with_free_slots
from hopmap.mappers.portfolio import (
    CHILLY,
    FLAT,
    LEAST,
    PILOT,
    SHORT,
    WARMER,
    Portfolio,
    search_sums,
)
from hopmap.mappers.stop import Budget, Interrupted, Watch
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic
from support.traffic import grid_traffic

MODULE, RACES = sys.modules[search_sums.__module__], sys.modules[race.__module__]
TREE, MESH = "tree:4:8:9@1:10:100", "mesh:18x16"  # too many slots for tabu search
PILOTS = ("annealing from a start", "annealing from an order")


def some_traffic(ranks: int = 288, seed: int = 1) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 4 / ranks)
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), rng.integers(1, 99, len(src)))


def run_on(spec: str, traffic: Traffic | None = None, initial=None, **budget) -> Portfolio:
    return portfolio(
        some_traffic() if traffic is None else traffic, topology_from_spec(spec),
        rng=np.random.default_rng(1), initial=initial, objective="hop_bytes",
        stop=Budget(**budget),
    )  # fmt: skip


def members(run: Portfolio) -> list[str]:
    return [step.member for step in run.steps]


def rounds(run: Portfolio) -> list[str]:
    """Members after the first descent."""
    names = members(run)
    return names[names.index("descent") + 1 :]


def scattered(model, topology, rng, *_):
    """Stand for a bisection that separates nothing."""
    return rng.permutation(topology.nodes)


def good_order():
    """Return a mapping that is better than a bisection."""
    return map_ranks(some_traffic(), topology_from_spec(MESH), "auto(moves=3000000)", seed=3)


def cost_of(topology: Topology, node_of) -> float:
    return objective_value(some_traffic(), topology, node_of, "hop_bytes")


def test_cores_change_nothing_of_what_so_many_moves_find(monkeypatch):
    found = []
    for count in (1, 2, 4):
        monkeypatch.setattr(RACES, "cores", lambda count=count: count)
        for seconds in (None, 60.0):
            run = run_on(MESH, moves=20_000, seconds=seconds)
            found.append((run.mapping.tolist(), [step[:4] for step in run.steps]))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("cores", "budget", "lanes"),
    [
        (1, {"seconds": 60}, 1),
        (2, {"seconds": 60}, 2),
        (64, {"seconds": 60}, LANES),
        (2, {"seconds": 60, "clock": "cpu"}, 1),
        (2, {"moves": 3000}, 1),
        (2, {"seconds": 60, "in_a_worker": True}, 1),
    ],
)
def test_with_wall_seconds_alone_each_core_runs_a_round_and_nothing_is_lost(
    cores, budget, lanes, monkeypatch, compiled
):
    threads, generators, drawn, spent, reached = set(), set(), set(), [], []
    anneal = MODULE._anneal

    def noted(search, share, rng, **heat):
        threads.add(get_ident())
        generators.add(id(rng))
        drawn.add(int(search.assignment.random[0]))
        before = search.moves
        anneal(search, share.part(0.005), rng, **heat)
        spent.append(search.moves - before)
        reached.append(search.best_cost)

    monkeypatch.setattr(RACES, "cores", lambda: cores)
    if budget.get("in_a_worker"):
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a sweep")
    budget = {key: value for key, value in budget.items() if key != "in_a_worker"}
    monkeypatch.setattr(MODULE, "_anneal", noted)
    monkeypatch.setattr(MODULE, "STARTS", 1)
    run = run_on(MESH, **budget)
    assert len(threads) == len(generators) == len(drawn) == len(spent) == lanes
    assert rounds(run) == ["annealing from a start"] * lanes
    descent = run.steps[members(run).index("descent")]
    assert run.steps[-1].moves == descent.moves + sum(spent)
    value = cost_of(topology_from_spec(MESH), run.mapping)
    assert value == run.steps[-1].best == min([step.value for step in run.steps] + reached)


@pytest.mark.parametrize("when", ["at once", "later"])
def test_ctrl_c_in_the_first_lane_ends_the_others_soon_and_keeps_the_best(
    when, monkeypatch, compiled
):
    anneal, main = MODULE._anneal, get_ident()
    begun, seen = Event(), []

    def interrupted(search, share, rng, **heat):
        if get_ident() == main:
            if when == "later":
                assert begun.wait(20)
            raise KeyboardInterrupt
        search.cool(0.0, 0.0, moves=100_000)
        begun.set()
        anneal(search, share, rng, **heat)
        seen.append(search.best_cost)

    monkeypatch.setattr(RACES, "cores", lambda: 2)
    monkeypatch.setattr(MODULE, "_anneal", interrupted)
    monkeypatch.setattr(MODULE, "PLACED", 0.01)
    monkeypatch.setattr(MODULE, "SHARE", 0.001)
    begin = time.perf_counter()
    with pytest.raises(Interrupted) as end:
        run_on(MESH, seconds=100.0)
    assert time.perf_counter() - begin < 20
    assert len(seen) == 1
    assert cost_of(topology_from_spec(MESH), end.value.mapping) <= seen[0]


def test_folds_leave_time_for_moves(monkeypatch, compiled):
    def all_the_time(cells, topology, model, tries, over):
        while not over():
            pass
        return np.arange(topology.nodes)

    monkeypatch.setattr(MODULE, "best_fold", all_the_time)
    run = run_on(MESH, grid_traffic(18, 16, seed=1), seconds=1.0, clock="cpu")
    assert "fold" in members(run)
    assert members(run)[-1].startswith("annealing from")


def test_where_no_fold_is_exact_one_of_each_kind_has_a_pilot(monkeypatch, compiled):
    """A grid of 20 x 16 on 18 x 18 nodes, also where bisections are better than folds."""
    traffic, topology = grid_traffic(20, 16, seed=1), topology_from_spec("torus:18x18")
    good = with_free_slots(map_ranks(traffic, topology, "auto(moves=1000000)"), topology)
    monkeypatch.setattr(MODULE, "bisect_nodes", lambda *_: good)
    run = run_on("torus:18x18", traffic, moves=3_000_000)
    assert {"fold", "partial fold"} <= set(members(run))
    assert rounds(run)[:3] == [PILOTS[0], PILOTS[1], PILOTS[1]]


@pytest.mark.parametrize("calls", [1, 2])
def test_ctrl_c_in_a_pilot_keeps_what_was_found_in_pilots(calls, monkeypatch, compiled):
    anneal, reached, order = MODULE._anneal, [], good_order()

    def interrupted(search, share, rng, **heat):
        anneal(search, share, rng, **heat)
        reached.append(search.best_cost)
        if len(reached) == calls:
            raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "_anneal", interrupted)
    with pytest.raises(Interrupted) as end:
        run_on(MESH, initial=order, moves=1_000_000)
    assert cost_of(topology_from_spec(MESH), end.value.mapping) <= min(reached)


@pytest.mark.parametrize(("cores", "winner"), [(1, 0), (2, 0), (2, 1)])
def test_a_round_that_reaches_the_bound_ends_the_others(cores, winner, monkeypatch, compiled):
    """Fours that talk among themselves alone: all pairs are at 1 once they share a switch."""
    rank_at, step = np.random.default_rng(0).permutation(288), np.tile((1, 2), 288)
    src = np.repeat(np.arange(288), 2)
    dst = src // 4 * 4 + (src + step) % 4
    traffic = Traffic.from_pairs(288, rank_at[src], rank_at[dst], step, step)
    best = np.argsort(rank_at)
    order = best[np.r_[1:101, 0, 101:288]]  # a hundred are one node off
    begun, reached = Event(), Event()

    def run(search, *_, **__):
        if np.array_equal(search.assignment.places, order) == bool(winner):
            assert cores == 1 or begun.wait(20)
            search.assign(best)
            reached.set()
            return
        begun.set()
        while not search.done():
            time.sleep(0.001)

    monkeypatch.setattr(RACES, "cores", lambda: cores)
    monkeypatch.setattr(MODULE, "find_structures", lambda *_: (None, iter(())))
    monkeypatch.setattr(MODULE, "bisect_nodes", scattered)
    monkeypatch.setattr(MODULE, "SHORT", -1)
    monkeypatch.setattr(MODULE, "_split_again", run)
    monkeypatch.setattr(AnnealingSearch, "cool", lambda *_, **__: None)  # the descent
    begin = time.perf_counter()
    found = run_on(TREE, traffic, order, seconds=30.0)
    assert time.perf_counter() - begin < 15
    assert reached.is_set()
    assert found.stop_reason == "optimal"
    value = objective_value(traffic, topology_from_spec(TREE), found.mapping, "hop_bytes")
    assert value == step.sum()


@pytest.mark.parametrize("winner", [1.0, 0.25, 0.25 * WARMER])
def test_whichever_pilot_is_at_the_least_cost_has_the_rest(winner, monkeypatch):
    """A start has a hot one, an order one from its temperature and a warmer one."""
    order = map_ranks(some_traffic(), topology_from_spec(MESH), "auto(moves=200000)", seed=3)
    best, shares, heat = good_order(), [], []

    def run(search, share, rng, *, first, **_):
        shares.append(share.moves)
        heat.append(first)
        part = first / heat[0]
        assert np.array_equal(search.assignment.places, order) == (part < 1)
        search.assign(best if part == pytest.approx(winner) else rng.permutation(288))

    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: most / 4)
    monkeypatch.setattr(MODULE, "_anneal", run)
    monkeypatch.setattr(MODULE, "bisect_nodes", scattered)
    found = run_on(MESH, initial=order, moves=1_000_000)
    assert rounds(found) == [*PILOTS, PILOTS[1], PILOTS[winner < 1]]
    spent = found.steps[members(found).index("descent")].moves
    pilot = int(PILOT * (1_000_000 - spent))
    assert shares == [pilot, pilot, pilot, 1_000_000 - spent]
    assert np.array(heat) == pytest.approx(np.array([1, 0.25, 0.25 * WARMER, winner]) * heat[0])


@pytest.mark.parametrize(("clearly", "winner"), [(1.0, CHILLY * WARMER), (2.0, 1.0)])
def test_a_warm_pilot_from_a_cold_start_has_to_be_clearly_better(clearly, winner, monkeypatch):
    better, heat = good_order(), []

    def run(search, share, rng, *, first, **_):
        heat.append(first)
        search.assign(better if first < heat[0] else rng.permutation(288))

    monkeypatch.setattr(AnnealingSearch, "temperature", lambda *_: 0.0)
    monkeypatch.setattr(MODULE, "_anneal", run)
    monkeypatch.setattr(MODULE, "CLEARLY", clearly)
    found = run_on(MESH, moves=1_000_000)
    assert rounds(found) == [PILOTS[0]] * 3
    assert np.array(heat) == pytest.approx(np.array([1, CHILLY * WARMER, winner]) * heat[0])


@pytest.mark.parametrize(("part", "expected"), [(0.0, LEAST), (LEAST / 2, LEAST), (0.9, 0.9)])
def test_a_round_from_an_order_is_neither_cold_nor_hotter_than_from_a_start(
    part, expected, monkeypatch
):
    order, heat = good_order(), []

    def noted(search, share, rng, *, first, **_):
        heat.append(first)

    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: part * most)
    monkeypatch.setattr(MODULE, "bisect_nodes", scattered)
    monkeypatch.setattr(MODULE, "_anneal", noted)
    run_on(MESH, initial=order, moves=1_000_000)
    of_order = [heat[1], heat[-2]]  # between them a cold start has a warm pilot, too
    assert np.array(of_order) / heat[0] == pytest.approx([expected, min(WARMER * expected, 1)])


def test_where_to_cut_a_ring_shows_without_its_shortcuts():
    run = run_on("tree:4:16:64@1:10:100", traffic_of("small_world", 4096), moves=1000)
    first, near, last = (s.value for s in run.steps if s.member == "recursive_bisection")
    assert near < 0.97 * min(first, last)


@pytest.mark.parametrize("weight", [1, 7])
def test_temperatures_follow_what_a_pair_costs_one_hop_apart_and_at_random(weight):
    torus = topology_from_spec("torus:6x6")
    src, dst = np.triu_indices(36, k=1)  # equally far in the mean wherever they are
    traffic = Traffic.from_pairs(36, src, dst, np.ones(len(src)), np.full(len(src), weight))
    rng, places = np.random.default_rng(1), np.arange(36)
    mean_hops = 3 * 36 / 35
    search = AnnealingSearch(traffic, torus, places, "hop_bytes", rng, Watch())
    hot, cold = MODULE._temperatures(search, rng)
    assert hot == pytest.approx(MODULE.HOT * weight * mean_hops**0.5)
    assert cold == pytest.approx(MODULE.COLD * weight)
    search = AnnealingSearch(traffic, torus, places, "cardinality", rng, Watch())
    assert MODULE._temperatures(search, rng) == (MODULE.HOT * FLAT, MODULE.COLD * FLAT)


@pytest.mark.parametrize(("more", "pilots"), [(0, []), (1, [*PILOTS, PILOTS[1]])])
def test_with_few_proposals_a_rank_there_are_no_pilots(more, pilots, monkeypatch):
    traffic, order = some_traffic(), good_order()
    active = len(np.union1d(traffic.src, traffic.dst))
    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: most)
    monkeypatch.setattr(MODULE, "_anneal", lambda *_, **__: None)
    run = run_on(MESH, traffic, order, moves=SHORT * active + more)
    assert rounds(run) == [*pilots, PILOTS[1]]


@pytest.mark.parametrize(
    ("spec", "member"),
    [
        (MESH, "annealing"),
        (TREE, "splitting again"),
        ("fattree:16x16:1x8", "splitting again"),
        ("dragonfly:4x8x4", "annealing"),
    ],
)
def test_where_what_is_outside_is_equally_far_ranks_are_split_again(spec, member, monkeypatch):
    monkeypatch.setattr(MODULE, "_anneal", lambda *_, **__: None)
    monkeypatch.setattr(MODULE, "_split_again", lambda *_, **__: None)
    topology = topology_from_spec(spec)
    ranks = min(topology.nodes, 288)
    assert rounds(run_on(spec, some_traffic(ranks), moves=300))[0] == f"{member} from a start"


@pytest.mark.parametrize(("kind", "most"), [("bipartite", 2), ("knn3d", MOST)])
def test_two_subsystems_are_split_at_once_where_a_few_ranks_have_most(kind, most, monkeypatch):
    taken = []
    monkeypatch.setattr(MODULE, "ruin_and_recreate", lambda *_, most, **__: taken.append(most))
    run_on("tree:4:8:8@1:10:100", traffic_of(kind, 256), moves=1000)
    assert taken == [most]


@pytest.mark.parametrize(
    ("kind", "spec", "takes_part"),
    [
        ("bipartite", "mesh:16x16", True),
        ("ba", "torus:16x16", True),
        ("bipartite", "tree:4:8:8@1:10:100", False),
        ("knn3d", "torus:8x8x4", False),
        ("lu", "mesh:16x16", False),
    ],
)
def test_a_construction_by_all_ranks_takes_part_where_bisections_separate_little(
    kind, spec, takes_part, monkeypatch
):
    traffic = traffic_of(kind, 256)
    monkeypatch.setattr(MODULE, "find_structures", lambda *_: (None, iter(())))
    run = run_on(spec, traffic, moves=1000)
    assert ("greedy_all_c" in members(run)) == takes_part
    monkeypatch.setattr(MODULE, "GREEDY_RANKS", 255)
    assert "greedy_all_c" not in members(run_on(spec, traffic, moves=1000))


@pytest.mark.parametrize(
    ("traffic", "spec", "takes_part"),
    [
        (traffic_of("knn3d", 256), "torus:8x8x4", True),
        (traffic_of("knn3d", 250), "torus:8x8x4", True),
        (traffic_of("knn3d", 256), "tree:4:8:8@1:10:100", False),
        (grid_traffic(16, 16, seed=1), "torus:8x8x4", False),
        (some_traffic(256), "torus:8x8x4", False),
    ],
)
def test_points_in_space_are_embedded_in_boxes(traffic, spec, takes_part):
    assert ("embedding" in members(run_on(spec, traffic, moves=1000))) == takes_part


def test_few_ranks_on_many_nodes_are_embedded_side_by_side_too():
    """512 nodes: 64 ranks on all parts of the network, then in a box of 64."""
    run = run_on("torus:8x8x8", traffic_of("knn3d", 64), moves=1000)
    values = [step.value for step in run.steps if step.member == "embedding"]
    assert len(values) >= 2
    assert max(values[1::2]) < 0.8 * min(values[::2])


def test_temperatures_follow_the_proposals_a_rank(monkeypatch):
    """Lower at the start with few of them, lower at the end with many."""
    seen = {}

    def noted(search, share, rng, *, first, last):
        seen[per_rank] = (first, last)

    monkeypatch.setattr(MODULE, "_anneal", noted)
    for per_rank in (0.1, 1.0, 20.0, 40.0, 80.0):  # thousands
        run_on(MESH, moves=int(per_rank * 1000) * 288)
    hot, cold = seen[20.0]
    assert hot / cold > 10
    for per_rank, (first, last) in seen.items():
        assert first == pytest.approx(hot * min(per_rank, 1.0))
        assert last == pytest.approx(cold * min(20.0 / per_rank, 1.0))


def test_an_order_is_compared_with_a_start_after_descents_from_both(monkeypatch):
    """Exchanges make a good order worse than the start, and are undone in the descent."""
    topology, rng = topology_from_spec(MESH), np.random.default_rng(0)
    start = map_ranks(some_traffic(), topology, "recursive_bisection | local_search", seed=1)
    order = good_order()
    while cost_of(topology, order) <= cost_of(topology, start):
        pair = rng.permutation(288)[:2]
        order[pair] = order[pair[::-1]]
    monkeypatch.setattr(MODULE, "bisect_nodes", lambda *_: start)
    assert "annealing from an order" in members(run_on(MESH, initial=order, moves=1_000_000))
