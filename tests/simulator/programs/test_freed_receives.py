"""Receives that the trace never completes take their messages all the same."""

from __future__ import annotations

import re

import pytest

from hopmap.api import workload
from hopmap.api.workload import Workload
from hopmap.errors import HopmapWarning
from hopmap.simulator import lower
from hopmap.traces import TraceError, read_summary, read_trace, traffic_of
from hopmap.traces.otf2 import totals
from support.archives import archive_of, finish_of, region


@pytest.fixture
def made(tmp_path):
    """Write an archive of three ranks from lists of (ms, method, arguments), one a rank."""

    def make(*ranks):
        with archive_of(tmp_path / "made", 3) as a:
            for master, calls in zip(a.masters, ranks, strict=False):
                events = a.events(master)
                called = region(a, "MPI_Call")
                events.enter(0, called)
                events.leave(0, called)
                for at, method, *arguments in calls:
                    events.enter(at, called)
                    if method.endswith(("send", "recv", "probe")):
                        arguments.insert(1, a.world)
                    getattr(events, method)(at, *arguments)
                    events.leave(at, called)
        return tmp_path / "made"

    return make


def send(at, tag=7, size=8, to=1):
    return at, "mpi_send", to, tag, size


def recv(at, tag=7, size=8, source=0):
    return at, "mpi_recv", source, tag, size


def freed(at, request=1):
    return at, "mpi_irecv_request", request


def test_a_freed_receive_takes_the_message_of_its_place(made):
    """The first message, which came at once, is its: the receive behind it waits for 1 s."""
    folder = made([send(0), send(1000)], [freed(0), recv(1000)])
    assert finish_of(folder)[:2] == [1.0, 1.0]
    program = lower(read_trace(folder))
    assert program.dropped == {}
    assert (program.receives() - program.offsets[1]).tolist() == [0, 1]


def test_the_place_is_that_of_its_posting(made):
    folder = made(
        [send(0, size=1), send(0, size=2), send(0, size=3), send(0, tag=9)],
        [recv(0), freed(0), recv(0), recv(0, tag=9)],
    )
    program = lower(read_trace(folder))
    assert (program.receives() - program.offsets[1]).tolist() == [0, 1, 2, 3]


def test_several_of_one_channel_are_told_apart_by_their_order(made):
    folder = made([send(0)] * 4, [freed(0, 1), recv(0), freed(0, 2), recv(0)])
    program = lower(read_trace(folder))
    assert (program.receives() - program.offsets[1]).tolist() == [0, 1, 2, 3]


def test_several_of_several_channels_posted_in_a_row_take_all_that_is_left(made):
    """Whichever took which: the receives behind them wait, for 1 and for 1.5 s."""
    folder = made(
        [send(0), send(1000)],
        [freed(0, 1), freed(0, 2), recv(1000), recv(1500, source=2)],
        [send(0), send(1500)],
    )
    program = lower(read_trace(folder))
    assert program.dropped == {}
    assert finish_of(folder) == [1.0, 1.5, 1.5]


@pytest.mark.parametrize("posted", [recv(0), (0, "mpi_irecv_request", 9)])
def test_unless_another_receive_of_a_channel_is_posted_between_them(made, posted):
    calls = [freed(0, 1), posted, freed(0, 2)]
    if posted[1] != "mpi_recv":
        calls.append((0, "mpi_irecv", 0, 7, 8, 9))
    program = lower(read_trace(made([send(0), send(0)], calls, [send(0)])))
    assert program.dropped == {"receives never completed": 2}


@pytest.mark.parametrize(
    "senders",
    [
        ([send(0, tag=1), send(0, tag=2), send(0)],),  # by tag
        ([send(0), send(0)], [], [send(0)]),  # by source
        ([send(0)],),  # nothing is left over
    ],
)
def test_where_it_may_be_another_one_it_is_dropped_and_said(made, senders):
    first, *others = senders
    program = lower(read_trace(made(first, [freed(0), recv(0)], *others[1:])))
    assert program.dropped == {"receives never completed": 1}


def test_what_a_matched_probe_found_is_known_though_its_receive_is_freed(made):
    """Both tags have a message left; the probe says that its was of tag 7."""
    folder = made(
        [send(0), send(0, tag=1), send(1000)],
        [(0, "mpi_probe", 0, 7, 33), (0, "mpi_imrecv_request", 33, 1), recv(1000)],
    )
    assert finish_of(folder)[:2] == [1.0, 1.0]
    assert lower(read_trace(folder)).dropped == {}


def test_a_cancelled_receive_takes_nothing(made):
    folder = made(
        [send(0), send(1000)],
        [freed(0), (0, "mpi_request_cancelled", 1), recv(500), recv(1000)],
    )
    program = lower(read_trace(folder))
    assert program.dropped == {"cancelled requests": 1}
    assert (program.receives() - program.offsets[1]).tolist() == [0, 1]


def test_a_cancelled_send_is_not_sent(made):
    folder = made(
        [
            (0, "mpi_isend", 1, 7, 8, 4),
            (0, "mpi_request_cancelled", 4),
            send(1000),
        ],
        [recv(1000)],
    )
    trace = read_trace(folder)
    program = lower(trace)
    for traffic in (program.traffic(), traffic_of(trace), read_summary(folder).traffic):
        assert (traffic.messages.tolist(), traffic.bytes.tolist()) == ([1], [8])
    assert finish_of(folder)[:2] == [1.0, 1.0]


def test_of_a_large_archive_cancelled_sends_are_counted_and_said(made, monkeypatch):
    """It is not read as a whole to find out which of the cancelled requests were sends."""
    monkeypatch.setattr(totals, "WHOLE", 3)
    monkeypatch.setattr(workload, "LOOKED_THROUGH", 3)
    folder = made([(0, "mpi_isend", 1, 7, 8, 4), (0, "mpi_request_cancelled", 4)], [])
    source = Workload(folder)
    assert source.messages.traffic.messages.tolist() == [1]
    with pytest.warns(HopmapWarning, match="lists ignored records only"):
        said = [*map(str, source.omissions())]
    assert said == ["cancelled requests, of which sends are counted: 1"]


def test_what_does_not_fit_together_is_said(made):
    """A message of which a part is received, one that nobody receives, a receive of none."""
    folder = made([send(0, size=80), send(0, tag=1)], [recv(0, size=70), recv(0, tag=2)])
    said = [*map(str, Workload(folder).omissions())]
    assert said == [
        "messages that are never received, counted and sent: 1",
        "receives that no message reaches, where a replay gets stuck: 1",
        "messages of which fewer bytes are received than sent: 1",
    ]


def test_a_message_of_more_bytes_than_add_up_is_refused(made):
    folder = made([send(0, size=2**62)], [recv(0, size=2**62)])
    said = "rank 0, event 3: 4,611,686,018,427,387,904 bytes: expected at most 2^53"
    with pytest.raises(TraceError, match=re.escape(said)):
        lower(read_trace(folder))
