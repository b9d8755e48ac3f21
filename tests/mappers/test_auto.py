"""Auto and multilevel: never worse than what they were given or ran, by moves or by time."""

import logging
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.launchers.mapping_files import read_mapping
from hopmap.mappers import map_ranks, objective_value, portfolio_starts
from hopmap.mappers.auto import portfolio
from hopmap.mappers.basic_kernels import Graph
from hopmap.mappers.bisections.multilevel import _group
from hopmap.mappers.bisections.recursive_bisection import slot_layers
from hopmap.mappers.objectives import cost_model
from hopmap.mappers.stop import Budget, Ending
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, load_traffic, nas_traffic
from hopmap.traces.otf2.totals import read_traffic
from hopmap.traces.patterns.stencils import stencil_traffic
from support import DATA
from support.traffic import grid_traffic

SPECS = ["mesh:4x4", "torus:5x3", "haec:2x2x4", "tree:2:4:2@1:10:100", "mesh:2x4*2", "fattree:4x4"]


def some_traffic(ranks: int, seed: int, peers: float | None = None) -> Traffic:
    rng = np.random.default_rng(seed)
    density = 0.2 if peers is None else peers / ranks
    src, dst = np.nonzero(rng.random((ranks, ranks)) < density)
    volume = rng.integers(1, 99, len(src))
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), volume)


@pytest.mark.parametrize("spec", SPECS)
def test_no_member_of_the_portfolio_is_better_than_what_it_returns(spec):
    topology = topology_from_spec(spec)
    traffic = some_traffic(topology.slots.sum(), 3)
    run = portfolio(traffic, topology, rng=np.random.default_rng(1), stop=Budget(moves=3000))
    value = objective_value(traffic, topology, run.mapping, "hop_bytes")
    assert value == run.steps[-1].best <= min(step.value for step in run.steps)
    bests = [step.best for step in run.steps]
    assert bests == sorted(bests, reverse=True)
    assert {"initial order", "sweep", "recursive_bisection"} <= {step.member for step in run.steps}


@pytest.mark.parametrize("member", ["identity", "sweep", "recursive_bisection", "random"])
@pytest.mark.parametrize("objective", ["hop_bytes", "cardinality"])
def test_the_given_mapping_is_never_worsened(member, objective):
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(15, 5)
    start = map_ranks(traffic, topology, member)
    for name in ("auto", "multilevel"):
        stage = f"{name}(moves=50, objective={objective})"
        end = map_ranks(traffic, topology, stage, initial=start)
        before, after = (objective_value(traffic, topology, m, objective) for m in (start, end))
        assert after >= before if objective == "cardinality" else after <= before


def test_a_perfect_order_ends_the_search_at_once():
    topology, traffic = topology_from_spec("mesh:8x8"), nas_traffic("lu.C.64")
    run = portfolio(
        traffic, topology, rng=np.random.default_rng(0), initial=np.arange(64),
        objective="cardinality", stop=Budget(),
    )  # fmt: skip
    assert [step.member for step in run.steps] == ["initial order"]
    assert np.array_equal(run.mapping, np.arange(64))


@pytest.mark.parametrize("budget", [{"seconds": 60}, {"moves": 10**7}, {}])
def test_a_grid_whose_blocks_are_squares_is_known_to_be_optimal(budget):
    """All 112 pairs at 1, all but the 4 of each 2 x 2 farther by 9: nothing is better."""
    topology = topology_from_spec("tree:4:16@1:10")
    found: list[Ending] = []
    node_of = map_ranks(
        grid_traffic(8, 8, seed=2), topology, "auto" + (f"(moves={budget['moves']})" if "moves" in
        budget else ""), seconds=budget.get("seconds"), stopped=found.append,
    )  # fmt: skip
    value = objective_value(grid_traffic(8, 8, seed=2), topology, node_of, "hop_bytes")
    assert value == 112 + 9 * (112 - 16 * 4)
    assert found == [("optimal", None)]


def test_every_structure_of_the_traffic_is_folded_until_one_is_optimal():
    topology, traffic = topology_from_spec("torus:4x2x2"), read_traffic(DATA / "mg.S.16")
    run = portfolio(traffic, topology, rng=np.random.default_rng(0), stop=Budget(moves=1000))
    first, second = (step.value for step in run.steps if step.member == "fold")
    assert second < first
    assert run.stop_reason == "optimal"


