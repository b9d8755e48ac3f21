"""Time-independent traces, read back by a reader written from SimGrid's smpi_replay.cpp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.errors import HopmapWarning
from hopmap.simulator import Op, Parameters, lower, program_of, simulate
from hopmap.simulator.export.time_independent import FLOPS, write_tit
from hopmap.topologies import mesh
from hopmap.traces import TraceError
from hopmap.traces.nas.benchmarks import nas_folded
from support.made_traces import fence, put, window_trace
from support.slow import examples


def lines_of(folder):
    names = (folder / "traces.txt").read_text().splitlines()
    return [(folder / name).read_text().splitlines() for name in names]


def read_tit(folder):
    """Return the lists of `program_of`; a wait takes the oldest request of its ends and tag."""
    lists = []
    for rank, lines in enumerate(lines_of(folder)):
        words = [line.split() for line in lines]
        assert {word[0] for word in words} == {str(rank)}
        assert (words[0][1:], words[-1][1:]) == (["init"], ["finalize"])
        made, requests = [], {}
        for _, action, *given_ in words[1:-1]:
            if action == "compute":
                made.append(("compute", float(given_[0]) / FLOPS))
                continue
            if action == "wait":
                made.append(("wait", requests[tuple(map(int, given_))].pop(0)))
                continue
            peer, tag, size = map(int, given_)
            if action in ("isend", "irecv"):
                ends = (rank, peer) if action == "isend" else (peer, rank)
                requests.setdefault((*ends, tag), []).append(len(made))
            made.append((action, peer, size, tag))
        lists.append(made)
    return lists


def test_every_action_as_smpirun_reads_it(tmp_path):
    program = program_of(
        "all",
        [
            [("compute", 0.5), ("send", 1, 100, 7), ("irecv", 1, 0, 3), ("wait", 2)],
            [("recv", 0, 1, 7), ("isend", 0, 20, 3), ("compute", 0.25), ("wait", 1)],
        ],
    )
    write_tit(tmp_path / "out", program)
    # Tags are numbered from 0; a receive has the size of the message that it takes.
    assert lines_of(tmp_path / "out") == [
        [
            "0 init",
            "0 compute 500000000.0",
            "0 send 1 1 100",
            "0 irecv 1 0 20",
            "0 wait 1 0 0",
            "0 finalize",
        ],
        [
            "1 init",
            "1 recv 0 1 100",
            "1 isend 0 0 20",
            "1 compute 250000000.0",
            "1 wait 1 0 0",
            "1 finalize",
        ],
    ]


def test_loops_are_written_out(tmp_path):
    body = [("compute", 1.0), ("isend", 1, 8), ("wait", 1)]
    program = program_of("loop", [[("repeat", 3, body)], [("repeat", 3, [("recv", 0, 8)])]])
    write_tit(tmp_path / "out", program)
    first, second = lines_of(tmp_path / "out")
    assert first[1:-1] == ["0 compute 1000000000.0", "0 isend 1 0 8", "0 wait 0 1 0"] * 3
    assert second[1:-1] == ["1 recv 0 0 8"] * 3


def test_waits_out_of_order_find_their_own_request(tmp_path):
    # A wait of the format is for the oldest request: these need tags of their own.
    ends = [("isend", 1, 10), ("isend", 1, 20), ("wait", 1), ("wait", 0), ("send", 1, 30)]
    program = program_of("back", [ends, [("recv", 0, 0)] * 3])
    write_tit(tmp_path / "out", program)
    (_, a, b, waits_b, waits_a, last, _), received = lines_of(tmp_path / "out")
    assert waits_b.split()[-1] == b.split()[3] != a.split()[3] == waits_a.split()[-1]
    tags = [line.split()[3] for line in (a, b, last)]
    assert [line.split()[3] for line in received[1:-1]] == tags


@st.composite
def programs(draw):
    """Ranks that exchange messages, under few tags, and wait for them in any order."""
    ranks = draw(st.integers(1, 4))
    messages = draw(
        st.lists(
            st.tuples(
                st.integers(0, ranks - 1),
                st.integers(0, ranks - 1),
                st.integers(0, 10**5),
                st.integers(0, 2),
            ).filter(lambda m: m[0] != m[1]),
            max_size=12,
        )
        if ranks > 1
        else st.just([])
    )
    lists = []
    for r in range(ranks):
        posted = [("irecv", s, 0, tag) for s, t, _, tag in messages if t == r]
        posted += [("isend", t, size, tag) for s, t, size, tag in messages if s == r]
        waits = [("wait", k) for k in draw(st.permutations(range(len(posted))))]
        lists.append([*posted, ("compute", draw(st.integers(0, 9)) * 1e-6), *waits])
    return lists


@examples(60)
@given(lists=programs(), eager=st.sampled_from([0, 10**4, 10**6]))
def test_what_is_read_back_replays_alike(tmp_path_factory, lists, eager):
    program = program_of("random", lists)
    folder = tmp_path_factory.mktemp("tit") / "out"
    write_tit(folder, program)
    again = program_of("again", read_tit(folder))
    assert again.kind.tolist() == program.kind.tolist()
    assert again.target.tolist() == program.target.tolist()
    ends = [
        simulate(p, mesh((5,)), range(len(lists)), parameters=Parameters(eager_limit=eager)).finish
        for p in (program, again)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


@pytest.mark.parametrize("name", ["lu.S.4", "mg.S.16", "is.S.16"])
def test_a_recorded_trace_keeps_all_its_messages(tmp_path, lowered, name):
    program = lowered(name)
    write_tit(tmp_path / "out", program)
    again = program_of(name, read_tit(tmp_path / "out"))
    for matrix in ("src", "dst", "messages", "bytes"):
        assert np.array_equal(getattr(again.traffic(), matrix), getattr(program.traffic(), matrix))
    assert again.compute.sum() == pytest.approx(program.compute.sum(), rel=1e-12)
    # Messages meet the same receives, found by place among the sends and among all operations.
    assert again.receives().tolist() == program.receives().tolist()


def test_compute_is_scaled_and_left_out_at_zero(tmp_path):
    program = lower(nas_folded("lu.S.4", steps=1))
    for scale in (2.0, 0.0):
        write_tit(tmp_path / "out", program, compute_scale=scale)
        found = [
            float(line.split()[2])
            for lines in lines_of(tmp_path / "out")
            for line in lines
            if " compute " in line
        ]
        done = simulate(program, mesh((4,)), range(4)).compute.sum()
        assert sum(found) == pytest.approx(done * scale * FLOPS, rel=1e-12)
        assert bool(found) == (scale > 0)


def test_what_goes_on_in_the_background_cannot_be_said(tmp_path, lowered):
    program = lowered("edge.X.8")
    assert (program.kind == Op.START).any()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("as it was")
    with pytest.raises(TraceError, match=r"rank 0 begins a non-blocking collective: expected"):
        write_tit(tmp_path / "out", program)
    assert (tmp_path / "out" / "kept").read_text() == "as it was"


def test_what_others_put_and_get_cannot_be_said_either(tmp_path):
    program = lower(window_trace([[put(0, 1, 8), fence(0)], [fence(0)]]))
    said = "made: rank 1 is the target of one-sided operations: expected"
    puts = "made: 2 puts, and answers of memory, are written as standard"
    with pytest.warns(HopmapWarning, match=puts), pytest.raises(TraceError, match=said):
        write_tit(tmp_path / "out", program)


def test_modes_that_the_format_lacks_are_told(tmp_path):
    program = program_of("modes", [[("bsend", 1, 8)], [("recv", 0, 8)]])
    with pytest.warns(HopmapWarning, match="modes: 1 buffered, synchronous or ready sends are"):
        write_tit(tmp_path / "written", program)
