"""One-sided records: written and read as they were, added up, and those of other windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import otf2
import pytest
from otf2.enums import CollectiveOp, LockType, Paradigm, RegionRole, RmaSyncLevel

from hopmap.traces import Collective, Kind, TraceError, read_summary, read_trace, write_trace
from hopmap.traces.summary import summarize
from hopmap.traces.trace import Lock, Role, Sync
from hopmap.traces.traffic import one_sided_traffic_of
from support.made_traces import (
    atomic,
    fence,
    flush,
    get,
    group_sync,
    lock,
    made_window,
    put,
    unlock,
    window_trace,
)

K = Kind
SUBSET = ([2, 0, 1], [2, 0])  # of three ranks, and a communicator in another order


def every_record():
    """Three ranks with records of every kind, on two windows."""
    lone = [
        (K.RMA_WIN_CREATE, {"tag": 1, "comm": 1, "peer": -1, "size": -1, "received": -1}),
        (K.RMA_SYNC, {"tag": 1, "comm": 1, "peer": 0, "operation": 2, "size": -1, "received": -1}),
        *(
            (kind, {"tag": 0, "peer": 1, "operation": 1, "size": -1, "received": -1, "request": 3})
            for kind in (K.RMA_ACQUIRE_LOCK, K.RMA_TRY_LOCK)
        ),
        *(
            (kind, {"tag": 0, "peer": -1, "size": -1, "received": -1, "request": number})
            for kind, number in (
                (K.RMA_OP_TEST, 9),
                (K.RMA_OP_COMPLETE_NON_BLOCKING, 9),
                (K.RMA_WAIT_CHANGE, -1),
                (K.RMA_WIN_DESTROY, -1),
            )
        ),
    ]
    ranks = [
        [
            made_window(0),
            put(1, 1, 100),
            get(2, 2, 50, 2),
            atomic(3, 1, 8, 8, 3),
            atomic(4, 2, 24, 0, 3, name="MPI_Accumulate", sort=0),
            fence(5, 1, 2, 3),
            lock(6, 1, Lock.SHARED),
            flush(7, 1, there=False),
            unlock(8, 1, 1),
            *((9 + k, "MPI_Win_x", record) for k, record in enumerate(lone)),
        ],
        [group_sync(0, "post"), group_sync(1, "wait")],
        [group_sync(0, "start", 1), put(1, 0, 7), group_sync(2, "complete", 1, numbers=(1,))],
    ]
    return window_trace(
        ranks, groups=([0, 2], [1]), windows=(0, 1), communicators=[[0, 1, 2], [2, 0]]
    )


def test_every_record_is_read_as_it_was_written(tmp_path, events_of):
    trace = every_record()
    assert set(range(K.RMA_WIN_CREATE, max(K) + 1)) <= set(trace.kind.tolist())
    write_trace(trace, tmp_path / "run.otf2")
    read = read_trace(tmp_path / "run.otf2")
    for rank in range(3):
        assert events_of(read, rank) == events_of(trace, rank)
    assert read.windows == (0, 1)
    assert [members.tolist() for members in read.groups] == [[0, 2], [1]]
    assert read.ignored == {}
    np.testing.assert_array_equal(read.time, trace.time)


def test_a_summary_of_an_archive_is_that_of_its_trace(tmp_path):
    trace = every_record()
    write_trace(trace, tmp_path / "run.otf2")
    read, made = read_summary(tmp_path / "run.otf2"), summarize(trace)
    assert read.to_dict() == made.to_dict()
    assert read.one_sided.same_as(made.one_sided)
    assert made.one_sided_records["RmaPut"] == 2
    assert made.messages == 0


def test_puts_go_there_gets_come_back_and_atomics_do_what_they_do():
    found = one_sided_traffic_of(every_record())
    columns = (found.src, found.dst, found.messages, found.bytes)
    rows = [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert rows == [(0, 1, 2, 108), (0, 2, 1, 24), (1, 0, 1, 8), (2, 0, 2, 57)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"windows": (0,)}, "window 1 is not in the trace"),
        ({"windows": (0, 7)}, "a window on a communicator that is not in the trace"),
        ({"groups": ()}, "group 0 is not in the trace"),
    ],
)
def test_what_refers_to_nothing_is_not_written(tmp_path, changed, message):
    with pytest.raises(TraceError, match=message):
        write_trace(replace(every_record(), **changed), tmp_path / "run.otf2")


def test_records_of_scorep_and_of_windows_that_are_not_mpis(write_archive):
    """A fence and a lock as Score-P writes them, and a copy to a GPU, which is counted."""

    def fill(a):
        windows = a.definitions
        mine = windows.rma_win("window", comm=a.world)
        gpu = windows.comm(
            "",
            group=windows.group(
                *("", otf2.GroupType.COMM_LOCATIONS), paradigm=Paradigm.CUDA, members=a.masters[:1]
            ),
        )
        theirs = windows.rma_win("gpu", comm=gpu)
        called = a.definitions.region("MPI_Put", region_role=RegionRole.RMA, paradigm=Paradigm.MPI)
        events = a.events(a.masters[1])
        events.enter(0, called)
        events.rma_request_lock(0, mine, 2, 0, LockType.SHARED)
        events.rma_put(0, mine, 2, 64, 5)
        events.rma_put(0, theirs, 0, 4096, 0)
        events.rma_op_complete_blocking(0, mine, 5)
        events.rma_op_complete_remote(0, mine, 5)
        events.rma_release_lock(0, mine, 2, 0)
        events.rma_collective_begin(0)
        both = RmaSyncLevel.PROCESS | RmaSyncLevel.MEMORY
        events.rma_collective_end(0, CollectiveOp.BARRIER, both, mine, 0xFFFFFFFF, 0, 0)
        events.leave(1, called)

    folder = write_archive(fill)
    trace = read_trace(folder)
    kinds = [K(kind).name for kind in trace.kind if kind > K.LEAVE]
    assert kinds == [
        *("RMA_REQUEST_LOCK", "RMA_PUT", "RMA_OP_COMPLETE_BLOCKING", "RMA_OP_COMPLETE_REMOTE"),
        *("RMA_RELEASE_LOCK", "RMA_COLLECTIVE_BEGIN", "RMA_COLLECTIVE_END"),
    ]
    assert trace.ignored == {"RmaPut": 1}
    assert trace.records.peer[:2].tolist() == [2, 2]
    last = {name: int(column[-1]) for name, column in trace.records._asdict().items()}
    assert (last["operation"], last["peer"], last["request"]) == (
        *(Collective.BARRIER, -1),
        Sync.PROCESS | Sync.MEMORY,
    )
    assert trace.roles[trace.regions.index("MPI_Put")] == Role.ONE_SIDED
    found = read_summary(folder).one_sided
    assert (found.src.tolist(), found.dst.tolist(), found.bytes.tolist()) == ([1], [2], [64])


MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda of, win: of.rma_put(0, win, 1, 2**63, 1), f"a size of {2**63} bytes"),
        (lambda of, win: of.rma_get(0, win, 1, 2**64 - 1, 1), f"a size of {2**64 - 1} bytes"),
        (lambda of, win: of.rma_atomic(0, win, 1, 7, 8, 2**63, 1), f"a size of {2**63} bytes"),
        (lambda of, win: of.rma_put(0, win, 4, 8, 1), "partner 4 is outside"),
    ],
)
def test_what_no_memory_has_room_for_or_nobody_owns_is_refused(write_archive, write, message):
    """By both ways of reading."""

    def fill(a):
        window = a.definitions.rma_win("window", comm=a.world)
        write(a.events(a.masters[0]), window)

    folder = write_archive(fill)
    for read in (read_trace, read_summary):
        with pytest.raises(TraceError, match=message):
            read(folder)


@pytest.mark.parametrize(
    ("wrong", "message"), [("fence", "a size of"), ("group", "is not one of MPI's ranks")]
)
def test_a_fence_of_too_many_bytes_and_a_group_of_no_ranks_are_refused(
    write_archive, wrong, message
):
    def fill(a):
        window = a.definitions.rma_win("window", comm=a.world)
        of = a.events(a.masters[0])
        if wrong == "fence":
            of.rma_collective_end(0, CollectiveOp.BARRIER, 3, window, 0xFFFFFFFF, 2**63, 0)
        else:
            paths = a.definitions.group(
                "", otf2.GroupType.METRIC, paradigm=Paradigm.MPI, members=[]
            )
            of.rma_group_sync(0, RmaSyncLevel.PROCESS, window, paths)

    with pytest.raises(TraceError, match=message):
        read_trace(write_archive(fill))


@pytest.mark.parametrize("write", ["rma_put", "rma_get"])
def test_bytes_that_do_not_fit_together_are_refused(write_archive, write):
    def fill(a):
        window = a.definitions.rma_win("window", comm=a.world)
        for _ in range(2):
            getattr(a.events(a.masters[0]), write)(0, window, 1, MOST, 1)

    with pytest.raises(TraceError, match="do not fit into 63 bits"):
        read_summary(write_archive(fill))


@pytest.mark.parametrize("root", [0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF])
def test_roots_that_are_no_ranks_are_none(write_archive, root):
    def fill(a):
        window = a.definitions.rma_win("window", comm=a.world)
        a.events(a.masters[0]).rma_collective_end(0, CollectiveOp.BARRIER, 3, window, root, 0, 0)

    assert read_trace(write_archive(fill)).records.peer.tolist() == [-1]


def test_the_first_and_the_last_event_of_a_rank_may_be_one_sided(write_archive):
    def fill(a):
        window = a.definitions.rma_win("window", comm=a.world)
        for at in (3, 7):
            a.events(a.masters[0]).rma_put(at, window, 1, 8, 1)

    folder = write_archive(fill)
    found, a_second = read_summary(folder), read_trace(folder).resolution
    assert found.duration * a_second == pytest.approx(4)


def test_one_sided_records_need_a_window_to_be_written(tmp_path):
    begins = (K.RMA_COLLECTIVE_BEGIN, {"peer": -1, "comm": -1, "tag": -1})
    lone = window_trace([[(0, "MPI_Win_fence", begins)]], windows=())
    with pytest.raises(TraceError, match="one-sided records: expected a window"):
        write_trace(lone, tmp_path / "run.otf2")
