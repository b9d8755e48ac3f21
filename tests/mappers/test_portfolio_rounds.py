"""Rounds of the portfolio: their temperatures, and where subsystems are split again."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from generated import traffic_of

from hopmap.mappers import portfolio_rounds, portfolio_starts
from hopmap.mappers.bisections.recursive_bisection import MOST
from hopmap.mappers.exchanges.annealing import FROM_MAPPING, AnnealingSearch
from hopmap.mappers.portfolio_rounds import COLD, COOL, FLAT, HOT, LEAST, PER_RANK, rounds_of
from hopmap.mappers.stop import Watch
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.portfolios import (
    MESH,
    TREE,
    good_order,
    rounds,
    run_on,
    scattered,
    some_traffic,
)


@pytest.mark.parametrize("weight", [1, 7])
def test_temperatures_follow_what_a_pair_costs_one_hop_apart_and_at_random(weight):
    torus = topology_from_spec("torus:6x6")
    src, dst = np.triu_indices(36, k=1)  # equally far in the mean wherever they are
    traffic = Traffic.from_pairs(36, src, dst, np.ones(len(src)), np.full(len(src), weight))
    rng, places = np.random.default_rng(1), np.arange(36)
    mean_hops = 3 * 36 / 35
    search = AnnealingSearch(traffic, torus, places, "hop_bytes", rng, Watch())
    found = rounds_of(search, np.arange(36), PER_RANK, rng)
    assert found.first == pytest.approx(HOT * weight * mean_hops**0.5)
    assert found.last == pytest.approx(COLD * weight)
    search = AnnealingSearch(traffic, torus, places, "cardinality", rng, Watch())
    found = rounds_of(search, np.arange(36), PER_RANK, rng)
    assert (found.first, found.last) == (HOT * FLAT, COLD * FLAT)


def test_dragonflies_begin_at_the_temperature_of_annealing_from_a_mapping(monkeypatch):
    monkeypatch.setattr(AnnealingSearch, "scale", lambda _: 50.0)
    for spec in ("dragonfly:2x3x2", "torus:6x6", "fattree:6x6"):
        network = topology_from_spec(spec)
        places, rng = np.arange(network.nodes), np.random.default_rng(1)
        src, dst = np.triu_indices(network.nodes, k=1)
        traffic = Traffic.from_pairs(network.nodes, src, dst, np.ones(len(src)), np.ones(len(src)))
        search = AnnealingSearch(traffic, network, places, "hop_bytes", rng, Watch())
        found = rounds_of(search, places, PER_RANK, rng)
        assert (found.first == FROM_MAPPING * 50.0) == spec.startswith("dragonfly"), spec


@pytest.mark.parametrize(("pair", "light"), [((9, 1), 1), ((1, 99), 50), ((20, 80), 20)])
def test_light_pairs_that_count_freeze_too_after_a_cool_start(pair, light, monkeypatch):
    """Lighter pairs of a tenth of the traffic or more; at most the mean, and else the mean."""
    src, dst = np.triu_indices(36, k=1)
    weights = np.tile(pair, len(src) // 2)
    traffic = Traffic.from_pairs(36, src, dst, np.ones(len(src)), weights)
    rng, torus = np.random.default_rng(1), topology_from_spec("torus:6x6")
    search = AnnealingSearch(traffic, torus, np.arange(36), "hop_bytes", rng, Watch())
    for part, weight in ((0.0, light), (COOL, sum(pair) / 2)):
        monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most, part=part: part * most)
        found = rounds_of(search, np.arange(36), PER_RANK, rng)
        assert (found.cool, found.last) == (part == 0, pytest.approx(COLD * weight))


def test_temperatures_follow_the_proposals_a_rank(monkeypatch):
    """Lower at the start with few of them, lower at the end with many."""
    seen = {}

    def noted(search, share, rng, *, first, last):
        seen[per_rank] = (first, last)

    monkeypatch.setattr(portfolio_rounds, "_anneal", noted)
    for per_rank in (0.1, 1.0, 20.0, 40.0, 80.0):  # thousands
        run_on(MESH, moves=int(per_rank * 1000) * 288)
    hot, cold = seen[20.0]
    assert hot / cold > 10
    for per_rank, (first, last) in seen.items():
        assert first == pytest.approx(hot * min(per_rank, 1.0))
        assert last == pytest.approx(cold * min(20.0 / per_rank, 1.0))


@pytest.mark.parametrize(("part", "expected"), [(0.0, LEAST), (LEAST / 2, LEAST), (0.9, 0.9)])
def test_a_round_from_an_order_is_neither_cold_nor_hotter_than_from_a_start(
    part, expected, monkeypatch
):
    order, heat = good_order(), []

    def noted(search, share, rng, *, first, **_):
        heat.append(first)

    monkeypatch.setattr(AnnealingSearch, "temperature", lambda _, most: part * most)
    monkeypatch.setattr(portfolio_starts, "bisect_nodes", scattered)
    monkeypatch.setattr(portfolio_rounds, "_anneal", noted)
    run_on(MESH, initial=order, moves=1_000_000)
    assert heat[1] / heat[0] == pytest.approx(expected)


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
    monkeypatch.setattr(portfolio_rounds, "_anneal", lambda *_, **__: None)
    monkeypatch.setattr(portfolio_rounds, "_split_again", lambda *_, **__: None)
    topology = topology_from_spec(spec)
    ranks = min(topology.nodes, 288)
    assert rounds(run_on(spec, some_traffic(ranks), moves=300))[0] == f"{member} from a start"


@pytest.mark.parametrize(("kind", "most"), [("bipartite", 2), ("knn3d", MOST)])
def test_two_subsystems_are_split_at_once_where_a_few_ranks_have_most(kind, most, monkeypatch):
    taken = []
    monkeypatch.setattr(
        portfolio_rounds, "ruin_and_recreate", lambda *_, most, **__: taken.append(most)
    )
    run_on("tree:4:8:8@1:10:100", traffic_of(kind, 256), moves=1000)
    assert taken == [most]


def test_without_any_moves_there_is_a_start_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run_on(MESH, moves=0)
    assert sorted(found.mapping) == list(range(288))
