"""What a replay leaves out is told: what, how often, how long, how much of the run that is."""

from __future__ import annotations

import json

from otf2.enums import Paradigm, ParameterType

from hopmap.simulator import lower
from hopmap.simulator.programs.left_out import left_out
from hopmap.traces import nas_folded, read_summary, read_trace, summarize
from hopmap.traces.left_out import LeftOut, substantial
from support.archives import archive_of, region
from support.commands import as_json, hopmap


def made(folder):
    """Two ranks of 10 s each; what rank 0 does besides is left out."""
    with archive_of(folder, 2) as a:
        wtime, put = region(a, "MPI_Wtime"), region(a, "MPI_Put")
        probe, irecv = region(a, "MPI_Probe"), region(a, "MPI_Irecv")
        number = a.definitions.parameter("n", parameter_type=ParameterType.INT64)
        for rank, master in enumerate(a.masters):
            events = a.events(master)
            events.program_begin(0, "made", [])
            events.enter(0, wtime)
            events.leave(0, wtime)
            if rank == 0:
                events.buffer_flush(1000, 5000)
                events.enter(6000, put)
                events.leave(6100, put)
                events.enter(7000, probe)
                events.mpi_probe(7000, 1, a.world, 1, 0xFFFFFFFFFFFFFFFF)
                events.leave(7000, probe)
                events.enter(7000, irecv)
                events.mpi_irecv_request(7000, 5)
                events.leave(7000, irecv)
                events.enter(7000, a.send)
                events.mpi_send(7000, 1, a.world, 1, 8)
                events.leave(7000, a.send)
                events.parameter_int(7000, number, 3)
            events.enter(10000, wtime)
            events.leave(10000, wtime)
            events.program_end(10000, 0)
        region(a, "main", Paradigm.USER)
    return folder


EXPECTED = [
    LeftOut("flushes of trace buffers", 1, 4.0, 0.2),
    LeftOut("one-sided calls, not simulated", 1, 0.1, 0.005),
    LeftOut("receives never completed", 1),
    LeftOut("messages that nobody receives", 1),
    LeftOut("probes, not simulated", 1),
    LeftOut("ParameterInt records", 1),
]


def test_everything_is_listed_with_what_takes_longest_first(tmp_path):
    trace = read_trace(made(tmp_path / "made"))
    found = left_out(trace, lower(trace))
    assert [entry.what for entry in found] == [entry.what for entry in EXPECTED]
    for entry, expected in zip(found, EXPECTED, strict=True):
        assert entry.count == expected.count
        if expected.seconds is None:
            assert (entry.seconds, entry.share) == (None, None)
        else:
            assert abs(entry.seconds - expected.seconds) < 1e-9
            assert abs(entry.share - expected.share) < 1e-9
    assert str(found[0]) == "flushes of trace buffers: 1, 4 s (20.00% of the run)"
    assert str(found[2]) == "receives never completed: 1"
    assert json.dumps([entry.to_dict() for entry in found])
    assert substantial(found) == [found[0]]  # more than 1 % of the run


def test_a_summary_counts_what_is_ignored_as_a_trace_does(tmp_path):
    folder = made(tmp_path / "made")
    summary, trace = read_summary(folder), read_trace(folder)
    expected = {"BufferFlush": 1, "ParameterInt": 1, "ProgramBegin": 2, "ProgramEnd": 2}
    assert summary.ignored == trace.ignored == summarize(trace).ignored == expected


def test_info_says_so(tmp_path):
    folder = made(tmp_path / "made")
    printed = hopmap("info", folder)
    assert "left out: BufferFlush records" in printed
    assert "left out: ParameterInt records" in printed
    assert "ProgramBegin" not in printed
    assert as_json("info", folder)["ignored"]["BufferFlush"] == 1


def test_generated_runs_leave_nothing_out():
    folded = nas_folded("lu.S.4")
    assert left_out(folded, lower(folded)) == []
    assert left_out(None, lower(folded)) == []
