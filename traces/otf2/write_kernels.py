"""Compiled loop that writes the events of one rank through libotf2's event writer.

Like the callbacks of the reader this is a C function, called through ctypes: it is compiled
wherever the package runs, and the interpreter can go on meanwhile. libotf2's functions are called
by the addresses in the state.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from hopmap.compilation import callback, subroutine
from hopmap.traces.trace import Kind

from .state_kernels import caller, carray, load_float64, load_int32, load_int64, load_uint8

# libotf2's function for each kind, in the order of `Kind`.
WRITERS = (
    *("Enter", "Leave", "MpiSend", "MpiIsend", "MpiIsendComplete", "MpiRecv", "MpiIrecvRequest"),
    *("MpiIrecv", "MpiRequestTest", "MpiRequestCancelled", "MpiCollectiveBegin"),
    *("MpiCollectiveEnd", "NonBlockingCollectiveRequest", "NonBlockingCollectiveComplete"),
    *("MpiProbe", "MpiMrecv", "MpiImrecvRequest", "MpiImrecv"),
    *("RmaWinCreate", "RmaWinDestroy", "RmaWaitChange", "RmaCollectiveBegin", "RmaCollectiveEnd"),
    *("RmaGroupSync", "RmaSync", "RmaRequestLock", "RmaAcquireLock", "RmaTryLock"),
    *("RmaReleaseLock", "RmaPut", "RmaGet", "RmaAtomic", "RmaOpCompleteBlocking"),
    *("RmaOpCompleteNonBlocking", "RmaOpTest", "RmaOpCompleteRemote"),
)
_ADDRESSES = (
    *("kind", "time", "ref", "peer", "comm", "tag", "operation", "size", "received", "request"),
    # members of all communicators: sorted, and the rank of each in its communicator
    *("start", "member", "position"),
    *("window_comm", "writer"),
    *(f"write_{name}" for name in WRITERS),
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
_UNDEFINED, _ROOT_SELF = np.uint32(0xFFFFFFFF), np.uint32(0xFFFFFFFE)

_U32, _U64 = types.uint32, types.uint64
_write_plain = caller(_U64, _U64, _U64)
_write_region = caller(_U64, _U64, _U64, _U32)
_write_request = caller(_U64, _U64, _U64, _U64)
_write_two = caller(_U64, _U64, _U64, _U64, _U64)
_write_message = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U64)
_write_message_request = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U64, _U64)
_write_collective = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U64, _U64)
_write_collective_request = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U64, _U64, _U64)
_write_group = caller(_U64, _U64, _U64, _U32, _U32, _U32)
_write_lock = caller(_U64, _U64, _U64, _U32, _U32, _U64, _U32)
_write_release = caller(_U64, _U64, _U64, _U32, _U32, _U64)
_write_moved = caller(_U64, _U64, _U64, _U32, _U32, _U64, _U64)
_write_atomic = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U64, _U64, _U64)
_write_completion = caller(_U64, _U64, _U64, _U32, _U64)
_write_fence = caller(_U64, _U64, _U64, _U32, _U32, _U32, _U32, _U64, _U64)


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
def _write(state, kind, row, ticks, record):
    """Write an event that is not a bracket."""
    writer, nothing = state.writer, np.uint64(0)
    request = np.uint64(load_int64(state.request, record))
    if kind == Kind.COLLECTIVE_BEGIN:
        return _write_plain(state.write_MpiCollectiveBegin, (writer, nothing, ticks))
    address = np.uint64(0)
    if kind == Kind.ISEND_COMPLETE:
        address = state.write_MpiIsendComplete
    elif kind == Kind.IRECV_REQUEST:
        address = state.write_MpiIrecvRequest
    elif kind == Kind.REQUEST_TEST:
        address = state.write_MpiRequestTest
    elif kind == Kind.REQUEST_CANCELLED:
        address = state.write_MpiRequestCancelled
    elif kind == Kind.COLLECTIVE_REQUEST:
        address = state.write_NonBlockingCollectiveRequest
    if address != 0:
        return _write_request(address, (writer, nothing, ticks, request))

    size = load_int64(state.size, record)
    received = load_int64(state.received, record)
    if kind == Kind.IMRECV_REQUEST:
        fetched = np.uint64(received)
        return _write_two(state.write_MpiImrecvRequest, (writer, nothing, ticks, fetched, request))
    if size < 0:
        return _fail(state, SIZE, row, size)
    if kind == Kind.MRECV or kind == Kind.IMRECV:
        address = state.write_MpiMrecv if kind == Kind.MRECV else state.write_MpiImrecv
        return _write_two(address, (writer, nothing, ticks, request, np.uint64(size)))

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
        message = (writer, nothing, ticks, np.uint32(partner), communicator, tag, number)
        if kind == Kind.PROBE:
            return _write_message(state.write_MpiProbe, message)
        if kind == Kind.SEND:
            return _write_message(state.write_MpiSend, message)
        if kind == Kind.RECV:
            return _write_message(state.write_MpiRecv, message)
        address = state.write_MpiIsend if kind == Kind.ISEND else state.write_MpiIrecv
        return _write_message_request(address, (*message, request))

    root = np.uint32(partner)  # -1: OTF2_COLLECTIVE_ROOT_NONE
    if partner < 0 and peer >= 0:
        if peer != state.rank:
            return _fail(state, PARTNER, row, peer)
        root = _ROOT_SELF
    operation = np.uint32(load_uint8(state.operation, record))
    if received < 0:
        return _fail(state, SIZE, row, received)
    call = (writer, nothing, ticks, operation, communicator, root, np.uint64(size))
    if kind == Kind.COLLECTIVE_END:
        return _write_collective(state.write_MpiCollectiveEnd, (*call, np.uint64(received)))
    return _write_collective_request(
        state.write_NonBlockingCollectiveComplete, (*call, np.uint64(received), request)
    )


@subroutine
def _one_sided(state, kind, row, ticks, record):
    """Write a one-sided record."""
    writer, nothing = state.writer, np.uint64(0)
    if kind == Kind.RMA_COLLECTIVE_BEGIN:
        return _write_plain(state.write_RmaCollectiveBegin, (writer, nothing, ticks))
    window = np.int64(load_int32(state.tag, record))
    comm = np.int64(load_int32(state.comm, record))
    if not 0 <= window < state.windows or comm != load_int32(state.window_comm, window) or comm < 0:
        return _fail(state, WINDOW, row, window)
    begin = (writer, nothing, ticks, np.uint32(window))
    if kind == Kind.RMA_WIN_CREATE:
        return _write_region(state.write_RmaWinCreate, begin)
    if kind == Kind.RMA_WIN_DESTROY:
        return _write_region(state.write_RmaWinDestroy, begin)
    if kind == Kind.RMA_WAIT_CHANGE:
        return _write_region(state.write_RmaWaitChange, begin)
    number = np.uint64(load_int64(state.request, record))
    if kind == Kind.RMA_OP_COMPLETE_BLOCKING:
        return _write_completion(state.write_RmaOpCompleteBlocking, (*begin, number))
    if kind == Kind.RMA_OP_COMPLETE_NON_BLOCKING:
        return _write_completion(state.write_RmaOpCompleteNonBlocking, (*begin, number))
    if kind == Kind.RMA_OP_TEST:
        return _write_completion(state.write_RmaOpTest, (*begin, number))
    if kind == Kind.RMA_OP_COMPLETE_REMOTE:
        return _write_completion(state.write_RmaOpCompleteRemote, (*begin, number))

    peer = np.int64(load_int32(state.peer, record))
    target = _UNDEFINED
    if peer >= 0:
        found = _rank_in(state, comm, peer)
        if found < 0:
            return _fail(state, PARTNER, row, peer)
        target = np.uint32(found)
    sort = np.uint32(load_uint8(state.operation, record))
    if kind == Kind.RMA_RELEASE_LOCK:
        return _write_release(state.write_RmaReleaseLock, (*begin, target, number))
    if kind == Kind.RMA_SYNC:
        arguments = (writer, nothing, ticks, np.uint32(window), target, sort)
        return _write_group(state.write_RmaSync, arguments)
    if kind == Kind.RMA_REQUEST_LOCK:
        return _write_lock(state.write_RmaRequestLock, (*begin, target, number, sort))
    if kind == Kind.RMA_ACQUIRE_LOCK:
        return _write_lock(state.write_RmaAcquireLock, (*begin, target, number, sort))
    if kind == Kind.RMA_TRY_LOCK:
        return _write_lock(state.write_RmaTryLock, (*begin, target, number, sort))

    size = load_int64(state.size, record)
    if size < 0:
        return _fail(state, SIZE, row, size)
    if kind == Kind.RMA_GROUP_SYNC:
        if size >= state.groups:
            return _fail(state, GROUP, row, size)
        group = np.uint32(state.first_group + size)
        arguments = (writer, nothing, ticks, sort, np.uint32(window), group)
        return _write_group(state.write_RmaGroupSync, arguments)
    bytes_ = np.uint64(size)
    if kind == Kind.RMA_PUT:
        return _write_moved(state.write_RmaPut, (*begin, target, bytes_, number))
    if kind == Kind.RMA_GET:
        return _write_moved(state.write_RmaGet, (*begin, target, bytes_, number))
    back = load_int64(state.received, record)
    if back < 0:
        return _fail(state, SIZE, row, back)
    if kind == Kind.RMA_ATOMIC:
        moved = (*begin, target, sort, bytes_, np.uint64(back), number)
        return _write_atomic(state.write_RmaAtomic, moved)
    level = np.uint32(load_int64(state.request, record))
    about = (writer, nothing, ticks, sort, level, np.uint32(window))
    fence = (*about, target, bytes_, np.uint64(back))
    return _write_fence(state.write_RmaCollectiveEnd, fence)


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
        if kind == Kind.ENTER or kind == Kind.LEAVE:
            if ref < 0 or ref >= state.regions:
                return _fail(state, REGION, row, ref)
            address = state.write_Enter if kind == Kind.ENTER else state.write_Leave
            status = _write_region(
                address, (state.writer, np.uint64(0), np.uint64(ticks), np.uint32(ref))
            )
        elif kind > Kind.RMA_OP_COMPLETE_REMOTE:
            return _fail(state, KIND, row, kind)
        elif ref < 0 or ref >= state.records:
            return _fail(state, RECORD, row, ref)
        elif kind >= Kind.RMA_WIN_CREATE:
            status = _one_sided(state, kind, row, np.uint64(ticks), ref)
        else:
            status = _write(state, kind, row, np.uint64(ticks), ref)
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
