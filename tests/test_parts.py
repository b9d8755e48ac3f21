"""What one compiled function calls is compiled into it, once, and into nothing else."""

import numpy as np
import pytest

from hopmap.compilation import njit
from hopmap.parts import KNOWN

pytestmark = pytest.mark.usefixtures("compiled")


@njit(cache=False)
def added(a, b):
    if b == 7:
        raise ValueError("seven")
    return a + b


@njit(cache=False)
def total(values, few):
    part = added(1, 2) + added(few, 3) + added(np.int64(few), few)
    for value in values:  # of 32 bits
        part += added(value, few)
    return part


@njit(cache=False)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@njit(cache=False)
def largest(values):
    return np.sort(values)[-1] + np.argmax(values)


def test_the_installed_numba_is_one_whose_inside_is_known():
    """With another all is right, and first calls are slow: look at `parts` and let it in."""
    assert KNOWN


def test_a_part_is_compiled_once_for_whole_numbers_of_all_sizes_and_its_caller_alone_as_a_whole():
    values = np.array([2**31 - 1, 5], dtype=np.int32)
    assert total(values, np.int8(4)) == 3 + 7 + 8 + (2**31 + 3) + 9
    assert len(added.part.overloads) == 1
    assert len(added.overloads) == 0
    assert added(40, 2) == 42  # called from Python, it is a whole as well
    assert len(added.overloads) == 1


def test_what_a_part_raises_arrives():
    with pytest.raises(ValueError, match="seven"):
        total(np.zeros(1, dtype=np.int32), np.int8(7))


def test_a_function_may_call_itself():
    assert fibonacci(15) == 610


def test_functions_of_numpy_are_parts_as_well():
    values = np.random.default_rng(0).integers(0, 1000, 50)
    assert largest(values) == values.max() + values.argmax()
    assert largest(values[::-2]) == values[::-2].max() + values[::-2].argmax()


def test_a_fraction_stays_a_fraction():
    @njit(cache=False)
    def call(x):
        return added(x, 1) + added(x, 0.5)

    assert call(0.25) == 2.0
    assert added.part.nopython_signatures[-1].return_type.name == "float64"
