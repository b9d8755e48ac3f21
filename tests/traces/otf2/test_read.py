"""Reading OTF2 archives: every recording against independent counts and the wheel's own reader."""

import csv
from collections import Counter
from pathlib import Path

import _otf2
import numpy as np
import otf2
import pytest

from hopmap.traces import (
    Collective,
    Kind,
    Trace,
    TraceError,
    Traffic,
    read_summary,
    read_trace,
    read_traffic,
    summarize,
    traffic_of,
)

SHIPPED = {  # events, messages, bytes, seconds
    "edge.X.8": (1516, 51, 1069384, 0.559),
    "is.S.16": (2727, 15, 60, 0.745),
    "lu.S.4": (28866, 4520, 3305152, 0.360),
    "mg.S.16": (67152, 6704, 3890944, 1.134),
}


def recorded_traffic(file: Path, ranks: int) -> Traffic:
    """The matrix that otf2-print and awk made of an archive's send records."""
    with file.open() as lines:
        rows = [tuple(map(int, row.values())) for row in csv.DictReader(lines)]
    return Traffic.from_pairs(ranks, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def calls_of(trace: Trace, rank: int) -> list[tuple]:
    """The events of a rank that are not brackets, as readable tuples."""
    found = []
    for event in range(*trace.offsets[rank : rank + 2]):
        if trace.kind[event] > Kind.LEAVE:
            record = trace.ref[event]
            values = [int(column[record]) for column in trace.records]
            found.append((Kind(trace.kind[event]), *values))
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_archives_have_the_recorded_matrix_and_totals(data, name):
    events, messages, size, seconds = SHIPPED[name]
    trace, summary = read_trace(data / name), read_summary(data / name)
    expected = recorded_traffic(data / f"{name}.p2p.csv", trace.ranks)

    assert traffic_of(trace).same_as(expected)
    assert summary.traffic.same_as(expected)
    assert read_traffic(data / name).same_as(expected)
    assert (summary.events, summary.messages, summary.bytes) == (events, messages, size)
    assert trace.events + sum(trace.ignored.values()) == events
    assert summary.duration == pytest.approx(seconds, abs=5e-4)
    assert summarize(trace).collectives == summary.collectives
    assert summarize(trace).collective_bytes == summary.collective_bytes
    assert summary.ignored == trace.ignored == summarize(trace).ignored
    assert trace.name == summary.name == name
    assert (np.diff(trace.time)[np.diff(trace.rank_of_event()) == 0] >= 0).all()


@pytest.mark.slow
def test_every_recording_has_its_matrix(shared):
    files = sorted((shared / "nas").glob("*.p2p.csv"))
    archives = [file.with_name(file.name.removesuffix(".p2p.csv")) for file in files]
    compared = 0
    for file, archive in zip(files, archives, strict=True):
        if archive.is_dir():  # the biggest is packed
            traffic = read_traffic(archive)
            assert traffic.same_as(recorded_traffic(file, traffic.ranks)), archive.name
            assert traffic_of(read_trace(archive)).same_as(traffic), archive.name
            compared += 1
    assert compared > 10


@pytest.mark.slow
def test_every_recording_has_the_events_collectives_and_duration_of_the_facts(shared):
    lines = (shared / "nas" / "FACTS.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    totals = {row[0]: row for row in rows if len(row) == 13 and row[1].isdigit()}
    collectives = [row for row in rows if len(row) == 6 and row[2].isdigit()]
    assert len(totals) > 10
    for name, row in totals.items():
        archive = shared / "nas" / name
        if not archive.is_dir():
            continue
        summary = read_summary(archive)
        assert summary.ranks == int(row[1])
        assert summary.events == int(row[2])
        assert summary.messages == int(row[3])
        assert summary.bytes == int(row[4])
        assert summary.duration == pytest.approx(float(row[7]), abs=5e-4)
        if name != "edge.X.8":  # its sub-communicators are counted by themselves, below
            assert summary.collectives == {
                operation: int(calls) for trace, operation, _, calls, *_ in collectives
                if trace == name
            }  # fmt: skip
            assert summary.collective_bytes == sum(
                int(sent) for trace, *_, sent, _ in collectives if trace == name
            )


@pytest.mark.parametrize(
    ("name", "events", "messages", "pairs", "size"),
    [
        ("tracer-stencil4d/traces-32", 4324, 512, 160, 67108864),
        ("tracer-stencil4d/traces-64", 8644, 1024, 384, 268435456),
        ("ping-pong-otf2", 120, 16, 2, 2 * 4177920),
    ],
)
def test_public_archives_have_their_published_totals(shared, name, events, messages, pairs, size):
    summary = read_summary(shared / "otf2" / name)
    found = (summary.events, summary.messages, summary.pairs, summary.bytes)
    assert found == (events, messages, pairs, size)
    assert summarize(read_trace(shared / "otf2" / name)).messages == messages


KIND_OF = {
    "Enter": Kind.ENTER,
    "Leave": Kind.LEAVE,
    "MpiSend": Kind.SEND,
    "MpiIsend": Kind.ISEND,
    "MpiIsendComplete": Kind.ISEND_COMPLETE,
    "MpiRecv": Kind.RECV,
    "MpiIrecvRequest": Kind.IRECV_REQUEST,
    "MpiIrecv": Kind.IRECV,
    "MpiRequestTest": Kind.REQUEST_TEST,
    "MpiRequestCancelled": Kind.REQUEST_CANCELLED,
    "MpiCollectiveBegin": Kind.COLLECTIVE_BEGIN,
    "MpiCollectiveEnd": Kind.COLLECTIVE_END,
    "NonBlockingCollectiveRequest": Kind.COLLECTIVE_REQUEST,
    "NonBlockingCollectiveComplete": Kind.COLLECTIVE_COMPLETE,
}


def python_events(archive: Path) -> tuple[dict[int, list[tuple]], Counter[str]]:
    """Every event as the wheel's reader has it, by location (here: world rank)."""
    with otf2.reader.open(str(archive / "traces.otf2")) as reader:
        clock = reader.definitions.clock_properties
        rows: dict[int, list[tuple]] = {place._ref: [] for place in reader.definitions.locations}
        others: Counter[str] = Counter()
        for location, event in reader.events:
            name = type(event).__name__
            if name not in KIND_OF:
                others[name] += 1
                continue
            rank = location._ref
            comm = getattr(event, "communicator", None)
            members = [place._ref for place in comm.group.members] or [rank] if comm else []
            partner = getattr(event, "receiver", getattr(event, "sender", None))
            if partner is None:
                root = getattr(event, "root", None)
                partner = root.value if hasattr(root, "value") else root
            operation = getattr(event, "collective_op", None)
            size = getattr(event, "msg_length", getattr(event, "size_sent", -1))
            rows[rank].append(
                (
                    KIND_OF[name],
                    (event.time - clock.global_offset) / clock.timer_resolution,
                    getattr(getattr(event, "region", None), "name", None),
                    members[partner] if members and partner in range(len(members)) else -1,
                    members,
                    getattr(event, "msg_tag", -1),
                    255 if operation is None else Collective(operation.value),
                    size,
                    getattr(event, "size_received", -1),
                    getattr(event, "request_id", -1),
                )
            )
        return rows, others


@pytest.mark.parametrize("name", ["edge.X.8", "is.S.16", "lu.S.4"])
def test_events_equal_those_of_the_python_reader_one_by_one(data, name):
    trace = read_trace(data / name)
    expected, others = python_events(data / name)
    for rank in range(trace.ranks):
        found = []
        for event in range(*trace.offsets[rank : rank + 2]):
            kind, ref = Kind(trace.kind[event]), int(trace.ref[event])
            if kind <= Kind.LEAVE:
                region, values = trace.regions[ref], [-1, -1, -1, 255, -1, -1, -1]
            else:
                region, values = None, [int(column[ref]) for column in trace.records]
            peer, comm, *rest = values
            members = trace.communicators[comm].tolist() or [rank] if comm >= 0 else []
            found.append((kind, trace.time[event], region, peer, members, *rest))
        assert found == expected[rank]
    assert trace.ignored == others


class TestAwkwardCases:
    """edge.X.8 was written to contain what readers get wrong."""

    @pytest.fixture
    def trace(self, data):
        return read_trace(data / "edge.X.8")

    def test_communicators_in_any_order(self, trace):
        members = [communicator.tolist() for communicator in trace.communicators]
        world, reverse, even, alone, odd, three = members  # Score-P's own first one is left out
        assert world == list(range(8))
        assert reverse == [7, 6, 5, 4, 3, 2, 1, 0]
        assert (even, odd, three) == ([0, 2, 4, 6], [1, 3, 5, 7], [5, 1, 6])
        assert alone == []  # MPI_COMM_SELF: every rank by itself

    def test_collectives_are_counted_by_communicator(self, data, trace):
        summary = read_summary(data / "edge.X.8")
        assert summary.collectives["BARRIER"] == 2  # once by all, once by three of them
        assert summary.collectives["IALLREDUCE"] == 1
        assert all(isinstance(calls, int) for calls in summary.collectives.values())

    def test_sends_and_receives_pair_up(self, trace):
        def matrix(*kinds):
            rows = np.isin(trace.kind, kinds)
            ranks, records = trace.rank_of_event()[rows], trace.ref[rows]
            return Counter(
                zip(ranks.tolist(), trace.records.peer[records].tolist(),
                    trace.records.tag[records].tolist(), trace.records.size[records].tolist(),
                    strict=True)
            )  # fmt: skip

        sent = matrix(Kind.SEND, Kind.ISEND)
        received = matrix(Kind.RECV, Kind.IRECV)
        assert sent == Counter({(b, a, *rest): n for (a, b, *rest), n in received.items()})
        assert any(a == b for a, b, *_ in sent)  # messages to oneself
        assert any(size == 0 for *_, size in sent)  # and empty ones

    def test_persistent_requests_reuse_their_number(self, trace):
        calls = [call for rank in range(8) for call in calls_of(trace, rank)]
        started = Counter(
            (rank, call[-1])
            for rank in range(8)
            for call in calls_of(trace, rank)
            if call[0] in (Kind.ISEND, Kind.IRECV_REQUEST)
        )
        assert max(started.values()) > 1
        assert sum(call[0] == Kind.ISEND for call in calls) == 41
        assert sum(call[0] == Kind.ISEND_COMPLETE for call in calls) == 41

    def test_a_cancelled_receive_stays_without_a_message(self, trace):
        for rank in range(8):
            calls = calls_of(trace, rank)
            for kind, *_, request in calls:
                if kind == Kind.REQUEST_CANCELLED:
                    own = [call[0] for call in calls if call[-1] == request]
                    assert own == [Kind.IRECV_REQUEST, Kind.REQUEST_CANCELLED]
                    return
        raise AssertionError("no cancelled receive")


def test_threads_add_their_mpi_calls_and_other_streams_are_counted(hybrid_archive):
    trace, summary = read_trace(hybrid_archive), read_summary(hybrid_archive)
    assert trace.ranks == 3
    first = range(*trace.offsets[:2])
    assert [Kind(trace.kind[event]).name for event in first] == [
        *("ENTER", "ENTER", "ENTER", "SEND", "SEND", "SEND", "LEAVE", "LEAVE", "LEAVE")
    ]
    assert [call[1] for call in calls_of(trace, 0)] == [1, 2, 2]
    assert np.diff(trace.time[first]).min() >= 0
    # Brackets of no MPI region in threads and on the GPU; metrics wherever they are.
    assert trace.ignored == {"Enter": 4, "Leave": 4, "Metric": 43}
    assert trace.events + sum(trace.ignored.values()) == summary.events
    assert traffic_of(trace).same_as(summary.traffic)


def test_ranks_of_an_inter_communicator_are_those_of_the_other_side(hybrid_archive):
    trace = read_trace(hybrid_archive)
    assert [(peer, size) for _, peer, _, tag, _, size, *_ in calls_of(trace, 1) if tag == 7] == [
        (0, 8)
    ]
    assert [(peer, size) for _, peer, _, tag, _, size, *_ in calls_of(trace, 2) if tag == 7] == [
        (1, 9)
    ]
    assert trace.communicators[2].tolist() == [2, 0, 1]


def write_clock_offsets(events, *offsets):
    for time, offset in offsets:
        _otf2.DefWriter_WriteClockOffset(events._def_handle, time, offset, 0.0)


def test_clock_offsets_are_applied(write_archive):
    def fill(a):
        for location, master in enumerate(a.masters):
            events = a.events(master)
            events.enter(100, a.main)
            events.leave(200, a.main)
            write_clock_offsets(events, (100, 10 * location), (200, 20 * location))

    trace = read_trace(write_archive(fill))
    # The global offset is the first time stamp, before correction.
    assert trace.time.reshape(3, 2).tolist() == [[0.0, 0.1], [0.01, 0.12], [0.02, 0.14]]


def test_time_that_runs_backwards_after_correction_is_an_error(write_archive):
    def fill(a):
        events = a.events(a.masters[0])
        events.enter(10, a.main)
        events.leave(20, a.main)
        write_clock_offsets(events, (10, 1000), (20, 0))

    with pytest.raises(TraceError, match=r"0\.evt: location 0, event 2: time runs backwards"):
        read_trace(write_archive(fill))


def test_an_archive_is_found_by_folder_anchor_and_parent(data, tmp_path):
    (tmp_path / "run.otf2").symlink_to(data / "lu.S.4", target_is_directory=True)
    for path in (data / "lu.S.4", data / "lu.S.4" / "traces.otf2", tmp_path, str(tmp_path)):
        assert read_traffic(path).ranks == 4
    assert read_trace(tmp_path / "run.otf2").name == "run"


@pytest.mark.usefixtures("guarded")
def test_progress_ends_with_all_events(data):
    for read in (read_trace, read_summary):
        seen = []
        read(data / "lu.S.4", progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1] == (28866, 28866)
        assert seen == sorted(seen)


@pytest.mark.usefixtures("guarded")
def test_interruption_closes_everything(data):
    def interrupt(_done, _total):
        raise KeyboardInterrupt

    def open_files():
        return len(list(Path("/proc/self/fd").iterdir()))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc to count open files in")
    read_trace(data / "lu.S.4")
    before = open_files()
    for read in (read_trace, read_summary):
        with pytest.raises(KeyboardInterrupt):
            read(data / "lu.S.4", progress=interrupt)
    assert open_files() == before
    assert read_traffic(data / "lu.S.4").ranks == 4


def test_the_summary_has_the_keys_of_the_command_line(data):
    assert list(read_summary(data / "lu.S.4").to_dict()) == [
        *("ranks", "events", "messages", "bytes", "pairs"),
        *("collectives", "collective_bytes", "duration", "one_sided", "ignored"),
        *("shared_cores", "thread_level"),
    ]
