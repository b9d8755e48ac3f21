"""Compiled callbacks for one-sided operations: those that fill a trace, and those that add up.

Only archives with windows take them. What is about a window of no communicator of MPI (copies to a
GPU, say) is counted and left out.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from hopmap.compilation import callback, subroutine
from hopmap.traces.trace import NO_OPERATION, Kind

from .read_kernels import EVENTS, ONE_SIDED, count, record
from .state_kernels import (
    COMMON,
    CONTINUE,
    GROUP,
    INTERRUPT,
    SIZE,
    TOTAL,
    U8,
    U32,
    U64,
    UNDEFINED,
    WINDOW,
    add_to,
    carray,
    fail,
    load_int32,
    partner_of,
    row_of,
)
from .total_kernels import note_time

_NO_OPERATION = np.uint8(NO_OPERATION)
_FOREIGN = np.int64(-2)


@subroutine
def _window(state, position, window):
    """Row of a window; `_FOREIGN` if it is not MPI's, -1 with the error noted if there is none."""
    row = row_of(state.window_reference, state.windows, window)
    if row < 0:
        fail(state, WINDOW, position, window)
        return np.int64(-1)
    return row if load_int32(state.window_comm, row) >= 0 else _FOREIGN


@subroutine
def _note(
    state, name, kind, time, position, window, remote=UNDEFINED, operation=_NO_OPERATION, size=-1,
    received=-1, request=-1,
):  # fmt: skip
    """Append a record about a window, or count it."""
    row = _window(state, position, window)
    if row == _FOREIGN:
        return count(state, name)
    if row < 0:
        return INTERRUPT
    of = np.int64(load_int32(state.window_comm, row))
    peer = np.int64(-1)
    if remote != UNDEFINED:
        peer = np.int64(partner_of(state, position, of, remote))
        if peer < 0:
            return INTERRUPT
    comm, operation = np.int64(load_int32(state.number, of)), np.int64(operation)
    size, received, request = np.int64(size), np.int64(received), np.int64(request)
    fields = peer, comm, row, operation, size, received, request
    return record(state, kind, time, position, fields)


def _of_window(kind, name):
    def callback(_location, time, position, states, _attributes, window):
        return _note(carray(states, 1)[0], name, kind, time, position, window)

    return callback


def _collective_begin(kind, _name):
    def callback(_location, time, position, states, _attributes):
        fields = -1, -1, -1, np.int64(NO_OPERATION), -1, -1, -1
        return record(carray(states, 1)[0], kind, time, position, fields)

    return callback


def _collective_end(kind, name):
    def callback(
        _location, time, position, states, _attributes, operation, level, window, root, sent, got
    ):
        state = carray(states, 1)[0]
        if np.int64(sent) < 0 or np.int64(got) < 0:
            return fail(state, SIZE, position, max(sent, got))
        # A root of no rank is OTF2_UNDEFINED_UINT32, or one of OTF2_CollectiveRoot below it.
        rank = root if root < UNDEFINED - 2 else np.uint32(UNDEFINED)
        return _note(state, name, kind, time, position, window, rank, operation, sent, got, level)

    return callback


def _group_sync(kind, name):
    def callback(_location, time, position, states, _attributes, level, window, group):
        state = carray(states, 1)[0]
        row = row_of(state.group_reference, state.groups, group)
        if row < 0:
            return fail(state, GROUP, position, group)
        operation = np.uint8(level)
        return _note(state, name, kind, time, position, window, operation=operation, size=row)

    return callback


def _sync(kind, name):
    def callback(_location, time, position, states, _attributes, window, remote, sort):
        return _note(carray(states, 1)[0], name, kind, time, position, window, remote, sort)

    return callback


def _lock(kind, name):
    def callback(_location, time, position, states, _attributes, window, remote, number, sort):
        state = carray(states, 1)[0]
        return _note(state, name, kind, time, position, window, remote, sort, request=number)

    return callback


def _release(kind, name):
    def callback(_location, time, position, states, _attributes, window, remote, number):
        state = carray(states, 1)[0]
        return _note(state, name, kind, time, position, window, remote, request=number)

    return callback


