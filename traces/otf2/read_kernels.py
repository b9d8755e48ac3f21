"""Compiled callbacks: what libotf2 calls for every event it reads.

Each is a C function made by numba and registered by address; a record of `STATE` is its user data.
Rows are appended without checking capacity: callers never read more events than there is room for.

Sets, by the event's name in libotf2: `PROGRAM` appends events to the columns of a trace, `SPANS`
notes times that are not the program's, `TOTALS` (`total_kernels.py`) adds sends and collectives up,
and `counters` count everything that a trace does not hold. What is
one-sided is in `one_sided_kernels.py`.
A callback that finds something wrong notes it in the state and interrupts the reading.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from functools import cache

import numpy as np
from numba import types

from hopmap.compilation import callback, subroutine
from hopmap.traces.trace import NO_OPERATION, Kind, Span

from .state_kernels import (
    BACKWARDS,
    COMMON,
    COMMUNICATOR,
    CONTINUE,
    INTERRUPT,
    MESSAGE,
    NAMES,
    NOT_OPEN,
    OPERATION,
    OPERATIONS,
    REGION,
    SIZE,
    STATE,
    U8,
    U32,
    U64,
    UNDEFINED,
    carray,
    communicator_row,
    counters,
    fail,
    load_int32,
    load_int64,
    load_uint8,
    partner_of,
    row_of,
    store,
)
from .total_kernels import TOTALS

UNENDED = 0xFFFFFFFFFFFFFFFF  # end of a span up to the location's last event
_MODE_OFF = 2  # OTF2_MEASUREMENT_OFF
_ROOT_SELF, _ROOT_THIS_GROUP = 0xFFFFFFFE, 0xFFFFFFFD

_PLAIN = types.int32(*COMMON)
_REGION = types.int32(*COMMON, U32)
_REQUEST = types.int32(*COMMON, U64)
_TWO = types.int32(*COMMON, U64, U64)
_PROBE = types.int32(*COMMON, U32, U32, U32, U64)
_MODE = types.int32(*COMMON, U8)
_MESSAGE_REQUEST = types.int32(*COMMON, U32, U32, U32, U64, U64)
_COLLECTIVE = types.int32(*COMMON, U8, U32, U32, U64, U64)
_COLLECTIVE_REQUEST = types.int32(*COMMON, U8, U32, U32, U64, U64, U64)

# Compiled code wants plain numbers of the columns' types.
_ENTER, _LEAVE = np.uint8(Kind.ENTER), np.uint8(Kind.LEAVE)
_COLLECTIVE_BEGIN, _COLLECTIVE_END = np.uint8(Kind.COLLECTIVE_BEGIN), np.uint8(Kind.COLLECTIVE_END)
_COLLECTIVE_COMPLETE = np.uint8(Kind.COLLECTIVE_COMPLETE)
_NO_OPERATION = np.int64(NO_OPERATION)
_PROBED, _MRECV, _IMRECV = np.uint8(Kind.PROBE), np.uint8(Kind.MRECV), np.uint8(Kind.IMRECV)
_IMRECV_REQUEST = np.uint8(Kind.IMRECV_REQUEST)
_FLUSH, _OFF = np.uint8(Span.FLUSH), np.uint8(Span.OFF)


@subroutine
def _event(state, kind, time, position, ref):
    if time < state.last:
        return fail(state, BACKWARDS, position, time)
    state.last = time
    row = state.events
    store(state.kind, row, kind)
    store(state.time, row, np.float64(np.int64(time - state.offset)) / state.resolution)
    store(state.ref, row, np.int32(ref))
    state.events = row + 1
    return CONTINUE


@subroutine
def record(state, kind, time, position, fields):
    """Append an event that is not a bracket, and its record.

    `fields` are seven of int64, or it is compiled again: partner, communicator, tag, operation,
    size, received and request.
    """
    peer, comm, tag, operation, size, received, request = fields
    row = state.records
    store(state.peer, row, np.int32(peer))
    store(state.comm, row, np.int32(comm))
    store(state.tag, row, np.int32(tag))
    store(state.operation, row, np.uint8(operation))
    store(state.size, row, size)
    store(state.received, row, received)
    store(state.request, row, request)
    state.records = row + 1
    return _event(state, kind, time, position, row)


@subroutine
def _record_alone(state, kind, time, position, size, received, request):
    """Append an event that names no partner."""
    fields = -1, -1, -1, _NO_OPERATION, size, received, request
    return record(state, kind, time, position, fields)


def _on_enter(_location, time, position, states, _attributes, region):
    state = carray(states, 1)[0]
    row = row_of(state.region_reference, state.regions, region)
    if row < 0:
        return fail(state, REGION, position, region)
    if load_uint8(state.region_is_mpi, row) != 0:
        store(state.open, row, load_int64(state.open, row) + 1)
    return _event(state, _ENTER, time, position, row)


def _on_leave(_location, time, position, states, _attributes, region):
    state = carray(states, 1)[0]
    row = row_of(state.region_reference, state.regions, region)
    if row < 0:
        return fail(state, REGION, position, region)
    # Only MPI calls must match: phases of a program overlap or stay open in recorded traces.
    if load_uint8(state.region_is_mpi, row) != 0:
        times = load_int64(state.open, row)
        if times == 0:
            return fail(state, NOT_OPEN, position, region)
        store(state.open, row, times - 1)
    return _event(state, _LEAVE, time, position, row)


@subroutine
def _message(state, kind, time, position, rank, communicator, tag, size, request):
    row = communicator_row(state, position, communicator)
    if row < 0:
        return INTERRUPT
    peer = partner_of(state, position, row, rank)
    if peer < 0:
        return INTERRUPT
    if size < 0:
        return fail(state, SIZE, position, size)
    comm = np.int64(load_int32(state.number, row))
    fields = np.int64(peer), comm, np.int64(tag), _NO_OPERATION, size, -1, request
    return record(state, kind, time, position, fields)


def _message_of(kind):
    number = np.uint8(kind)

    def on_message(_location, time, position, states, _attributes, rank, communicator, tag, size):
        state = carray(states, 1)[0]
        size = np.int64(size)
        return _message(state, number, time, position, rank, communicator, tag, size, -1)

    return on_message


def _message_with_request_of(kind):
    number = np.uint8(kind)

    def on_message(
        _location, time, position, states, _attributes, rank, communicator, tag, size, request
    ):
        state = carray(states, 1)[0]
        size, request = np.int64(size), np.int64(request)
        return _message(state, number, time, position, rank, communicator, tag, size, request)

    return on_message


def _request_of(kind):
    number = np.uint8(kind)

    def on_request(_location, time, position, states, _attributes, request):
        state = carray(states, 1)[0]
        return _record_alone(state, number, time, position, -1, -1, np.int64(request))

    return on_request


def _on_probe(_location, time, position, states, _attributes, rank, communicator, tag, message):
    state = carray(states, 1)[0]
    message = np.int64(message)
    return _message(state, _PROBED, time, position, rank, communicator, tag, 0, message)


def _on_mrecv(_location, time, position, states, _attributes, message, size):
    state = carray(states, 1)[0]
    return _record_alone(state, _MRECV, time, position, np.int64(size), -1, np.int64(message))


def _on_imrecv_request(_location, time, position, states, _attributes, message, request):
    state = carray(states, 1)[0]
    message, request = np.int64(message), np.int64(request)
    return _record_alone(state, _IMRECV_REQUEST, time, position, -1, message, request)


def _on_imrecv(_location, time, position, states, _attributes, request, size):
    state = carray(states, 1)[0]
    return _record_alone(state, _IMRECV, time, position, np.int64(size), -1, np.int64(request))


@subroutine
def _span(state, name, kind, begin, end):
    """Note a time that is not the program's, and count the event that says so."""
    row = state.spans
    store(state.span_begin, row, np.uint64(begin))
    store(state.span_end, row, np.uint64(end))
    store(state.span_kind, row, kind)
    state.spans = row + 1
    return count(state, name)


