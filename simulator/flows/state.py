"""The tables that the engines of whole messages work on, and how a run is laid out in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.heap_kernels import IndexedHeap, empty_heap
from hopmap.simulator.record import Record
from hopmap.simulator.run_plan import RunPlan
from hopmap.simulator.strand_state import (
    FACTOR,
    RANK,
    Columns,
    begin_strands,
    fill_rows,
    loop_table,
    message_times,
    operation_times,
    row_type,
    strand_table,
)

from .max_min_state import Flows, Table, empty_flows, server_table

Ints = NDArray[np.int64]

SLOTS = 1 << 8  # for flows, to begin with

# Columns beside those of `strand_state`.
LOOP: Columns = [
    ("flow", np.bool_),  # share servers by max-min fairness
    ("strands", np.int64),
    ("messages", np.int64),
    ("events", np.int64),
]
ROW = row_type([("message", np.int32)])  # that it sends or receives, or -1
MESSAGE = np.dtype(
    [
        ("size", np.int64),
        ("send", np.int64),
        ("receive", np.int64),  # row, or -1
        ("path", np.int64),  # number of its path, and of that of its grant
        ("back", np.int64),
        ("rank", np.int32),  # that sends it
        ("cargo", np.int8),  # what of it is under way
        ("there", np.bool_),  # it or its request has arrived
        ("posted", np.bool_),  # its receive is there
    ],
    align=True,
)
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
        Items are the strands, then the messages, then the messages that will have been sent,
        then the servers, where flows end.
    factors : ndarray(FACTOR)
        Of pauses, see `noise.py`.
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
    factors: Any
    flows: Flows


def begin(plan: RunPlan, record: Record, *, flow: bool) -> Run:
    """Lay out a run: every rank's own strand goes on at 0."""
    program, parameters, messages = plan.program, plan.parameters, plan.messages
    send, receive = program.sends(), program.receives()
    loop = loop_table(plan, record, LOOP)
    loop["cut_through"] &= not flow
    loop["flow"], loop["strands"], loop["messages"] = flow, program.strands, messages
    bandwidth, latency = plan.bandwidth, plan.latency
    if flow:
        factor = parameters.flow_bandwidth_factor / parameters.flow_cross_traffic
        bandwidth, latency = bandwidth * factor, latency * parameters.flow_latency_factor
    heap = empty_heap(program.strands + 2 * messages + len(bandwidth))
    begin_strands(heap, plan)
    return Run(
        loop=loop,
        rows=_rows(plan, send, receive),
        strands=strand_table(plan),
        messages=_messages(plan, send, receive),
        ranks=np.zeros(program.ranks, dtype=RANK),
        paths=_paths(plan),
        message_times=message_times(plan, record),
        operation_times=operation_times(plan, record),
        heap=heap,
        factors=plan.noise.factors.view(FACTOR),
        flows=empty_flows(
            server_table(bandwidth, latency), plan.indptr, plan.servers, SLOTS if flow else 1
        ),
    )


def _rows(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    rows = np.zeros(plan.program.operations, dtype=ROW)
    fill_rows(rows, plan)
    rows["message"] = -1
    rows["message"][send] = np.arange(len(send))
    rows["message"][receive[receive >= 0]] = np.flatnonzero(receive >= 0)
    return rows


def _messages(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    program = plan.program
    messages = np.zeros(max(1, plan.messages), dtype=MESSAGE)
    columns: dict[str, NDArray[Any]] = {
        "size": program.size[send],
        "send": send,
        "receive": receive,
        "path": plan.path[send],
        "back": plan.back[send],
        "rank": program.rank_of_row()[send],
    }
    for name, column in columns.items():
        messages[name][: len(column)] = column
    return messages


def _paths(plan: RunPlan) -> Table:
    """Return the paths; where round trips count, weights are as SimGrid's CM02 and LV08 have them.

    A path of no latency counts there as one of a second.
    """
    table, parameters = np.zeros(len(plan.indptr), dtype=PATH), plan.parameters
    table["begin"], table["weight"] = plan.indptr, 1.0
    if parameters.flow_sharing == "round_trip" and len(plan.servers):
        delay, slow = (
            np.add.reduceat(column[plan.servers], plan.indptr[:-1])
            for column in (plan.latency, parameters.flow_weight_s / plan.bandwidth)
        )
        table["weight"][:-1] = 1 / np.where(delay > 0, delay + slow, 1.0)
    return table
