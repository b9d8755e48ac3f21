"""Compiled callbacks: what libotf2 calls for every event it reads.

Each is a C function made by numba and registered by address; a record of `STATE` is its user data.
Columns are passed as addresses because a C callback has nowhere else to keep an array. Rows are
appended without looking at capacity: nobody asks for more events than there is room for.

Three sets, by the event's name in libotf2: `PROGRAM` appends events to the columns of a trace,
`TOTALS` adds sends and collectives up, and `counters` count whatever a trace does not hold.
A callback that finds something wrong notes it in the state and interrupts the reading.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import register_jitable
from numba.np.numpy_support import from_dtype

from hopmap.compilation import cfunc
from hopmap.traces.trace import NO_OPERATION, Kind, Span

from .counter_kernels import counters
from .pointer_kernels import carray, load_int32, load_int64, load_uint8, load_uint32, store

_ADDRESSES = (
    # columns of the events, columns of the records
    *("kind", "time", "ref", "peer", "comm", "tag", "operation", "size", "received", "request"),
    # tables of communicators and regions (otf2_definitions)
    *("reference", "number", "start", "length", "members", "region_reference", "region_is_mpi"),
    # open regions; events counted by name; totals by receiver; collectives by communicator
    *("open", "counts", "messages", "bytes", "calls"),
    # ticks and kinds of times that are not the program's
    *("span_begin", "span_end", "span_kind"),
)
STATE = np.dtype(
    [
        *((name, "u8") for name in _ADDRESSES),
        *((name, "i8") for name in ("events", "records")),
        *((name, "i8") for name in ("communicators", "regions", "self_at", "error")),
        *((name, "i8") for name in ("collective_bytes", "spans", "off")),
        *((name, "u8") for name in ("offset", "first", "last", "position", "detail")),
        ("resolution", "f8"),
    ]
)
OPERATIONS = 32  # columns of `calls`: collective operations of one communicator

# What a callback may find wrong, as templates for the message.
BACKWARDS, REGION, NOT_OPEN, COMMUNICATOR, NOT_MPI, PARTNER, SIZE, OPERATION = range(1, 9)
TOTAL, COLLECTIVE_TOTAL = 9, 10
ERRORS = {
    BACKWARDS: "time runs backwards to tick {detail}",
    REGION: "region {detail} is not defined",
    NOT_OPEN: "leaves region {detail}, which was not entered",
    COMMUNICATOR: "communicator {detail} is not defined",
    NOT_MPI: "communicator {detail} is not one of MPI",
    PARTNER: "partner {detail} is outside the communicator",
    SIZE: "a size of {detail} bytes",
    OPERATION: "collective operation {detail} is not known",
    TOTAL: "the bytes sent to rank {detail} do not fit into 63 bits",
    COLLECTIVE_TOTAL: "the bytes sent in collectives do not fit into 63 bits",
}
_CONTINUE, _INTERRUPT = np.int32(0), np.int32(1)
UNENDED = 0xFFFFFFFFFFFFFFFF  # end of a span up to the location's last event
_MODE_OFF = 2  # OTF2_MEASUREMENT_OFF
_UNDEFINED, _ROOT_SELF, _ROOT_THIS_GROUP = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

# All callbacks begin with location, time, position, user data, attributes.
_U8, _U32, _U64 = types.uint8, types.uint32, types.uint64
_COMMON = (_U64, _U64, _U64, types.CPointer(from_dtype(STATE)), types.voidptr)
_PLAIN = types.int32(*_COMMON)
_REGION = types.int32(*_COMMON, _U32)
_REQUEST = types.int32(*_COMMON, _U64)
_TWO = types.int32(*_COMMON, _U64, _U64)
_PROBE = types.int32(*_COMMON, _U32, _U32, _U32, _U64)
_MODE = types.int32(*_COMMON, _U8)
_MESSAGE = types.int32(*_COMMON, _U32, _U32, _U32, _U64)
_MESSAGE_REQUEST = types.int32(*_COMMON, _U32, _U32, _U32, _U64, _U64)
_COLLECTIVE = types.int32(*_COMMON, _U8, _U32, _U32, _U64, _U64)
_COLLECTIVE_REQUEST = types.int32(*_COMMON, _U8, _U32, _U32, _U64, _U64, _U64)

# Compiled code wants plain numbers of the columns' types.
_ENTER, _LEAVE = np.uint8(Kind.ENTER), np.uint8(Kind.LEAVE)
_COLLECTIVE_BEGIN, _COLLECTIVE_END = np.uint8(Kind.COLLECTIVE_BEGIN), np.uint8(Kind.COLLECTIVE_END)
_COLLECTIVE_COMPLETE = np.uint8(Kind.COLLECTIVE_COMPLETE)
_NO_OPERATION = np.uint8(NO_OPERATION)
_PROBED, _MRECV, _IMRECV = np.uint8(Kind.PROBE), np.uint8(Kind.MRECV), np.uint8(Kind.IMRECV)
_IMRECV_REQUEST = np.uint8(Kind.IMRECV_REQUEST)
_FLUSH, _OFF = np.uint8(Span.FLUSH), np.uint8(Span.OFF)


@register_jitable
def _fail(state, error, position, detail):
    state.error = error
    state.position = position
    state.detail = np.uint64(detail)
    return _INTERRUPT


@register_jitable
def _row_of(references, count, reference):
    """Row of a reference in a sorted table, or -1; references are mostly 0, 1, 2, ..."""
    wanted = np.int64(reference)
    if wanted < count and load_uint32(references, wanted) == reference:
        return wanted
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) // 2
        if np.int64(load_uint32(references, middle)) < wanted:
            low = middle + 1
        else:
            high = middle
    if low < count and load_uint32(references, low) == reference:
        return low
    return np.int64(-1)


@register_jitable
def _communicator(state, position, reference):
    """Row of a communicator of MPI, or -1 with the error noted."""
    row = _row_of(state.reference, state.communicators, reference)
    if row < 0:
        _fail(state, COMMUNICATOR, position, reference)
    elif load_int32(state.number, row) < 0:
        _fail(state, NOT_MPI, position, reference)
        row = np.int64(-1)
    return row


@register_jitable
def _partner(state, position, row, rank):
    """World rank of a rank in the communicator of a row, or -1 with the error noted."""
    if np.int64(rank) >= load_int64(state.length, row):
        _fail(state, PARTNER, position, rank)
        return np.int32(-1)
    return load_int32(state.members, load_int64(state.start, row) + np.int64(rank))


@register_jitable
def _event(state, kind, time, position, ref):
    if time < state.last:
        return _fail(state, BACKWARDS, position, time)
    state.last = time
    row = state.events
    store(state.kind, row, kind)
    store(state.time, row, np.float64(np.int64(time - state.offset)) / state.resolution)
    store(state.ref, row, np.int32(ref))
    state.events = row + 1
    return _CONTINUE


@register_jitable
def _record(
    state, kind, time, position, peer, comm, tag, operation, size, received, request
):  # fmt: skip
    row = state.records
    store(state.peer, row, np.int32(peer))
    store(state.comm, row, np.int32(comm))
    store(state.tag, row, np.int32(tag))
    store(state.operation, row, np.uint8(operation))
    store(state.size, row, np.int64(size))
    store(state.received, row, np.int64(received))
    store(state.request, row, np.int64(request))
    state.records = row + 1
    return _event(state, kind, time, position, row)


def _on_enter(_location, time, position, states, _attributes, region):
    state = carray(states, 1)[0]
    row = _row_of(state.region_reference, state.regions, region)
    if row < 0:
        return _fail(state, REGION, position, region)
    if load_uint8(state.region_is_mpi, row) != 0:
        store(state.open, row, load_int64(state.open, row) + 1)
    return _event(state, _ENTER, time, position, row)


def _on_leave(_location, time, position, states, _attributes, region):
    state = carray(states, 1)[0]
    row = _row_of(state.region_reference, state.regions, region)
    if row < 0:
        return _fail(state, REGION, position, region)
    # Only MPI calls must match: phases of a program overlap or stay open in recorded traces.
    if load_uint8(state.region_is_mpi, row) != 0:
        times = load_int64(state.open, row)
        if times == 0:
            return _fail(state, NOT_OPEN, position, region)
        store(state.open, row, times - 1)
    return _event(state, _LEAVE, time, position, row)


@register_jitable
def _message(state, kind, time, position, rank, communicator, tag, size, request):
    row = _communicator(state, position, communicator)
    if row < 0:
        return _INTERRUPT
    peer = _partner(state, position, row, rank)
    if peer < 0:
        return _INTERRUPT
    if np.int64(size) < 0:
        return _fail(state, SIZE, position, size)
    comm = load_int32(state.number, row)
    return _record(state, kind, time, position, peer, comm, tag, _NO_OPERATION, size, -1, request)


def _message_of(kind):
    number = np.uint8(kind)

    def on_message(_location, time, position, states, _attributes, rank, communicator, tag, size):
        state = carray(states, 1)[0]
        return _message(state, number, time, position, rank, communicator, tag, size, -1)

    return on_message


def _message_with_request_of(kind):
    number = np.uint8(kind)

    def on_message(
        _location, time, position, states, _attributes, rank, communicator, tag, size, request
    ):
        state = carray(states, 1)[0]
        return _message(state, number, time, position, rank, communicator, tag, size, request)

    return on_message


def _request_of(kind):
    number = np.uint8(kind)

    def on_request(_location, time, position, states, _attributes, request):
        state = carray(states, 1)[0]
        return _record(state, number, time, position, -1, -1, -1, _NO_OPERATION, -1, -1, request)

    return on_request


def _on_probe(_location, time, position, states, _attributes, rank, communicator, tag, message):
    state = carray(states, 1)[0]
    return _message(state, _PROBED, time, position, rank, communicator, tag, 0, message)


def _on_mrecv(_location, time, position, states, _attributes, message, size):
    state = carray(states, 1)[0]
    return _record(state, _MRECV, time, position, -1, -1, -1, _NO_OPERATION, size, -1, message)


def _on_imrecv_request(_location, time, position, states, _attributes, message, request):
    state = carray(states, 1)[0]
    return _record(
        state, _IMRECV_REQUEST, time, position, -1, -1, -1, _NO_OPERATION, -1, message, request
    )


def _on_imrecv(_location, time, position, states, _attributes, request, size):
    state = carray(states, 1)[0]
    return _record(state, _IMRECV, time, position, -1, -1, -1, _NO_OPERATION, size, -1, request)


@register_jitable
def _span(state, name, kind, begin, end):
    """Note a time that is not the program's, and count the event that says so."""
    row = state.spans
    store(state.span_begin, row, np.uint64(begin))
    store(state.span_end, row, np.uint64(end))
    store(state.span_kind, row, kind)
    state.spans = row + 1
    return _count(state, name)


