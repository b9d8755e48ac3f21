"""What a collective moves, read from what Score-P records of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator.collectives.volumes import share_out, volume
from hopmap.traces import Collective

C = Collective
P = 8
I = np.arange(P)  # noqa: E741
ZERO = np.zeros(P, dtype=np.int64)


def at(root, value):
    return np.where(root == I, value, 0)


@pytest.mark.parametrize(
    ("operation", "root", "sent", "received", "expected"),
    [
        # The figures of the recorded edge.X.8.
        (C.BARRIER, -1, ZERO, ZERO, [0]),
        (C.BCAST, 3, at(3, 800), np.full(P, 100), [100]),
        (C.REDUCE, 5, np.full(P, 8), at(5, 64), [8]),
        (C.ALLREDUCE, -1, np.full(P, 64), np.full(P, 64), [8]),
        (C.GATHER, 1, np.full(P, 8), at(1, 64), np.full(P, 8)),
        (C.SCATTER, 1, at(1, 64), np.full(P, 8), np.full(P, 8)),
        (C.GATHERV, 4, I + 1, at(4, 36), I + 1),
        (C.ALLGATHER, -1, np.full(P, 64), np.full(P, 64), np.full(P, 8)),
        (C.ALLGATHERV, -1, 8 * (I + 1), np.full(P, 36), I + 1),
        (C.ALLTOALL, -1, np.full(P, 32), np.full(P, 32), np.full((P, P), 4)),
        (C.SCAN, -1, 8 * (P - I), 8 * (I + 1), [8]),
        (C.EXSCAN, -1, 8 * (P - 1 - I), 8 * I, [8]),
        (C.REDUCE_SCATTER_BLOCK, -1, np.full(P, 64), np.full(P, 64), np.full(P, 8)),
        (C.REDUCE_SCATTER, -1, np.full(P, 36), 8 * (I + 1), I + 1),
        # In place: Score-P leaves the own part out.
        (C.ALLREDUCE, -1, np.full(P, 7 * 4), np.full(P, 7 * 4), [4]),
        (C.BCAST, 0, at(0, 800), ZERO, [100]),
    ],
)
def test_bytes_of_an_operation(operation, root, sent, received, expected):
    taken = volume(operation, root, np.asarray(sent), np.asarray(received))
    assert np.array_equal(taken, expected)


sums = st.lists(st.integers(0, 10**12), min_size=1, max_size=9)


@given(sums, st.randoms(use_true_random=False))
def test_shares_add_up_to_what_was_sent_and_received(received, random):
    sent = [0] * len(received)
    for _ in range(3):
        sent[random.randrange(len(sent))] += sum(received) // 3
    sent[0] += sum(received) - sum(sent)
    pairs = share_out(np.array(sent), np.array(received))
    assert (pairs >= 0).all()
    assert pairs.sum(axis=1).tolist() == sent
    assert pairs.sum(axis=0).tolist() == received


def test_equal_totals_are_shared_equally():
    assert (share_out(np.full(4, 400), np.full(4, 400)) == 100).all()


def test_totals_that_disagree_keep_what_was_sent():
    pairs = share_out(np.array([10, 20]), np.array([7, 7]))
    assert pairs.sum(axis=1).tolist() == [10, 20]
    assert share_out(np.array([10, 20]), np.array([0, 0])).sum() == 30
