"""Compiled loop that writes the events of one rank through libotf2's event writer.

Like the callbacks of the reader this is a C function, called through ctypes: it is compiled
wherever the package runs, and the interpreter can go on meanwhile. libotf2's functions are called
by the addresses in the state.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from hopmap.compilation import callback, subroutine
from hopmap.traces.trace import Kind

from .state_kernels import NAMES as NAMES
from .state_kernels import (
    call_at,
    carray,
    load_float64,
    load_int32,
    load_int64,
    load_uint8,
    load_uint64,
)

_ADDRESSES = (
    *("kind", "time", "ref", "peer", "comm", "tag", "operation", "size", "received", "request"),
    # members of all communicators: sorted, and the rank of each in its communicator
    *("start", "member", "position"),
    # libotf2's function for each kind; its writer
    *("window_comm", "writers", "writer"),
)
STATE = np.dtype(
    [
        *((name, "u8") for name in _ADDRESSES),
        *((name, "i8") for name in ("begin", "end", "rank", "regions", "records", "communicators")),
        *((name, "i8") for name in ("windows", "groups", "first_group")),
        *((name, "i8") for name in ("offset", "last", "error", "row", "detail")),
        ("resolution", "f8"),
    ]
)

BACKWARDS, TIME, KIND, REGION, RECORD, COMMUNICATOR, PARTNER, SIZE, LIBRARY = range(1, 10)
WINDOW, GROUP = 10, 11
ERRORS = {
    BACKWARDS: "time runs backwards to tick {detail}",
    TIME: "its time does not fit into 63 bits of ticks",
    KIND: "kind {detail} is not known",
    REGION: "region {detail} is not in the trace",
    RECORD: "record {detail} is not in the trace",
    COMMUNICATOR: "communicator {detail} is not in the trace",
    PARTNER: "partner {detail} is not in the communicator",
    SIZE: "a size of {detail} bytes",
    LIBRARY: "not written",
    WINDOW: "window {detail} is not in the trace, or not on the record's communicator",
    GROUP: "group {detail} is not in the trace",
}
# Kinds that have their request alone.
_REQUESTS = (
    *(int(Kind.ISEND_COMPLETE), int(Kind.IRECV_REQUEST), int(Kind.REQUEST_TEST)),
    *(int(Kind.REQUEST_CANCELLED), int(Kind.COLLECTIVE_REQUEST)),
)
_UNDEFINED, _ROOT_SELF = np.uint32(0xFFFFFFFF), np.uint32(0xFFFFFFFE)


@subroutine
def _fail(state, error, row, detail):
    state.error = error
    state.row = row
    state.detail = detail
    return np.int32(1)


@subroutine
def _rank_in(state, comm, world):
    """Rank of a world rank in a communicator, or -1."""
    low, end = load_int64(state.start, comm), load_int64(state.start, comm + 1)
    if low == end:  # MPI_COMM_SELF
        return np.int64(0 if world == state.rank else -1)
    # Mostly the communicator is the world, and its sorted members are 0, 1, 2, ...
    if 0 <= world < end - low and load_int32(state.member, low + world) == world:
        return np.int64(load_int32(state.position, low + world))
    high = end
    while low < high:
        middle = (low + high) // 2
        if load_int32(state.member, middle) < world:
            low = middle + 1
        else:
            high = middle
    if low < end and load_int32(state.member, low) == world:
        return np.int64(load_int32(state.position, low))
    return np.int64(-1)


@subroutine
def _write(state, kind, row, ticks, record, address):
    """Write an event that is not a bracket, by libotf2's function at an address."""
    begin = (state.writer, np.uint64(0), ticks)
    request = np.uint64(load_int64(state.request, record))
    if kind == Kind.COLLECTIVE_BEGIN:
        return call_at(address, begin)
    if kind in _REQUESTS:
        return call_at(address, (*begin, request))
    size = load_int64(state.size, record)
    received = load_int64(state.received, record)
    if kind == Kind.IMRECV_REQUEST:
        return call_at(address, (*begin, np.uint64(received), request))
    if size < 0:
        return _fail(state, SIZE, row, size)
    if kind == Kind.MRECV or kind == Kind.IMRECV:
        return call_at(address, (*begin, request, np.uint64(size)))

    collective = kind == Kind.COLLECTIVE_END or kind == Kind.COLLECTIVE_COMPLETE
    comm = np.int64(load_int32(state.comm, record))
    peer = np.int64(load_int32(state.peer, record))
    if comm >= state.communicators or comm < (-1 if collective else 0):
        return _fail(state, COMMUNICATOR, row, comm)
    partner = np.int64(-1)
    if comm >= 0 and peer >= 0:
        partner = _rank_in(state, comm, peer)
    communicator = np.uint32(comm)
    if not collective:
        if partner < 0:
            return _fail(state, PARTNER, row, peer)
        tag = np.uint32(load_int32(state.tag, record))
        number = request if kind == Kind.PROBE else np.uint64(size)
        message = (*begin, np.uint32(partner), communicator, tag, number)
        if kind == Kind.PROBE or kind == Kind.SEND or kind == Kind.RECV:
            return call_at(address, message)
        return call_at(address, (*message, request))

    root = np.uint32(partner)  # -1: OTF2_COLLECTIVE_ROOT_NONE
    if partner < 0 and peer >= 0:
        if peer != state.rank:
            return _fail(state, PARTNER, row, peer)
        root = _ROOT_SELF
    operation = np.uint32(load_uint8(state.operation, record))
    if received < 0:
        return _fail(state, SIZE, row, received)
    call = (*begin, operation, communicator, root, np.uint64(size), np.uint64(received))
    if kind == Kind.COLLECTIVE_END:
        return call_at(address, call)
    return call_at(address, (*call, request))


