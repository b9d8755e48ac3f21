"""What every mapper of the registry promises, whatever it is called."""

import numpy as np
import pytest

from hopmap.mappers import LOAD, MAPPERS, OBJECTIVES, map_ranks, objective_value
from hopmap.mappers.pipeline import time_mapping
from hopmap.topologies import (
    MappingError,
    Topology,
    TopologyError,
    check_mapping,
    hierarchy,
    partial_cube,
    topology_from_spec,
)
from hopmap.traces import Traffic, stencil_traffic
from support import about
from support.pairs import all_pairs
from support.slow import slow

# One or two of each kind; a line, a single node, lengths that are odd and that differ.
SPECS = [
    *("mesh:3x2", "mesh:5", "mesh:1", "torus:4x4", "torus:3x3x2", "haec:2x2x3"),
    "tree:2:3:2@1:10:100",
]
MORE = ["fattree:3x2x2", "dragonfly:1x2x1"]  # kernels of each mapper are compiled for these anew
SLOTS = ["", "*3"]
GIVEN = ["all nodes", "some nodes", "the last node"]
RANKS = ["one rank", "half of the slots", "all slots"]
TRAFFIC = ["talking", "silent"]
# Enough work to be itself, little enough for a test.
SHORT = {
    "random_sampling": "random_sampling(samples=200)",
    "genetic": "genetic(generations=5, population=20)",
    "astar": "astar(states=3000)",
    "annealing": "annealing(moves=2000)",
    "auto": "auto(moves=2000)",
    "multilevel": "multilevel(moves=2000)",
    "tabu": "tabu(steps=20)",
    "congestion": "congestion(moves=1000)",
    "descend": "descend(evaluations=100)",
    "grid_portfolio": "grid_portfolio(moves=2000)",
}
# What needs a machine of a certain kind.
BOXES = {"scan", "peano", "gray", "hilbert"}
HIERARCHIES = {"topdown", "bottomup", "treematch"}
ANYWHERE = sorted(MAPPERS.keys() - BOXES)
EQUAL = {"treematch", "gropp", "factorisation"}  # as many ranks on every node
# What needs traffic of a certain kind.
CARTESIAN = {
    "row_major",
    "gropp",
    "factorisation",
    "kd_tree",
    "skewed_kd_tree",
    "squarest_strips",
    "stencil_strips",
    "hyperplane",
    "grid_portfolio",
    "exact_partition",
}


def is_partial_cube(topology: Topology) -> bool:
    try:
        partial_cube(topology)
    except TopologyError:
        return False
    return True


def makes_sense(name: str, topology: Topology) -> bool:
    if name == "timer":
        return is_partial_cube(topology)
    if name in BOXES:
        return bool(topology.dims)
    return name not in HIERARCHIES or hierarchy(topology) is not None


def pipeline(name: str) -> str:
    written = SHORT.get(name, name)
    return f"sweep | {written}" if MAPPERS[name].needs_initial else written


def random_traffic(ranks: int, seed: int = 0) -> Traffic:
    """Directed traffic with silent ranks and self messages."""
    rng = np.random.default_rng(seed)
    src, dst = np.nonzero(rng.random((ranks, ranks)) < 0.3)
    messages = rng.integers(1, 20, len(src))
    volume = messages * rng.integers(0, 99, len(src))
    return Traffic.from_pairs(ranks, src, dst, messages, volume)


def silent_traffic(ranks: int) -> Traffic:
    return Traffic.from_pairs(ranks, [], [], [], [])


def understood(name: str, ranks: int, kind: str = "talking") -> Traffic:
    talks = kind == "talking"
    if name in CARTESIAN:
        return stencil_traffic(*([(ranks,), "star"] if talks else [(1, ranks), [(0, 0)]]))
    return random_traffic(ranks) if talks else silent_traffic(ranks)


def fits(one, other) -> bool:
    return (
        one not in MAPPERS
        or other not in SPECS + MORE
        or makes_sense(one, topology_from_spec(other))
    )


CASES = {
    "few": all_pairs(list(MAPPERS), SPECS, GIVEN, RANKS, SLOTS, TRAFFIC, fits=fits),
    "more": all_pairs(sorted(MAPPERS.keys() - BOXES), MORE, GIVEN, RANKS, SLOTS, TRAFFIC),
}


@pytest.mark.parametrize("cases", ["few", *slow("more")])
@pytest.mark.parametrize("name", MAPPERS)
def test_the_mapping_is_valid_on_any_nodes_for_any_number_of_ranks(name, cases):
    for mapper, *values in CASES[cases]:
        if mapper == name:
            with about(*values):
                expect_valid(name, *values)


