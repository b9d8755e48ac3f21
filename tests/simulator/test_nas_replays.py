"""Generated benchmarks, replayed on mesh, torus and HAEC Box: the networks of the thesis."""

import numpy as np
import pytest

from hopmap.simulator import Parameters, link_loads, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded, nas_traffic, read_trace

NAMES = ["lu.A.64", "sp.A.64", "bt.A.64", "ft.A.64", "ft.W.64"]
NAMES += ["cg.S.64", "cg.A.64", "mg.S.64", "mg.A.64", "is.S.64", "ep.S.64"]


@pytest.mark.parametrize("name", NAMES)
def test_generated_benchmarks_replay_on_64_nodes(name):
    steps = None if name.startswith("ep") else 2
    program = lower(nas_folded(name, steps=steps))
    traffic = program.traffic()
    assert program.p2p_traffic().same_as(nas_traffic(name, steps=steps))
    node_of = np.random.default_rng(3).permutation(64)
    for spec in ("mesh:4x4x4", "torus:4x4x4", "haec:4x4x4"):
        topology = topology_from_spec(spec)
        result, quick = (
            simulate(program, topology, node_of, engine="compiled", parameters=parameters)
            for parameters in (Parameters(), Parameters(compute_scale=0))
        )
        messages, size = link_loads(traffic, topology, node_of)
        assert np.array_equal(result.link_messages, messages), spec
        assert np.array_equal(result.link_bytes, size), spec
        assert (result.messages, result.bytes) == (traffic.messages.sum(), traffic.bytes.sum())
        assert result.makespan > result.compute.max() > 0
        assert 0 < quick.makespan < result.makespan


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


def test_calls_in_loops_are_counted_with_their_iterations():
    for steps, counted in ((2, 4), (None, 8)):
        chosen = lower(nas_folded("ft.A.64", steps=steps)).chosen
        assert sum(chosen["alltoall"].values()) == counted
