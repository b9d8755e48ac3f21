"""Synthetic patterns against their definitions by coordinates and by bits of the address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces import PATTERNS, TraceError, synthetic_traffic

PERMUTATIONS = [pattern for pattern in PATTERNS if pattern != "uniform"]
DIMS = st.sampled_from([(8,), (4, 4), (8, 8), (2, 2, 2), (4, 4, 4)])


def coordinates(dims):
    strides = np.cumprod((1, *dims[:-1]))
    return np.arange(np.prod(dims))[:, None] // strides % np.array(dims)


def address(dims, rank):
    """Bits of the coordinates, x first, as text."""
    width = dims[0].bit_length() - 1
    return "".join(format(c, f"0{width}b") for c in coordinates(dims)[rank])


def target_of(pattern, dims):
    return synthetic_traffic(pattern, dims).dst


@pytest.mark.parametrize("pattern", PERMUTATIONS)
@given(dims=DIMS)
def test_every_rank_sends_one_message_and_receives_one(pattern, dims):
    traffic = synthetic_traffic(pattern, dims, size=8)
    everyone = list(range(traffic.ranks))
    assert traffic.src.tolist() == everyone
    assert sorted(traffic.dst.tolist()) == everyone
    assert set(traffic.messages.tolist()) == {1}
    assert set(traffic.bytes.tolist()) == {8}


def test_uniform_traffic_goes_to_everyone_itself_too():
    traffic = synthetic_traffic("uniform", (3, 2))
    assert traffic.pairs == 36
    assert set(traffic.messages.tolist()) == {1}


@pytest.mark.parametrize(
    ("pattern", "move"),
    [
        ("complement", lambda bits: bits.translate(str.maketrans("01", "10"))),
        ("bit_reversal", lambda bits: bits[::-1]),
        ("shuffle", lambda bits: bits[1:] + bits[0]),
    ],
)
@given(dims=DIMS)
def test_bits_of_the_address_move_as_defined(pattern, move, dims):
    for source, target in enumerate(target_of(pattern, dims).tolist()):
        assert address(dims, target) == move(address(dims, source))


@given(dims=DIMS)
def test_a_transpose_rotates_the_address_by_one_coordinate(dims):
    width = dims[0].bit_length() - 1
    for source, target in enumerate(target_of("transpose", dims).tolist()):
        bits = address(dims, source)
        assert address(dims, target) == bits[width:] + bits[:width]


def test_a_transpose_in_two_dimensions_swaps_them():
    here = coordinates((3, 3))
    assert here[target_of("transpose", (3, 3))].tolist() == here[:, ::-1].tolist()


@pytest.mark.parametrize(("k", "shift"), [(4, 1), (5, 2), (8, 3), (9, 4)])
def test_a_tornado_goes_almost_half_way_round_in_x_alone(k, shift):
    here = coordinates((k, 2))
    there = here[target_of("tornado", (k, 2))]
    assert np.array_equal(there[:, 0], (here[:, 0] + shift) % k)
    assert np.array_equal(there[:, 1], here[:, 1])


def test_a_neighbour_is_one_further_in_every_dimension():
    here = coordinates((4, 3, 2))
    assert np.array_equal(here[target_of("neighbour", (4, 3, 2))], (here + 1) % (4, 3, 2))


@pytest.mark.parametrize(
    ("pattern", "dims", "message"),
    [
        ("torn", (4,), r"pattern 'torn' \(did you mean tornado\?\): expected one of uniform"),
        ("transpose", (4, 2), "transpose: sizes 4x2: expected equal ones"),
        ("shuffle", (4, 3), "shuffle: sizes 4x3: expected powers of two"),
        ("bit_reversal", (6,), "bit_reversal: sizes 6: expected powers of two"),
        ("uniform", (), "uniform: sizes : expected whole numbers of at least 1"),
        ("uniform", (128, 64), "uniform: 8192 ranks: expected at most 4096"),
        ("uniform", (4, 0), "uniform: sizes 4x0: expected whole numbers of at least 1"),
    ],
)
def test_what_a_pattern_is_not_defined_for_is_an_error(pattern, dims, message):
    with pytest.raises(TraceError, match=message):
        synthetic_traffic(pattern, dims)


def test_a_negative_size_is_an_error():
    with pytest.raises(TraceError, match="-1 bytes a message: expected 0 to 549,755,813,888"):
        synthetic_traffic("uniform", (2,), size=-1)