def expect_valid(name, spec, given, ranks, slots, kind) -> None:
    topology = topology_from_spec(spec + slots)
    nodes = np.arange(topology.nodes)
    some = np.intersect1d(nodes, [0, 1, 3, 6, 7, 9, 10, 15])
    topology = topology.only(dict(zip(GIVEN, (nodes, some, nodes[-1:]), strict=True))[given])
    free = int(topology.slots.sum())
    ranks = dict(zip(RANKS, (1, free // 2 or 1, free), strict=True))[ranks]
    try:
        node_of = map_ranks(understood(name, ranks, kind), topology, pipeline(name))
    except MappingError as error:
        assert name in EQUAL
        assert given != "all nodes"
        assert "expected as many on every node" in str(error)
    else:
        check_mapping(node_of, topology, ranks)


@pytest.mark.parametrize("name", MAPPERS)
def test_a_machine_of_another_kind_is_refused_in_one_line(name):
    for topology in map(topology_from_spec, SPECS + MORE):
        if makes_sense(name, topology):
            continue  # mapped: the test above
        with (
            about(topology.spec),
            pytest.raises(MappingError, match=rf"^mapper {name}: .*expected") as refused,
        ):
            map_ranks(random_traffic(int(topology.slots.sum())), topology, pipeline(name))
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(CARTESIAN))
@pytest.mark.parametrize("traffic", [random_traffic(16), silent_traffic(16)])
def test_mappers_of_grids_refuse_other_traffic_in_one_line(name, traffic):
    with pytest.raises(MappingError, match=rf"^mapper {name}: .*no Cartesian grid: expected.*$"):
        map_ranks(traffic, topology_from_spec("mesh:4x4"), name)


@pytest.mark.parametrize("name", MAPPERS)
def test_the_same_seed_gives_the_same_mapping(name):
    spec = "tree:4:3" if name in HIERARCHIES else "torus:4x4"
    topology, traffic = topology_from_spec(spec), understood(name, 11)
    first, second = (map_ranks(traffic, topology, pipeline(name), seed=7) for _ in range(2))
    assert np.array_equal(first, second)


# Other objectives are refused: test_pipeline.py.
AIMS = {
    name: [aim for aim in (*OBJECTIVES, LOAD) if info.takes("objective", aim)]
    for name, info in MAPPERS.items()
    if info.initial != "ignored"
}


def may_improve(one, other) -> bool:
    return fits(one, other) and (one not in AIMS or other in SPECS or other in AIMS[one])


IMPROVERS = [name for name in AIMS if AIMS[name]]
IMPROVED = all_pairs(IMPROVERS, SPECS, [*OBJECTIVES, LOAD], fits=may_improve)


@pytest.mark.parametrize("name", IMPROVERS)
def test_what_starts_from_a_mapping_never_worsens_its_objective(name):
    for mapper, spec, objective in IMPROVED:
        if mapper == name:
            with about(spec, objective):
                expect_no_worse(name, spec, objective)


def expect_no_worse(name, spec, objective) -> None:
    topology = topology_from_spec(spec)
    ranks = max(1, int(topology.slots.sum()) - 1)
    traffic = random_traffic(ranks, seed=3)
    start = map_ranks(traffic, topology, "random", seed=1)
    written = SHORT.get(name, name)
    setting = f"objective={objective}"
    stage = f"{written[:-1]}, {setting})" if "(" in written else f"{written}({setting})"
    end = map_ranks(traffic, topology, stage, initial=start, seed=2)
    before, after = (objective_value(traffic, topology, m, objective) for m in (start, end))
    maximised = objective in OBJECTIVES and OBJECTIVES[objective].maximised
    assert after >= before if maximised else after <= before


@pytest.mark.parametrize("name", [n for n, info in MAPPERS.items() if info.has("seconds")])
def test_a_spent_time_budget_still_gives_a_valid_mapping(name):
    topology, traffic = topology_from_spec("torus:4x4x4"), understood(name, 60)
    node_of = map_ranks(traffic, topology, pipeline(name), seconds=0.0)
    check_mapping(node_of, topology, 60)


def test_every_mapper_says_what_it_is_and_where_it_comes_from():
    for name, info in MAPPERS.items():
        assert info.summary.endswith("."), name
        assert info.source, name


@pytest.mark.parametrize("name", [n for n, info in MAPPERS.items() if info.has("seconds")])
def test_ctrl_c_gives_the_best_so_far(name):
    """KeyboardInterrupt out of the progress callback stands for Ctrl-C at that moment."""
    topology, traffic = topology_from_spec("torus:4x4"), understood(name, 16)
    calls = 0

    def interrupt(done, total, text):
        nonlocal calls
        calls += 1
        raise KeyboardInterrupt

    node_of = map_ranks(traffic, topology, pipeline(name), progress=interrupt)
    assert calls == 1
    check_mapping(node_of, topology, 16)
    with pytest.raises(KeyboardInterrupt):
        time_mapping(traffic, topology, pipeline(name), progress=interrupt)
