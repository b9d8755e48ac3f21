"""Paraver's records: calls, messages and collectives where Extrae writes them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hopmap.simulator import lower
from hopmap.traces import Collective, Kind, TraceError, summarize, traffic_of
from hopmap.traces.sources import open_source
from support import about

from ..read_back import kinds, pairs

POINT, COLLECTIVE, OTHER = 50000001, 50000002, 50000003
PCF = """EVENT_TYPE
0   50000001    MPI Point-to-point
VALUES
0  Outside MPI
1  MPI_Send
2  MPI_Recv
3  MPI_Isend
4  MPI_Irecv
5  MPI_Wait
6  MPI_Waitall

EVENT_TYPE
0   50000002    MPI Collective Comm
VALUES
0  Outside MPI
7  MPI_Bcast
10  MPI_Allreduce
"""


class Trace:
    """Writes records of one application, and of another one beside it."""

    def __init__(self, tasks, unit="_ns"):
        threads = ",".join(["1:1"] * tasks)
        self.lines = [
            f"#Paraver (31/01/2022 at 11:46):1000{unit}:1(4):2:{tasks}({threads}),1(1:1),2",
            f"c:1:14:{tasks}:" + ":".join(map(str, range(1, tasks + 1))),
            "c:1:15:1:1",
        ]

    def event(self, task, time, *pairs, application=1):
        self.lines.append(f"2:1:{application}:{task + 1}:1:{time}:" + ":".join(map(str, pairs)))
        return self

    def call(self, task, begin, end, kind, value, *pairs):
        return self.event(task, begin, kind, value, *pairs).event(task, end, kind, 0)

    def talk(self, source, target, sent, posted, taken, size, tag=0):
        self.lines.append(
            f"3:1:1:{source + 1}:1:{sent}:{sent + 1}:"
            f"1:1:{target + 1}:1:{posted}:{taken}:{size}:{tag}"
        )
        return self

    def text(self):
        return "\n".join(self.lines) + "\n"


def write(folder, trace, pcf=PCF):
    (folder / "run.prv").write_text(trace.text())
    if pcf:
        (folder / "run.pcf").write_text(pcf)
    return open_source(folder / "run.prv")


def talking():
    trace = Trace(2)
    trace.call(0, 10, 20, POINT, 3).call(0, 30, 40, POINT, 1).call(0, 50, 60, POINT, 6)
    trace.call(1, 5, 8, POINT, 4).call(1, 15, 25, POINT, 2).call(1, 30, 33, POINT, 5)
    trace.talk(0, 1, 12, 6, 32, 100, tag=1).talk(0, 1, 31, 16, 24, 7, tag=2)
    return trace


@pytest.mark.parametrize("pcf", [PCF, ""])
def test_messages_stand_in_their_calls(tmp_path, pcf):
    trace = write(tmp_path, talking(), pcf).trace()
    assert pairs(trace) == [(0, 1, 2, 107)]
    assert kinds(trace, 0) == ["MPI_Isend", "ISEND", "MPI_Send", "SEND", "MPI_Waitall", "ISEND_COMPLETE"]  # fmt: skip  # noqa: E501
    assert kinds(trace, 1) == ["MPI_Irecv", "IRECV_REQUEST", "MPI_Recv", "RECV", "MPI_Wait", "IRECV"]  # fmt: skip  # noqa: E501
    assert trace.time[0] == pytest.approx(10e-9)
    program = lower(trace)
    assert program.p2p_traffic().same_as(traffic_of(trace))
    assert program.omitted == ()


def test_times_without_a_unit_are_microseconds(tmp_path):
    trace = Trace(1, unit="").call(0, 10, 20, POINT, 6)
    assert write(tmp_path, trace).trace().time.tolist() == pytest.approx([10e-6, 20e-6])


def test_communications_outside_of_calls_are_kept_and_told(tmp_path):
    trace = write(tmp_path, Trace(2).talk(1, 0, 12, 6, 32, 100)).trace()
    assert pairs(trace) == [(1, 0, 1, 100)]
    assert trace.ignored == {"communications outside of calls, in": 2}


def test_collectives_have_sizes_communicator_and_root(tmp_path):
    trace = Trace(2)
    for task in range(2):
        size = (50100001, 8, 50100002, 8, 50100004, 14)
        trace.call(task, 10, 20, COLLECTIVE, 10, *size)
        sizes = (50100001, 40 * (task == 1), 50100002, 40, 50100004, 14)
        trace.call(task, 30, 40, COLLECTIVE, 7, *sizes, 50100003, int(task == 1))
    read = write(tmp_path, trace).trace()
    rows = read.records
    assert rows.operation.tolist() == [Collective.ALLREDUCE, Collective.BCAST] * 2
    assert rows.size.tolist() == [16, 0, 16, 80]
    assert rows.received.tolist() == [16, 40, 16, 40]
    assert rows.peer.tolist() == [-1, 1, -1, 1]
    assert lower(read).traffic().messages.sum() > 0


def test_a_communicator_has_its_own_order_and_its_own_application(tmp_path):
    """The second member begins a scan; another application has a communicator of that number."""
    trace = Trace(3)
    trace.lines[0] = trace.lines[0].replace(",1(1:1),2", ",1(1:1),4")
    trace.lines += ["c:1:16:2:3:1", "c:2:16:2:1:2"]
    pcf = PCF + "30  MPI_Scan\n8  MPI_Reduce\n"
    for task in (0, 2):
        trace.call(task, 10, 20, COLLECTIVE, 30, 50100001, 8, 50100002, 8, 50100004, 16)
        trace.call(task, 30, 40, COLLECTIVE, 8, 50100001, 8, 50100002, 0, 50100004, 16)
    read = write(tmp_path, trace, pcf).trace()
    assert [each.tolist() for each in read.communicators[2:]] == [[0, 1, 2], [2, 0]]
    assert read.records.comm.tolist() == [3] * 4
    # Nobody says who the root is: the communicator's first member.
    assert read.records.peer.tolist() == [-1, 2, -1, 2]
    assert read.records.size.tolist() == [8, 8, 16, 8]
    assert read.records.received.tolist() == [16, 0, 8, 16]
    told = "collectives without a recorded root (first member used),"
    assert read.ignored == {told: 1}


def test_a_call_may_begin_when_one_ends_and_one_may_not_end(tmp_path):
    trace = Trace(2).call(0, 10, 20, POINT, 1).call(0, 20, 30, POINT, 2).event(0, 40, POINT, 1)
    trace.event(1, 45, POINT, 0).call(1, 50, 60, POINT, 2)
    read = write(tmp_path, trace).trace()
    assert kinds(read, 0) == ["MPI_Send", "MPI_Recv", "MPI_Send"]
    ends = read.time[read.kind == Kind.LEAVE]
    assert ends.tolist() == pytest.approx([20e-9, 30e-9, 40e-9, 60e-9])
    assert read.ignored == {"calls that do not end, in": 1}


def test_collectives_stay_in_their_calls_when_communications_make_others(tmp_path):
    trace = Trace(2).talk(1, 0, 1, 2, 3, 100).talk(0, 1, 11, 25, 14, 7)
    trace.talk(1, 0, 35, 36, 37, 9)
    for task in range(2):
        trace.call(task, 20, 30, COLLECTIVE, 10, 50100001, 8, 50100002, 8, 50100004, 14)
    trace.call(0, 10, 19, POINT, 3).call(1, 10, 19, POINT, 2)
    read = write(tmp_path, trace).trace()
    send, recv = ["MPI_Send", "SEND"], ["MPI_Recv", "RECV"]
    allreduce = ["MPI_Allreduce", "COLLECTIVE_END"]
    assert kinds(read, 0) == [*recv, "MPI_Isend", "ISEND", *allreduce, *recv]
    # The logical receive is told later than the physical one: it was posted before.
    assert kinds(read, 1) == [*send, *recv, *allreduce, *send]


def test_a_wait_is_for_no_send_of_another_task(tmp_path):
    trace = Trace(2).call(0, 10, 20, POINT, 3).talk(0, 1, 12, 6, 32, 100)
    trace.call(1, 5, 35, POINT, 2).call(1, 40, 50, POINT, 6)
    assert kinds(write(tmp_path, trace).trace(), 1) == ["MPI_Recv", "RECV", "MPI_Waitall"]


def test_what_is_not_of_the_program_is_counted(tmp_path):
    trace = talking().event(0, 99, 42000050, 7).event(0, 100, 60000019, 1, application=2)
    trace.lines.append("1:1:1:1:1:0:10:1")
    read = write(tmp_path, trace).trace()
    assert read.ignored == {"state": 1, "event": 1, "event and communication of other applications": 1}  # fmt: skip  # noqa: E501


def test_collectives_that_do_not_block_and_calls_without_a_name_are_told(tmp_path):
    made = Trace(1).call(0, 10, 20, COLLECTIVE, 60).call(0, 30, 40, COLLECTIVE, 61)
    made.call(0, 50, 60, OTHER, 62)
    trace = write(tmp_path, made, PCF + "60  MPI_Iallreduce\n61  MPI_Neighbor_alltoall\n").trace()
    assert trace.ignored == {
        "non-blocking collectives (treated as blocking), in": 1,
        "collectives among neighbours, left out, in": 1,
        "calls that no .pcf names, left out, in": 1,
    }
    assert trace.records.operation.tolist() == [Collective.ALLREDUCE]


def test_one_wait_is_for_the_oldest_send_of_its_own_rank(tmp_path):
    trace = Trace(2)
    for task in range(2):
        for at in (10, 30):
            trace.call(task, at, at + 10, POINT, 3).talk(task, 1 - task, at + 1, 90, 91, 8)
        trace.call(task, 50, 60, POINT, 5)
    trace.call(0, 70, 80, POINT, 6)  # rank 1 never completes its second
    for task in range(2):
        trace.call(task, 85, 95, POINT, 2)
    read = write(tmp_path, trace).trace()
    ends = [kinds(read, task).count("ISEND_COMPLETE") for task in range(2)]
    assert ends == [2, 1]
    assert kinds(read, 0)[4:8] == ["MPI_Wait", "ISEND_COMPLETE", "MPI_Waitall", "ISEND_COMPLETE"]


def test_every_send_that_does_not_block_is_over_with_a_wait(tmp_path):
    for end in ["Wait", "Waitany", "Waitsome", "Waitall", "Testall"]:
        for send in ["Isend", "Ibsend", "Issend", "Irsend", "Start", "Startall"]:
            with about(end, send):
                trace = Trace(2).call(0, 10, 20, POINT, 90).call(0, 30, 40, POINT, 91)
                trace.call(1, 10, 20, POINT, 2).talk(0, 1, 12, 13, 14, 8)
                pcf = PCF.replace("6  MPI_Waitall\n", f"90  MPI_{send}\n91  MPI_{end}\n")
                assert kinds(write(tmp_path, trace, pcf).trace(), 0)[1:] == [
                    "ISEND",
                    *(f"MPI_{end}", "ISEND_COMPLETE"),
                ]


def test_a_wait_for_a_receive_completes_no_send(tmp_path):
    trace = Trace(2).call(0, 10, 20, POINT, 3).call(0, 30, 40, POINT, 5).call(0, 50, 60, POINT, 5)
    trace.call(0, 2, 4, POINT, 4).call(1, 1, 5, POINT, 1).call(1, 10, 20, POINT, 2)
    trace.talk(1, 0, 2, 3, 35, 8).talk(0, 1, 12, 13, 14, 8)
    assert kinds(write(tmp_path, trace).trace(), 0)[4:] == [
        *("MPI_Wait", "IRECV", "MPI_Wait", "ISEND_COMPLETE")
    ]


def test_what_a_collective_says_at_its_root_alone(tmp_path):
    """Who scatters sends, who gathers receives; nobody says so here."""
    trace = Trace(2)
    pcf = PCF + "15  MPI_Scatter\n13  MPI_Gather\n"
    for task in range(2):
        root = task == 1
        trace.call(task, 10, 20, COLLECTIVE, 15, 50100001, 16 * root, 50100002, 8, 50100004, 14)
        trace.call(task, 30, 40, COLLECTIVE, 13, 50100001, 8, 50100002, 16 * root, 50100004, 14)
        trace.call(task, 50, 60, COLLECTIVE, 7, 50100001, 4, 50100002, 4, 50100004, 15)
    rows = write(tmp_path, trace, pcf).trace().records
    assert rows.peer.tolist() == [1, 1, 0, 1, 1, 1]  # the last is on a communicator of one
    assert rows.size.tolist() == [0, 8, 4, 16, 8, 4]
    assert rows.received.tolist() == [8, 0, 4, 8, 16, 4]


def test_the_program_is_the_application_that_communicates(tmp_path):
    # Tools beside a program are applications, too, and may have more tasks.
    trace = talking()
    trace.lines[0] = trace.lines[0].replace(",1(1:1),2", ",4(1:1,1:1,1:1,1:1),2")
    for task in range(4):
        trace.event(task, 50, 30000000, 3, application=2)
    read = write(tmp_path, trace).trace()
    assert read.ranks == 2
    assert pairs(read) == [(0, 1, 2, 107)]


def test_empty_lines_and_intercommunicators_say_nothing(tmp_path):
    trace = talking()
    trace.lines[3:3] = ["", "i:1:16:14:1:15:1"]
    trace.lines += ["", ""]
    assert pairs(write(tmp_path, trace).trace()) == [(0, 1, 2, 107)]


def test_a_message_is_of_the_call_that_its_logical_send_lies_in_ends_included(tmp_path):
    """The physical one of the first is in the call behind."""
    trace = Trace(2).call(0, 10, 20, POINT, 3).call(0, 21, 30, POINT, 1)
    trace.call(1, 10, 20, POINT, 2).call(1, 21, 30, POINT, 2)
    trace.talk(0, 1, 20, 10, 20, 5).talk(0, 1, 21, 21, 30, 6)
    read = write(tmp_path, trace).trace()
    assert kinds(read, 0) == ["MPI_Isend", "ISEND", "MPI_Send", "SEND"]
    assert kinds(read, 1) == ["MPI_Recv", "RECV"] * 2
    assert read.records.size.tolist() == [5, 6, 5, 6]
    assert not read.ignored


@pytest.mark.parametrize("threads", [(1, 2), (2, 1)])
def test_calls_of_threads_are_calls_of_their_task(tmp_path, threads):
    trace = Trace(2)
    for thread, begin, end in zip(threads, (10, 20), (40, 30), strict=True):
        trace.lines.append(f"2:1:1:1:{thread}:{begin}:{POINT}:1")
        trace.lines.append(f"2:1:1:1:{thread}:{end}:{POINT}:0")
    trace.talk(0, 1, 12, 50, 60, 100).talk(0, 1, 25, 61, 62, 7)
    read = write(tmp_path, trace).trace()
    assert kinds(read, 0) == ["MPI_Send", "SEND", "MPI_Send", "SEND"]
    assert read.time[: read.offsets[1]].tolist() == pytest.approx([1e-8, 1e-8, 4e-8, *[4e-8] * 3])


def test_a_wrong_line_is_named(tmp_path):
    for line, said in [
        ("4:1:1:1:1:0", "a record of kind 1, 2 or 3"),
        ("2:1:1:3:1:0:50000001:1", "a task from 1 to 2"),
        ("2:1:1:1:1:0:50000001:1:7", "pairs of type and value"),
        ("2:1:1:1:1:x:50000001:1", "a time"),
        ("3:1:1:1:1:0:0:1:1:2:1:5", "at least 15 numbers"),
        ("3:1:1:1:1:0:0:1:1:2:1:5:6:-7:0", "a size >= 0"),
        ("2:1:1:1:1:90:50000002:10:50100004:77", "communicator 77"),
        (f"2:1:1:1:1:90:50000002:10:50100001:{2**60}", f"run.prv: allreduce of {2**60} bytes"),
        ("c:1:15:2:1", "expected 2 as line 1 says"),
    ]:
        with about(line, said):
            trace = talking()
            trace.lines.append(line)
            with pytest.raises(TraceError) as error:
                write(tmp_path, trace).trace()
            assert said in str(error.value)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("head", ["#Paraver", "#Paraver (x):1_ns:1(4):2:2(1:1,1:1),0", "#Paraver (x):1_ns:1(4):1:0(),0"])  # fmt: skip  # noqa: E501
def test_a_wrong_header_is_named(tmp_path, head):
    trace = talking()
    trace.lines[0] = head
    with pytest.raises(TraceError, match=r"line 1 is"):
        write(tmp_path, trace).trace()


def test_a_cut_file_is_one_clear_line(tmp_path):
    source = write(tmp_path, talking())
    whole = (tmp_path / "run.prv").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "run.prv").write_bytes(whole[:size])
        if whole[size - 1 : size] == b"\n" and size > whole.index(b"c:1:15"):
            source.trace()  # whole records
            continue
        with pytest.raises(TraceError) as error:
            source.trace()
        assert "\n" not in str(error.value)


def test_shared_lulesh_has_the_totals_of_its_records(shared):
    file = shared / "foreign" / "paraver" / "lulesh_7+1.prv"
    if not file.is_file():
        pytest.skip("no ../shared/foreign")
    rows = [line.split(":") for line in file.read_text().splitlines()]
    talks = [row for row in rows if row[0] == "3"]
    calls = sum(
        row[2] == "1" and 50000001 <= int(kind) <= 50000005 and value != "0"
        for row in rows
        if row[0] == "2"
        for kind, value in zip(row[6::2], row[7::2], strict=True)
    )
    collectives = sum(  # begins of calls, one a rank
        row[2] == "1" and kind == "50000002" and value != "0"
        for row in rows
        if row[0] == "2"
        for kind, value in zip(row[6::2], row[7::2], strict=True)
    )
    trace = open_source(file).trace()
    summary = summarize(trace)
    bodies = Counter(trace.records.operation[trace.ref[trace.kind == Kind.COLLECTIVE_END]].tolist())
    handles = bodies[Collective.CREATE_HANDLE] + bodies[Collective.DESTROY_HANDLE]
    assert bodies.total() - handles == collectives > 0
    assert (summary.messages, summary.bytes) == (len(talks), sum(int(row[13]) for row in talks))
    assert np.count_nonzero(trace.kind == Kind.ENTER) == calls
    assert trace.ignored["state"] == sum(row[0] == "1" for row in rows)
    assert lower(trace).p2p_traffic().same_as(traffic_of(trace))
