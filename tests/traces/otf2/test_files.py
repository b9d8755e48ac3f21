"""Files of events whose end is lost: libotf2 would go on in its own memory."""

import os
from pathlib import Path

import pytest
from otf2.enums import MetricMode, MetricType

from hopmap.traces import TraceError, read_summary, read_trace
from hopmap.traces.otf2 import files
from hopmap.traces.otf2.files import is_complete
from support.slow import SHARE, slow

CHUNK = 2**20  # bytes, what the wheel's writer takes
EVENT = 18  # bytes of one send: time stamp, type, length, four numbers of one or two bytes


@pytest.fixture
def ring(write_archive):
    """Write a ring of three ranks that all send equally often: equal files but for the partner."""

    def write(messages):
        def fill(a):
            for rank, master in enumerate(a.masters):
                events = a.events(master)
                for time in range(messages):
                    events.mpi_send(time, (rank + 1) % 3, a.world, 3, 1000)

        return write_archive(fill)

    return write


@pytest.mark.parametrize("name", ["traces/3.evt", "traces/3.def", "traces.def"])
def test_no_cut_is_complete(name, data, tmp_path):
    """Wherever a file ends too early, it has no mark of its end."""
    content = (data / "edge.X.8" / name).read_bytes()
    file = tmp_path / Path(name).name
    file.write_bytes(content)
    assert is_complete(file, CHUNK)
    ends = len(content) - 1  # the last byte says that the buffer ends
    for size in {*range(0, ends, SHARE["of"] ** 2), *range(ends - 100, ends)}:
        file.write_bytes(content[:size])
        assert not is_complete(file, CHUNK)


def test_recorded_files_are_complete(data):
    folders = os.walk(data, followlinks=True)
    found = [Path(root, name) for root, _, names in folders for name in names]
    files = [file for file in found if file.suffix in (".evt", ".def")]
    assert len(files) == 92
    assert all(is_complete(file, CHUNK) for file in files)


def test_files_that_may_not_be_read_are_named(data, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.np, "fromfile", denied)
    with pytest.raises(TraceError, match=r"edge\.X\.8/traces\.def: Permission denied"):
        read_summary(data / "edge.X.8")


@pytest.mark.parametrize("lost", [1, *slow(2, 3)])
def test_a_cut_in_a_later_chunk_is_not_filled_up(ring, lost):
    """The ranks before have left just what is missing where libotf2 would look for it."""
    archive = ring(messages=130_000)  # 2.2 chunks
    file = archive / "traces" / "2.evt"
    whole = file.read_bytes()
    assert len(whole) > 2 * CHUNK
    file.write_bytes(whole[: -2 - lost * EVENT])
    for read in (read_trace, read_summary):
        with pytest.raises(TraceError, match=r"2\.evt: location 2: \d+ bytes without the mark"):
            read(archive)


@pytest.mark.parametrize("spare", [0, *slow(1, 2), 3])
def test_files_that_fill_their_chunk(ring, spare):
    messages = CHUNK // EVENT - spare
    trace = read_trace(ring(messages))
    assert trace.events == 3 * messages


def test_records_of_all_lengths(write_archive):
    """More than 254 bytes have a longer length; an undefined number has none."""

    def fill(a):
        member = a.definitions.metric_member(
            "cycles", metric_type=MetricType.PAPI, metric_mode=MetricMode.ACCUMULATED_START
        )
        metric = a.definitions.metric_class((member,) * 60)
        events = a.events(a.masters[0])
        events.metric(1, metric, [2**60 + value for value in range(60)])
        events.mpi_request_test(2, 2**64 - 1)
        events.mpi_send(3, 1, a.world, 0, 2**40)

    archive = write_archive(fill)
    assert is_complete(archive / "traces" / "0.evt", CHUNK)
    trace = read_trace(archive)
    assert trace.ignored["Metric"] == 1
    assert read_summary(archive).traffic.bytes.tolist() == [2**40]
