"""The time of a mapping is not the compiler's."""

import time
from threading import Thread

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

from hopmap.mappers import map_ranks, mapper, pipeline
from hopmap.mappers.stop import Watch
from hopmap.topologies import mesh, topology_from_spec
from hopmap.traces import Traffic


@pytest.mark.usefixtures("forgetting")
def test_what_compiles_while_the_clock_runs_is_taken_off():
    @mapper("compiles")
    def compiles(traffic, topology):
        with global_compiler_lock, global_compiler_lock:  # one function for another
            time.sleep(0.2)
        time.sleep(0.05)
        with global_compiler_lock:
            time.sleep(0.2)
        return np.arange(traffic.ranks)

    traffic = Traffic.from_pairs(8, [0], [1], [1], [1])
    _, seconds = pipeline.time_mapping(traffic, mesh((8,)), "compiles", seed=0)
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
    assert watch.remaining() > 0.1
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

    node_of, _ = pipeline.time_mapping(
        Traffic.from_pairs(3, [0], [1], [1], [1]), mesh((3,)), "mine", seed=0
    )
    assert node_of.tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "spec", ["tofud:1x1x1", "tofud:job=2x2x2", "dragonfly+:2x2x2x2", "dragonfly:2x2x1"]
)
def test_a_mapping_is_timed_on_every_sort_of_network(spec):
    ranks = np.arange(7)
    traffic = Traffic.from_pairs(8, ranks, ranks + 1, ranks + 1, ranks + 1)
    node_of, _ = pipeline.time_mapping(traffic, topology_from_spec(spec), "greedy", seed=0)
    assert len(set(node_of.tolist())) == 8
