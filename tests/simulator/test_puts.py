"""Puts: what keeps a target busy, and what passes without it. Times by hand, powers of two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hopmap.simulator import ENGINES, Op, Parameters, Record, lower_bounds, simulate
from hopmap.simulator.explain.critical_path import Segment, critical_path
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.simulator.programs.program import program_of
from hopmap.topologies import mesh
from support.free_ends import FREE
from support.results import plan_of

HOP, SEND, RECV, LATENCY = 2.0**-20, 2.0**-21, 2.0**-19, 2.0**-22
SIZE, SPEED = 2**16, 2.0**30
WIRE = SIZE / SPEED
PARAMETERS = Parameters(
    **FREE | {"overhead_send": SEND, "overhead_recv": RECV, "eager_limit": 0},
    overhead_put_latency=LATENCY,
    packet_size=SIZE,
)
NETWORK = mesh((2,)).with_links(bandwidth=SPEED, latency=HOP)
MOVES = (Op.SEND, Op.ISEND, Op.RECV, Op.IRECV)

engines = pytest.mark.parametrize("engine", ENGINES)


def puts(lists):
    program = program_of("puts", lists)
    mode = np.where(np.isin(program.kind, MOVES), SendMode.PUT, SendMode.STANDARD)
    return replace(program, mode=mode.astype(np.uint8))


def finish(program, engine, **given):
    parameters = replace(PARAMETERS, **given)
    result = simulate(program, NETWORK, [0, 1], parameters=parameters, engine=engine)
    return result.finish.tolist()


@engines
@pytest.mark.parametrize("latency", [0.0, LATENCY, RECV, 2 * RECV])
def test_a_target_that_waits_has_a_put_after_its_latency_and_what_is_left_of_its_overhead(
    engine, latency
):
    for program in (
        puts([[("send", 1, SIZE)], [("recv", 0, SIZE)]]),
        puts([[("isend", 1, SIZE), ("wait", 0)], [("irecv", 0, SIZE), ("wait", 0)]]),
    ):
        whole = SEND + WIRE + HOP + max(latency, RECV)
        assert finish(program, engine, overhead_put_latency=latency)[1] == whole


@engines
def test_a_target_that_does_something_else_meanwhile_is_busy_for_less(engine):
    late = 2.0**-10
    program = puts([[("send", 1, SIZE)], [("irecv", 0, SIZE), ("compute", late), ("wait", 0)]])
    assert finish(program, engine)[1] == late + RECV - LATENCY
    assert finish(program, engine, overhead_put_latency=2 * RECV)[1] == late


@engines
def test_of_many_puts_latency_is_paid_once(engine):
    many = 8
    program = puts([[("send", 1, 0)] * many, [("recv", 0, 0)] * many])
    # Those behind the first are there before it is done with: RECV - LATENCY > SEND.
    assert finish(program, engine)[1] == SEND + HOP + LATENCY + many * (RECV - LATENCY)


@engines
def test_a_message_knows_no_latency_of_puts(engine):
    for word in ("send", "rsend", "ssend", "bsend"):
        program = program_of("message", [[(word, 1, SIZE)], [("recv", 0, SIZE)]])
        assert finish(program, engine) == finish(program, engine, overhead_put_latency=0.0)


@engines
def test_without_a_latency_puts_are_ready_messages(engine):
    lists = [[("rsend", 1, SIZE), ("recv", 1, 8)], [("recv", 0, SIZE), ("rsend", 0, 8)]]
    ready = finish(program_of("ready", lists), engine)
    assert finish(puts(lists), engine, overhead_put_latency=0.0) == ready


def test_a_rank_is_busy_for_what_is_left_and_no_less():
    program = puts([[("send", 1, 0)] * 3, [("irecv", 0, 0)] * 3 + [("wait", k) for k in range(3)]])
    bounds = lower_bounds(program, NETWORK, [0, 1], parameters=PARAMETERS)
    assert bounds["rank"] == (3 * (RECV - LATENCY), "rank 1")


def test_the_latency_of_a_put_is_latency_on_the_critical_path():
    program = puts([[("send", 1, SIZE)], [("recv", 0, SIZE)]])
    given = {"parameters": PARAMETERS}
    result = simulate(
        program, NETWORK, [0, 1], record=Record(messages=True, operations=True), **given
    )
    path = critical_path(plan_of(result), result)
    seconds = {kind: path.seconds[path.kind == kind].sum() for kind in Segment}
    assert seconds[Segment.LATENCY] == HOP + LATENCY
    assert seconds[Segment.RECV_OVERHEAD] == RECV - LATENCY
    assert path.seconds.sum() == result.makespan


def test_a_put_is_called_one():
    program = puts([[("isend", 1, SIZE), ("wait", 0)], [("recv", 0, SIZE)]])
    assert program.describe(1) == "wait for iput to rank 1 (tag 0, communicator 0)"
    assert program.describe(3) == "recv from rank 0 (tag 0, communicator 0)"
