"""Bytes at more ranks, from one recording."""

import numpy as np
import pytest

from hopmap.traces.extrapolation.partners import Place, coordinates
from hopmap.traces.extrapolation.value_models import Known, Unknown, points_in, size_at

PLACES = [Place(dims, coordinates(dims), 1) for dims in ((4, 4), (8, 8))]


def at_64(size, everyone):
    values = np.broadcast_to(np.array(size).reshape(-1, 1), (16, 1))
    return np.unique(size_at([values], PLACES, Known(), everyone=everyone)).tolist()


def test_a_message_stays_and_a_collective_has_as_much_for_each_member():
    assert at_64(48, False) == [48]
    assert at_64(48, True) == [192]
    assert at_64(0, True) == [0]


def test_what_one_recording_does_not_say_is_not_known():
    with pytest.raises(Unknown, match=r"^50 bytes in all do not divide by 16 ranks"):
        at_64(50, True)
    with pytest.raises(Unknown, match=r"sizes of 0 1 2 \.\.\. bytes differ between ranks, and one"):
        at_64(range(16), False)


def test_the_first_parts_of_a_line_have_what_is_left_over():
    assert points_in(10, 4, np.arange(4)).tolist() == [3, 3, 2, 2]
    assert points_in(8, 4, np.arange(4)).tolist() == [2, 2, 2, 2]
