"""Files of other tools, read whole, and text whose lines are fields, most of them numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import TraceError


def read_whole(file: Path, per_byte: int) -> bytes:
    """Read a file, a byte of which takes so many bytes of memory at least once it is understood."""
    try:
        size = file.stat().st_size
        require_memory(per_byte * size, f"{file}: {size:,} bytes", "take fewer ranks or steps")
        return file.read_bytes()
    except OSError as error:
        raise TraceError(f"{file}: cannot be read ({error.strerror})") from None


def read_start(file: Path, size: int) -> bytes:
    """Read the first bytes of a file."""
    try:
        with file.open("rb") as stream:
            return stream.read(size)
    except OSError as error:
        raise TraceError(f"{file}: cannot be read ({error.strerror})") from None


_REAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PER_BYTE = 28  # bytes of memory that a byte of text takes at most, as fields


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of a file; line k has the fields ``lines[k]:lines[k + 1]``; see `split`."""

    file: Path
    text: bytes
    lines: Ints
    begins: Ints
    ends: Ints
    values: Ints
    kinds: NDArray[np.uint8]

    @cached_property
    def counts(self) -> Ints:
        """Fields of each line."""
        return np.diff(self.lines)

    def word(self, field: int) -> str:
        """Return a field as it stands there."""
        return self.text[self.begins[field] : self.ends[field]].decode("ascii", "replace")

    def line(self, number: int) -> str:
        """Return a line, or what fits of it, for a message."""
        first, behind = int(self.lines[number]), int(self.lines[number + 1])
        if first == behind:
            return ""
        begin, end = int(self.begins[first]), int(self.ends[behind - 1])
        return self.text[begin : min(end, begin + 60)].decode("ascii", "replace")

    def wrong(self, number: int, expected: str) -> TraceError:
        """Return the error of a line, counted from 0."""
        return TraceError(
            f"{self.file}: line {number + 1} is {self.line(number)!r}: expected {expected}"
        )

    def refuse(self, lines: Ints, wrong: Bools, expected: str) -> None:
        """Raise the error of the first of some lines that is wrong."""
        for line in lines[wrong][:1].tolist():
            raise self.wrong(line, expected)

    def numbers(self, lines: Ints, at: Ints | int, expected: str) -> Ints:
        """Return whole numbers, one of each of some lines, `at` counted from the line's first."""
        from .text_kernels import INTEGER

        place = self.lines[lines] + at
        self.refuse(lines, self.kinds[place] != INTEGER, expected)
        numbers: Ints = self.values[place]
        return numbers

    def micros(self, lines: Ints, at: Ints | int, expected: str) -> Ints:
        """Return thousandths of numbers, with a point or without."""
        from .text_kernels import DECIMAL, INTEGER

        place = self.lines[lines] + at
        kinds = self.kinds[place]
        self.refuse(lines, (kinds != INTEGER) & (kinds != DECIMAL), expected)
        values = self.values[place]
        thousandths: Ints = np.where(kinds == DECIMAL, values, values * 1000)
        return thousandths

    def reals(self, lines: Ints, at: Ints | int) -> Floats:
        """Return numbers with a point, an exponent or neither; NaN where something else stands."""
        from .text_kernels import reals

        place = self.lines[lines] + at
        begins, ends = self.begins[place], self.ends[place]
        values: Floats = reals(np.frombuffer(self.text, np.uint8), begins, ends)
        for k in np.flatnonzero(np.isnan(values)).tolist():
            text = self.text[begins[k] : ends[k]]
            if _REAL.fullmatch(text):
                values[k] = float(text)
        return values


def read_fields(file: Path, breaks: str, *, squeeze: bool = False) -> Fields:
    """Read a file whose fields are separated by any of some characters."""
    from .text_kernels import BREAK, NEWLINE, room, split

    text = read_whole(file, _PER_BYTE)
    data = np.frombuffer(text, dtype=np.uint8)
    classes = np.zeros(256, dtype=np.uint8)
    classes[list(breaks.encode())] = BREAK
    classes[ord("\n")] = NEWLINE
    rows, fields = room(data, classes)
    lines = np.empty(rows + 1, dtype=np.int64)
    begins, ends, values = (np.empty(fields, dtype=np.int64) for _ in range(3))
    kinds = np.empty(fields, dtype=np.uint8)
    count, used = split(data, classes, squeeze, lines, begins, ends, values, kinds)
    begins, ends, values = begins[:used], ends[:used], values[:used]
    return Fields(file, text, lines[: count + 1], begins, ends, values, kinds[:used])
