"""Objectives that are functions of the mapping: asked seldom, never worsened, the same again."""

import numpy as np
import pytest

from hopmap.mappers import MAPPERS, map_ranks, objective_value
from hopmap.mappers.auto import portfolio
from hopmap.mappers.stop import Budget
from hopmap.topologies import MappingError, check_mapping, topology_from_spec
from hopmap.traces import Traffic

TAKERS = [name for name, info in MAPPERS.items() if info.takes("objective", len)]
SPECS = ["mesh:4x4", "torus:5x3", "mesh:2x4*2", "tree:2:4:2@1:10:100", "fattree:4x4"]


def some_traffic(ranks: int, seed: int = 0) -> Traffic:
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 0.2)
    volume = rng.integers(1, 99, len(src))
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), volume)


class Asked:
    """A function that no traffic explains, and what it was asked."""

    def __init__(self, topology, seed=0):
        self.price = np.random.default_rng(seed).random((64, topology.nodes))
        self.values = []

    def __call__(self, node_of):
        value = float(self.price[np.arange(len(node_of)), node_of].sum())
        self.values.append(value)
        node_of[:] = 0  # a copy of its own
        return value


def test_auto_and_descend_take_functions():
    assert sorted(TAKERS) == ["auto", "descend"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("evaluations", [0, 1, 5, 60])
def test_a_function_is_called_as_often_as_allowed_and_the_best_it_saw_is_kept(
    name, spec, evaluations
):
    topology = topology_from_spec(spec)
    traffic = some_traffic(int(topology.slots.sum()) - 2)
    start = map_ranks(traffic, topology, "random", seed=3)
    asked = Asked(topology)
    moves = ", moves=2000" if name == "auto" else ""
    stage = f"{name}(evaluations={evaluations}{moves})"
    node_of = map_ranks(traffic, topology, stage, initial=start, objective=asked)
    check_mapping(node_of, topology, traffic.ranks)
    assert len(asked.values) == evaluations
    first, last = Asked(topology)(start.copy()), Asked(topology)(node_of.copy())
    assert last == min([first, *asked.values])


@pytest.mark.parametrize("name", TAKERS)
def test_the_same_seed_and_evaluations_give_the_same_mapping(name):
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(15)
    moves = ", moves=2000" if name == "auto" else ""
    stage = f"{name}(evaluations=80{moves})"
    first, second = (
        map_ranks(traffic, topology, stage, seed=5, objective=Asked(topology)) for _ in range(2)
    )
    assert np.array_equal(first, second)


class Estimated(Asked):
    """The same function, and an estimate that is the same, or the opposite."""

    def __init__(self, topology, sign=1):
        super().__init__(topology)
        self.sign, self.estimates = sign, 0

    def estimate(self, node_of):
        self.estimates += 1
        return self.sign * float(self.price[np.arange(len(node_of)), node_of].sum())


@pytest.mark.parametrize("name", TAKERS)
def test_with_an_estimate_that_is_right_fewer_evaluations_are_lost(name):
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    stage = f"{name}(evaluations=40{', moves=2000' if name == 'auto' else ''})"
    start = map_ranks(traffic, topology, "random", seed=3)
    plain, right, wrong = Asked(topology), Estimated(topology), Estimated(topology, -1)
    for asked in (plain, right, wrong):
        map_ranks(traffic, topology, stage, initial=start, objective=asked)
        assert len(asked.values) == 40
    assert min(right.values) < min(plain.values) - 0.5
    assert min(wrong.values) <= wrong.values[0]
    assert right.estimates > 40
    if name == "descend":  # every exchange that is asked about helps, while there is one
        assert (np.diff(right.values[:10]) <= 0).all()


def test_auto_asks_first_about_what_the_estimate_found():
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    asked = Estimated(topology)
    run = portfolio(
        traffic, topology, rng=np.random.default_rng(0), objective=asked,
        stop=Budget(moves=2000, evaluations=20),
    )  # fmt: skip
    members = [step.member for step in run.steps]
    assert members[:2] == ["initial order", "descend by estimate"]
    values = [step.value for step in run.steps[1:-1]]
    assert values == sorted(values)


def test_auto_under_a_function_is_no_worse_than_any_candidate():
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    asked = Asked(topology)
    run = portfolio(
        traffic, topology, rng=np.random.default_rng(0), objective=asked,
        stop=Budget(moves=3000, evaluations=50),
    )  # fmt: skip
    members = [step.member for step in run.steps]
    assert members[0] == "initial order"
    assert {"congestion", "best hop-bytes", "recursive_bisection"} <= set(members)
    assert members[-1] == "descend"
    assert Asked(topology)(run.mapping.copy()) == min(step.value for step in run.steps)
    assert run.steps[-1].best == min(asked.values)


def test_descending_reaches_what_the_named_objective_has_for_its_best(compiled):
    """On a row of six the least hop-bytes are found by asking for them, from most seeds."""
    topology = topology_from_spec("mesh:3x2")
    traffic, reached = some_traffic(6, 4), 0
    least = objective_value(traffic, topology, map_ranks(traffic, topology, "auto"), "hop_bytes")
    for seed in range(10):
        node_of = map_ranks(
            traffic, topology, "random | descend(evaluations=200)", seed=seed,
            objective=lambda m: objective_value(traffic, topology, m, "hop_bytes"),
        )  # fmt: skip
        reached += objective_value(traffic, topology, node_of, "hop_bytes") == least
    assert reached >= 5


def test_a_time_budget_ends_it():
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    for name in TAKERS:
        asked = Asked(topology)
        start = map_ranks(traffic, topology, "random")
        node_of = map_ranks(traffic, topology, name, seconds=0.3, initial=start, objective=asked)
        assert Asked(topology)(node_of.copy()) == min(asked.values)


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("at", [1, 10, 25])
def test_ctrl_c_in_the_function_gives_the_best_so_far(name, at):
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    asked = Asked(topology)

    def interrupted(node_of):
        if len(asked.values) == at:
            raise KeyboardInterrupt
        return asked(node_of)

    stage = "auto(moves=2000)" if name == "auto" else name
    node_of = map_ranks(traffic, topology, stage, objective=interrupted)
    assert Asked(topology)(node_of.copy()) == min(asked.values)


@pytest.mark.parametrize("wrong", [None, "far", float("nan"), [1, 2]])
def test_a_function_that_returns_no_number_is_refused(wrong):
    with pytest.raises(MappingError, match=r"the function returned .*: expected a number"):
        map_ranks(
            some_traffic(4), topology_from_spec("mesh:4"), "descend", objective=lambda _: wrong
        )


def test_a_pipeline_without_a_mapper_for_the_objective_is_refused():
    topology, traffic = topology_from_spec("mesh:2x2"), some_traffic(4)
    with pytest.raises(
        MappingError, match="a function as objective: expected one of auto, descend in it"
    ):
        map_ranks(traffic, topology, "sweep | local_search", objective=len)
    with pytest.raises(MappingError, match=r"max_link_load: expected one of .*relieve in it"):
        map_ranks(traffic, topology, "minmd", objective="max_link_load")
    with pytest.raises(MappingError, match=r"did you mean max_link_load\?"):
        map_ranks(traffic, topology, "auto", objective="max_link_loads")


def test_an_objective_in_the_pipeline_comes_before_that_of_the_call():
    topology, traffic = topology_from_spec("torus:4x4"), some_traffic(16)
    written = "random | local_search(objective=hop_messages)"
    alone = map_ranks(traffic, topology, written)
    called = map_ranks(traffic, topology, written, objective="hop_bytes")
    assert np.array_equal(alone, called)
    other = map_ranks(traffic, topology, "random | local_search", objective="hop_messages")
    assert np.array_equal(alone, other)
