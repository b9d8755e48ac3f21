"""The one-sided records of a trace, and which comes next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.numbering import numbered
from hopmap.simulator.programs.mpi_calls import Calls
from hopmap.traces import Kind, Trace, TraceError, mpi_name

Ints = NDArray[np.int64]
_FIRST = Kind.RMA_WIN_CREATE


class OneSidedRecords(NamedTuple):
    """One-sided records in the order of the trace, one entry each; columns as `Records` has them.

    `call` is the name of the call that a record stands in, "win_fence"; empty outside of any.
    """

    event: Ints
    kind: Ints
    rank: Ints
    window: Ints
    peer: Ints
    size: Ints
    received: Ints
    number: Ints
    operation: Ints
    call: NDArray[np.str_]

    def at(self, which: NDArray[np.bool_] | Ints) -> OneSidedRecords:
        """Keep some, in this order."""
        columns: Iterator[Any] = (column[which] for column in self)
        return OneSidedRecords(*columns)

    def of(self, *kinds: Kind) -> OneSidedRecords:
        """Keep those of some kinds."""
        return self.at(np.isin(self.kind, kinds))


def has_one_sided(trace: Trace) -> bool:
    """Whether there is a one-sided record."""
    return bool((trace.kind >= _FIRST).any())


def one_sided_records(trace: Trace, calls: Calls) -> OneSidedRecords:
    """List the one-sided records of a trace.

    Raises
    ------
    TraceError
        An operation on a target that is no rank of the trace.
    """
    event = np.flatnonzero(trace.kind >= _FIRST)
    row, records = trace.ref[event], trace.records
    first = calls.first[calls.of_event[event]]
    names = np.array([*map(mpi_name, trace.regions), ""])
    region = np.where(trace.kind[first] == Kind.ENTER, trace.ref[first], -1)
    found = OneSidedRecords(
        event=event,
        kind=trace.kind[event].astype(np.int64),
        rank=np.searchsorted(trace.offsets, event, side="right") - 1,
        window=records.tag[row].astype(np.int64),
        peer=records.peer[row].astype(np.int64),
        size=records.size[row],
        received=records.received[row],
        number=records.request[row],
        operation=records.operation[row].astype(np.int64),
        call=names[region],
    )
    moves = (found.kind >= Kind.RMA_PUT) & (found.kind <= Kind.RMA_ATOMIC)
    bad = np.flatnonzero(moves & ((found.peer < 0) | (found.peer >= trace.ranks)))
    if bad.size:
        at, rank = event[bad[0]], found.rank[bad[0]]
        raise TraceError(
            f"{trace.name}: rank {rank}, event {at - trace.offsets[rank]}: target "
            f"{found.peer[bad[0]]}: expected a rank below {trace.ranks}"
        )
    return found


def key_of(*columns: Ints) -> Ints:
    """Return numbers from 0 for what has the same entries in all columns."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        label = numbered(column)[1]
        key = numbered(key * (int(label.max(initial=0)) + 1) + label)[1]
    return key


def next_event(of: tuple[Ints, ...], among: tuple[Ints, ...], none: int) -> Ints:
    """Event that follows each event, of those with the same keys; `none` where there is none.

    Parameters
    ----------
    of, among : tuple of ndarray(int64)
        Columns of keys, and last the events, which are below `none`.
    """
    count = len(of[0])
    key = key_of(*(np.concatenate(both) for both in zip(of[:-1], among[:-1], strict=True)))
    sought = key[:count] * (none + 1) + of[-1]
    given = np.append(np.sort(key[count:] * (none + 1) + among[-1]), np.iinfo(np.int64).max)
    at = given[np.searchsorted(given, sought, side="right")]
    return np.where(at // (none + 1) == key[:count], at % (none + 1), none)
