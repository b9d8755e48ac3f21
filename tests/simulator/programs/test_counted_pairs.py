"""Alltoallv moves what is counted beside the trace; without counts it is said what was made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.api.workload import Workload
from hopmap.simulator import lower
from hopmap.simulator.programs.from_collectives import (
    BYTES_MADE_UP,
    PAIRS_COUNTED,
    PAIRS_MADE_UP,
    SUMS_ONLY,
)
from hopmap.traces import PairCounts, TraceError, read_trace, write_pair_counts, write_trace
from support.collective_calls import collective, trace_of_calls


def exchanges(*matrices):
    """Trace of one alltoallv after the other, as recorded: of each rank's row and column sums."""
    return trace_of_calls(
        [
            [
                collective("ALLTOALLV", k, k + 1, sent=row.sum(), received=column.sum())
                for k, (row, column) in enumerate((m[rank], m[:, rank]) for m in matrices)
            ]
            for rank in range(len(matrices[0]))
        ]
    )


def counts_of(*matrices, name="made.counts"):
    rows = [
        (src, k, dst, m[src, dst]) for k, m in enumerate(matrices) for src, dst in np.argwhere(m)
    ]
    return PairCounts(name, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def moved(program):
    """Bytes that are sent, by pair."""
    traffic = program.traffic()
    pairs = np.zeros((program.ranks, program.ranks), dtype=np.int64)
    pairs[traffic.src, traffic.dst] = traffic.bytes
    return pairs


RING = np.zeros((8, 8), dtype=np.int64)
RING[np.arange(8), (np.arange(8) + 1) % 8] = 800


def test_without_counts_eight_pairs_become_56_and_the_program_says_so():
    program = lower(exchanges(RING, RING))
    assert program.traffic().pairs == 56
    assert program.notes == {
        SUMS_ONLY: 2,
        PAIRS_MADE_UP: 2 * 56,
        BYTES_MADE_UP: 2 * 56 * 100,
    }


@pytest.mark.parametrize("algorithm", ["pairwise", "linear"])
def test_with_counts_eight_pairs_stay_eight(tmp_path, algorithm):
    archive = tmp_path / "ring.otf2"
    write_trace(exchanges(RING, RING), archive)
    write_pair_counts(archive / "traces.counts", counts_of(RING, RING))
    program = Workload(archive).program({"alltoallv": algorithm})
    assert program.traffic().pairs == 8
    assert np.array_equal(moved(program), 2 * RING)
    assert program.notes == {PAIRS_COUNTED: 2}
    assert program.chosen == {"alltoallv": {algorithm: 2}}


@st.composite
def matrices(draw):
    """One to three sparse matrices of 2 to 9 members; drawn cell by cell they would take long."""
    members, calls = draw(st.integers(2, 9)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    full = random.integers(1, 10**6, (calls, members, members))
    return list(np.where(random.random(full.shape) < draw(st.floats(0, 1)), full, 0))


@settings(deadline=None)
@given(matrices())
def test_counted_pairs_are_sent_as_counted(given):
    program = lower(replace(exchanges(*given), counts=counts_of(*given)))
    expected = sum(given)
    np.fill_diagonal(expected, 0)
    assert np.array_equal(moved(program), expected)
    assert program.traffic().messages.sum() == sum(
        np.count_nonzero(m) - np.count_nonzero(np.diag(m)) for m in given
    )


def test_one_sender_leaves_nothing_to_make_up():
    alone = np.zeros((4, 4), dtype=np.int64)
    alone[2] = [5, 0, 0, 7]
    program = lower(exchanges(alone))
    assert np.array_equal(moved(program), alone)
    assert program.notes == {}


def test_calls_on_smaller_communicators_count_on_and_peers_are_their_ranks():
    # World rank 2 is rank 0 of communicator 1; a call on a communicator of one does not count.
    def call(begin, comm, sent, received):
        return collective("ALLTOALLV", begin, begin + 1, comm=comm, sent=sent, received=received)

    trace = trace_of_calls(
        [
            [call(0, 0, 9, 0), call(1, 1, 0, 5)],
            [call(0, 0, 0, 0)],
            [call(0, 0, 0, 9), call(0.5, 2, 3, 3), call(1, 1, 5, 0)],
        ],
        [[2, 0], [2]],
    )
    counts = PairCounts("x", *np.array([(0, 0, 2, 9), (2, 1, 1, 5)]).T)
    assert moved(lower(replace(trace, counts=counts))).tolist() == [[0, 0, 9], [0, 0, 0], [5, 0, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c._replace(rank=c.rank + 8), "rank 8: expected a rank below 8"),
        (
            lambda c: c._replace(call=c.call + 1),
            "rank 0, call 1: made has 1 calls of alltoallv and alltoallw there",
        ),
        (lambda c: c._replace(peer=c.peer + 8), "rank 0, call 0: peer 9: expected one below 8"),
        (
            lambda c: PairCounts(c.name, *(column[:-1] for column in c[1:])),
            "rank 7, call 0: 0 bytes in all: expected 800, as made has it; is it cut, or of "
            "another run?",
        ),
        (
            lambda c: c._replace(peer=(c.peer + c.rank) % 8),
            "communicator 0, collective 0: 0 bytes to member 0: expected 800, as the trace has it",
        ),
    ],
)
def test_counts_of_another_run_or_cut_are_one_line(change, message):
    counts = change(counts_of(RING))
    with pytest.raises(TraceError) as error:
        lower(replace(exchanges(RING), counts=counts))
    assert str(error.value) == f"made.counts: {message}"


def test_reading_a_trace_takes_the_counts_beside_it(tmp_path):
    archive = tmp_path / "ring.otf2"
    write_trace(replace(exchanges(RING), counts=counts_of(RING)), archive)
    assert np.array_equal(moved(lower(read_trace(archive))), RING)
