"""What the compiled callbacks share: their state, what they may find wrong, who is meant by what.

A callback gets a record of `STATE` as its user data. Columns and tables are passed as addresses,
because a C callback has nowhere else to keep an array.
"""
# Compiled code: numba infers the types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from hopmap.compilation import subroutine

from .pointer_kernels import load_int32, load_int64, load_uint32

_ADDRESSES = (
    # columns of the events, columns of the records
    *("kind", "time", "ref", "peer", "comm", "tag", "operation", "size", "received", "request"),
    # tables of communicators and regions (otf2_definitions)
    *("reference", "number", "start", "length", "members", "region_reference", "region_is_mpi"),
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
OPERATIONS = 32  # columns of `calls`: collective operations of one communicator

# What a callback may find wrong, as templates for the message.
BACKWARDS, REGION, NOT_OPEN, COMMUNICATOR, NOT_MPI, PARTNER, SIZE, OPERATION = range(1, 9)
TOTAL, COLLECTIVE_TOTAL, WINDOW, GROUP = 9, 10, 11, 12
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
    return row


@subroutine
def partner_of(state, position, row, rank):
    """World rank of a rank in the communicator of a row, or -1 with the error noted."""
    if np.int64(rank) >= load_int64(state.length, row):
        fail(state, PARTNER, position, rank)
        return np.int32(-1)
    return load_int32(state.members, load_int64(state.start, row) + np.int64(rank))
