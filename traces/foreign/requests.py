"""Which call completes which request, where a tool lists requests by number or address.

A number or address is used again, so that what a call of MPI_Wait means is the latest request that
was begun under it. Tools do not always say whether MPI_Test found its request complete: then the
last call that asked, before the number is used again, is taken for the one that did.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Part(IntEnum):
    """What an entry does with a request."""

    BEGIN = 0
    INIT = 1  # makes a persistent request
    START = 2  # begins a persistent request
    END = 3
    ASK = 4  # may end it
    FORGET = 5  # frees or cancels it


class Entries(NamedTuple):
    """What calls of a rank do with requests, one entry per call and request.

    Attributes
    ----------
    call : ndarray(int64)
    key : ndarray(int64)
        Number or address of the request.
    part : ndarray(int64)
        `Part`.
    row : ndarray(int64)
        Of a BEGIN or INIT, the send or receive that it stands for.
    status : ndarray(int64)
        Of an END or ASK, where its status stands, or -1.
    """

    call: Ints
    key: Ints
    part: Ints
    row: Ints
    status: Ints


def entries(call: Ints, key: Ints, part: Part, row: Any = -1, status: Any = -1) -> Entries:
    """List entries of one part."""
    wide = (np.broadcast_to(np.asarray(each, np.int64), len(call)) for each in (part, row, status))
    return Entries(call, key, *wide)


def begun_and_done(
    call: Ints, blocking: NDArray[np.bool_], status: Ints, parts: Sequence[Entries]
) -> tuple[Ints, Ints, Ints, Ints]:
    """List the messages of a rank, in the order in which they were begun.

    Parameters
    ----------
    call, blocking, status : ndarray(shape=(rows,))
        Of the calls that name a partner, whether they complete it at once, and where the status of
        such a one stands, or -1.
    parts : sequence of Entries
        What is done with the requests of the others.

    Returns
    -------
    row, begun, done, status : ndarray(int64, shape=(messages,))
        Row that names the partner, call that begins the message, call that completes it or -1, and
        where its status stands, or -1.
    """
    kept = np.flatnonzero(blocking)
    if not parts:
        return kept, call[kept], call[kept], status[kept]
    whole = Entries(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(whole.call, kind="stable")
    whole = Entries(*(column[order] for column in whole))
    made, ended = completions(np.zeros_like(whole.key), whole.key, whole.part)
    begins = np.flatnonzero((whole.part == Part.BEGIN) | ((whole.part == Part.START) & (made >= 0)))
    by = ended[begins]
    row = np.concatenate((kept, whole.row[made[begins]]))
    begun = np.concatenate((call[kept], whole.call[begins]))
    done = np.concatenate((call[kept], np.where(by >= 0, whole.call[by], -1)))
    told = np.concatenate((status[kept], np.where(by >= 0, whole.status[by], -1)))
    order = np.argsort(begun, kind="stable")
    return row[order], begun[order], done[order], told[order]


def completions(rank: Ints, key: Ints, part: Ints) -> tuple[Ints, Ints]:
    """Pair what begins a request with what ends it.

    Parameters
    ----------
    rank, key, part : ndarray(int64, shape=(entries,))
        Entries in the order in which each rank made them.

    Returns
    -------
    made : ndarray(int64, shape=(entries,))
        Of a BEGIN, itself; of a START, the INIT; -1 of others, and of a START without one.
    ended : ndarray(int64, shape=(entries,))
        Of a BEGIN or START, the entry that ends it, or -1; of what ends one, which.
    """
    count = len(rank)
    made, ended = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    order = np.lexsort((np.arange(count), key, rank))
    part, places = part[order], np.arange(count)
    fresh = np.ones(count, dtype=np.bool_)
    fresh[1:] = (key[order][1:] != key[order][:-1]) | (rank[order][1:] != rank[order][:-1])
    first = np.maximum.accumulate(np.where(fresh, places, 0))

    def latest(which: NDArray[np.bool_]) -> Ints:
        found = np.maximum.accumulate(np.where(which, places, -1))
        return np.where(found >= first, found, -1)

    starts = part == Part.START
    begins = starts | (part == Part.BEGIN)
    init = latest(part == Part.INIT)
    made[order[begins]] = order[begins]
    made[order[starts]] = np.where(init[starts] >= 0, order[init[starts]], -1)
    begun = latest(begins)
    asks = np.flatnonzero((part == Part.ASK) & (begun >= 0))
    ends = np.flatnonzero((part == Part.END) & (begun >= 0))[::-1]
    by = np.full(count, -1, dtype=np.int64)
    by[begun[asks]] = asks  # the last one stays
    by[begun[ends]] = ends  # the first one stays, and is sure
    done = np.flatnonzero(by >= 0)
    ended[order[done]] = order[by[done]]
    ended[order[by[done]]] = order[done]
    return made, ended