@register_jitable
def _count(state, name):
    store(state.counts, name, load_int64(state.counts, name) + 1)
    return _CONTINUE


def _on_flush(_location, time, _position, states, _attributes, stop):
    state = carray(states, 1)[0]
    return _span(state, _FLUSHES, _FLUSH, time, max(time, stop))


def _on_mode(_location, time, _position, states, _attributes, mode):
    state = carray(states, 1)[0]
    if mode == _MODE_OFF and state.off == 0:
        state.off = state.spans + 1
        return _span(state, _MODES, _OFF, time, UNENDED)
    if mode != _MODE_OFF and state.off != 0:
        store(state.span_end, state.off - 1, np.uint64(time))
        state.off = 0
    return _count(state, _MODES)


@register_jitable
def _collective(
    state, kind, time, position, operation, communicator, root, sent, received, request
):  # fmt: skip
    row = np.int64(-1)
    comm, peer = np.int32(-1), np.int32(-1)
    if communicator != _UNDEFINED:
        row = _communicator(state, position, communicator)
        if row < 0:
            return _INTERRUPT
        comm = load_int32(state.number, row)
    if root == _ROOT_SELF:
        peer = load_int32(state.members, state.self_at)
    elif root < _ROOT_THIS_GROUP:
        if row < 0:
            return _fail(state, COMMUNICATOR, position, communicator)
        peer = _partner(state, position, row, root)
        if peer < 0:
            return _INTERRUPT
    if operation >= OPERATIONS:
        return _fail(state, OPERATION, position, operation)
    if np.int64(sent) < 0 or np.int64(received) < 0:
        return _fail(state, SIZE, position, max(sent, received))
    return _record(state, kind, time, position, peer, comm, -1, operation, sent, received, request)


