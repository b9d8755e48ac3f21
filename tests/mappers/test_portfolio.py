"""The portfolio of sums over pairs: who takes part, who goes on, and what threads change."""

from __future__ import annotations

import multiprocessing
import time
from threading import Event, get_ident

import numpy as np
import pytest

from hopmap.mappers import (
    lanes,
    map_ranks,
    objective_value,
    portfolio,
    portfolio_rounds,
    portfolio_starts,
)
from hopmap.mappers.exchanges.annealing import AnnealingSearch
from hopmap.mappers.lanes import LANES
from hopmap.mappers.objectives import with_free_slots
from hopmap.mappers.portfolio import PILOT
from hopmap.mappers.portfolio_rounds import COOL, SLOW
from hopmap.mappers.stop import Interrupted
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.portfolios import (
    MESH,
    PILOTS,
    TREE,
    cost_of,
    good_order,
    members,
    rounds,
    run_on,
    scattered,
    some_traffic,
)
from support.traffic import grid_traffic


def test_cores_change_nothing_of_what_so_many_moves_find(monkeypatch):
    found = []
    for count in (1, 2, 4):
        monkeypatch.setattr(lanes, "cores", lambda count=count: count)
        for seconds in (None, 60.0):
            run = run_on(MESH, moves=20_000, seconds=seconds)
            found.append((run.mapping.tolist(), [step[:4] for step in run.steps]))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("cores", "budget", "count"),
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
    cores, budget, count, monkeypatch, compiled
):
    threads, generators, drawn, spent, reached = set(), set(), set(), [], []
    anneal = portfolio_rounds._anneal

    def noted(search, share, rng, **heat):
        threads.add(get_ident())
        generators.add(id(rng))
        drawn.add(int(search.assignment.random[0]))
        before = search.moves
        anneal(search, share.part(0.005), rng, **heat)
        spent.append(search.moves - before)
        reached.append(search.best_cost)

    monkeypatch.setattr(lanes, "cores", lambda: cores)
    if budget.get("in_a_worker"):
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a sweep")
    budget = {key: value for key, value in budget.items() if key != "in_a_worker"}
    monkeypatch.setattr(portfolio_rounds, "_anneal", noted)
    monkeypatch.setattr(portfolio_starts, "STARTS", 1)
    run = run_on(MESH, **budget)
    assert len(threads) == len(generators) == len(drawn) == len(spent) == count
    assert rounds(run) == ["annealing from a start"] * count
    descent = run.steps[members(run).index("descent")]
    assert run.steps[-1].moves == descent.moves + sum(spent)
    value = cost_of(topology_from_spec(MESH), run.mapping)
    assert value == run.steps[-1].best == min([step.value for step in run.steps] + reached)


@pytest.mark.parametrize("when", ["at once", "later"])
def test_ctrl_c_in_the_first_lane_ends_the_others_soon_and_keeps_the_best(
    when, monkeypatch, compiled
):
    anneal, main = portfolio_rounds._anneal, get_ident()
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

    monkeypatch.setattr(lanes, "cores", lambda: 2)
    monkeypatch.setattr(portfolio_rounds, "_anneal", interrupted)
    monkeypatch.setattr(portfolio_starts, "PLACED", 0.01)
    monkeypatch.setattr(portfolio_starts, "SHARE", 0.001)
    begin = time.perf_counter()
    with pytest.raises(Interrupted) as end:
        run_on(MESH, seconds=100.0)
    assert time.perf_counter() - begin < 20
    assert len(seen) == 1
    assert cost_of(topology_from_spec(MESH), end.value.mapping) <= seen[0]


def test_where_no_fold_is_exact_one_of_each_kind_has_a_pilot(monkeypatch, compiled):
    """A grid of 20 x 16 on 18 x 18 nodes, also where bisections are better than folds."""
    traffic, topology = grid_traffic(20, 16, seed=1), topology_from_spec("torus:18x18")
    good = with_free_slots(map_ranks(traffic, topology, "auto(moves=1000000)"), topology)
    monkeypatch.setattr(portfolio_starts, "bisect_nodes", lambda *_: good)
    run = run_on("torus:18x18", traffic, moves=3_000_000)
    assert {"fold", "partial fold"} <= set(members(run))
    assert rounds(run)[:3] == [PILOTS[0], PILOTS[1], PILOTS[1]]


