"""Traffic: who sends how many messages and bytes to whom, as a sparse directed matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Ints, Ints32

from .trace import Kind, Trace, TraceError

MOST_RANKS = 2**24
MOST_MESSAGE = 2**39  # bytes; sent by all ranks they still add up in 64 bits
BEYOND = 2.0**63  # what int64 cannot hold
EXACT = 2.0**53  # up to here sums and their means are exact, however they are stored


@dataclass(frozen=True, eq=False)
class Traffic:
    """Point-to-point traffic of `ranks` processes, one row per directed pair that talks.

    Rows are sorted by (src, dst), each pair once; self messages are kept.
    Build it with `Traffic.from_pairs`, which sorts, sums duplicates and checks.

    Attributes
    ----------
    ranks : int
        Number of processes.
    src, dst : ndarray(int32, shape=(pairs,))
        Sender and receiver.
    messages, bytes : ndarray(int64, shape=(pairs,))
        Totals of the pair.
    metadata : mapping of str to Any
        What is known of the origin, JSON-serialisable: "benchmark", "class", Cartesian "dims",
        "stencil", "periodic", ...; mappers may use it.
    """

    ranks: int
    src: Ints32
    dst: Ints32
    messages: Ints
    bytes: Ints
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_pairs(
        cls,
        ranks: int,
        src: ArrayLike,
        dst: ArrayLike,
        messages: ArrayLike,
        bytes: ArrayLike,  # noqa: A002 - the field's own word
        metadata: Mapping[str, Any] | None = None,
        *,
        name: str = "traffic",
    ) -> Traffic:
        """Sort pairs by (src, dst), add duplicates up and leave out pairs without a message.

        Parameters
        ----------
        ranks : int
            Number of processes.
        src, dst, messages, bytes : array_like of int, shape (n,)
            Rows in any order; a pair may come several times.
        metadata : mapping, optional
            See `Traffic`.
        name : str
            The file, for error messages.

        Raises
        ------
        TraceError
            Unequal lengths, more than `MOST_RANKS`, a rank outside 0..ranks-1, a negative or
            fractional entry, bytes without a message, sums above 2^53.
        """
        if not 0 <= ranks <= MOST_RANKS:
            raise TraceError(f"{name}: {_format_number(ranks)} ranks: expected 0 to {MOST_RANKS}")
        values = {"src": src, "dst": dst, "messages": messages, "bytes": bytes}
        columns = {key: _whole_numbers(values, key, name) for key, values in values.items()}
        lengths = {key: len(column) for key, column in columns.items()}
        if len(set(lengths.values())) != 1:
            raise TraceError(f"{name}: columns of unequal length {lengths}")
        for key in ("src", "dst"):
            bad = np.flatnonzero(columns[key] >= ranks)
            if bad.size:
                raise TraceError(
                    f"{name}: {key} {columns[key][bad[0]]} in row {bad[0]}: "
                    f"expected a rank below {ranks}"
                )
        silent = np.flatnonzero((columns["messages"] == 0) & (columns["bytes"] > 0))
        if silent.size:
            raise TraceError(
                f"{name}: row {silent[0]} has {columns['bytes'][silent[0]]} bytes in 0 messages"
            )
        for key in ("messages", "bytes"):
            if columns[key].sum(dtype=np.float64) > EXACT:
                raise TraceError(f"{name}: the sum of all {key}: expected at most 2^53")
        talks = columns["messages"] > 0
        if not talks.all():
            columns = {field_: column[talks] for field_, column in columns.items()}
        number = columns["src"] * ranks + columns["dst"]
        pair, number_of, size = sum_by_key(number, columns["messages"], columns["bytes"])
        return cls(
            ranks=ranks,
            src=(pair // max(ranks, 1)).astype(np.int32),
            dst=(pair % max(ranks, 1)).astype(np.int32),
            messages=number_of,
            bytes=size,
            metadata=dict(metadata or {}),
        )

    @property
    def pairs(self) -> int:
        """Number of directed pairs that talk, self pairs included."""
        return len(self.src)

    def to_dict(self) -> dict[str, int]:
        """Return ranks, and sums of messages, bytes and pairs, as commands print them."""
        return {
            "ranks": self.ranks,
            "messages": int(self.messages.sum()),
            "bytes": int(self.bytes.sum()),
            "pairs": self.pairs,
        }

    def indptr(self) -> Ints:
        """Row pointers: the pairs sent by rank r are ``indptr[r]:indptr[r + 1]``."""
        return np.searchsorted(self.src, np.arange(self.ranks + 1)).astype(np.int64)

    def without_self(self) -> Traffic:
        """Return the traffic between different ranks only."""
        keep = self.src != self.dst
        return Traffic(
            self.ranks,
            self.src[keep],
            self.dst[keep],
            self.messages[keep],
            self.bytes[keep],
            self.metadata,
        )

    def undirected(self) -> Traffic:
        """Add the two directions of each pair up; rows have src <= dst."""
        return Traffic.from_pairs(
            self.ranks,
            np.minimum(self.src, self.dst),
            np.maximum(self.src, self.dst),
            self.messages,
            self.bytes,
            self.metadata,
        )

    def plus(self, other: Traffic) -> Traffic:
        """Return this traffic and that of another kind of the same ranks; metadata are its own."""
        if not other.pairs:
            return self
        return Traffic.from_pairs(
            self.ranks,
            np.concatenate((self.src, other.src)),
            np.concatenate((self.dst, other.dst)),
            np.concatenate((self.messages, other.messages)),
            np.concatenate((self.bytes, other.bytes)),
            self.metadata,
        )

    def same_as(self, other: Traffic) -> bool:
        """Whether both have the same pairs with the same messages and bytes."""
        return self.ranks == other.ranks and all(
            np.array_equal(getattr(self, column), getattr(other, column))
            for column in ("src", "dst", "messages", "bytes")
        )


def sum_by_key(key: Ints, *columns: Ints) -> list[Ints]:
    """Sort rows by a key and add up those that have the same; what is in order stays as it is.

    Returned are the keys, each once, and the sums of each column.
    """
    rows = [key, *columns]
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        rows = [row[order] for row in rows]
        first = np.flatnonzero(np.append(True, rows[0][1:] != rows[0][:-1]))
        if len(first) < len(key):
            rows = [rows[0][first], *(np.add.reduceat(row, first) for row in rows[1:])]
    return rows


def exact_sum(weight: Ints, times: Ints | None = None) -> int:
    """Sum of whole numbers >= 0, each taken so many times (or once), however large it is."""
    most = int(times.max(initial=0)) if times is not None else 1
    if weight.sum(dtype=np.float64) * most < BEYOND / 2:
        return int((weight if times is None else weight * times).sum())
    return sum(map(mul, weight.tolist(), times.tolist() if times is not None else repeat(1)))


def largest_product(one: Ints, other: Ints) -> int:
    """Largest of the products of two numbers >= 0 each, however large it is; 0 of none."""
    products = one * other.astype(np.float64)
    if not len(products) or products.max() < BEYOND / 2:
        return int((one * other).max(initial=0))
    near = products >= products.max() * (1 - 1e-12)
    return max(int(a) * int(b) for a, b in zip(one[near], other[near], strict=True))


def traffic_of(trace: Trace, times: Callable[[Ints], Ints] = np.ones_like) -> Traffic:
    """Reduce a trace to its point-to-point traffic, from the send records.

    Collectives are not in it: OTF2 records what a collective moves, not between whom. Sends that
    were cancelled are not in it either. `times` says how often events take place, each once when
    left out.
    """
    sends = np.flatnonzero((trace.kind == Kind.SEND) | (trace.kind == Kind.ISEND))
    sends = sends[~np.isin(sends, cancelled_requests(trace), assume_unique=True)]
    rows, number = trace.ref[sends], times(sends)
    src = np.searchsorted(trace.offsets, sends, side="right") - 1
    size = number * trace.records.size[rows]
    return Traffic.from_pairs(
        trace.ranks, src, trace.records.peer[rows], number, size, name=trace.name
    )


def cancelled_requests(trace: Trace) -> Ints:
    """Return the events that began the requests which were cancelled."""
    ends = np.flatnonzero(trace.kind == Kind.REQUEST_CANCELLED)
    if not ends.size:
        return ends
    begins = np.flatnonzero((trace.kind == Kind.ISEND) | (trace.kind == Kind.IRECV_REQUEST))
    events = np.sort(np.concatenate((begins, ends)))
    rank = np.searchsorted(trace.offsets, events, side="right")
    order = np.lexsort((events, trace.records.request[trace.ref[events]], rank))
    ended = trace.kind[events[order[1:]]] == Kind.REQUEST_CANCELLED
    return np.asarray(events[order[:-1][ended]])


def one_sided_traffic_of(trace: Trace) -> Traffic:
    """Reduce a trace to what its one-sided operations move.

    A put is a message from its origin to its target, and a get one from its target to its origin;
    an atomic operation is a put, and also a get if it brings bytes back; only a get if it takes
    none there.
    """
    events = np.flatnonzero((trace.kind >= Kind.RMA_PUT) & (trace.kind <= Kind.RMA_ATOMIC))
    rows, kind = trace.ref[events], trace.kind[events]
    origin = np.searchsorted(trace.offsets, events, side="right") - 1
    target = trace.records.peer[rows]
    size, back = trace.records.size[rows], trace.records.received[rows]
    only_get = kind == Kind.RMA_GET
    gets, puts = only_get | (back > 0), ~only_get & ((size > 0) | (back <= 0))
    got = np.where(only_get, size, back)
    return Traffic.from_pairs(
        trace.ranks,
        np.concatenate((origin[puts], target[gets])),
        np.concatenate((target[puts], origin[gets])),
        np.ones(int(puts.sum() + gets.sum()), dtype=np.int64),
        np.concatenate((size[puts], got[gets])),
        name=trace.name,
    )


def _whole_numbers(values: ArrayLike, key: str, name: str) -> Ints:
    """Return a 1-D int64 array, or say which entry is not a whole number >= 0."""
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1 or array.dtype.kind not in "iubfUO":
        raise TraceError(
            f"{name}: column {key}: {array.ndim}-D array of {array.dtype}: expected a list of "
            "whole numbers"
        )
    if array.dtype.kind not in "iub":
        try:
            real = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TraceError(f"{name}: column {key}: expected numbers ({error})") from None
        bad = np.flatnonzero(~(np.isfinite(real) & (real == np.floor(real))))
        if bad.size:
            raise TraceError(
                f"{name}: {key} {array[bad[0]]} in row {bad[0]}: expected a whole number >= 0"
            )
        array = real
    bad = np.flatnonzero((array < 0) | (array >= BEYOND))
    if bad.size:
        raise TraceError(
            f"{name}: {key} {array[bad[0]]} in row {bad[0]}: expected a whole number >= 0, "
            "below 2^63"
        )
    return array.astype(np.int64)


def _format_number(number: int) -> str:
    """Write a number, however long it is."""
    return str(number) if abs(number) < BEYOND else "more than 2^63"
