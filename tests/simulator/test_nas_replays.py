"""Generated benchmarks of 64 ranks, replayed on mesh, torus and HAEC Box."""

from functools import cache

import numpy as np
import pytest

from hopmap.simulator import Parameters, link_loads, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded, nas_traffic, read_trace

NAMES = ["lu.A.64", "sp.A.64", "bt.A.64", "ft.A.64", "ft.W.64"]


@cache
def program_of_name(name):
    return lower(nas_folded(name, steps=2))


@pytest.mark.parametrize("spec", ["mesh:4x4x4", "torus:4x4x4", "haec:4x4x4"])
@pytest.mark.parametrize("name", NAMES)
def test_generated_benchmarks_replay_on_64_nodes(name, spec):
    program, topology = program_of_name(name), topology_from_spec(spec)
    traffic = program.traffic()
    assert program.p2p_traffic().same_as(nas_traffic(name, steps=2))
    node_of = np.random.default_rng(3).permutation(64)
    result = simulate(program, topology, node_of, engine="compiled")
    messages, size = link_loads(traffic, topology, node_of)
    assert np.array_equal(result.link_messages, messages)
    assert np.array_equal(result.link_bytes, size)
    assert (result.messages, result.bytes) == (traffic.messages.sum(), traffic.bytes.sum())
    assert result.makespan > result.compute.max() > 0


@pytest.mark.parametrize("name", ["sp.S.9", "bt.S.9", "bt.S.16", "ft.S.16"])
def test_generated_runs_take_exactly_as_long_as_recorded_ones(shared, name):
    topology, parameters = topology_from_spec("torus:4x4"), Parameters(compute_scale=0)
    node_of = np.arange(int(name.split(".")[2]))
    one, other = (
        simulate(lower(trace), topology, node_of, parameters=parameters, engine="compiled")
        for trace in (read_trace(shared / "nas" / name), nas_folded(name))
    )
    assert one.finish.tobytes() == other.finish.tobytes()
    assert one.link_busy.tobytes() == other.link_busy.tobytes()


def test_calls_in_loops_are_counted_with_their_trips():
    assert program_of_name("ft.A.64").chosen["alltoall"].popitem()[1] == 4
    assert sum(lower(nas_folded("ft.A.64")).chosen["alltoall"].values()) == 8