def _moves(kind, name):
    def callback(_location, time, position, states, _attributes, window, remote, size, number):
        state = carray(states, 1)[0]
        if np.int64(size) < 0:
            return fail(state, SIZE, position, size)
        return _note(state, name, kind, time, position, window, remote, size=size, request=number)

    return callback


def _atomic(kind, name):
    def callback(
        _location, time, position, states, _attributes, window, remote, sort, sent, got, number
    ):
        state = carray(states, 1)[0]
        if np.int64(sent) < 0 or np.int64(got) < 0:
            return fail(state, SIZE, position, max(sent, got))
        return _note(state, name, kind, time, position, window, remote, sort, sent, got, number)

    return callback


def _completion(kind, name):
    def callback(_location, time, position, states, _attributes, window, number):
        state = carray(states, 1)[0]
        return _note(state, name, kind, time, position, window, request=number)

    return callback


def _adds_up(name):
    """Make what adds an operation of this name up: to the receiver's totals, the sender's, both."""
    puts, gets = name != "RmaGet", name != "RmaPut"

    @subroutine
    def add(state, time, position, window, remote, sent, got):
        note_time(state, time)
        row = _window(state, position, window)
        if row == _FOREIGN:
            return CONTINUE
        if row < 0:
            return INTERRUPT
        of = np.int64(load_int32(state.window_comm, row))
        peer = np.int64(partner_of(state, position, of, remote))
        if peer < 0:
            return INTERRUPT
        if np.int64(sent) < 0 or np.int64(got) < 0:
            return fail(state, SIZE, position, max(sent, got))
        fetches = gets and (got > 0 or not puts)
        takes = puts and (sent > 0 or not fetches)
        if takes and not add_to(state.put_messages, state.put_bytes, peer, sent):
            return fail(state, TOTAL, position, peer)
        if fetches and not add_to(state.got_messages, state.got_bytes, peer, got):
            return fail(state, TOTAL, position, peer)
        return CONTINUE

    number = EVENTS.index(name)
    if name == "RmaAtomic":

        def atomic(_location, time, position, states, _attributes, window, remote, _sort, out, got):
            state = carray(states, 1)[0]
            count(state, number)
            return add(state, time, position, window, remote, out, got)

        return atomic

    def other(_location, time, position, states, _attributes, window, remote, size):
        state = carray(states, 1)[0]
        count(state, number)
        return add(state, time, position, window, remote, size, size)

    return other


_LOCK = types.int32(*COMMON, U32, U32, U64, U8)
_MOVES = types.int32(*COMMON, U32, U32, U64, U64)
_COMPLETION = types.int32(*COMMON, U32, U64)
_SHAPES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "RmaCollectiveBegin": (types.int32(*COMMON), _collective_begin),
    "RmaCollectiveEnd": (types.int32(*COMMON, U8, U32, U32, U32, U64, U64), _collective_end),
    "RmaGroupSync": (types.int32(*COMMON, U32, U32, U32), _group_sync),
    "RmaSync": (types.int32(*COMMON, U32, U32, U8), _sync),
    "RmaReleaseLock": (types.int32(*COMMON, U32, U32, U64), _release),
    "RmaAtomic": (types.int32(*COMMON, U32, U32, U8, U64, U64, U64), _atomic),
    **dict.fromkeys(("RmaRequestLock", "RmaAcquireLock", "RmaTryLock"), (_LOCK, _lock)),
    **dict.fromkeys(("RmaPut", "RmaGet"), (_MOVES, _moves)),
}


@cache
def program_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that append one-sided records."""
    found = {}
    for kind, name in enumerate(ONE_SIDED, Kind.RMA_WIN_CREATE):
        of_window = (types.int32(*COMMON, U32), _of_window)
        other = (_COMPLETION, _completion) if name.startswith("RmaOp") else of_window
        signature, shape = _SHAPES.get(name, other)
        found[name] = callback(signature, shape(np.uint8(kind), EVENTS.index(name))).address
    return found


@cache
def total_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that add up what one-sided operations move."""
    plain, atomic = (
        types.int32(*COMMON, U32, U32, U64),
        types.int32(*COMMON, U32, U32, U8, U64, U64),
    )
    signatures = {"RmaPut": plain, "RmaGet": plain, "RmaAtomic": atomic}
    return {name: callback(each, _adds_up(name)).address for name, each in signatures.items()}
