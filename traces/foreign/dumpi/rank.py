"""The file of one rank: its calls, their arguments and times.

A file begins with its mark and ends with an index: where its parts stand, the last of them behind
the mark again. The calls stand one behind the other (`layouts.py`); times are seconds since a bias,
of 16 bits and thus counted on beyond 65,535, and nanoseconds, of the wall clock or else of the
processor. Types have the sizes that the file lists.

Source: sstsimulator/sst-dumpi, docs/traceformat.dox and dumpi/common.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.foreign.files import read_whole
from hopmap.traces.trace import TraceError

from .layouts import END_OF_STREAM, LAYOUTS, NAMES, PROFILED, TYPE_SIZES

Ints = NDArray[np.int64]

MARK = b"\xff\xaa\xddDUMPI"
_PER_BYTE = 8  # bytes of memory that a byte of the file takes at least
_ROOTS = {"MPI_Gatherv": (0, 4), "MPI_Scatterv": (0, 5), "MPI_Comm_spawn": (0, 1)} | {
    "MPI_Comm_spawn_multiple": (1, 2)
}


def is_dumpi(start: bytes) -> bool:
    """Whether a file that begins like this is of one rank."""
    return start.startswith(MARK)


class Rank(NamedTuple):
    """Calls of one file, `COLUMNS` each, and their arguments."""

    file: Path
    calls: Ints
    values: Ints
    sizes: Ints  # bytes of each type
    bias: int  # seconds
    profiled: int

    def of(self, name: str) -> Ints:
        """Find the calls of a function."""
        return np.flatnonzero(self.calls[:, 0] == NAMES.index(f"MPI_{name}"))

    def get(self, which: Ints, at: Ints | int) -> Ints:
        """Return the number at a place of the arguments of some calls."""
        place = self.calls[which, 3] + at
        if len(place) and not 0 <= place.min() <= place.max() < len(self.values):
            raise TraceError(f"{self.file}: call {which[0]}: arguments that do not fit together")
        numbers: Ints = self.values[place]
        return numbers

    def bytes(self, which: Ints, count: Ints | int, kind: Ints | int) -> Ints:
        """Bytes of buffers, from places of count and type."""
        number, type_ = self.get(which, count), self.get(which, kind)
        bad = (type_ < 0) | (type_ >= len(self.sizes)) | (number < 0)
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise TraceError(
                f"{self.file}: call {which[k]}, {NAMES[self.calls[which[k], 0]]}: {number[k]} of "
                f"type {type_[k]}: expected a count >= 0 and one of {len(self.sizes)} types"
            )
        whole: Ints = number * self.sizes[type_]
        return whole

    def sums(self, which: Ints, at: Ints | int) -> tuple[Ints, Ints]:
        """Add up arrays of counts; return also how long these are."""
        length = self.get(which, at)
        self.get(which, at + np.maximum(length, 0))
        first = self.calls[which, 3] + at + 1
        below = np.concatenate(([0], np.cumsum(self.values < 0)))
        odd = np.flatnonzero(below[first + length] > below[first])
        if odd.size:
            raise TraceError(
                f"{self.file}: call {which[odd[0]]}, {NAMES[self.calls[which[odd[0]], 0]]}: a "
                "count below 0: expected counts of blocks"
            )
        rising = np.concatenate(([0], np.cumsum(self.values)))
        return rising[first + length] - rising[first], length

    def blocks(self, which: Ints, count: Ints, at: Ints | int) -> Ints:
        """Bytes of so many of the types at a place."""
        kind = self.get(which, at)
        if ((kind < 0) | (kind >= len(self.sizes))).any():
            raise TraceError(f"{self.file}: type {kind.max()}: expected one of {len(self.sizes)}")
        # What is too much for 63 bits is beyond what `account` takes, and stays there.
        most = 2**53 // np.maximum(self.sizes[kind], 1) + 1
        whole: Ints = np.minimum(count, most) * self.sizes[kind]
        return whole

    def status_at(self, which: Ints, at: Ints | int) -> Ints:
        """Place of the first status in the values of a call, or -1."""
        told = self.calls[which, 5] > 0
        place = self.calls[which, 3] + at
        there = told & (place < len(self.values))
        there[there] = self.values[place[there]] > 0
        return np.where(there, place + 1, -1)


def read_rank(file: Path) -> Rank:
    """Read one file.

    Raises
    ------
    TraceError
        It is cut or foreign, or a function is not known; the message names the place.
    """
    from . import walk_kernels as kernels

    content = read_whole(file, _PER_BYTE)
    size = len(content)
    if not is_dumpi(content):
        raise TraceError(f"{file}: not a file of DUMPI: expected its mark at the begin")
    mark = int.from_bytes(MARK, "big")
    index = np.frombuffer(content[len(content) % 8 :], ">u8")[-8:][::-1].astype(np.uint64)
    ends = [k for k in range(4, len(index)) if int(index[k]) == mark]
    if not ends:
        raise TraceError(f"{file}: no index in its last 64 bytes: expected one: it is cut")
    places = [int(place) for place in index[: ends[0]]]
    header, body = places[3], places[2]
    if not (8 <= body < size - 8 and 8 <= header < size - 8) or max(places) >= size:
        raise TraceError(f"{file}: index {places[:7]}: expected places in {size} bytes")
    version = tuple(content[header : header + 3])
    data = np.frombuffer(content, dtype=np.uint8)
    width = max(map(len, LAYOUTS))
    layouts = np.zeros((END_OF_STREAM, width), dtype=np.uint8)
    roots = np.zeros((END_OF_STREAM, 2), dtype=np.int64)
    for k, layout in enumerate(LAYOUTS):
        if NAMES[k] in ("MPI_Init", "MPI_Init_thread") and version < (0, 6, 2):
            layout = f"i{layout}"  # which had the length twice
        layouts[k, : len(layout)] = list(layout.encode())
        roots[k] = _ROOTS.get(NAMES[k], (0, 3))
    given = (data, body + 8, layouts, roots, version >= (0, 6, 3))
    none = np.zeros((0, kernels.COLUMNS), dtype=np.int64)
    code, at, count, used = kernels.walk(*given, none, np.zeros(0, dtype=np.int64))
    if code == kernels.UNKNOWN:
        number = int.from_bytes(content[at : at + 2], "big")
        raise TraceError(
            f"{file}: byte {at}, call {count}: function {number}: expected one below "
            f"{END_OF_STREAM}, or {END_OF_STREAM} behind the last call"
        )
    if code != kernels.FINE:
        raise TraceError(f"{file}: byte {at}, call {count}: its arguments do not fit: it is cut")
    calls = np.zeros((count + 1, kernels.COLUMNS), dtype=np.int64)
    values = np.zeros(used, dtype=np.int64)
    kernels.walk(*given, calls, values)
    calls = calls[:count]
    own = calls[:, 0] >= END_OF_STREAM - PROFILED
    calls = calls[~own]
    if len(np.unique(calls[:, 4])) > 1:
        calls = calls[np.argsort(calls[:, 1], kind="stable")]
    biases = np.frombuffer(content, ">i4", 2, body).tolist()
    sizes = np.array(TYPE_SIZES, dtype=np.int64)
    if len(places) > 6 and places[6]:
        known = int.from_bytes(content[places[6] : places[6] + 4], "big")
        if places[6] + 4 + 4 * known > size:
            raise TraceError(
                f"{file}: {known} types at byte {places[6]}: expected fewer: it is cut"
            )
        sizes = np.frombuffer(content, ">i4", known, places[6] + 4).astype(np.int64)
    return Rank(file, calls, values, np.maximum(sizes, 0), biases[1] or biases[0], int(own.sum()))


def times(rank: Rank, bias: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Begin and end of each call, in seconds since the earliest bias."""
    turn = 65536 * 10**9
    begin, end = rank.calls[:, 1].copy(), rank.calls[:, 2].copy()
    if len(begin):
        begin += turn * np.cumsum(np.diff(begin, prepend=begin[0]) < -turn // 2)
        end += turn * ((begin - end + turn // 2) // turn)
    late = rank.bias - bias
    first, last = (np.add(np.multiply(t, 1e-9, dtype=np.float64), late) for t in (begin, end))
    return first, last
