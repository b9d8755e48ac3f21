"""Short names of numpy's arrays, by what is in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.void]  # of records
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints8 = NDArray[np.int8]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]  # states of random numbers, bits of labels