def test_it_says_why_it_stopped():
    """Of random traffic no bound is reached; moves and time are spent, else it stagnates."""
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16, 1)

    def run(objective="hop_bytes", **budget):
        return portfolio(
            traffic, topology, rng=np.random.default_rng(1), objective=objective,
            stop=Budget(**budget),
        )  # fmt: skip

    assert run(moves=3000).stop_reason == "budget"
    assert run(seconds=0.05).stop_reason == "budget"
    assert run(objective="max_link_load", moves=3000).stop_reason == "budget"
    assert run().stop_reason == "stagnated"


@pytest.mark.parametrize(
    ("spec", "member"),
    [("torus:4x4", "tabu from the best"), ("mesh:26x10", "annealing from the best")],
)
def test_without_any_budget_there_are_rounds_until_one_gains_little(spec, member, monkeypatch):
    topology = topology_from_spec(spec)
    monkeypatch.setattr("hopmap.mappers.portfolio.PER_RANK", 100)
    traffic = some_traffic(topology.nodes, 1, 5.0)
    free = portfolio(traffic, topology, rng=np.random.default_rng(1), stop=Budget())
    assert free.stop_reason == "stagnated"
    bests = [step.best for step in free.steps]
    first = [step.member for step in free.steps].index("annealing from a start")
    rounds = [step.member for step in free.steps[first + 1 :]]
    assert rounds == [member] * len(rounds)
    gains = [a - b >= 0.001 * a for a, b in pairwise(bests[first:])]
    assert gains == [True] * (len(gains) - 1) + [False]


@pytest.mark.parametrize("spec", ["tree:4:16:64@1:10:100", "torus:16x16x16"])
def test_a_short_budget_on_many_nodes_is_kept_and_reaches_the_good_starts(spec, compiled):
    """LU on 64 x 64: 124,416 in the hierarchy, where it is proven; folded, 8,640 on the torus."""
    traffic, topology = grid_traffic(64, 64, seed=3), topology_from_spec(spec)
    map_ranks(traffic, topology, "auto(moves=1)")  # compile
    run = portfolio(traffic, topology, rng=np.random.default_rng(0), stop=Budget(1.0, "cpu"))
    assert run.steps[-1].seconds < 1.5
    assert run.steps[-1].best <= (124_416 if "tree" in spec else 8_640)
    assert run.stop_reason == ("optimal" if "tree" in spec else "budget")


def test_a_bisection_ends_when_most_of_the_time_is_spent(monkeypatch):
    topology, traffic = topology_from_spec("torus:16x16x8"), some_traffic(64, 1)
    looked = []

    def never_done(model, topology, rng, tries, over):
        looked.append(over())
        return rng.permutation(topology.nodes)

    monkeypatch.setattr(portfolio_starts, "bisect_nodes", never_done)
    monkeypatch.setattr(portfolio_starts, "spent", lambda watch: 0.9)
    run = portfolio(traffic, topology, rng=np.random.default_rng(0), stop=Budget(moves=10))
    assert looked == [True]
    # Nor are curves tried then, so that there is time for it.
    assert [step.member for step in run.steps[:3]] == [
        "initial order",
        "sweep",
        "recursive_bisection",
    ]


def test_it_says_what_it_did(caplog):
    with caplog.at_level(logging.INFO, "hopmap.mappers.auto"):
        map_ranks(some_traffic(16, 0), topology_from_spec("torus:4x4"), "auto(moves=1000)")
    assert "recursive_bisection: " in caplog.text
    assert re.search("annealing from (a start|an order): ", caplog.text)


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_a_time_budget_ends_it(clock):
    topology, traffic = topology_from_spec("torus:4x4x4"), some_traffic(64, 1)
    stage = f"auto(seconds=0.2, clock={clock})"
    start = map_ranks(traffic, topology, "random")
    node_of = map_ranks(traffic, topology, stage, initial=start)
    before, after = (objective_value(traffic, topology, m, "hop_bytes") for m in (start, node_of))
    assert after < before


