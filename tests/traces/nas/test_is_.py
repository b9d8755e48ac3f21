"""NAS IS: keys drawn as the benchmark draws them, and who gets how many."""

import numpy as np
import pytest

from hopmap.traces import Collective, Kind, TraceError, nas_trace, nas_traffic
from hopmap.traces.nas.is_ import MULTIPLIER, SEED, is_problem, keys_received


def drawn(keys: int, largest: int) -> list[int]:
    """Keys as NPB defines them: a quarter of the range times the sum of four numbers in (0, 1)."""
    x, values = SEED, []
    for _ in range(keys):
        total = 0.0
        for _ in range(4):
            x = MULTIPLIER * x % 2**46
            total += x / 2**46
        values.append(int(largest // 4 * total))
    return values


@pytest.mark.parametrize("ranks", [1, 2, 16, 128])
def test_ranks_get_the_keys_of_whole_buckets(ranks):
    p = is_problem("S", ranks)
    keys = drawn(p.keys, p.largest)
    keys[1], keys[1 + p.steps] = 1, p.largest - 1  # what the first ranking changes
    counts = np.bincount(np.array(keys) * p.buckets // p.largest, minlength=p.buckets)
    got, mine, so_far = [], 0, 0
    for count in counts.tolist():
        so_far, mine = so_far + count, mine + count
        if so_far >= (len(got) + 1) * p.own:
            got.append(mine)
            mine = 0
    got += [0] * (ranks - len(got))
    assert keys_received(p, ranks)[:2].tolist() == [got, got]


@pytest.mark.parametrize(("name", "ranks"), [("S", 1), ("S", 64), ("W", 1024), ("A", 32)])
def test_all_keys_arrive_in_every_ranking(name, ranks):
    p = is_problem(name, ranks)
    received = keys_received(p, ranks)
    assert received.shape == (p.steps + 1, ranks)
    assert (received.sum(axis=1) == p.keys).all()


def test_what_is_sent_is_what_is_received():
    trace = nas_trace("is.S.32", steps=3)
    rows = trace.ref[trace.kind == Kind.COLLECTIVE_END]
    moved = rows[trace.records.operation[rows] == Collective.ALLTOALLV]
    assert trace.records.size[moved].sum() == trace.records.received[moved].sum() == 4 * 4 * 2**16


def test_every_rank_tells_the_next_one_its_largest_key():
    traffic = nas_traffic("is.C.256")
    assert np.array_equal(traffic.dst, traffic.src + 1)
    assert set(traffic.bytes.tolist()) == {4}
    assert traffic.messages.sum() == 255


def test_more_rankings_than_keys_to_change_are_refused():
    assert is_problem("S", 128, 255).steps == 255
    with pytest.raises(TraceError, match="with 256 rankings: expected at most 255"):
        is_problem("S", 128, 256)
