"""Compiled callbacks that add sends and collectives up, and keep none of them."""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import numpy as np
from numba import types

from hopmap.compilation import subroutine

from .state_kernels import (
    COLLECTIVE_TOTAL,
    COMMON,
    CONTINUE,
    INTERRUPT,
    MESSAGE,
    OPERATION,
    OPERATIONS,
    SIZE,
    TOTAL,
    U8,
    U32,
    U64,
    UNDEFINED,
    add_to,
    carray,
    communicator_row,
    fail,
    load_int64,
    partner_of,
    store,
)


@subroutine
def note_time(state, time):
    """Note the time of an event, if it is the first or the last."""
    state.first = min(state.first, time)
    state.latest = max(state.latest, time)


def _sum_send(_location, time, position, states, _attributes, rank, communicator, _tag, size):
    """Add a message to the totals of its receiver; serves both MpiSend and MpiIsend."""
    state = carray(states, 1)[0]
    note_time(state, time)
    row = communicator_row(state, position, communicator)
    if row < 0:
        return INTERRUPT
    peer = np.int64(partner_of(state, position, row, rank))
    if peer < 0:
        return INTERRUPT
    if np.int64(size) < 0:
        return fail(state, SIZE, position, size)
    if not add_to(state.messages, state.bytes, peer, size):
        return fail(state, TOTAL, position, peer)
    return CONTINUE


def _sum_collective_of(blocking):
    first_row = 0 if blocking else 1

    def _sum_collective(
        _location, time, position, states, _attributes, operation, communicator, _root, sent
    ):
        state = carray(states, 1)[0]
        note_time(state, time)
        # One row for collectives without a communicator, then one for each; all of that twice.
        row = np.int64(0)
        if communicator != UNDEFINED:
            row = communicator_row(state, position, communicator) + 1
            if row == 0:
                return INTERRUPT
        if operation >= OPERATIONS:
            return fail(state, OPERATION, position, operation)
        place = (first_row * (state.communicators + 1) + row) * OPERATIONS + np.int64(operation)
        store(state.calls, place, load_int64(state.calls, place) + 1)
        if np.int64(sent) < 0:
            return fail(state, SIZE, position, sent)
        total = state.collective_bytes + np.int64(sent)
        if total < 0:
            return fail(state, COLLECTIVE_TOTAL, position, sent)
        state.collective_bytes = total
        return CONTINUE

    return _sum_collective


# Signature and function by the event's name in libotf2.
_SUM_COLLECTIVE = types.int32(*COMMON, U8, U32, U32, U64)
TOTALS = {
    "MpiSend": (MESSAGE, _sum_send),
    "MpiIsend": (MESSAGE, _sum_send),
    "MpiCollectiveEnd": (_SUM_COLLECTIVE, _sum_collective_of(True)),
    "NonBlockingCollectiveComplete": (_SUM_COLLECTIVE, _sum_collective_of(False)),
}
