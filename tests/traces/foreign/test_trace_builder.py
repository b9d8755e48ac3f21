"""Calls of other tools as events: times that run on, whatever the tool's clock did."""

from __future__ import annotations

import time

import numpy as np

from hopmap.traces import Kind
from hopmap.traces.foreign.trace_builder import Calls, acts, trace_of


def made(begin, end, kinds=(), offsets=None):
    """Calls of one function, and what the first of them does."""
    offsets = [0, len(begin)] if offsets is None else offsets
    times = (np.array(each, dtype=np.float64) for each in (begin, end))
    calls = Calls(np.array(offsets), np.zeros(len(begin), dtype=np.int64), *times)
    done = acts(np.zeros(len(kinds), dtype=np.int64), list(kinds), peer=0, size=8, tag=0, comm=0)
    return trace_of("x", calls, [done], ["MPI_Sendrecv"], [np.arange(len(offsets) - 1)])


def test_times_that_run_backwards_are_set_to_the_one_before_and_counted():
    trace = made([5, 2, 6, 1, 1], [4, 3, 7, 2, 3], offsets=[0, 3, 5])
    assert trace.time.tolist() == [5, 5, 5, 5, 6, 7, 1, 2, 2, 3]
    told = "times that run backwards, set to the one before, in"
    assert trace.ignored == {told: 4}


def test_ranks_that_say_nothing_cost_nothing():
    """A damaged header may speak of millions."""
    begin = time.process_time()
    trace = made([1, 3], [2, 2], offsets=[0] * 2**21 + [2])
    assert (trace.ranks, trace.time.tolist()) == (2**21, [1, 2, 3, 3])
    assert time.process_time() - begin < 2


def test_what_begins_behind_what_ended_in_a_call_has_the_time_of_its_end():
    trace = made([1], [2], [Kind.SEND, Kind.RECV, Kind.SEND, Kind.ISEND])
    assert trace.time.tolist() == [1, 1, 2, 2, 2, 2]
    assert trace.kind.tolist() == [
        *(Kind.ENTER, Kind.SEND, Kind.RECV, Kind.SEND, Kind.ISEND, Kind.LEAVE)
    ]
