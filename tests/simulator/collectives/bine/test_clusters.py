"""Bine algorithms of the authors' library for clusters: what they send differently, by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.schedules import AlgorithmError
from support.schedules import depth


def messages(operation, name, members, volume, **options):
    given = ALGORITHMS[operation][name](members, 0, np.array(volume), **options)
    columns = (column.tolist() for column in (given.round, given.src, given.dst, given.size))
    return list(zip(*columns, strict=True))


def copied(operation, name, members, volume):
    given = ALGORITHMS[operation][name](members, 0, np.array(volume))
    return np.bincount(given.work.member, given.work.copied, members).tolist()


@pytest.mark.parametrize("members", [2, 4, 8, 16])
def test_blocks_for_any_even_number_are_those_of_the_tree_at_powers_of_two(members):
    blocks = 2 ** np.arange(members)
    tree, any_even = (
        Counter(messages("allgather", name, members, blocks))
        for name in ("bine_blocks", "bine_any_even")
    )
    assert any_even == tree


def test_of_six_ranks_the_partners_are_3_then_1_back_then_1_on():
    """mod(rank +- (1, -1, 3), 6), even ranks on, odd ranks back; the allgather begins far."""
    sent = messages("allgather", "bine_any_even", 6, [1] * 6)
    assert [{(s, d) for r, s, d, _ in sent if r == k} for k in range(3)] == [
        {(0, 3), (3, 0), (2, 5), (5, 2), (4, 1), (1, 4)},
        {(0, 5), (5, 0), (2, 1), (1, 2), (4, 3), (3, 4)},
        {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)},
    ]
    assert Counter(s for _, s, _, _ in sent) == dict.fromkeys(range(6), 5)


def test_an_odd_number_is_refused():
    for operation, volume in (("allgather", [1] * 5), ("allreduce", [5])):
        with pytest.raises(AlgorithmError, match="5 members: expected an even number"):
            messages(operation, "bine_any_even", 5, volume)


def test_gathered_ranges_grow_on_one_side_and_the_other_in_turn():
    """Of 8: 1 sends itself, 7 sends 6 and 7, and 3 sends 2 to 5; a range with 7 and 0 is cut."""
    sent = messages("gather", "bine_ranges", 8, 2 ** np.arange(8))
    into_root = [(src, size) for _, src, dst, size in sorted(sent) if dst == 0]
    assert into_root == [(1, 0b10), (7, 0b11000000), (3, 0b111100)]
    for operation in ("gather", "scatter"):
        given = ALGORITHMS[operation]["bine_ranges"](8, 4, 2 ** np.arange(8))
        pairs = Counter(zip(given.src.tolist(), given.dst.tolist(), strict=True))
        assert sorted(pairs.values()) == [1, 1, 1, 1, 1, 1, 2]
        assert given.size.sum() == 2 ** np.arange(8) @ [2, 3, 2, 1, 0, 1, 2, 1]


def test_blocks_in_ranges_are_put_into_order_by_nobody():
    assert copied("gather", "bine_ranges", 8, [10] * 8) == [10] * 8
    assert copied("gather", "bine", 8, [10] * 8)[0] == 90


def test_what_wraps_is_packed_and_unpacked_where_it_goes_as_one_message():
    assert copied("allgather", "bine_ranges", 4, [10] * 4) == [10] * 4
    # 3 and 0 meet in step 1 with ranges of two; 3's (2, 3) and 0's (0, 1) do not wrap, 1's do.
    joined = messages("allgather", "bine_joined", 8, [10] * 8)
    ranges = messages("allgather", "bine_ranges", 8, [10] * 8)
    assert len(joined) == 24 < len(ranges)
    assert sum(n for *_, n in joined) == sum(n for *_, n in ranges)
    per_rank = np.array(copied("allgather", "bine_joined", 8, [10] * 8)) - 10
    two = Counter((r, s, d) for r, s, d, _ in ranges)
    twice = [key for key, count in two.items() if count == 2]
    wrapped = sum(n for r, s, d, n in ranges if (r, s, d) in twice)
    assert per_rank.sum() == 2 * wrapped


def test_who_has_all_blocks_is_sent_none_in_the_exchange():
    """The root of a scattered broadcast receives nothing; everyone else its n (p - 1) / p once."""
    for name in ("bine_scatter_allgather_once", "bine_scatter_allgather_blocking"):
        sent = messages("bcast", name, 8, [64])
        into = Counter()
        for _, _, dst, size in sent:
            into[dst] += size
        assert into == dict.fromkeys(range(1, 8), 64)
    full = messages("bcast", "bine_scatter_allgather", 8, [64])
    assert sum(n for *_, n in full) > 7 * 64


@pytest.mark.parametrize(("segment", "count"), [(0, 1), (64, 1), (16, 2), (8, 4)])
def test_segments_of_a_part_follow_each_other(segment, count):
    """Of 64 bytes on 4 ranks parts of 32 and 16 are halved; then 16 and 32 are exchanged whole."""
    sent = messages("allreduce", "bine_halving_in_turns", 4, [64], segment=segment)
    mine = [(r, n) for r, s, _, n in sent if s == 0]
    first, second = count, max(count // 2, 1)
    sizes = [32 // first] * first + [16 // second] * second + [16, 32]
    assert mine == list(enumerate(sizes))


def test_ranks_beyond_a_power_of_two_fold():
    for name in ("bine_folded", "bine_halving_in_turns"):
        sent = messages("allreduce", name, 6, [64])
        assert {(0, 1), (2, 3)} == {(s, d) for r, s, d, _ in sent if r == 0}
        last = max(r for r, *_ in sent)
        assert {(1, 0), (3, 2)} == {(s, d) for r, s, d, _ in sent if r == last}
    same = (messages("allreduce", name, 8, [64]) for name in ("bine", "bine_folded"))
    assert next(same) == next(same)


def test_whole_buffers_go_up_and_down_the_tree_in_as_many_rounds_as_it_is_high():
    size = 2**26  # longer than a put
    for operation, name in (("bcast", "bine_at_once"), ("reduce", "bine_whole")):
        given = ALGORITHMS[operation][name](16, 0, np.array([size]))
        assert given.size.tolist() == [size] * 15
        assert depth(given) == 4
