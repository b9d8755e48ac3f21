"""Programs with loops: the same run as with every iteration written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.simulator import (
    ENGINES,
    DeadlockError,
    Op,
    Parameters,
    Record,
    lower,
    program_of,
    simulate,
)
from hopmap.simulator.programs.unrolling import unroll, without_loops
from hopmap.topologies import mesh, torus
from hopmap.traces import nas_folded, nas_trace, nas_traffic
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Repeat, folded_of_parts, trace_of_parts
from support.random_loops import random_loop_runs
from support.results import bits
from support.slow import examples


def said(program, topology, node_of, parameters, engine):
    try:
        result = simulate(
            program,
            topology,
            node_of,
            parameters=parameters,
            engine=engine,
            record=Record(operations=True),
        )
    except DeadlockError as error:
        return str(error)
    operations = result.operations._replace(row=0)  # numbers of rows differ
    return bits(replace(result, operations=operations, program=None))


@examples(100)
@given(random_loop_runs())
def test_loops_are_what_they_are_written_out(run):
    program, *place = run
    flat = without_loops(program)
    assert (flat.size[flat.kind == Op.REPEAT] == 1).all()
    whole = said(flat, *place, "simpy")
    assert said(program, *place, "simpy") == whole
    assert said(program, *place, "compiled") == whole
    assert said(flat, *place, "compiled") == whole
    for engine in ("flow", "analytic"):
        assert said(program, *place, engine) == said(flat, *place, engine)


@examples(200)
@given(random_loop_runs())
def test_traffic_and_iterations_follow_by_formula(run):
    program, *_ = run
    flat = without_loops(program)
    assert program.traffic().same_as(flat.traffic())
    assert np.array_equal(
        np.bincount(unroll(program), minlength=program.operations), program.iterations()
    )


def test_a_loop_is_written_out_inside_out():
    body = [("send", 1, 1), ("repeat", 2, [("send", 1, 2), ("repeat", 3, [("send", 1, 3)])])]
    program = program_of("nest", [[("repeat", 2, body)], []])
    sizes = without_loops(program).size[without_loops(program).sends()]
    assert sizes.tolist() == [1, 2, 3, 3, 3, 2, 3, 3, 3] * 2
    assert program.traffic().messages.tolist() == [18]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wait_is_for_the_latest_of_its_row(engine):
    # Five receives, of which only the last is waited for.
    sender, taker = [("repeat", 5, [("send", 1, 8)])], [("repeat", 5, [("irecv", 0, 8)])]
    program = program_of("latest", [sender, [*taker, ("wait", 0)]])
    program.target[program.kind == Op.WAIT] = np.flatnonzero(program.kind == Op.IRECV)
    result = simulate(program, mesh((2,)), [0, 1], engine=engine, record=Record(messages=True))
    assert result.communicate[1] == Parameters().overhead_recv
    assert result.finish[1] == result.message_times.delivered[4] + Parameters().overhead_recv


def test_which_iteration_gets_stuck_is_known():
    sender, taker = [("repeat", 3, [("send", 1, 8)])], [("repeat", 4, [("recv", 0, 8)])]
    program = program_of("short", [sender, taker])
    for engine in ENGINES:
        with pytest.raises(DeadlockError, match=r"rank 1: recv from rank 0 .* which no rank sends"):
            simulate(program, mesh((2,)), [0, 1], engine=engine)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "runs 0 times: expected at least 1"),
        ({"target": 5}, "expected a body in one task, of whole loops"),
        ({"target": 1}, "expected a body in one task, of whole loops"),
    ],
)
def test_loops_that_make_no_sense_are_errors(change, message):
    body = [("compute", 1.0), ("repeat", 2, [("compute", 1.0)])]
    program = program_of("bad", [[], [("repeat", 2, [("repeat", 2, body)])]])
    column, value = next(iter(change.items()))
    outer = np.flatnonzero(program.kind == Op.REPEAT)[-1 if value != 1 else -2]
    getattr(program, column)[outer] = {5: program.operations, 1: 0}.get(value, value)
    with pytest.raises(ValueError, match=message):
        program.traffic()


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("lu.S.4", None),
        ("lu.S.16", 3),
        ("lu.S.6", 1),
        ("sp.S.9", 3),
        ("sp.S.4", 1),
        ("bt.S.4", None),
        ("sp.S.1", 4),
        ("ft.S.8", None),
        ("ft.S.128", 2),
        *[("lu.S.4", None), ("lu.S.16", 3), ("lu.S.6", 1)],
        *[("cg.S.8", 2), ("cg.S.1", 3), ("mg.S.16", None), ("mg.S.2", 3)],
        *[("is.S.4", 2), ("ep.S.3", None)],
    ],
)
def test_a_folded_benchmark_is_the_benchmark(name, steps):
    program, plain = lower(nas_folded(name, steps=steps)), lower(nas_trace(name, steps=steps))
    flat = without_loops(program)
    kept = flat.kind != Op.REPEAT
    for column in ("kind", "peer", "context", "size"):
        assert np.array_equal(getattr(flat, column)[kept], getattr(plain, column))
    own = plain.context < plain.communicators  # a collective in a loop keeps its tag
    assert np.array_equal(flat.tag[kept][own], plain.tag[own])
    assert program.chosen == plain.chosen
    waits = flat.kind == Op.WAIT
    assert np.array_equal((np.cumsum(kept) - 1)[flat.target[waits]], plain.target[waits[kept]])
    assert np.allclose(flat.compute[kept], plain.compute, rtol=0, atol=2e-9)  # clock ticks
    assert not flat.compute[~kept].any()
    assert program.traffic().same_as(plain.traffic())


@pytest.mark.parametrize(
    ("name", "steps"),
    [("lu.S.8", 4), ("cg.S.8", 2), ("mg.S.8", 3), ("sp.S.4", 4), ("ft.S.8", 4), ("ft.S.1", 3)],
)
def test_a_folded_benchmark_replays_in_the_same_time(name, steps):
    topology, node_of = torus((4, 2)), np.arange(8)
    parameters = Parameters(compute_scale=0)
    folded, plain = nas_folded(name, steps=steps), nas_trace(name, steps=steps)
    results = [
        said(lower(trace), topology, node_of[: int(name[5:])], parameters, engine)
        for trace in (folded, plain)
        for engine in ("simpy", "compiled")
    ]
    for result in results:
        del result["operations"]  # loops of one and the other trace are not the same
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("lu.C.64", 250),  # 9 million messages
        ("cg.D.128", 100),
        ("mg.D.64", 50),
    ],
)
def test_a_folded_benchmark_is_as_small_for_many_steps_as_for_few(name, steps):
    few, many = (lower(nas_folded(name, steps=steps)) for steps in (2, steps))
    assert few.operations == many.operations
    assert many.p2p_traffic().same_as(nas_traffic(name))


@st.composite
def parts_of_calls(draw, depth=2):
    """Barriers of all ranks, and of one, which move nothing, after computation; loops of both."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            parts.append(Repeat(draw(st.integers(1, 3)), draw(parts_of_calls(depth=depth - 1))))
        else:
            own, pause = draw(st.booleans()), draw(st.sampled_from([0.0, 1.0, 3.0, 16.0]))
            parts.append(calls(Call.BARRIER, comm=int(own), before=pause))
    return parts


def _without_own(part):
    """Leave out what only the first rank does; a rank's loop needs a call."""
    if isinstance(part, Repeat):
        return Repeat(part.times, [calls(Call.COMM_RANK), *map(_without_own, part.body)])
    return part[part["comm"] == 0]


@settings(deadline=None)
@given(parts_of_calls())
def test_computation_stays_in_its_loop_though_a_call_moves_nothing(parts):
    communicators = [np.zeros(1, dtype=np.int32)]
    busy, other = parts, [_without_own(part) for part in parts]
    folded = folded_of_parts("loops", 2, [busy, other], communicators)
    plain = trace_of_parts("loops", 2, [busy, other], communicators)
    spans = [
        simulate(lower(trace), mesh((2,)), [0, 1], engine="compiled").makespan
        for trace in (folded, plain)
    ]
    assert spans[0] == pytest.approx(spans[1], rel=1e-9)
