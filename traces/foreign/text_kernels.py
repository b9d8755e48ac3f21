"""Compiled: the fields of a text, line by line, with the numbers that stand in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Floats, Ints
from hopmap.compilation import njit, subroutine

TEXT, INTEGER, DECIMAL, EMPTY = 0, 1, 2, 3
BREAK, NEWLINE = 1, 2  # classes of bytes; 0 is anything else

_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # FNV-1a, 64 bits
_ZERO, _NINE, _MINUS, _POINT, _RETURN = ord("0"), ord("9"), ord("-"), ord("."), ord("\r")
_PLUS, _E, _TENTH = ord("+"), ord("e"), 2**64 // 10


@subroutine
def _number(text: NDArray[np.uint8], begin: int, end: int) -> Any:
    """Value and kind of a field that is no plain number."""
    at = begin
    negative = text[at] == _MINUS
    at += negative
    value, digits = np.int64(0), 0
    while at < end and _ZERO <= text[at] <= _NINE:
        # Of 64 bits it may be, an address, which is below 0 then; beyond, it is no number.
        if digits == 19 and (
            value < 0 or value > _TENTH or (value == _TENTH and text[at] > _ZERO + 5)
        ):
            digits += 1
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
def room(text: NDArray[np.uint8], classes: NDArray[np.uint8]) -> tuple[int, int]:
    """Count lines and fields at most."""
    lines, fields = 1, 1
    for byte in text:
        fields += classes[byte] > 0
        lines += classes[byte] == NEWLINE
    return lines, fields


@njit
def split(
    text: NDArray[np.uint8],
    classes: NDArray[np.uint8],
    squeeze: bool,
    lines: Ints,
    begins: Ints,
    ends: Ints,
    values: Ints,
    kinds: NDArray[np.uint8],
) -> tuple[int, int]:
    """Fill the columns; return how many lines and fields there are.

    `classes` (256,) says what each byte is. With `squeeze`, breaks that follow each other are one,
    and no field is empty. `lines` are the first field of each line. `values` are the number;
    thousandths of a DECIMAL; of TEXT, its hash.
    """
    size = len(text)
    line, field, begin, at = 0, 0, 0, 0
    lines[0] = 0
    while at <= size:
        # Most fields are short numbers: they are read on the way to their ends.
        value = np.int64(0)
        plain: Any = True
        while at < size and classes[text[at]] == 0:
            digit = np.int64(text[at]) - _ZERO
            plain &= 0 <= digit <= 9
            value = value * 10 + digit
            at += 1
        what = NEWLINE if at == size else classes[text[at]]
        if at == size and at == begin and lines[line] == field:
            break  # no line behind the last newline
        end = at
        if what == NEWLINE and end > begin and text[end - 1] == _RETURN:
            end -= 1
            plain = False
        if end > begin:
            begins[field], ends[field] = begin, end
            if plain and end - begin < 19:
                values[field], kinds[field] = value, INTEGER
            else:
                values[field], kinds[field] = _number(text, begin, end)
            field += 1
        elif not squeeze:
            begins[field], ends[field] = begin, begin
            values[field], kinds[field] = 0, EMPTY
            field += 1
        at += 1
        begin = at
        if what == NEWLINE:
            line += 1
            lines[line] = field
    return line, field


_TENS = 10.0 ** np.arange(23)  # which a double has exactly


@njit
def reals(text: NDArray[np.uint8], begins: Ints, ends: Ints) -> Floats:
    """Values of numbers with a point, an exponent or neither; NaN of what is none or is hard.

    A mantissa below 2^53 and a power of ten up to 22 are doubles, and so their product or quotient
    is rounded once: the same that is read digit by digit.
    """
    values = np.empty(len(begins), dtype=np.float64)
    for k in range(len(begins)):
        at, end = begins[k], ends[k]
        mantissa, digits, places, ten = np.int64(0), 0, 0, np.int64(0)
        behind = False
        while at < end and (_ZERO <= text[at] <= _NINE or (text[at] == _POINT and not behind)):
            if text[at] == _POINT:
                behind = True
            else:
                mantissa = min(mantissa * 10 + np.int64(text[at] - _ZERO), np.int64(2**56))
                digits += 1
                places += behind
            at += 1
        if at < end and (text[at] == _E or text[at] == _E - 32) and at + 1 < end:
            at += 1
            down = text[at] == _MINUS
            at += down or text[at] == _PLUS
            ten = np.int64(0) if at < end else np.int64(99)
            while at < end and _ZERO <= text[at] <= _NINE:
                ten = min(ten * 10 + np.int64(text[at] - _ZERO), np.int64(99))
                at += 1
            ten = -ten if down else ten
        ten -= places
        if at < end or not digits or mantissa > 2**53 or abs(ten) > 22:
            values[k] = np.nan
        elif ten < 0:
            values[k] = mantissa / _TENS[-ten]
        else:
            values[k] = mantissa * _TENS[ten]
    return values