@subroutine
def count(state, name):
    """Count an event that the trace leaves out, by the place of its name in `EVENTS`."""
    store(state.counts, name, load_int64(state.counts, name) + 1)
    return CONTINUE


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
    return count(state, _MODES)


@subroutine
def _collective(state, kind, time, position, operation, communicator, root, sent, got, request):
    row, comm, peer = np.int64(-1), np.int64(-1), np.int64(-1)
    if communicator != UNDEFINED:
        row = communicator_row(state, position, communicator)
        if row < 0:
            return INTERRUPT
        comm = np.int64(load_int32(state.number, row))
    if root == _ROOT_SELF:
        peer = np.int64(load_int32(state.members, state.self_at))
    elif root < _ROOT_THIS_GROUP:
        if row < 0:
            return fail(state, COMMUNICATOR, position, communicator)
        peer = np.int64(partner_of(state, position, row, root))
        if peer < 0:
            return INTERRUPT
    if operation >= OPERATIONS:
        return fail(state, OPERATION, position, operation)
    if np.int64(sent) < 0 or np.int64(got) < 0:
        return fail(state, SIZE, position, max(sent, got))
    fields = peer, comm, -1, np.int64(operation), np.int64(sent), np.int64(got), request
    return record(state, kind, time, position, fields)