def _on_collective_begin(_location, time, position, states, _attributes):
    state = carray(states, 1)[0]
    return _record(state, _COLLECTIVE_BEGIN, time, position, -1, -1, -1, _NO_OPERATION, -1, -1, -1)


def _on_collective_end(
    _location, time, position, states, _attributes, operation, communicator, root, sent, received
):
    state = carray(states, 1)[0]
    return _collective(
        state, _COLLECTIVE_END, time, position, operation, communicator, root, sent, received, -1
    )


def _on_collective_complete(
    _location, time, position, states, _attributes, operation, communicator, root, sent, received,
    request,
):  # fmt: skip
    state = carray(states, 1)[0]
    return _collective(
        state, _COLLECTIVE_COMPLETE, time, position, operation, communicator, root, sent, received,
        request,
    )  # fmt: skip


@register_jitable
def _note_time(state, time):
    state.first = min(state.first, time)
    state.last = max(state.last, time)


def _sum_send(_location, time, position, states, _attributes, rank, communicator, _tag, size):
    """Add a message to the totals of its receiver; serves MpiSend and MpiIsend alike."""
    state = carray(states, 1)[0]
    _note_time(state, time)
    row = _communicator(state, position, communicator)
    if row < 0:
        return _INTERRUPT
    peer = np.int64(_partner(state, position, row, rank))
    if peer < 0:
        return _INTERRUPT
    if np.int64(size) < 0:
        return _fail(state, SIZE, position, size)
    total = load_int64(state.bytes, peer) + np.int64(size)
    if total < 0:
        return _fail(state, TOTAL, position, peer)
    store(state.bytes, peer, total)
    store(state.messages, peer, load_int64(state.messages, peer) + 1)
    return _CONTINUE


