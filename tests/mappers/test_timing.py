"""The time of a mapping is not the compiler's."""

import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from hopmap.mappers import map_ranks, mapper, timing
from hopmap.mappers.budget import Watch
from hopmap.topologies import FAMILIES, mesh, topology_from_spec
from hopmap.traces import Traffic

# In a process of its own, where no other test has compiled anything.
LATE = """
import sys
from itertools import permutations
import networkx as nx
from numba.core import event
from hopmap.mappers import map_ranks
from hopmap.mappers.timing import compile_for
from hopmap.topologies import from_networkx, from_routes, mesh, topology_from_spec as spec
from hopmap.traces.patterns.stencils import stencil_traffic

def listed(box):
    routes = {pair: box.routes(*pair)[1].tolist() for pair in permutations(range(box.nodes), 2)}
    return from_routes(box.slots, [(1.0, 0.0)] * box.links, routes, "routes")

topology, late = eval(sys.argv[1]), set()
traffic = stencil_traffic((4, 4), "star")
for pipeline in sys.argv[2:]:
    compile_for(topology, pipeline)
    with event.install_recorder("numba:compiler_lock") as heard:
        map_ranks(traffic, topology, pipeline, seconds=0.2)
    if heard.buffer:
        late.add(pipeline)
print(late or "nothing")
"""
FLAT = ("recursive_bisection | kl", "greedy_all_c", "tabu")
NESTED = (*FLAT, "treematch", "topdown")
NETWORKS = {
    "mesh:4x4": FLAT,
    "torus:4x4": FLAT,
    "torus:2x4*2": FLAT,
    "haec:2x2x4": FLAT,
    "hypercube:4": FLAT,
    "fattree:4x4,routing=ecmp,seed=1": NESTED,
    "tree:4:4": NESTED,
    "dragonfly:2x2x2x4": NESTED,
    "dragonfly+:2x2x2x4": NESTED,
    "tofud:2x1x1": FLAT,
    "cluster:4*4": NESTED,
    "cluster:2*3+5*2": FLAT,
    "preset:hgx-h100*2": NESTED,
    "from_networkx(nx.circular_ladder_graph(8))": FLAT,
    "listed(mesh((4, 4)))": FLAT,
    "failed:links=1@torus:4x4": FLAT,
}
FEW = ("tree:4:4",)


def test_these_networks_are_of_every_family():
    named = {network.partition(":")[0] for network in NETWORKS}
    assert set(FAMILIES) - named == {"file", "job", "names", "nodes"}  # what files make


@pytest.mark.parametrize(
    ("network", "pipelines"),
    [
        pytest.param(*item, id=item[0], marks=() if item[0] in FEW else pytest.mark.slow)
        for item in NETWORKS.items()
    ],
)
def test_nothing_is_left_to_compile_once_the_clock_runs(network, pipelines):
    made = network if network.endswith(")") else f"spec({network!r})"
    done = subprocess.run(
        [sys.executable, "-c", LATE, made, *pipelines], capture_output=True, text=True
    )
    assert done.stdout == "nothing\n", done.stdout + done.stderr


def test_what_compiles_while_the_clock_runs_is_taken_off(monkeypatch):
    def compiles(traffic, topology, *_, **__):
        with global_compiler_lock, global_compiler_lock:  # one function for another
            time.sleep(0.2)
        time.sleep(0.05)
        with global_compiler_lock:
            time.sleep(0.2)
        return np.arange(traffic.ranks)

    monkeypatch.setattr(timing, "map_ranks", compiles)
    traffic = Traffic.from_pairs(8, [0], [1], [1], [1])
    _, seconds = timing.timed_mapping(traffic, mesh((8,)), "sweep", seed=0)
    assert 0.05 <= seconds < 0.2


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_a_budget_is_not_spent_on_compiling(clock):
    """In the thread that waits; what another compiles meanwhile is none of its business."""
    watch = Watch(0.2, clock=clock)
    with global_compiler_lock:
        _busy(0.2)
        with global_compiler_lock:  # one function for another
            _busy(0.1)
    assert not watch.over()
    assert watch.left() > 0.1
    other = Thread(target=_compile_elsewhere)
    other.start()
    _busy(0.3)
    other.join()
    assert watch.over()


@pytest.mark.usefixtures("forgetting")
def test_what_a_stage_compiles_is_not_taken_from_the_next_ones():
    given = []

    @mapper("compiles")
    def compiles(traffic, topology, *, seconds=None):
        given.append(seconds)
        with global_compiler_lock:
            time.sleep(0.5)
        return np.arange(traffic.ranks)

    @mapper("goes_on")
    def goes_on(traffic, topology, *, initial, seconds=None):
        given.append(seconds)
        return initial

    traffic = Traffic.from_pairs(3, [0], [1], [1], [1])
    map_ranks(traffic, mesh((3,)), "compiles | goes_on", seconds=0.5)
    assert 0.2 < given[0] <= 0.25
    assert 0.2 < given[1] <= 0.5


def _compile_elsewhere():
    with global_compiler_lock:
        _busy(0.3)


def _busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.usefixtures("forgetting")
def test_a_mapper_that_is_made_for_one_case_only_is_timed():
    @mapper("mine")
    def mine(traffic, topology):
        return {3: [2, 1, 0]}[traffic.ranks]

    node_of, _ = timing.timed_mapping(
        Traffic.from_pairs(3, [0], [1], [1], [1]), mesh((3,)), "mine", seed=0
    )
    assert node_of.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "spec", ["tofud:1x1x1", "tofud:job=2x2x2", "dragonfly+:2x2x2x2", "dragonfly:2x2x1"]
)
def test_a_mapping_is_timed_on_every_sort_of_network(spec):
    ranks = np.arange(7)
    traffic = Traffic.from_pairs(8, ranks, ranks + 1, ranks + 1, ranks + 1)
    node_of, _ = timing.timed_mapping(traffic, topology_from_spec(spec), "greedy", seed=0)
    assert len(set(node_of.tolist())) == 8
