"""Times in which one thread computes and another is in a call of MPI."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces import Kind, Role
from hopmap.traces.otf2.read import Activity, activity_of, thread_spans

ENTER, LEAVE = int(Kind.ENTER), int(Kind.LEAVE)
CALL, BARRIER, WORK, TEST, FLUSH = range(5)
ROLES = np.array([Role.CALL, Role.USER, Role.USER, Role.POLL, Role.TOOL], dtype=np.uint8)
WAITS = np.arange(5) == BARRIER

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=4).map(
    lambda found: np.array([(at, at + long) for at, long in found], dtype=float).reshape(-1, 2)
)


def cells(times, size=20):
    """Which of the first unit intervals lie in these times."""
    at = np.arange(size)
    return ((times[:, :1] <= at) & (at < times[:, 1:])).any(axis=0)


@given(st.lists(st.builds(Activity, rows, rows), min_size=1, max_size=3), st.integers(0, 18))
def test_both_at_a_time(threads, end):
    found = thread_spans(threads, float(end))
    computing = cells(np.concatenate([thread.computing for thread in threads]))
    calls = cells(np.concatenate([thread.calls for thread in threads]))
    calls |= np.arange(len(calls)) >= end
    assert np.array_equal(cells(found), computing & calls)
    assert (found[:, 0] < found[:, 1]).all()
    assert (found[1:, 0] >= found[:-1, 1]).all()


def activity(events, always, away=()):
    kind, time, ref = (np.array(column) for column in zip(*events, strict=True))
    times = np.array(away, dtype=float).reshape(-1, 2)
    columns = kind.astype(np.uint8), time.astype(float), ref
    return activity_of(*columns, ROLES, WAITS, times, always=always)


def test_a_thread_calls_waits_and_computes():
    events = [
        *((ENTER, 1, WORK), (ENTER, 2, CALL), (LEAVE, 4, CALL), (ENTER, 5, BARRIER)),
        *((LEAVE, 7, BARRIER), (LEAVE, 8, WORK), (ENTER, 9, CALL), (LEAVE, 10, CALL)),
    ]
    calls = [[2, 4], [9, 10]]
    assert activity(events, always=False).calls.tolist() == calls
    assert cells(activity(events, always=False).computing).nonzero()[0].tolist() == [1, 4, 7]
    # The thread that begins the process computes outside of all regions, too.
    assert cells(activity(events, always=True).computing).nonzero()[0].tolist() == [1, 4, 7, 8]


def test_a_worker_of_which_only_mpi_was_recorded_computes_between_its_calls():
    events = [(ENTER, 1, CALL), (LEAVE, 2, CALL), (ENTER, 5, CALL), (LEAVE, 6, CALL)]
    assert activity(events, always=False).computing.tolist() == [[2, 5]]


def test_a_thread_does_not_compute_while_its_trace_is_written_or_off_nor_between_polls():
    events = [
        *((ENTER, 1, WORK), (ENTER, 3, FLUSH), (LEAVE, 5, FLUSH), (LEAVE, 9, WORK)),
        *((ENTER, 10, TEST), (LEAVE, 11, TEST), (ENTER, 13, TEST), (LEAVE, 14, TEST)),
    ]
    found = activity(events, always=True, away=[(6, 7), (8, 12)])
    assert cells(found.computing).nonzero()[0].tolist() == [1, 2, 5, 7]
    assert cells(found.calls).nonzero()[0].tolist() == [10, 11, 12, 13]


def test_behind_a_poll_that_found_something_it_computes():
    tested, found = (int(kind) for kind in (Kind.REQUEST_TEST, Kind.IRECV))
    events = [
        *((ENTER, 1, TEST), (found, 1, 0), (tested, 1, 1), (LEAVE, 2, TEST)),
        *((ENTER, 4, TEST), (tested, 4, 2), (LEAVE, 5, TEST), (ENTER, 7, TEST), (LEAVE, 8, TEST)),
    ]
    assert cells(activity(events, always=True).computing).nonzero()[0].tolist() == [2, 3]
