"""Profiles of traces for Hatchet."""

import numpy as np
import pytest

import hopmap as hm
from hopmap.traces.frames.hatchet import _profile
from hopmap.traces.trace import Records, Trace, TraceError
from support import DATA


def made(*events):
    """A trace of one rank that enters (+) and leaves (-) regions: (second, "+name")."""
    names = sorted({name[1:] for _, name in events})
    none = Records(*(np.zeros(0, np.int64) for _ in Records._fields))
    return Trace(
        name="made",
        offsets=np.array([0, len(events)]),
        kind=np.array([name[0] == "-" for _, name in events], dtype=np.uint8),
        time=np.array([time for time, _ in events], dtype=float),
        ref=np.array([names.index(name[1:]) for _, name in events], dtype=np.int32),
        records=none,
        regions=tuple(names),
        communicators=(),
    )


def test_time_of_a_call_is_its_own_without_the_calls_below():
    """Main from 0 to 10 calls a twice, which calls b once; b outside of a is another path."""
    trace = made(
        (0, "+main"), (1, "+a"), (2, "+b"), (4, "-b"), (5, "-a"), (6, "+a"), (7, "-a"),
        (8, "+b"), (9, "-b"), (10, "-main"),
    )  # fmt: skip
    paths, totals = _profile(trace)
    names = [(paths[above][1] if above >= 0 else None, region) for above, region in paths]
    a, b, main = range(3)
    assert names == [(None, main), (main, a), (a, b), (main, b)]
    assert [totals[path, 0] for path in range(4)] == [(4, 10, 1), (3, 5, 2), (2, 2, 1), (1, 1, 1)]


def test_a_call_that_is_left_without_having_been_entered_is_an_error_of_one_line():
    with pytest.raises(TraceError, match="made: rank 0: a is left: expected it to be entered"):
        _profile(made((0, "-a")))


def test_hatchet_gets_a_row_for_each_rank_of_each_path():
    pytest.importorskip("hatchet", reason="needs the extra hatchet")
    trace = hm.read_trace(DATA / "lu.S.4")
    profile = hm.to_hatchet(trace)
    frame = profile.dataframe
    assert len(frame) == len(profile.graph) * trace.ranks
    spent = frame.groupby("rank")["time"].sum()
    whole = frame[[node.parents == [] for node, _ in frame.index]]
    assert np.allclose(spent, whole.groupby("rank")["time (inc)"].sum())
    assert "MPI_Send" in profile.tree(metric_column="time")
    sends = frame[frame["name"] == "MPI_Send"]["calls"].sum()
    assert sends == sum(trace.regions[n] == "MPI_Send" for n in trace.ref[trace.kind == 0])