@pytest.mark.parametrize("objective", ["hop_bytes", "max_link_load"])
@pytest.mark.parametrize("spec", ["torus:4x4", "tree:4:4@1:10"])
def test_moves_give_the_same_mapping_whatever_time_there_is_beside_them(spec, objective):
    """And the time ends them where it does not suffice."""
    topology, traffic = topology_from_spec(spec), some_traffic(16, 1)
    stage = f"auto(moves=3000, objective={objective})"
    alone, *beside = (
        map_ranks(traffic, topology, stage, seconds=seconds).tolist() for seconds in (None, 20, 90)
    )
    assert beside == [alone] * 2
    endless = map_ranks(
        traffic, topology, f"auto(moves=10000000000, objective={objective})", seconds=0.3
    )
    assert sorted(endless) == list(range(16))


@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:7x3", "haec:2x3x3", "mesh:2x3*3", "tree:3:5"])
def test_layers_split_every_group_down_to_single_slots(spec):
    topology = topology_from_spec(spec)
    model = cost_model(some_traffic(4, 0), topology, "hop_bytes")
    nodes, layers = slot_layers(model, topology)
    assert sorted(nodes) == list(range(topology.nodes))
    assert layers[0].tolist() == [0, topology.slots.sum()]
    assert np.array_equal(layers[-1], np.arange(topology.slots.sum() + 1))
    for coarse, fine in pairwise(layers):
        assert set(coarse) < set(fine)
        assert np.diff(np.searchsorted(fine, coarse)).max() <= 2


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 40), st.integers(0, 10**6))
def test_matching_leaves_exactly_as_many_groups_as_are_asked_for(n, seed):
    model = cost_model(some_traffic(n, seed), topology_from_spec(f"mesh:{n}"), "hop_bytes")
    groups = int(np.random.default_rng(seed).integers(-(-n // 2), n + 1))
    random = np.array([seed + 1], dtype=np.uint64)
    size = np.ones(n, dtype=np.int64)
    group_of = _group(Graph(model.indptr, model.peer, model.weight), size, groups, random)
    assert np.array_equal(np.unique(group_of), np.arange(groups))
    assert np.bincount(group_of).max() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("family", ["mesh", "torus", "haec"])
@pytest.mark.parametrize("app", ["cg", "amg"])
@pytest.mark.parametrize("quantity", ["count", "size"])
def test_no_published_mapping_of_cg_and_amg_is_better(shared, app, family, quantity, compiled):
    """The 12 mappers of MapLib (Mapping matters, 2020), each application by counts and bytes."""
    folder = shared / "maplib/mapping-matters-commMatrices" / f"{app}CMatrices"
    traffic = load_traffic(folder / f"comm_matrix.p2p.{quantity}.csv")
    topology = topology_from_spec(f"{family}:4x4x4")
    objective = "hop_messages" if quantity == "count" else "hop_bytes"
    folder = shared / f"maplib/mapping-matters-Mappings/{quantity}/{app}MAP{family}"
    published = [read_mapping(file, topology, 64) for file in sorted(folder.glob("*.csv"))]
    best = min(objective_value(traffic, topology, node_of, objective) for node_of in published)
    node_of = map_ranks(traffic, topology, f"auto(objective={objective})")
    assert len(published) == 12
    assert objective_value(traffic, topology, node_of, objective) <= best


@pytest.mark.parametrize("spec", ["cluster:17*9+9*8", "cluster:25*9", "tree:5:5:9@1:10:100"])
@pytest.mark.parametrize("known", [True, False])
def test_of_a_grid_no_mapper_of_grids_is_better(spec, known):
    """With metadata, and without them in another numbering."""
    topology, traffic = topology_from_spec(spec), stencil_traffic((15, 15), "5pt")
    if not known:
        new = np.random.default_rng(5).permutation(225)
        traffic = Traffic.from_pairs(
            225, new[traffic.src], new[traffic.dst], traffic.messages, traffic.bytes
        )
    run = portfolio(traffic, topology, rng=np.random.default_rng(0), stop=Budget(moves=1000))
    published = ["kd_tree", "squarest_strips", "stencil_strips", "hyperplane"]
    met = {step.member for step in run.steps}
    if run.stop_reason != "optimal":  # squares of 3 x 3 are known to be
        assert set(published) <= met
        assert ("gropp" in met) == ("+" not in spec)
    assert (run.stop_reason == "optimal") == (spec == "cluster:25*9")
    best = objective_value(traffic, topology, run.mapping, "hop_bytes")
    for name in published if known else ():
        assert best <= objective_value(
            traffic, topology, map_ranks(traffic, topology, name), "hop_bytes"
        )
    assert best == run.steps[-1].best
