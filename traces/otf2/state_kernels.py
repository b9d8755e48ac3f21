"""What the compiled callbacks share: their state, plain addresses, and what they may find wrong.

A callback gets a record of `STATE` as its user data. Columns and tables are passed as addresses,
because a C callback has nowhere else to keep an array, and numba has no type for "an array
somewhere": a few intrinsics say what the pointer arithmetic of C would.

Callbacks that only count are one for each kind of event, since libotf2 does not say of which kind
the event is that it calls a callback for. numba would compile these 84 one by one, at 34
milliseconds each; all in one module of machine code they take some 30 in every process, less than
to load them from numba's cache.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import carray as carray  # type: ignore[attr-defined]
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from hopmap.compilation import njit, subroutine

# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"


_ADDRESSES = (
    # columns of the events, columns of the records
    *("kind", "time", "ref", "peer", "comm", "tag", "operation", "size", "received", "request"),
    # tables of communicators and regions (otf2_definitions)
    *("reference", "number", "start", "length", "members", "belongs"),
    *("region_reference", "region_is_mpi"),
    # windows of one-sided operations; groups
    *("window_reference", "window_comm", "group_reference"),
    # open regions; events counted by name; totals by receiver; collectives by communicator;
    # totals of one-sided operations by receiver, and by sender
    *("open", "counts", "messages", "bytes", "calls"),
    *("put_messages", "put_bytes", "got_messages", "got_bytes"),
    # ticks and kinds of times that are not the program's
    *("span_begin", "span_end", "span_kind"),
)
STATE = np.dtype(
    [
        *((name, "u8") for name in _ADDRESSES),
        *((name, "i8") for name in ("events", "records")),
        *((name, "i8") for name in ("communicators", "regions", "self_at", "error")),
        *((name, "i8") for name in ("collective_bytes", "spans", "off", "windows", "groups")),
        *((name, "u8") for name in ("offset", "first", "latest", "last", "position", "detail")),
        ("resolution", "f8"),
    ]
)
NAMES = (
    *("Enter", "Leave", "MpiSend", "MpiIsend", "MpiIsendComplete", "MpiRecv", "MpiIrecvRequest"),
    *("MpiIrecv", "MpiRequestTest", "MpiRequestCancelled", "MpiCollectiveBegin"),
    *("MpiCollectiveEnd", "NonBlockingCollectiveRequest", "NonBlockingCollectiveComplete"),
    *("MpiProbe", "MpiMrecv", "MpiImrecvRequest", "MpiImrecv"),
    *("RmaWinCreate", "RmaWinDestroy", "RmaWaitChange", "RmaCollectiveBegin", "RmaCollectiveEnd"),
    *("RmaGroupSync", "RmaSync", "RmaRequestLock", "RmaAcquireLock", "RmaTryLock"),
    *("RmaReleaseLock", "RmaPut", "RmaGet", "RmaAtomic", "RmaOpCompleteBlocking"),
    *("RmaOpCompleteNonBlocking", "RmaOpTest", "RmaOpCompleteRemote"),
)
"""Names of records in libotf2, in the order of `Kind`."""
OPERATIONS = 32  # columns of `calls`: collective operations of one communicator

# What a callback may find wrong, as templates for the message.
BACKWARDS, REGION, NOT_OPEN, COMMUNICATOR, NOT_MPI, PARTNER, SIZE, OPERATION = range(1, 9)
TOTAL, COLLECTIVE_TOTAL, WINDOW, GROUP, STRANGER = 9, 10, 11, 12, 13
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
    WINDOW: "window {detail} is not defined",
    GROUP: "group {detail} is not one of MPI's ranks",
    STRANGER: "communicator {detail} does not have this rank",
}
CONTINUE, INTERRUPT = np.int32(0), np.int32(1)
UNDEFINED = 0xFFFFFFFF

# All callbacks begin with location, time, position, user data, attributes.
U8, U32, U64 = types.uint8, types.uint32, types.uint64
COMMON = (U64, U64, U64, types.CPointer(from_dtype(STATE)), types.voidptr)
MESSAGE = types.int32(*COMMON, U32, U32, U32, U64)


@subroutine
def fail(state, error, position, detail):
    """Note what is wrong where, and return what interrupts the reading."""
    state.error = error
    state.position = position
    state.detail = np.uint64(detail)
    return INTERRUPT


@subroutine
def row_of(references, count, reference):
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


@subroutine
def communicator_row(state, position, reference):
    """Row of a communicator of MPI, or -1 with the error noted."""
    row = row_of(state.reference, state.communicators, reference)
    if row < 0:
        fail(state, COMMUNICATOR, position, reference)
    elif load_int32(state.number, row) < 0:
        fail(state, NOT_MPI, position, reference)
        row = np.int64(-1)
    elif load_uint8(state.belongs, row) == 0:
        fail(state, STRANGER, position, reference)
        row = np.int64(-1)
    return row


@subroutine
def partner_of(state, position, row, rank):
    """World rank of a rank in the communicator of a row, or -1 with the error noted."""
    if np.int64(rank) >= load_int64(state.length, row):
        fail(state, PARTNER, position, rank)
        return np.int32(-1)
    return load_int32(state.members, load_int64(state.start, row) + np.int64(rank))


@subroutine
def add_to(messages, totals, peer, size):
    """Add a message to a rank's; whether its bytes still fit into 63 bits."""
    total = load_int64(totals, peer) + np.int64(size)
    if total < 0:
        return False
    store(totals, peer, total)  # type: ignore[call-arg]  # numba gives the first, of intrinsics
    store(messages, peer, load_int64(messages, peer) + 1)
    return True


