"""Recorded runs and generated benchmarks: links carry what the metric says, engines agree."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from hopmap.simulator import Parameters, link_loads, lower, simulate
from hopmap.topologies import topology_from_spec
from hopmap.traces import nas_folded, nas_trace, nas_traffic, read_trace, traffic_of
from support import ROOT
from support.results import bits
from support.slow import slow

SHIPPED = ["lu.S.4", "mg.S.16", "is.S.16", "edge.X.8"]
SHARED = ["lu.S.16", "cg.S.16", "sp.S.9", "bt.S.9", "ft.S.16"]
GENERATED = ["lu.A.64", "sp.A.64", "bt.A.64", "ft.A.64", "ft.W.64"]
GENERATED += ["cg.S.64", "cg.A.64", "mg.S.64", "mg.A.64", "is.S.64", "ep.S.64"]
TOPOLOGIES = ["mesh:4x4", "torus:4x2x2", "haec:2x2x4"]


@cache
def archive(name):
    for folder in (ROOT / "tests" / "data", ROOT.parent / "shared" / "nas"):
        if (folder / name).is_dir():
            return read_trace(folder / name)
    pytest.skip(f"{name} is not here (needs ../shared/nas)")


@pytest.fixture(scope="module", params=SHIPPED + SHARED)
def recorded(request):
    trace = archive(request.param)
    return trace, lower(trace)


def mappings(ranks, nodes):
    yield np.arange(ranks)
    yield nodes - 1 - np.arange(ranks)
    yield np.random.default_rng(7).permutation(nodes)[:ranks]


def test_the_programs_own_messages_are_the_recorded_ones(recorded):
    trace, program = recorded
    assert program.p2p_traffic().same_as(traffic_of(trace))


def test_every_message_has_its_receive(recorded):
    _, program = recorded
    assert (program.receives() >= 0).all()
    assert set(program.dropped) <= {"cancelled requests"}


@pytest.mark.parametrize("spec", TOPOLOGIES)
def test_replay_carries_over_every_link_what_the_static_metric_says(recorded, spec):
    _, program = recorded
    topology, traffic = topology_from_spec(spec), program.traffic()
    # What the recording machine computed in between says nothing here.
    parameters = Parameters(compute_scale=0)
    for node_of in mappings(program.ranks, topology.nodes):
        result = simulate(program, topology, node_of, parameters=parameters)
        messages, size = link_loads(traffic, topology, node_of)
        assert np.array_equal(result.link_messages, messages)
        assert np.array_equal(result.link_bytes, size)
        assert (result.messages, result.bytes) == (traffic.messages.sum(), traffic.bytes.sum())
        assert np.allclose(result.finish, result.compute + result.communicate + result.wait)
        compiled = simulate(program, topology, node_of, parameters=parameters, engine="compiled")
        assert bits(compiled) == bits(result)


@pytest.mark.parametrize("spec", slow("torus:4x4x4", "mesh:8x8", "haec:4x4x4"))
def test_engines_agree_on_the_largest_recorded_run(spec):
    program, topology = lower(archive("lu.W-it20.64")), topology_from_spec(spec)
    node_of = np.random.default_rng(7).permutation(64)
    one, other = (simulate(program, topology, node_of, engine=e) for e in ("simpy", "compiled"))
    assert bits(one) == bits(other)


def test_small_eager_limits_and_recorded_computation_work_too():
    program = lower(archive("edge.X.8"))
    topology = topology_from_spec("torus:2x2*2")
    node_of = np.arange(8) // 2
    result = simulate(program, topology, node_of, parameters=Parameters(eager_limit=16))
    assert result.controls > 0
    assert result.makespan > result.compute.max() > 0
    again = simulate(program, topology, node_of, parameters=Parameters(eager_limit=16))
    assert again.finish.tobytes() == result.finish.tobytes()


@pytest.mark.parametrize("ranks", [4, 16])
def test_the_generated_lu_takes_exactly_as_long_as_the_recorded_one(ranks):
    programs = lower(archive(f"lu.S.{ranks}")), lower(nas_trace(f"lu.S.{ranks}"))
    topology = topology_from_spec("torus:4x4")
    one, other = (
        simulate(program, topology, np.arange(ranks), parameters=Parameters(compute_scale=0))
        for program in programs
    )
    assert one.finish.tobytes() == other.finish.tobytes()
    assert one.link_busy.tobytes() == other.link_busy.tobytes()


@pytest.mark.parametrize("name", GENERATED)
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
