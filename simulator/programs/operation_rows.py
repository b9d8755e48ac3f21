"""The operations of a trace before they are in place: those of messages and of loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Folded, Kind, Trace, TraceError

from .mpi_calls import Calls
from .program import Op
from .requests import ROLE
from .send_modes import modes_of

Ints = NDArray[np.int64]
POST_RECEIVES, POST_SENDS, REST, AGAIN = 0, 1, 2, 3  # order within a call

# The non-blocking operation that a record posts; its blocking one is the number below.
_POST = np.zeros(256, dtype=np.int64)
_POST[[Kind.SEND, Kind.ISEND]] = Op.ISEND
_POST[[Kind.RECV, Kind.IRECV_REQUEST]] = Op.IRECV
_ACTS = np.zeros(256, dtype=np.bool_)
_ACTS[Kind.SEND : Kind.RMA_WIN_CREATE] = True
_ACTS[[Kind.REQUEST_TEST, Kind.REQUEST_CANCELLED, Kind.COLLECTIVE_BEGIN]] = False


class Rows(NamedTuple):
    """Operations before they are sorted into place.

    `event` says where an operation stands, `phase` its turn within the call; of equals, the first
    in the list comes first. `strand` is -1 for the rank's own. The `target` of a WAIT counts rows
    as listed here. `mode` is the `SendMode` of what sends.
    """

    event: Ints
    phase: Ints
    strand: Ints
    kind: Ints
    peer: Ints
    tag: Ints
    context: Ints
    size: Ints
    target: Ints
    mode: NDArray[np.uint8]


def message_rows(
    trace: Trace,
    calls: Calls,
    events: Ints,
    kind: NDArray[np.uint8],
    partner: Ints,
    gone: NDArray[np.bool_],
) -> Rows:
    """Operations of the point-to-point calls.

    Parameters
    ----------
    events : ndarray(int64, shape=(records,))
        Events that are not brackets.
    kind : ndarray(uint8, shape=(records,))
        `Kind` of each.
    partner : ndarray(int64, shape=(records,))
        As `pair_requests` has it.
    gone : ndarray(bool, shape=(records,))
        Starts of requests that were cancelled.

    Raises
    ------
    TraceError
        A partner that is no rank of the trace.
    """
    call = calls.of_event[events]
    acts = _ACTS[kind] & ~((ROLE[kind] > 0) & (partner < 0) & (kind != Kind.ISEND)) & ~gone
    alone = np.bincount(call[acts], minlength=len(calls.gap))[call] == 1
    blocking = (kind == Kind.SEND) | (kind == Kind.RECV)

    posts = np.flatnonzero(acts & (_POST[kind] > 0))
    post = kind[posts]
    solo = blocking[posts] & alone[posts]
    # A non-blocking receive is described by its completion.
    described = np.where(post == Kind.IRECV_REQUEST, partner[posts], posts)
    record = trace.ref[events[described]]
    receives = (post == Kind.RECV) | (post == Kind.IRECV_REQUEST)
    peer = trace.records.peer[record].astype(np.int64)
    bad = np.flatnonzero((peer < 0) | (peer >= trace.ranks))
    if bad.size:
        event = events[posts[bad[0]]]
        rank = int(np.searchsorted(trace.offsets, event, side="right")) - 1
        raise TraceError(
            f"{trace.name}: rank {rank}, event {event - trace.offsets[rank]}: partner "
            f"{peer[bad[0]]}: expected a rank below {trace.ranks}"
        )
    index = np.full(len(events), -1, dtype=np.int64)
    index[posts] = np.arange(len(posts))

    waits = np.flatnonzero(
        acts & ((blocking & ~alone) | (kind == Kind.ISEND_COMPLETE) | (kind == Kind.IRECV))
    )
    target = index[np.where(blocking[waits], waits, partner[waits])]
    blank = np.full(len(waits), -1, dtype=np.int64)
    mode = np.zeros(len(posts) + len(waits), dtype=np.uint8)
    sends = np.flatnonzero(~receives)
    mode[sends] = modes_of(trace, events[posts[sends]])
    return Rows(
        event=np.concatenate((events[posts], events[waits])),
        phase=np.concatenate(
            (
                np.where(solo, REST, np.where(receives, POST_RECEIVES, POST_SENDS)),
                np.full(len(waits), REST),
            )
        ),
        strand=np.full(len(posts) + len(waits), -1, dtype=np.int64),
        kind=np.concatenate((_POST[post] - np.where(solo, 1, 0), np.full(len(waits), Op.WAIT))),
        peer=np.concatenate((peer, blank)),
        tag=np.concatenate((trace.records.tag[record], blank)),
        context=np.concatenate((trace.records.comm[record], blank)),
        size=np.concatenate((trace.records.size[record], np.zeros_like(blank))),
        target=np.concatenate((np.full(len(posts), -1, dtype=np.int64), target)),
        mode=mode,
    )


def loop_rows(folded: Folded) -> Rows:
    """REPEATs; where their bodies begin is known when all rows are in place."""
    count = len(folded.end)
    blank = np.full(count, -1, dtype=np.int64)
    return Rows(
        event=folded.end - 1,
        phase=np.full(count, AGAIN),
        strand=blank,
        kind=np.full(count, int(Op.REPEAT)),
        peer=blank,
        tag=blank,
        context=blank,
        size=folded.times,
        target=blank,
        mode=np.zeros(count, dtype=np.uint8),
    )
