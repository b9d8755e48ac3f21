"""The tables that the engines of whole messages work on, and how a run is laid out in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.heap_kernels import IndexedHeap, empty_heap, put
from hopmap.simulator.model import RESUME, is_eager, order_key
from hopmap.simulator.packets.state import MESSAGE_TIMES, OPERATION_TIMES, unhappened
from hopmap.simulator.record import Record
from hopmap.simulator.run_plan import RunPlan

from .max_min_state import Flows, Table, empty_flows, server_table

Ints = NDArray[np.int64]

SLOTS = 1 << 8  # for flows, to begin with

# Parameters and counters; one row.
LOOP = np.dtype(
    [
        ("overhead_send", np.float64),
        ("overhead_recv", np.float64),
        ("gap", np.float64),
        ("gap_per_byte", np.float64),
        ("packet_size", np.int64),
        ("control_bytes", np.int64),
        ("cut_through", np.bool_),
        ("flow", np.bool_),  # share servers by max-min fairness
        ("record_messages", np.bool_),  # whether `message_times` are kept
        ("record_operations", np.bool_),  # whether `operation_times` are kept
        ("number_bits", np.int64),
        ("strands", np.int64),
        ("messages", np.int64),
        ("now", np.float64),
        ("controls", np.int64),
        ("events", np.int64),
        ("arrived", np.int64),
    ]
)
ROW = np.dtype(
    [
        ("compute", np.float64),
        ("target", np.int64),
        ("message", np.int64),
        ("waiter", np.int32),  # strand that waits for it, or -1
        ("kind", np.uint8),
        ("done", np.bool_),  # what it began is complete
    ],
    align=True,
)
STRAND = np.dtype(
    [
        ("row", np.int64),
        ("phase", np.int64),
        ("begun_by", np.int64),  # row of its START, or -1
        ("stuck", np.int64),  # row that it last waited in, or -1
        ("since", np.float64),
        ("finish", np.float64),
        ("compute", np.float64),
        ("communicate", np.float64),
        ("wait", np.float64),
    ]
)
MESSAGE = np.dtype(
    [
        ("size", np.int64),
        ("send", np.int64),
        ("receive", np.int64),  # row, or -1
        ("path", np.int64),  # number of its path, and of that of its grant
        ("back", np.int64),
        ("rank", np.int32),  # that sends it
        ("slot", np.int32),  # of its flow, or -1
        ("cargo", np.int8),  # what of it is under way
        ("eager", np.bool_),
        ("requested", np.bool_),  # its request has arrived
        ("posted", np.bool_),  # its receive is there
    ],
    align=True,
)
RANK = np.dtype([("free", np.float64)])  # when its end point is
PATH = np.dtype(
    [
        ("begin", np.int64),  # its first stop; the next path begins where it ends
        ("weight", np.float64),  # of its flows
    ]
)


class Run(NamedTuple):
    """All that a run is: tables, or in compiled code the first record of each.

    Attributes
    ----------
    heap : IndexedHeap
        Items are the strands, then the messages, then the messages that will have been sent.
    """

    loop: Any
    rows: Any
    strands: Any
    messages: Any
    ranks: Any
    paths: Any
    message_times: Any
    operation_times: Any
    heap: IndexedHeap
    flows: Flows


def begin(plan: RunPlan, record: Record, *, flow: bool) -> Run:
    """Lay out a run: every rank's own strand goes on at 0."""
    program, parameters, messages = plan.program, plan.parameters, plan.messages
    send, receive = program.sends(), program.receives()
    loop = np.zeros(1, dtype=LOOP)
    for name in (
        *("overhead_send", "overhead_recv", "gap", "gap_per_byte"),
        *("packet_size", "control_bytes"),
    ):
        loop[name] = getattr(parameters, name)
    loop["cut_through"] = parameters.switching == "cut_through" and not flow
    loop["flow"] = flow
    loop["record_messages"], loop["record_operations"] = record.messages, record.operations
    loop["number_bits"] = plan.number_bits
    loop["strands"], loop["messages"] = program.strands, messages

    strands = _table(STRAND, program.strands)
    strands["row"][: program.strands] = program.offsets[:-1]
    strands["begun_by"] = strands["stuck"] = -1
    bandwidth, latency = plan.bandwidth, plan.latency
    if flow:
        factor = parameters.flow_bandwidth_factor / parameters.flow_cross_traffic
        bandwidth, latency = bandwidth * factor, latency * parameters.flow_latency_factor
    heap = empty_heap(program.strands + 2 * messages)
    for strand in program.main().tolist():
        put(heap_rows(heap), strand, 0.0, _key(strand, plan.number_bits))
    return Run(
        loop=loop,
        rows=_rows(plan, send, receive),
        strands=strands,
        messages=_messages(plan, send, receive),
        ranks=_table(RANK, program.ranks),
        paths=_paths(plan),
        message_times=unhappened(MESSAGE_TIMES, max(1, messages * record.messages)),
        operation_times=unhappened(OPERATION_TIMES, max(1, program.operations * record.operations)),
        heap=heap,
        flows=empty_flows(
            server_table(bandwidth, latency), plan.indptr, plan.servers, SLOTS if flow else 1
        ),
    )


def heap_rows(heap: IndexedHeap) -> IndexedHeap:
    """Return the first record of each table of a heap."""
    return IndexedHeap(*(table[0] for table in heap))


def _key(strand: int, number_bits: int) -> int:
    return order_key(RESUME, strand, 0, number_bits, 0)


def _rows(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    program = plan.program
    rows = _table(ROW, program.operations)
    message = np.full(program.operations, -1, dtype=np.int64)
    message[send] = np.arange(len(send))
    message[receive[receive >= 0]] = np.flatnonzero(receive >= 0)
    columns: dict[str, NDArray[Any]] = {
        "compute": plan.compute,
        "target": program.target,
        "message": message,
        "kind": program.kind,
    }
    for name, column in columns.items():
        rows[name][: len(column)] = column
    rows["waiter"] = -1
    return rows


def _messages(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    messages, program = _table(MESSAGE, plan.messages), plan.program
    size: Any = program.size[send]
    columns: dict[str, NDArray[Any]] = {
        "size": size,
        "send": send,
        "receive": receive,
        "path": plan.path[send],
        "back": plan.back[send],
        "rank": program.rank_of_row()[send],
        "eager": np.asarray(is_eager(size, plan.parameters.eager_limit)),
    }
    for name, column in columns.items():
        messages[name][: len(column)] = column
    messages["slot"] = -1
    return messages


def _paths(plan: RunPlan) -> Table:
    """Return the paths; where round trips count, weights are as SimGrid's CM02 and LV08 have them.

    A path of no latency counts there as one of a second.
    """
    table, parameters = _table(PATH, len(plan.indptr)), plan.parameters
    table["begin"], table["weight"] = plan.indptr, 1.0
    if parameters.flow_sharing == "round_trip" and len(plan.servers):
        delay, slow = (
            np.add.reduceat(column[plan.servers], plan.indptr[:-1])
            for column in (plan.latency, parameters.flow_weight_s / plan.bandwidth)
        )
        table["weight"][:-1] = 1 / np.where(delay > 0, delay + slow, 1.0)
    return table


def _table(dtype: np.dtype[np.void], rows: int) -> Table:
    """Return a table that is not empty, since its first record is taken."""
    return np.zeros(max(rows, 1), dtype=dtype)
