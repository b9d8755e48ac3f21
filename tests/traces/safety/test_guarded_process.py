"""Work in a guarded process: results come back, deaths are told, nobody else is harmed."""

import ctypes
import os
import signal
import time

import numpy as np
import pytest

from hopmap.traces import TraceError, read_summary, read_trace, traffic_of
from hopmap.traces.otf2 import archive
from hopmap.traces.safety import guarded_process
from hopmap.traces.safety.guarded_process import Death, Limits, run_guarded

pytestmark = pytest.mark.usefixtures("guarded")
PLENTY = Limits(memory=2**30, patience=10)


def guarded(work, limits, progress=None):
    """Return what a work returns, done in a child."""
    return run_guarded([work], limits, progress)[0]


def test_results_come_back_with_arrays_that_can_be_written():
    def work(line):
        long = np.arange(1_000_000, dtype=np.int32)  # more than a pipe holds
        return {"long": long, "cut": np.arange(5)[:3], "strided": long[::2], "none": np.zeros(0)}

    found = guarded(work, PLENTY)
    assert np.array_equal(found["long"], np.arange(1_000_000))
    assert np.array_equal(found["strided"], np.arange(0, 1_000_000, 2))
    assert found["cut"].tolist() == [0, 1, 2]
    assert found["none"].size == 0
    found["long"][0] = found["cut"][0] = 7


def test_errors_come_back_as_they_are():
    def work(line):
        raise TraceError("3.evt: event 5: cut")

    with pytest.raises(TraceError, match=r"^3.evt: event 5: cut$"):
        guarded(work, PLENTY)


def test_progress_is_heard_here():
    heard = []

    def work(line):
        for done in range(3):
            line.progress(done, 2)

    guarded(work, PLENTY, lambda done, total: heard.append((done, total)))
    assert heard == [(0, 2), (1, 2), (2, 2)]


def test_a_crash_is_told_with_its_place_and_prints_nothing(capfd):
    def work(line):
        line.at("0.evt")
        ctypes.string_at(0)

    with pytest.raises(Death, match=r"^died of SIGSEGV$") as caught:
        guarded(work, PLENTY)
    assert caught.value.at == "0.evt"
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_loop_is_ended_unless_it_makes_progress():
    def loop(line):
        while True:
            pass

    with pytest.raises(Death, match=r"^made no progress$"):
        guarded(loop, Limits(memory=2**30, patience=0))

    def slow(line):
        end = time.process_time() + 2
        while time.process_time() < end:
            sum(range(10**6))
            line.at("still here")
        return "done"

    assert guarded(slow, Limits(memory=2**30, patience=1)) == "done"


def test_memory_is_limited():
    def work(line):
        return len(np.ones(2**28))  # 2 GiB

    with pytest.raises(MemoryError):
        guarded(work, PLENTY)


def test_a_child_that_leaves_is_told():
    with pytest.raises(Death, match="ended without a word"):
        guarded(lambda line: os._exit(0), PLENTY)


def test_an_interrupt_here_ends_the_child_and_leaves_nothing():
    def work(line):
        line.progress(os.getpid(), 0)
        time.sleep(60)

    begin, pids = time.monotonic(), []

    def progress(pid, _):
        pids.append(pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(work, PLENTY, progress)
    assert time.monotonic() - begin < 30
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.parametrize(
    ("die", "line"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "reading it died of SIGSEGV"),
        (lambda: np.ones(2**30), "more memory than an archive of"),
    ],
)
def test_an_archive_that_kills_its_reader_is_damaged(data, monkeypatch, die, line):
    monkeypatch.setattr(archive, "read_definitions", lambda *_: die())
    for read in (read_trace, read_summary):
        with pytest.raises(TraceError, match=line) as caught:
            read(data / "lu.S.4")
        assert "lu.S.4/traces" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_where_there_is_no_fork_archives_are_read_all_the_same(data, monkeypatch):
    expected = read_trace(data / "lu.S.4")
    monkeypatch.delattr(guarded_process.os, "fork")
    found = read_trace(data / "lu.S.4")
    assert np.array_equal(found.time, expected.time)
    assert read_summary(data / "lu.S.4").traffic.same_as(traffic_of(expected))


def test_several_children_work_at_once_and_answer_in_order():
    heard = []

    def work(number):
        def done(line):
            line.progress(number, 10)
            return os.getpid(), np.full(10**6, number)

        return done

    found = run_guarded(
        [work(k) for k in (1, 2, 3)], PLENTY, lambda done, total: heard.append((done, total))
    )
    assert len({pid for pid, _ in found}) == 3
    assert [column[-1] for _, column in found] == [1, 2, 3]
    assert heard[-1] == (6, 10)  # of all together


def test_of_several_failures_the_first_in_order_is_told():
    def late(line):
        time.sleep(0.3)
        raise TraceError("0.evt: cut")

    def early(line):
        raise TraceError("7.evt: cut")

    with pytest.raises(TraceError, match=r"^0\.evt"):
        run_guarded([late, early], PLENTY)
    with pytest.raises(TraceError, match=r"^7\.evt"):
        run_guarded([lambda line: 0, early, lambda line: time.sleep(60)], PLENTY)


def test_an_interrupt_ends_all_children():
    pids = []

    def work(line):
        line.progress(os.getpid(), 0)
        time.sleep(60)

    def progress(pids_so_far, _):
        pids.append(pids_so_far)
        if len(pids) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_guarded([work, work], PLENTY, progress)
    for pid in (pids[0], pids[1] - pids[0]):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
