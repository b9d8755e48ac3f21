"""The door to the engines: what it checks, and what it returns."""

from __future__ import annotations

import json
import time

import numba
import numpy as np
import pytest

from hopmap.simulator import (
    ENGINES,
    ParameterError,
    Parameters,
    Record,
    lower,
    program_of,
    simulate,
)
from hopmap.simulator.reference import simpy_engine
from hopmap.topologies import MappingError, mesh

PING = program_of("ping", [[("send", 1, 100)], [("recv", 0, 100)]])


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_listed_with_one_line_and_runs(engine):
    assert "\n" not in ENGINES[engine].summary
    result = simulate(PING, mesh((2,)), [0, 1], engine=engine)
    assert result.engine == engine
    assert result.topology == "mesh:2"


def test_summary_has_the_keys_of_the_json():
    summary = simulate(PING, mesh((2,)), [0, 1]).to_dict()
    assert list(summary) == [
        "engine",
        "makespan",
        "ranks",
        "messages",
        "bytes",
        "events",
        "wall_seconds",
        "compile_seconds",
        "links",
        "energy",
        "omitted",
        "notes",
        "extrapolated",
        "ensemble",
        "assumed",
        "algorithms",
        "link_kinds",
    ]
    assert summary["links"] == {
        "max_busy": pytest.approx(1e-8),
        "max_messages": 1,
        "max_bytes": 100,
    }
    assert summary["events"] == 3  # injection, link, ejection
    assert json.loads(json.dumps(summary)) == summary


def test_unknown_engine_names_the_known_ones():
    with pytest.raises(ParameterError, match=r"unknown engine 'ns3': expected one of simpy"):
        simulate(PING, mesh((2,)), [0, 1], engine="ns3")


def test_mappings_are_checked():
    with pytest.raises(MappingError, match=r"places 1 ranks: expected 2"):
        simulate(PING, mesh((2,)), [0])
    with pytest.raises(MappingError, match=r"ranks 0, 1 on node 0: expected 1"):
        simulate(PING, mesh((2,)), [0, 0])


def test_algorithms_other_than_the_programs_are_not_ignored():
    with pytest.raises(ParameterError, match=r"algorithms .*linear.*: expected the same"):
        simulate(PING, mesh((2,)), [0, 1], parameters=Parameters(algorithms={"bcast": "linear"}))


def test_message_times_are_kept_if_asked_for():
    result = simulate(PING, mesh((2,)), [0, 1], record=Record(messages=True))
    assert simulate(PING, mesh((2,)), [0, 1]).message_times is None
    times = result.message_times
    assert (times.source.tolist(), times.target.tolist(), times.size.tolist()) == ([0], [1], [100])
    assert times.sent.tolist() == [Parameters().overhead_send]
    assert times.delivered[0] + Parameters().overhead_recv == result.makespan


def test_progress_counts_messages():
    count = 5000
    program = program_of("many", [[("send", 1, 0)] * count, [("recv", 0, 0)] * count])
    calls = []
    progress = lambda *given: calls.append(given)  # noqa: E731
    simulate(program, mesh((2,)), [0, 1], engine="simpy", progress=progress)
    assert calls == [(4096, count)]


def test_compute_scale_stretches_and_drops_computation():
    program = program_of("compute", [[("compute", 2.0)]])
    for scale, expected in ((1.0, 2.0), (0.5, 1.0), (0.0, 0.0)):
        result = simulate(program, mesh((1,)), [0], parameters=Parameters(compute_scale=scale))
        assert result.makespan == expected


def test_a_trace_is_lowered_with_the_parameters_algorithms():
    from hopmap.traces import Collective, Kind, Records, Trace

    ranks = 4
    column = np.full(ranks, -1)
    trace = Trace(
        "bcast",
        np.arange(ranks + 1),
        np.full(ranks, Kind.COLLECTIVE_END, dtype=np.uint8),
        np.zeros(ranks),
        np.arange(ranks, dtype=np.int32),
        Records(
            peer=np.zeros(ranks, dtype=np.int32),
            comm=np.zeros(ranks, dtype=np.int32),
            tag=column.astype(np.int32),
            operation=np.full(ranks, Collective.BCAST, dtype=np.uint8),
            size=np.array([400, 0, 0, 0]),
            received=np.full(ranks, 100),
            request=column,
        ),
        (),
        (np.arange(ranks, dtype=np.int32),),
    )
    binomial = Parameters(algorithms={"bcast": "binomial"})
    tree = simulate(trace, mesh((4,)), range(4), parameters=binomial)
    star = Parameters(algorithms={"bcast": "linear"})
    flat = simulate(trace, mesh((4,)), range(4), parameters=star)
    assert (tree.messages, flat.messages) == (3, 3)
    assert tree.link_messages.max() == 2  # 0-2 and 2-3, 0-1
    assert flat.link_messages.max() == 3
    assert dict(lower(trace, {"bcast": "linear"}).algorithms) == {"bcast": "linear"}


def test_the_compiler_is_not_on_the_clock_of_the_replay(monkeypatch):
    """It was; 184 s were once shown for one message."""
    run = simpy_engine.run

    def compile_and_run(*arguments):
        @numba.njit
        def new(x):
            return x + 1

        new(1)
        return run(*arguments)

    monkeypatch.setattr(simpy_engine, "run", compile_and_run)
    monkeypatch.setattr(time, "perf_counter", time.process_time)  # whatever else runs here
    result = simulate(PING, mesh((2,)), [0, 1], engine="simpy")
    assert result.compile_seconds > 0.02
    assert result.wall_seconds < result.compile_seconds / 2
    assert result.to_dict()["compile_seconds"] == result.compile_seconds
