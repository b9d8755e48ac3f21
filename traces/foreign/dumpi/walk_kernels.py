"""Compiled: the calls in a file of DUMPI, one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.compilation import njit, subroutine

FINE, CUT, UNKNOWN, TOO_MANY = 0, 1, 2, 3
STATUS_MASK, CPU, WALL, THREAD, COUNTERS = 3, 4, 8, 64, 128
FUNCTION, BEGIN, BEHIND, FIRST, OF_THREAD, WITH_STATUS, COLUMNS = 0, 1, 2, 3, 4, 5, 6
_C, _D, _E, _R, _S = ord("C"), ord("D"), ord("E"), ord("R"), ord("S")
_IF, _END, _Z = ord("?"), ord(")"), ord("Z")  # small letters are numbers
_WIDTH = np.zeros(256, dtype=np.int64)  # bytes of a number, and of those in an array
_WIDTH[list(b"qihbAHB")] = 8, 4, 2, 1, 4, 2, 1


@subroutine
def _get(data: NDArray[np.uint8], at: int, width: int) -> Any:
    """Read a big-endian number with a sign; one that is cut is 0."""
    value = np.int64(0)
    if at + width > len(data):
        return value
    for k in range(width):
        value = (value << 8) | np.int64(data[at + k])
    if width < 8 and value >= (np.int64(1) << (8 * width - 1)):
        value -= np.int64(1) << (8 * width)
    return value


@njit
def walk(
    data: NDArray[np.uint8],
    at: int,
    layouts: NDArray[np.uint8],
    roots: Ints,
    with_tags: bool,
    calls: Ints,
    values: Ints,
) -> tuple[int, int, int, int]:
    """Fill calls and their arguments; with room for none, they are only counted.

    The first call begins at `at`. `layouts` (functions, length) are the letters of each function's
    arguments, see `rank.py`, 0 behind the last. `roots` (functions, 2) says which arguments are
    equal in the root's call, `with_tags` whether statuses have a tag.

    `calls` (calls, COLUMNS): function, begin and end in nanoseconds since the bias, first of its
    values, thread, whether statuses are recorded. `values`: numbers; of arrays their length, then
    their numbers; of statuses their number, then bytes, source, whether cancelled, and tag of each;
    of texts their length alone.

    Returned are how it ended, where, and how many calls and values there are.
    """
    size, count, used, fill = len(data), 0, 0, len(calls) > 0
    status = np.zeros(4, dtype=np.int64)
    first_values = np.zeros(8, dtype=np.int64)
    while True:
        if at + 2 > size:
            return CUT, at, count, used
        function = _get(data, at, 2)
        if function == len(layouts):
            return FINE, at + 2, count, used
        if not 0 <= function < len(layouts):
            return UNKNOWN, at, count, used
        start = at
        if at + 3 > size:
            return CUT, start, count, used
        mask = data[at + 2]
        at += 3
        thread = 0
        if mask & THREAD:
            thread = _get(data, at, 2)
            at += 2
        begin: Any = np.int64(0)
        behind: Any = np.int64(0)
        for which in (CPU, WALL):
            if mask & which:
                begin = (_get(data, at, 2) & 0xFFFF) * 1_000_000_000 + _get(data, at + 2, 4)
                behind = (_get(data, at + 6, 2) & 0xFFFF) * 1_000_000_000 + _get(data, at + 8, 4)
                at += 12
        if mask & COUNTERS:
            if at >= size:
                return CUT, start, count, used
            at += 1 + 16 * int(data[at])
        if at > size:
            return CUT, start, count, used
        if fill:
            row = calls[count]
            row[FUNCTION], row[BEGIN], row[BEHIND], row[FIRST] = function, begin, behind, used
            row[OF_THREAD], row[WITH_STATUS] = thread, (mask & STATUS_MASK) > 0
        count += 1
        skipping, scalars = False, 0
        for k in range(layouts.shape[1]):
            letter = layouts[function, k]
            if letter == 0:
                break
            if letter == _IF:
                one, other = roots[function, 0], roots[function, 1]
                skipping = first_values[one] != first_values[other]
                continue
            if letter == _END:
                skipping = False
                continue
            if skipping:
                continue
            width = _WIDTH[letter]
            if letter > _Z:
                if at + width > size:
                    return CUT, start, count, used
                value = _get(data, at, width)
                if scalars < 8:
                    first_values[scalars] = value
                scalars += 1
                if fill:
                    values[used] = value
                used += 1
                at += width
                continue
            if letter == _S and not mask & STATUS_MASK:
                continue
            if at + 4 > size:
                return CUT, start, count, used
            length = _get(data, at, 4)
            at += 4
            if length < 0 or length > size - at:
                return CUT, start, count, used
            if fill:
                values[used] = length
            used += 1
            if letter == _S:
                step = 14 if with_tags else 10
                if length * step > size - at:
                    return CUT, start, count, used
                for _ in range(length):
                    status[0], status[1] = _get(data, at, 4), _get(data, at + 4, 4)
                    status[2] = _get(data, at + 8, 1)
                    status[3] = _get(data, at + 10, 4) if with_tags else -1
                    if fill:
                        values[used : used + 4] = status
                    used += 4
                    at += step
                continue
            if letter == _C:
                at += length
                continue
            if letter in (_D, _E, _R):
                for _ in range(length):
                    inner = _get(data, at, 4)
                    at += 4
                    if at > size or inner < 0 or inner > size - at:
                        return CUT, start, count, used
                    if letter == _E:
                        for _ in range(inner):
                            text = _get(data, at, 4)
                            at += 4
                            if at > size or text < 0 or text > size - at:
                                return CUT, start, count, used
                            at += text
                    else:
                        at += inner * (4 if letter == _R else 1)
                        if at > size:
                            return CUT, start, count, used
                continue
            if length * width > size - at:
                return CUT, start, count, used
            for _ in range(length):
                if fill:
                    values[used] = _get(data, at, width)
                used += 1
                at += width