def _sum_collective_of(blocking):
    first_row = 0 if blocking else 1

    def _sum_collective(
        _location, time, position, states, _attributes, operation, communicator, _root, sent
    ):
        state = carray(states, 1)[0]
        _note_time(state, time)
        # One row for collectives without a communicator, then one for each; all of that twice.
        row = np.int64(0)
        if communicator != _UNDEFINED:
            row = _communicator(state, position, communicator) + 1
            if row == 0:
                return _INTERRUPT
        if operation >= OPERATIONS:
            return _fail(state, OPERATION, position, operation)
        place = (first_row * (state.communicators + 1) + row) * OPERATIONS + np.int64(operation)
        store(state.calls, place, load_int64(state.calls, place) + 1)
        if np.int64(sent) < 0:
            return _fail(state, SIZE, position, sent)
        total = state.collective_bytes + np.int64(sent)
        if total < 0:
            return _fail(state, COLLECTIVE_TOTAL, position, sent)
        state.collective_bytes = total
        return _CONTINUE

    return _sum_collective


# Signature and function by the event's name in libotf2.
PROGRAM = {
    "Enter": (_REGION, _on_enter),
    "Leave": (_REGION, _on_leave),
    "MpiSend": (_MESSAGE, _message_of(Kind.SEND)),
    "MpiIsend": (_MESSAGE_REQUEST, _message_with_request_of(Kind.ISEND)),
    "MpiIsendComplete": (_REQUEST, _request_of(Kind.ISEND_COMPLETE)),
    "MpiRecv": (_MESSAGE, _message_of(Kind.RECV)),
    "MpiIrecvRequest": (_REQUEST, _request_of(Kind.IRECV_REQUEST)),
    "MpiIrecv": (_MESSAGE_REQUEST, _message_with_request_of(Kind.IRECV)),
    "MpiRequestTest": (_REQUEST, _request_of(Kind.REQUEST_TEST)),
    "MpiRequestCancelled": (_REQUEST, _request_of(Kind.REQUEST_CANCELLED)),
    "MpiCollectiveBegin": (_PLAIN, _on_collective_begin),
    "MpiCollectiveEnd": (_COLLECTIVE, _on_collective_end),
    "NonBlockingCollectiveRequest": (_REQUEST, _request_of(Kind.COLLECTIVE_REQUEST)),
    "NonBlockingCollectiveComplete": (_COLLECTIVE_REQUEST, _on_collective_complete),
    "MpiProbe": (_PROBE, _on_probe),
    "MpiMrecv": (_TWO, _on_mrecv),
    "MpiImrecvRequest": (_TWO, _on_imrecv_request),
    "MpiImrecv": (_TWO, _on_imrecv),
}
SPANS = {"BufferFlush": (_REQUEST, _on_flush), "MeasurementOnOff": (_MODE, _on_mode)}
_SUM_COLLECTIVE = types.int32(*_COMMON, _U8, _U32, _U32, _U64)
TOTALS = {
    "MpiSend": (_MESSAGE, _sum_send),
    "MpiIsend": (_MESSAGE, _sum_send),
    "MpiCollectiveEnd": (_SUM_COLLECTIVE, _sum_collective_of(True)),
    "NonBlockingCollectiveComplete": (_SUM_COLLECTIVE, _sum_collective_of(False)),
}
OTHERS = (
    *("Unknown", "Metric", "ProgramBegin", "ProgramEnd", "CommCreate", "CommDestroy"),
    *("ParameterString", "ParameterInt", "ParameterUnsignedInt"),
    *("OmpFork", "OmpJoin", "OmpAcquireLock", "OmpReleaseLock"),
    *("OmpTaskCreate", "OmpTaskSwitch", "OmpTaskComplete"),
    *("ThreadFork", "ThreadJoin", "ThreadTeamBegin", "ThreadTeamEnd"),
    *("ThreadAcquireLock", "ThreadReleaseLock"),
    *("ThreadTaskCreate", "ThreadTaskSwitch", "ThreadTaskComplete"),
    *("ThreadCreate", "ThreadBegin", "ThreadWait", "ThreadEnd"),
    *("CallingContextEnter", "CallingContextLeave", "CallingContextSample"),
    *("RmaWinCreate", "RmaWinDestroy", "RmaCollectiveBegin", "RmaCollectiveEnd", "RmaGroupSync"),
    *("RmaRequestLock", "RmaAcquireLock", "RmaTryLock", "RmaReleaseLock", "RmaSync"),
    *("RmaWaitChange", "RmaPut", "RmaGet", "RmaAtomic", "RmaOpCompleteBlocking"),
    *("RmaOpCompleteNonBlocking", "RmaOpTest", "RmaOpCompleteRemote"),
    *("IoCreateHandle", "IoDestroyHandle", "IoDuplicateHandle", "IoSeek", "IoChangeStatusFlags"),
    *("IoDeleteFile", "IoOperationBegin", "IoOperationTest", "IoOperationIssued"),
    *("IoOperationComplete", "IoOperationCancelled"),
    *("IoAcquireLock", "IoReleaseLock", "IoTryLock"),
)
EVENTS = (*PROGRAM, *SPANS, *OTHERS)  # a counter's number is its place in here
_FLUSHES, _MODES = (EVENTS.index(name) for name in SPANS)


