"""When operations ran: cases done by hand. What always holds is in `test_invariants.py`."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import ENGINES, Op, Parameters, Record, program_of, simulate
from hopmap.topologies import mesh

# Over one link, one byte a second and no latency but the link's: seconds are easy to add up.
SECONDS = Parameters(
    overhead_send=1.0,
    overhead_recv=2.0,
    injection_bandwidth=1e300,
    injection_latency=0.0,
    ejection_bandwidth=1e300,
    ejection_latency=0.0,
    packet_size=10**6,
    eager_limit=100,
)
LINE = mesh((2,)).with_links(bandwidth=1.0, latency=5.0)


def recorded(lists, engine="simpy", **more):
    return simulate(
        program_of("by hand", lists),
        LINE,
        [0, 1],
        parameters=SECONDS,
        engine=engine,
        record=Record(operations=True),
        **more,
    )


def test_nothing_is_kept_unless_asked_for():
    result = simulate(program_of("idle", [[("compute", 1.0)]]), mesh((1,)), [0])
    assert result.operations is None
    assert result.message_times is None


@pytest.mark.parametrize("engine", ENGINES)
def test_an_eager_message_by_hand(engine):
    # Computes 3 s, sends for 1 s, 10 bytes take 5 + 10 s; the receiver is there early.
    result = recorded([[("compute", 3.0), ("send", 1, 10)], [("recv", 0, 10)]], engine)
    ops, times = result.operations, result.message_times
    assert ops.row.tolist() == [0, 1, 2, 3]
    assert ops.task.tolist() == [0, 0, 1, 1]
    assert ops.begin.tolist() == [0, 4, 0, 21]
    assert ops.ready.tolist() == [3, 4, 0, 21]
    assert ops.woken[2] == 19
    assert np.isnan(ops.woken[[0, 1, 3]]).all()
    assert ops.end.tolist() == [4, 4, 21, 21]
    assert ops.awaited.tolist() == [0, -1, 2, -1]
    assert ops.message.tolist() == [0, -1, 0, -1]
    assert (times.sent[0], times.departed[0], times.delivered[0]) == (4, 4, 19)
    assert np.isnan([times.requested[0], times.granted[0]]).all()


@pytest.mark.parametrize("engine", ["simpy", "compiled", "analytic"])
def test_a_rendezvous_by_hand(engine):
    # Request at 1, there at 6; receive posted at 20, granted at 25; 100 bytes leave the first
    # server at once, and are there after 5 + 100 s.
    result = recorded([[("send", 1, 100)], [("compute", 20.0), ("recv", 0, 100)]], engine)
    ops, times = result.operations, result.message_times
    assert [column[0] for column in times[3:]] == [1, 130, 6, 25, 25]
    assert (ops.woken[0], ops.woken[2]) == (25, 130)
    assert ops.end.tolist() == [25, 25, 132, 132]


def test_loops_are_written_out_and_a_wait_is_for_the_latest():
    body = [("isend", 1, 1), ("wait", 0)]
    result = recorded([[("repeat", 3, body)], [("recv", 0, 1)] * 3])
    ops = result.operations
    assert ops.row.tolist() == [0, 1, 2] * 3 + [3] + [4, 5, 6, 7]
    assert ops.awaited[:9].tolist() == [-1, 0, -1, -1, 3, -1, -1, 6, -1]
    assert ops.message.tolist() == [0, -1, -1, 1, -1, -1, 2, -1, -1, -1, 0, 1, 2, -1]
    assert ops.ready[[0, 3, 6]].tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["edge.X.8", "is.S.16", "mg.S.16"])
def test_a_background_task_begins_at_its_start_and_ends_what_waits_for_it(name, lowered):
    program = lowered(name)
    result = simulate(
        program,
        mesh((4, 4)),
        np.arange(program.ranks),
        engine="compiled",
        parameters=Parameters(compute_scale=0),
        record=Record(operations=True),
    )
    ops = result.operations
    kind = program.kind[ops.row]
    starts = np.flatnonzero(kind == Op.START)
    assert len(starts) == program.tasks - program.ranks
    first = np.searchsorted(ops.task, program.target[ops.row[starts]])
    assert np.array_equal(ops.begin[first], ops.end[starts])
    finish = ops.end[kind == Op.FINISH]
    waits = np.flatnonzero(~np.isnan(ops.woken))
    waits = waits[kind[ops.awaited[waits]] == Op.START]
    begun = program.target[ops.row[ops.awaited[waits]]]
    assert np.array_equal(ops.woken[waits], finish[begun])
    assert len(starts) == 0 or len(waits) > 0
