"""What a replay leaves out is told: what, how often, how long, how much of the run that is."""

from __future__ import annotations

import json

from hopmap.simulator import lower, omissions
from hopmap.traces import nas_folded, read_summary, read_trace, summarize
from support.archives import OMISSIONS, archive_with_omissions


def test_everything_is_listed_with_what_takes_longest_first(tmp_path):
    trace = read_trace(archive_with_omissions(tmp_path / "made"))
    found = omissions(lower(trace))
    assert [entry.what for entry in found] == [entry.what for entry in OMISSIONS]
    for entry, expected in zip(found, OMISSIONS, strict=True):
        assert entry.count == expected.count
        if expected.seconds is None:
            assert (entry.seconds, entry.share) == (None, None)
        else:
            assert abs(entry.seconds - expected.seconds) < 1e-9
            assert abs(entry.share - expected.share) < 1e-9
    assert str(found[0]) == "flushes of trace buffers: 1, 4 s (20.00% of the run)"
    assert str(found[2]) == "receives never completed: 1"
    assert json.dumps([entry.to_dict() for entry in found])


def test_a_summary_counts_what_is_ignored_as_a_trace_does(tmp_path):
    folder = archive_with_omissions(tmp_path / "made")
    summary, trace = read_summary(folder), read_trace(folder)
    expected = {"BufferFlush": 1, "ParameterInt": 1, "ProgramBegin": 2, "ProgramEnd": 2}
    assert summary.ignored == trace.ignored == summarize(trace).ignored == expected


def test_generated_runs_leave_nothing_out():
    folded = nas_folded("lu.S.4")
    assert omissions(lower(folded)) == ()
