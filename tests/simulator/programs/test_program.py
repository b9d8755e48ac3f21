"""Numbering of keys is numpy's, for small keys and for any others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator.programs.program import ROOM, number_keys


@pytest.mark.parametrize("top", [3, 50, 4 * ROOM, 2**62])
@given(data=st.data())
def test_as_numpy_unique(top, data):
    low = data.draw(st.sampled_from([0, -top]))
    keys = np.array(data.draw(st.lists(st.integers(low, top), max_size=30)), dtype=np.int64)
    found, place = number_keys(keys)
    assert found.tolist() == sorted(set(keys.tolist()))
    assert found[place].tolist() == keys.tolist()
    assert found.dtype == place.dtype == np.int64
