"""Who has how many points of a line that is cut into parts."""

import numpy as np

from hopmap.traces.extrapolation.block_sizes import share


def test_the_first_parts_have_what_is_left_over():
    assert share(10, 4, np.arange(4)).tolist() == [3, 3, 2, 2]
    assert share(8, 4, np.arange(4)).tolist() == [2, 2, 2, 2]
