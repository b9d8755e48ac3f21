"""Traffic from the event files: as of the whole trace, by any number of processes."""

import numpy as np
import pytest

from hopmap.traces import TraceError, nas_trace, read_summary, read_trace, summarize, write_trace
from hopmap.traces.otf2 import archive as archives
from hopmap.traces.otf2.archive import open_reader
from hopmap.traces.otf2.files import find_archive


def same(one, other):
    assert one.to_dict() == other.to_dict()
    assert one.name == other.name
    assert one.traffic.same_as(other.traffic)
    assert one.one_sided.same_as(other.one_sided)


@pytest.mark.parametrize("name", ["lu.S.4", "edge.X.8"])
def test_any_number_of_shares_finds_the_same(data, name):
    one = read_summary(data / name, workers=1)
    for shares in (3, 100, None):
        same(read_summary(data / name, workers=shares), one)


@pytest.mark.usefixtures("guarded")
def test_processes_find_the_same(data):
    same(read_summary(data / "lu.S.4", workers=2), read_summary(data / "lu.S.4", workers=1))


def test_of_threads_and_other_locations_too(hybrid_archive):
    one = read_summary(hybrid_archive, workers=1)
    for workers in (2, 5):
        same(read_summary(hybrid_archive, workers=workers), one)


@pytest.mark.parametrize("name", ["cg.S.8", "is.S.4", "mg.S.8", "ft.S.4"])
def test_every_number_is_that_of_the_trace_in_memory(tmp_path, name):
    write_trace(nas_trace(name), tmp_path / "run.otf2")
    trace = read_trace(tmp_path / "run.otf2")
    found, expected = read_summary(tmp_path / "run.otf2", workers=2), summarize(trace)
    assert found.duration == pytest.approx(expected.duration, rel=1e-12)
    assert found.to_dict() | {"duration": 0} == expected.to_dict() | {"duration": 0}
    assert found.traffic.same_as(expected.traffic)


@pytest.mark.parametrize("shares", [1, 2, 3, 7, 50])
def test_each_location_is_in_one_share(hybrid_archive, shares):
    with open_reader(find_archive(hybrid_archive), None) as archive:
        whole = [(rank, own) for rank, own in archive.by_share(0, 1)]
        parts = [list(archive.by_share(which, shares)) for which in range(shares)]
        assert [entry for part in parts for entry in part] == whole
        ranks = [rank for rank, _ in whole if rank >= 0]
        assert ranks == list(range(archive.definitions.ranks))
        assert {location for _, own in whole for location in own} == set(archive.locations)


@pytest.mark.usefixtures("guarded")
def test_progress_is_of_all_processes(data):
    heard = []
    read_summary(data / "lu.S.4", progress=lambda *said: heard.append(said), workers=2)
    events = read_summary(data / "lu.S.4").events
    assert heard[-1][:2] == (events, events)
    done = [said[0] for said in heard]
    assert done == sorted(done)


def test_a_damaged_location_is_named_whoever_reads_it(data, tmp_path):
    folder = tmp_path
    write_trace(read_trace(data / "lu.S.4"), folder / "run.otf2")
    for rank in (1, 3):
        file = next(folder.rglob(f"{rank}.evt"))
        file.write_bytes(file.read_bytes()[:-50])
    for workers in (1, 2, 4):
        with pytest.raises(TraceError, match=r"1\.evt: location 1"):
            read_summary(folder / "run.otf2", workers=workers)


def test_small_archives_take_one_process_and_large_ones_more(data, monkeypatch):
    asked = []
    guarded_all = archives.run_guarded

    def counting(works, *more):
        asked.append(len(works))
        return guarded_all(works, *more)

    monkeypatch.setattr(archives, "run_guarded", counting)
    monkeypatch.setattr(archives, "cores", lambda: 3)
    read_summary(data / "lu.S.4")
    monkeypatch.setattr(archives, "_PER_WORKER", 1)
    read_summary(data / "lu.S.4")
    read_trace(data / "lu.S.4")  # whose events are one rank's after another's
    assert asked == [1, 3, 1]
    with pytest.raises(TraceError, match="workers 0: expected at least 1"):
        read_summary(data / "lu.S.4", workers=0)


def test_bytes_of_collectives_that_fit_no_number_are_refused(data, monkeypatch):
    from hopmap.traces.otf2 import totals

    shares = archives.reading_in_shares(data / "lu.S.4", totals._read_share, None, 2)
    shares = [share._replace(collective_bytes=2**62) for share in shares]
    with pytest.raises(TraceError, match="do not fit into 63 bits"):
        totals._summary(shares)
    assert np.array_equal(totals._summary(shares[:1]).collective_bytes, 2**62)