@subroutine
def _one_sided(state, kind, row, ticks, record, address):
    """Write a one-sided record, likewise."""
    event = (state.writer, np.uint64(0), ticks)
    if kind == Kind.RMA_COLLECTIVE_BEGIN:
        return call_at(address, event)
    window = np.int64(load_int32(state.tag, record))
    comm = np.int64(load_int32(state.comm, record))
    if not 0 <= window < state.windows or comm != load_int32(state.window_comm, window) or comm < 0:
        return _fail(state, WINDOW, row, window)
    begin = (*event, np.uint32(window))
    if kind <= Kind.RMA_WAIT_CHANGE:
        return call_at(address, begin)
    number = np.uint64(load_int64(state.request, record))
    if kind >= Kind.RMA_OP_COMPLETE_BLOCKING:
        return call_at(address, (*begin, number))

    peer = np.int64(load_int32(state.peer, record))
    target = _UNDEFINED
    if peer >= 0:
        found = _rank_in(state, comm, peer)
        if found < 0:
            return _fail(state, PARTNER, row, peer)
        target = np.uint32(found)
    sort = np.uint32(load_uint8(state.operation, record))
    if kind == Kind.RMA_RELEASE_LOCK:
        return call_at(address, (*begin, target, number))
    if kind == Kind.RMA_SYNC:
        return call_at(address, (*begin, target, sort))
    if Kind.RMA_REQUEST_LOCK <= kind <= Kind.RMA_TRY_LOCK:
        return call_at(address, (*begin, target, number, sort))

    size = load_int64(state.size, record)
    if size < 0:
        return _fail(state, SIZE, row, size)
    if kind == Kind.RMA_GROUP_SYNC:
        if size >= state.groups:
            return _fail(state, GROUP, row, size)
        group = np.uint32(state.first_group + size)
        return call_at(address, (*event, sort, np.uint32(window), group))
    bytes_ = np.uint64(size)
    if kind == Kind.RMA_PUT or kind == Kind.RMA_GET:
        return call_at(address, (*begin, target, bytes_, number))
    back = load_int64(state.received, record)
    if back < 0:
        return _fail(state, SIZE, row, back)
    if kind == Kind.RMA_ATOMIC:
        return call_at(address, (*begin, target, sort, bytes_, np.uint64(back), number))
    level = np.uint32(load_int64(state.request, record))
    about = (*event, sort, level, np.uint32(window))
    return call_at(address, (*about, target, bytes_, np.uint64(back)))


def _write_rows(states):
    """Write rows `begin` to `end` of one rank; 0, or an error of libotf2 or one noted here."""
    state = carray(states, 1)[0]
    row = state.begin
    while row < state.end:
        moment = load_float64(state.time, row) * state.resolution
        if not abs(moment) < 4.6e18:  # also not a number
            return _fail(state, TIME, row, 0)
        ticks = np.int64(np.rint(moment)) + state.offset
        if ticks < state.last:
            return _fail(state, BACKWARDS, row, ticks)
        state.last = ticks
        kind = np.int64(load_uint8(state.kind, row))
        ref = np.int64(load_int32(state.ref, row))
        if kind > Kind.RMA_OP_COMPLETE_REMOTE:
            return _fail(state, KIND, row, kind)
        address = load_uint64(state.writers, kind)
        if kind == Kind.ENTER or kind == Kind.LEAVE:
            if ref < 0 or ref >= state.regions:
                return _fail(state, REGION, row, ref)
            begin = (state.writer, np.uint64(0), np.uint64(ticks))
            status: Any = call_at(address, (*begin, np.uint32(ref)))
        elif ref < 0 or ref >= state.records:
            return _fail(state, RECORD, row, ref)
        elif kind >= Kind.RMA_WIN_CREATE:
            status = _one_sided(state, kind, row, np.uint64(ticks), ref, address)
        else:
            status = _write(state, kind, row, np.uint64(ticks), ref, address)
        if status != 0:
            if state.error == 0:
                _fail(state, LIBRARY, row, status)
            return status
        row += 1
    return np.int32(0)


@cache
def write_rows() -> Callable[[int], int]:
    """Return the compiled loop; its argument is the address of a record of `STATE`."""
    compiled = callback(types.int32(types.CPointer(from_dtype(STATE))), _write_rows)
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(compiled.address)