@pytest.mark.parametrize("calls", [1, 2])
def test_ctrl_c_in_a_pilot_keeps_what_was_found_in_pilots(calls, monkeypatch, compiled):
    anneal, reached, order = portfolio_rounds._anneal, [], good_order()

    def interrupted(search, share, rng, **heat):
        anneal(search, share, rng, **heat)
        reached.append(search.best_cost)
        if len(reached) == calls:
            raise KeyboardInterrupt

    monkeypatch.setattr(portfolio_rounds, "_anneal", interrupted)
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

    monkeypatch.setattr(lanes, "cores", lambda: cores)
    monkeypatch.setattr(portfolio, "find_structures", lambda *_: (None, iter(())))
    monkeypatch.setattr(portfolio_starts, "bisect_nodes", scattered)
    monkeypatch.setattr(portfolio, "SLOW", -1)
    monkeypatch.setattr(portfolio_rounds, "_split_again", run)
    monkeypatch.setattr(AnnealingSearch, "cool", lambda *_, **__: None)  # the descent
    begin = time.perf_counter()
    found = run_on(TREE, traffic, order, seconds=30.0)
    assert time.perf_counter() - begin < 15
    assert reached.is_set()
    assert found.stop_reason == "optimal"
    value = objective_value(traffic, topology_from_spec(TREE), found.mapping, "hop_bytes")
    assert value == step.sum()


@pytest.mark.parametrize("winner", [1.0, 0.25])
def test_whichever_pilot_is_at_the_least_cost_has_the_rest(winner, monkeypatch):
    """A start has a hot one, an order one from its temperature."""
    order = map_ranks(some_traffic(), topology_from_spec(MESH), "auto(moves=200000)", seed=3)
    best, shares, heat = good_order(), [], []

    def run(search, share, rng, *, first, **_):
        shares.append(share.moves)
        heat.append(first)
        part = first / heat[0]
        assert np.array_equal(search.assignment.places, order) == (part < 1)
        search.assign(best if part == pytest.approx(winner) else rng.permutation(288))

    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: most / 4)
    monkeypatch.setattr(portfolio_rounds, "_anneal", run)
    monkeypatch.setattr(portfolio_starts, "bisect_nodes", scattered)
    found = run_on(MESH, initial=order, moves=1_000_000)
    assert rounds(found) == [*PILOTS, PILOTS[winner < 1]]
    spent = found.steps[members(found).index("descent")].moves
    pilot = int(PILOT * (1_000_000 - spent))
    assert shares == [pilot, pilot, 1_000_000 - spent]
    assert np.array(heat) == pytest.approx(np.array([1, 0.25, winner]) * heat[0])


@pytest.mark.parametrize(
    ("clearly", "by_levels", "winner"),
    [(1.0, "worst", "mild"), (2.0, "worst", "hot"), (2.0, "best", "multilevel")],
)
def test_a_cool_start_has_a_mild_pilot_that_has_to_be_clearly_better_and_one_of_multilevel(
    clearly, by_levels, winner, monkeypatch
):
    worst = scattered(None, topology_from_spec(MESH), np.random.default_rng(1))
    start = map_ranks(some_traffic(), topology_from_spec(MESH), "recursive_bisection", seed=1)
    found, run_of = {"worst": worst, "start": start, "best": good_order()}, []

    def anneal(search, share, rng, *, first, **_):
        heat.append(first)
        run_of.append("mild" if first < heat[0] else "hot")
        search.assign(found["start" if first < heat[0] else "worst"])

    def levels(search, *_):
        run_of.append("multilevel")
        search.assign(found[by_levels])

    heat: list[float] = []
    monkeypatch.setattr(AnnealingSearch, "temperature", lambda *_: 0.0)
    monkeypatch.setattr(portfolio_rounds, "_anneal", anneal)
    monkeypatch.setattr(portfolio, "by_levels", levels)
    monkeypatch.setattr(portfolio, "CLEARLY", clearly)
    run = run_on(MESH, moves=1_000_000)
    assert run_of == ["hot", "mild", "multilevel", winner]
    assert rounds(run)[:3] == [PILOTS[0], PILOTS[0], "multilevel"]
    assert heat[1] == pytest.approx(COOL * heat[0])


@pytest.mark.parametrize(("more", "pilots"), [(0, []), (1, PILOTS)])
def test_with_few_proposals_a_rank_there_are_no_pilots(more, pilots, monkeypatch):
    traffic, order = some_traffic(), good_order()
    active = len(np.union1d(traffic.src, traffic.dst))
    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: most)
    monkeypatch.setattr(portfolio_rounds, "_anneal", lambda *_, **__: None)
    run = run_on(MESH, traffic, order, moves=SLOW * active + more)
    assert rounds(run) == [*pilots, PILOTS[1]]


def test_an_order_is_compared_with_a_start_after_descents_from_both(monkeypatch):
    """Exchanges make a good order worse than the start, and are undone in the descent."""
    topology, rng = topology_from_spec(MESH), np.random.default_rng(0)
    start = map_ranks(some_traffic(), topology, "recursive_bisection | local_search", seed=1)
    order = good_order()
    while cost_of(topology, order) <= cost_of(topology, start):
        pair = rng.permutation(288)[:2]
        order[pair] = order[pair[::-1]]
    monkeypatch.setattr(portfolio_starts, "bisect_nodes", lambda *_: start)
    assert "annealing from an order" in members(run_on(MESH, initial=order, moves=1_000_000))