def _on_collective_begin(_location, time, position, states, _attributes):
    state = carray(states, 1)[0]
    return _record_alone(state, _COLLECTIVE_BEGIN, time, position, -1, -1, -1)


def _on_collective_end(
    _location, time, position, states, _attributes, operation, communicator, root, sent, got
):
    state = carray(states, 1)[0]
    kind = _COLLECTIVE_END
    return _collective(state, kind, time, position, operation, communicator, root, sent, got, -1)


def _on_collective_complete(
    _location,
    time,
    position,
    states,
    _attributes,
    operation,
    communicator,
    root,
    sent,
    got,
    request,
):
    state = carray(states, 1)[0]
    kind, request = _COLLECTIVE_COMPLETE, np.int64(request)
    return _collective(
        state, kind, time, position, operation, communicator, root, sent, got, request
    )


# Signature and function by the event's name in libotf2.
PROGRAM = {
    "Enter": (_REGION, _on_enter),
    "Leave": (_REGION, _on_leave),
    "MpiSend": (MESSAGE, _message_of(Kind.SEND)),
    "MpiIsend": (_MESSAGE_REQUEST, _message_with_request_of(Kind.ISEND)),
    "MpiIsendComplete": (_REQUEST, _request_of(Kind.ISEND_COMPLETE)),
    "MpiRecv": (MESSAGE, _message_of(Kind.RECV)),
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
# Read where there are windows, see `one_sided_kernels.py`.
ONE_SIDED = NAMES[Kind.RMA_WIN_CREATE :]
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
    *ONE_SIDED,
    *("IoCreateHandle", "IoDestroyHandle", "IoDuplicateHandle", "IoSeek", "IoChangeStatusFlags"),
    *("IoDeleteFile", "IoOperationBegin", "IoOperationTest", "IoOperationIssued"),
    *("IoOperationComplete", "IoOperationCancelled"),
    *("IoAcquireLock", "IoReleaseLock", "IoTryLock"),
)
CANCELLED = "MpiRequestCancelled"
EVENTS = (*PROGRAM, *SPANS, *OTHERS)  # a counter's number is its place in here
_FLUSHES, _MODES = (EVENTS.index(name) for name in SPANS)


@cache
def program_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that build a trace and count what it leaves out."""
    callbacks = {name: callback(*compiled).address for name, compiled in (PROGRAM | SPANS).items()}
    return callbacks | {name: counting_callbacks()[name] for name in OTHERS}


@cache
def counting_callbacks() -> dict[str, int]:
    """Addresses of callbacks that count events of every kind by name, and note their times."""
    places = [int(STATE.fields[name][1]) for name in ("counts", "first", "latest")]  # type: ignore[index]
    return dict(zip(EVENTS, counters(len(EVENTS), *places), strict=True))


@cache
def total_callbacks() -> dict[str, int]:
    """Addresses of the callbacks that add sends and collectives up, and count what is not."""
    counted = {*EVENTS} - {*PROGRAM} | {CANCELLED}
    ignored = {name: counting_callbacks()[name] for name in counted}
    return ignored | {name: callback(*compiled).address for name, compiled in TOTALS.items()}


@cache
def time_callbacks() -> dict[str, int]:
    """Addresses of the same, and of those that note the time of every other kind of event."""
    return counting_callbacks() | total_callbacks()
