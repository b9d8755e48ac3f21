"""Lines of one rank's file, by the function that each is a call of, and their arguments.

A line is a call: ``MPI_Send:begin:arguments:end``, times in microseconds; lines that begin with #
are comments, and empty ones are allowed. Every argument stands in order, behind a colon: an
address, a number or a handle as one number; a datatype as number, size and extent; a communicator
as handle, own rank and size; counts and displacements as an address and one number for each member.

Source: spcl/LogGOPSim, src/liballprof/gencode.py and mpi_header.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.foreign.text import Fields, read_fields
from hopmap.traces.trace import TraceError

ADDRESS, NUMBER, TYPE, COMMUNICATOR, COUNTS = "a", "n", "t", "c", "v"
WIDTHS = {ADDRESS: 1, NUMBER: 1, TYPE: 3, COMMUNICATOR: 3, COUNTS: 1}

_SEND = "buf:a count:n type:t peer:n tag:n comm:c"
_RECV = _SEND
_INIT = f"{_SEND} request:a"
_PAIRS = "sbuf:a scounts:v sdispls:v stype:t rbuf:a rcounts:v rdispls:v rtype:t comm:c"
_EACH = "sbuf:a count:n type:t rbuf:a rcount:n rtype:t"

_TEXTS: dict[str, str] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), _SEND),
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), _INIT),
    **dict.fromkeys(("Send_init", "Bsend_init", "Ssend_init", "Rsend_init", "Recv_init"), _INIT),
    "Recv": f"{_RECV} status:a",
    "Irecv": _INIT,
    "Sendrecv": (
        "sbuf:a count:n type:t peer:n tag:n rbuf:a rcount:n rtype:t source:n rtag:n comm:c status:a"
    ),
    "Sendrecv_replace": "buf:a count:n type:t peer:n tag:n source:n rtag:n comm:c status:a",
    "Wait": "request:a status:a",
    "Test": "request:a flag:a status:a",
    "Waitall": "number:n request:a statuses:a",
    "Waitany": "number:n request:a index:a status:a",
    "Waitsome": "number:n request:a out:a indices:a statuses:a",
    "Testall": "number:n request:a flag:a statuses:a",
    "Testany": "number:n request:a index:a flag:a status:a",
    "Testsome": "number:n request:a out:a indices:a statuses:a",
    "Start": "request:a",
    "Startall": "number:n request:a",
    "Request_free": "request:a",
    "Cancel": "request:a",
    "Barrier": "comm:c",
    "Bcast": "buf:a count:n type:t root:n comm:c",
    "Reduce": "sbuf:a rbuf:a count:n type:t op:n root:n comm:c",
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), "sbuf:a rbuf:a count:n type:t op:n comm:c"),
    **dict.fromkeys(("Gather", "Scatter"), f"{_EACH} root:n comm:c"),
    **dict.fromkeys(("Allgather", "Alltoall"), f"{_EACH} comm:c"),
    "Gatherv": "sbuf:a count:n type:t rbuf:a counts:v displs:v rtype:t root:n comm:c",
    "Scatterv": "sbuf:a counts:v displs:v stype:t rbuf:a count:n type:t root:n comm:c",
    "Allgatherv": "sbuf:a count:n type:t rbuf:a counts:v displs:v rtype:t comm:c",
    "Alltoallv": _PAIRS,
    "Alltoallw": _PAIRS.replace("type:t", "type:a"),
    "Reduce_scatter": "sbuf:a rbuf:a counts:v type:t op:n comm:c",
    "Comm_dup": "comm:c new:a",
    "Comm_split": "comm:c color:n key:n new:a",
    "Comm_create": "comm:c group:n new:a",
    "Cart_create": "comm:c dims:n sizes:a periods:a reorder:n new:a",
    "Cart_sub": "comm:c remain:a new:a",
    "Graph_create": "comm:c nodes:n index:a edges:a reorder:n new:a",
}

SIGNATURES: Mapping[str, Mapping[str, str]] = {
    f"MPI_{name}": {arg[:-2]: arg[-1] for arg in text.split()} for name, text in _TEXTS.items()
}
"""Kinds of arguments, by name, of the functions that say something of messages."""


def fields_before(function: str, argument: str = "") -> tuple[int, int]:
    """Count fields of the arguments before one, or of all: those always there, lists of counts.

    A list has one more field for each member of the communicator.
    """
    signature = SIGNATURES[function]
    kinds = [signature[name] for name in takewhile(lambda name: name != argument, signature)]
    return sum(WIDTHS[kind] for kind in kinds), kinds.count(COUNTS)


class Rank(NamedTuple):
    """What one file holds."""

    fields: Fields
    rows: Ints  # lines that are calls
    names: tuple[str, ...]
    function: Ints  # of each call, among these names


def read_rank(file: Path) -> Rank:
    """Read one file and find its calls."""
    from hopmap.traces.foreign.text_kernels import TEXT

    fields = read_fields(file, ":,")
    first = fields.lines[:-1]
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    blank = fields.ends[first] == fields.begins[first]
    comment = ~blank
    comment[~blank] = marks[fields.begins[first[~blank]]] == ord("#")
    rows = np.flatnonzero(~blank & ~comment)
    odd = rows[(fields.kinds[first[rows]] != TEXT) | (fields.counts[rows] < 3)]
    expected = "a call like MPI_Send:begin:arguments:end"
    if b":0x" in fields.text:
        raise TraceError(
            f"{file}: of liballprof2, which records no sizes of types: expected liballprof's"
        )
    if odd.size:
        raise fields.wrong(int(odd[0]), expected)
    if not rows.size:
        raise TraceError(f"{file}: no calls in it: expected lines like MPI_Send:begin:...:end")
    if not fields.text.endswith(b"\n"):
        raise fields.wrong(int(rows[-1]), "a whole line, which ends: the file is cut")
    _, example, function = np.unique(
        fields.values[first[rows]], return_index=True, return_inverse=True
    )
    names = tuple(fields.word(int(first[rows[k]])) for k in example)
    for name, k in zip(names, example, strict=True):
        if not re.fullmatch(r"(MPI|NBC)_\w+", name):
            raise fields.wrong(int(rows[k]), expected)
    return Rank(fields, rows, names, function.reshape(-1))


def times(rank: Rank) -> tuple[Floats, Floats]:
    """Begin and end of each call in seconds; MPI_Init has no begin, MPI_Finalize no end."""
    fields, rows = rank.fields, rank.rows
    marks = np.frombuffer(fields.text, dtype=np.uint8)
    begin, end = fields.lines[rows] + 1, fields.lines[rows + 1] - 1
    dash = []
    for at in (begin, end):
        single = fields.ends[at] - fields.begins[at] == 1
        dash.append(single & (marks[np.minimum(fields.begins[at], len(marks) - 1)] == ord("-")))
    fields.refuse(rows, dash[0] & dash[1], "a time, in microseconds, of the call")
    begin, end = np.where(dash[0], end, begin), np.where(dash[1], begin, end)
    what = "times in microseconds"
    columns = (fields.micros(rows, at - fields.lines[rows], what) for at in (begin, end))
    first, last = (np.multiply(column, 1e-9, dtype=np.float64) for column in columns)
    return first, last


def calls_of(rank: Rank, name: str) -> Ints:
    """Find the calls of a function in a rank's file."""
    if name not in rank.names:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(rank.function == rank.names.index(name))


