"""NAS EP: batches of random numbers, and the sums at the end."""

import numpy as np
import pytest

from hopmap.traces import Kind, TraceError, nas_trace, nas_traffic, summarize


def test_ranks_share_out_batches_and_the_first_have_one_more():
    trace = nas_trace("ep.S.5", flops=1.0)  # seconds are random numbers: 256 batches of 2^17
    spent = trace.time[trace.offsets[1:] - 1]
    assert np.array_equal(spent / 2**17, [52, 51, 51, 51, 51])


def test_nobody_sends_messages():
    for name in ("ep.S.1", "ep.E.4096"):
        assert nas_traffic(name).pairs == 0


def test_three_sums_and_the_largest_time_are_reduced():
    trace = nas_trace("ep.W.8")
    counts = summarize(trace).collectives
    assert counts["ALLREDUCE"] == 4
    assert counts["BCAST"] == counts["BARRIER"] == 1
    ends = trace.ref[trace.kind == Kind.COLLECTIVE_END]
    sizes = trace.records.size[ends[: len(ends) // 8]] // 8
    assert sizes.tolist() == [0, 4, 0, 8, 8, 80, 8, 0]


def test_there_are_no_time_steps():
    with pytest.raises(TraceError, match="EP with 3 time steps: it has none"):
        nas_traffic("ep.S.4", steps=3)