@cache
def _address(signature: Any, function: Callable[..., Any]) -> int:
    compiled: Any = cfunc(signature)(function)
    return int(compiled.address)


@cache
def program_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that build a trace and count what it leaves out."""
    callbacks = {name: _address(*compiled) for name, compiled in (PROGRAM | SPANS).items()}
    return callbacks | {name: counting_callbacks()[name] for name in OTHERS}


@cache
def counting_callbacks() -> dict[str, int]:
    """Addresses of callbacks that count events of every kind by name."""
    return dict(zip(EVENTS, counters(len(EVENTS), _place("counts")), strict=True))


def _place(name: str) -> int:
    """Where a field of the state stands, in bytes."""
    return int(STATE.fields[name][1])  # type: ignore[index]


@cache
def total_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that add sends and collectives up, and count what is ignored."""
    ignored = {name: address for name, address in _timing().items() if name not in PROGRAM}
    return ignored | {name: _address(*compiled) for name, compiled in TOTALS.items()}


@cache
def time_callbacks() -> dict[str, int]:
    """Addresses of the same, and of those that note the time of every other kind of event."""
    return _timing() | total_callbacks()


@cache
def _timing() -> dict[str, int]:
    places = [_place(name) for name in ("counts", "first", "last")]
    return dict(zip(EVENTS, counters(len(EVENTS), *places), strict=True))