class Lines:
    """The calls of one function in one file, and their arguments."""

    def __init__(self, rank: Rank, function: str) -> None:
        self.function, self.fields, self.calls = function, rank.fields, calls_of(rank, function)
        self.rows = rank.rows[self.calls]
        fixed, lists = fields_before(function)
        # The name, two times and the arguments.
        spare = self.fields.counts[self.rows] - 3 - fixed
        bad = (spare != 0) if not lists else (spare < lists) | (spare % lists != 0)
        self.refuse(bad)
        self.members = spare // lists if lists else np.zeros_like(spare)

    def wrong(self, call: int, _: str = "") -> TraceError:
        """Return the error of a call among these."""
        arguments = ", ".join(SIGNATURES[self.function])
        return self.fields.wrong(
            int(self.rows[call]), f"{self.function} with {arguments} between two times"
        )

    def refuse(self, wrong: Bools) -> None:
        """Raise the error of the first call that is wrong."""
        if wrong.any():
            raise self.wrong(int(wrong.argmax()))

    def get(self, argument: str, offset: int = 0) -> Ints:
        """Return a number of each call; of a type, the second is its size."""
        what = f"{self.function} with a whole number for {argument}"
        return self.fields.numbers(self.rows, self._place(argument) + offset, what)

    def counts(self, argument: str) -> list[Ints]:
        """Return the counts of each call, one a member."""
        what = f"{self.function} with counts for {argument}"
        columns = zip(self.rows, self._place(argument) + 1, self.members.tolist(), strict=True)
        return [
            self.fields.numbers(np.full(members, row), first + np.arange(members), what)
            for row, first, members in columns
        ]

    def _place(self, argument: str) -> Ints:
        """Field of each call at which an argument begins."""
        fixed, lists = fields_before(self.function, argument)
        return 2 + fixed + lists * self.members

    def blocks(self, counts: str, kind: str = "") -> Ints:
        """Bytes of blocks of all members; without a type, of as many bytes."""
        width = self.get(kind, 1) if kind else np.ones_like(self.rows)
        lists = self.counts(counts)
        for call, (row, size) in enumerate(zip(lists, width.tolist(), strict=True)):
            if size < 0 or (row < 0).any() or row.sum(dtype=float) * size > 2**53:
                raise self.wrong(call)
        return np.array([int(row.sum()) for row in lists], dtype=np.int64) * width

    def sizes(self, count: str, kind: str) -> Ints:
        """Bytes of a buffer."""
        number, width = self.get(count), self.get(kind, 1)
        self.refuse((number < 0) | (width < 0) | (number * width.astype(float) > 2**53))
        return number * width
