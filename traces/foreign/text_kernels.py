"""Compiled: the fields of a text, line by line, with the numbers that stand in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.compilation import njit

TEXT, INTEGER, DECIMAL, EMPTY = 0, 1, 2, 3
BREAK, NEWLINE = 1, 2  # classes of bytes; 0 is anything else

_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # FNV-1a, 64 bits
_ZERO, _NINE, _MINUS, _POINT, _RETURN = ord("0"), ord("9"), ord("-"), ord("."), ord("\r")


@njit(cache=False)
def _number(text: NDArray[np.uint8], begin: int, end: int) -> Any:
    """Value and kind of a field."""
    at = begin
    negative = text[at] == _MINUS
    if negative:
        at += 1
    value, digits = np.int64(0), 0
    while at < end and _ZERO <= text[at] <= _NINE:
        value = value * 10 + np.int64(text[at] - _ZERO)
        digits += 1
        at += 1
    if 0 < digits <= 20 and at == end:
        return (-value if negative else value), INTEGER
    if 0 < digits <= 16 and value < 9 * 10**15 and text[at] == _POINT:
        at += 1
        places = 0
        while at < end and _ZERO <= text[at] <= _NINE:
            if places < 3:
                value = value * 10 + np.int64(text[at] - _ZERO)
            places += 1
            at += 1
        if at == end:
            while places < 3:
                value *= 10
                places += 1
            return (-value if negative else value), DECIMAL
    mixed = _BASIS
    for k in range(begin, end):
        mixed = (mixed ^ np.uint64(text[k])) * _PRIME
    return np.int64(mixed), TEXT


@njit
def split(
    text: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    squeeze: bool,
    lines: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    values: NDArray[np.int64],
    kinds: NDArray[np.uint8],
) -> tuple[int, int]:
    """Fill the columns; return how many lines and fields there are.

    Parameters
    ----------
    classes : ndarray(uint8, shape=(256,))
        What each byte is.
    squeeze : bool
        Whether breaks that follow each other are one; then no field is empty.
    lines : ndarray(int64)
        First field of each line.
    values : ndarray(int64)
        The number; thousandths of a DECIMAL; of TEXT, its hash.
    """
    size = len(text)
    line, field, begin = 0, 0, 0
    lines[0] = 0
    for at in range(size + 1):
        what = NEWLINE if at == size else classes[text[at]]
        if what == 0:
            continue
        if at == size and at == begin and lines[line] == field:
            break  # no line behind the last newline
        end = at
        if what == NEWLINE and end > begin and text[end - 1] == _RETURN:
            end -= 1
        if end > begin:
            begins[field], ends[field] = begin, end
            values[field], kinds[field] = _number(text, begin, end)
            field += 1
        elif not squeeze:
            begins[field], ends[field] = begin, begin
            values[field], kinds[field] = 0, EMPTY
            field += 1
        begin = at + 1
        if what == NEWLINE:
            line += 1
            lines[line] = field
    return line, field