def _loader(loaded: Any) -> Any:
    @intrinsic
    def load(_typing_context: Any, _address: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, index = arguments
            pointer = builder.inttoptr(address, context.get_value_type(loaded).as_pointer())
            return builder.load(builder.gep(pointer, [index]))

        return loaded(types.uint64, types.int64), generate

    return load


load_int32 = _loader(types.int32)
load_uint32 = _loader(types.uint32)
load_int64 = _loader(types.int64)
load_uint8 = _loader(types.uint8)
load_uint64 = _loader(types.uint64)
load_float64 = _loader(types.float64)


@intrinsic
def store(_typing_context: Any, _address: Any, _index: Any, value: Any) -> Any:
    """Store a value of any scalar type as element `index` of the array at `address`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, index, stored = arguments
        pointer = builder.inttoptr(address, stored.type.as_pointer())
        builder.store(stored, builder.gep(pointer, [index]))
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, value), generate


@intrinsic
def call_at(_typing_context: Any, _address: Any, arguments: Any) -> Any:
    """Call the C function at an address, with a tuple of arguments; it returns an int32.

    Arguments have the types that they have here, wide enough to need no extension (32 or 64 bits).
    """

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        address, packed = values
        fields = [builder.extract_value(packed, place) for place in range(len(arguments))]
        prototype = ir.FunctionType(ir.IntType(32), [value.type for value in fields])
        return builder.call(builder.inttoptr(address, prototype.as_pointer()), fields)

    return types.int32(types.uint64, arguments), generate


_HEADER = 18  # bytes: mark, byte order, numbers of the first and the last event
_LITTLE_ENDIAN = ord("B")  # the other is "#"
_END_OF_CHUNK, _END_OF_FILE, _TIMESTAMP = 0, 2, 5
_LONG_LENGTH = 255  # instead of a length: eight bytes of length follow

# Enter, Leave, MpiIsendComplete, MpiIrecvRequest, MpiRequestTest, MpiRequestCancelled, OmpFork,
# OmpTaskCreate, OmpTaskSwitch, OmpTaskComplete: their one number stands there without a length
# before it, and its own first byte is a length, or 255 for "undefined" with nothing behind it.
# Definitions have neither these nor time stamps: the same numbers mean other records there.
_SINGLE_NUMBER = np.zeros(256, dtype=np.bool_)
_SINGLE_NUMBER[[12, 13, 16, 17, 20, 21, 24, 28, 29, 30]] = True


@njit
def leads_to_the_end(chunk: NDArray[np.uint8], has_events: bool) -> bool:
    """Whether the records of a chunk lead to the mark that ends a file."""
    size = np.int64(len(chunk))
    place = np.int64(_HEADER)
    while place < size:
        mark = chunk[place]
        place += 1
        if mark == _END_OF_FILE:
            return True
        if mark == _END_OF_CHUNK:
            return False
        if has_events and mark == _TIMESTAMP:
            place += 8
            continue
        if place >= size:
            return False
        length = np.int64(chunk[place])
        place += 1
        if length == _LONG_LENGTH and has_events and _SINGLE_NUMBER[mark]:
            length = np.int64(0)
        elif length == _LONG_LENGTH:
            if place + 8 > size:
                return False
            length = np.int64(0)
            for digit in range(8):
                at = 7 - digit if chunk[1] == _LITTLE_ENDIAN else digit
                length = length * 256 + np.int64(chunk[place + at])
            if length < 0 or length > size:
                return False
            place += 8
        place += length
    return False


_LONG, _INT = ir.IntType(64), ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()
# Location, time, position, user data, attributes; what follows may be left alone.
_CALLBACK = ir.FunctionType(_INT, [_LONG, _LONG, _LONG, _BYTES, _BYTES])


@cache
def counters(number: int, counts_at: int, first_at: int, latest_at: int) -> tuple[int, ...]:
    """Return the addresses of so many callbacks; the n-th adds 1 to element n of the counts.

    Each keeps the first and the latest time as well. `counts_at`, `first_at` and `latest_at` are
    where in the user data, in bytes, the address of the counts (int64) and both times (uint64)
    stand.
    """
    module = ir.Module()
    for n in range(number):
        function = ir.Function(module, _CALLBACK, f"count_{n}")
        build = ir.IRBuilder(function.append_basic_block())
        field = build.gep(function.args[3], [_LONG(counts_at)])
        counts = build.load(build.bitcast(field, _LONG.as_pointer()))
        counter = build.gep(build.inttoptr(counts, _LONG.as_pointer()), [_LONG(n)])
        build.store(build.add(build.load(counter), _LONG(1)), counter)
        for place, order in ((first_at, "<"), (latest_at, ">")):
            field = build.gep(function.args[3], [_LONG(place)])
            field = build.bitcast(field, _LONG.as_pointer())
            known, time = build.load(field), function.args[1]
            beyond = build.icmp_unsigned(order, time, known)
            build.store(build.select(beyond, time, known), field)
        build.ret(_INT(0))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(opt=1)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    _engines.append(engine)
    return tuple(engine.get_function_address(f"count_{n}") for n in range(number))


_engines: list[binding.ExecutionEngine] = []  # the code lives as long as these
