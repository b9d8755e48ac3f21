"""The tables of the task machine, which every compiled engine has, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopmap.arrays import Ints, Table

from .deadlock import deadlock
from .heap_kernels import Heap, IndexedHeap
from .model import RESUME
from .operations import MessageTimestamps, OperationTimestamps, Record
from .programs.program import Op
from .run_plan import RunPlan

Columns = list[tuple[str, type[np.generic]]]

PARAMETERS: Columns = [
    ("overhead_send", np.float64),
    ("overhead_recv", np.float64),
    ("overhead_per_byte", np.float64),
    ("overhead_control", np.float64),
    ("overhead_put_latency", np.float64),
    ("gap", np.float64),
    ("gap_per_byte", np.float64),
    ("copy_per_byte", np.float64),
    ("eager_completion", np.float64),
    ("eager_limit", np.int64),
    ("packet_size", np.int64),
    ("control_bytes", np.int64),
]
COUNTERS: Columns = [
    ("cut_through", np.bool_),
    ("by_calls", np.bool_),  # ranks answer messages only while they do not compute
    ("record_messages", np.bool_),  # whether `message_times` are kept
    ("record_operations", np.bool_),  # whether `operation_times` are kept
    ("noisy", np.bool_),  # whether pauses are drawn
    ("number_bits", np.int64),
    ("packet_bits", np.int64),
    ("now", np.float64),
    ("controls", np.int64),
    ("arrived", np.int64),
]
ROW: Columns = [
    ("compute", np.float64),
    ("size", np.int64),
    ("target", np.int64),  # as in the program; of a send, the rank that receives
    ("iterations", np.int32),  # how often it ran; of a REPEAT, since its loop was entered
    ("waiter", np.int32),  # task that waits for it, or -1
    ("kind", np.uint8),
    ("mode", np.uint8),
    ("done", np.bool_),  # what it began last is complete
]
TASK = np.dtype(
    [
        ("row", np.int64),
        ("phase", np.int64),
        ("message", np.int64),  # number of the next one that it sends
        ("entry", np.int64),  # where the operation that it is at is recorded
        ("rank", np.int64),
        ("begun_by", np.int64),  # row of its START, or -1
        ("stuck", np.int64),  # row that it last waited in, or -1
        ("since", np.float64),
        ("finish", np.float64),
        ("compute", np.float64),
        ("communicate", np.float64),
        ("wait", np.float64),
        ("overhead", np.float64),  # once what it waits for is complete
        ("stream", np.int64),  # of its draws, see `noise.py`, and the number of the next one
        ("pauses", np.int64),
    ]
)
FACTOR = np.dtype([("factor", np.float64)])  # of pauses
# When its end point is free; `by_calls`, when its computation is over that began last.
RANK = np.dtype([("free", np.float64), ("until", np.float64)])
MESSAGE_TIMES = np.dtype([(name, np.float64) for name in MessageTimestamps._fields])
OPERATION_TIMES = np.dtype([(name, np.float64) for name in OperationTimestamps._fields])


def loop_table(plan: RunPlan, record: Record, own: Columns) -> Table:
    """Return parameters and counters, one row, with an engine's own columns behind."""
    loop = np.zeros(1, dtype=np.dtype([*PARAMETERS, *COUNTERS, *own], align=True))
    for name, _ in PARAMETERS:
        loop[name] = getattr(plan.parameters, name)
    loop["cut_through"] = plan.parameters.switching == "cut_through"
    loop["by_calls"] = plan.parameters.progress == "in_mpi_calls"
    loop["record_messages"], loop["record_operations"] = record.messages, record.operations
    loop["noisy"] = plan.noise.noisy
    loop["number_bits"], loop["packet_bits"] = plan.number_bits, plan.packet_bits
    return loop


def row_type(own: Columns) -> np.dtype[np.void]:
    """Return the type of a table of rows with an engine's own columns, the widest ones first."""
    columns = sorted([*ROW, *own], key=lambda column: -np.dtype(column[1]).itemsize)
    return np.dtype(columns, align=True)


def fill_rows(rows: Table, plan: RunPlan) -> None:
    """Write the columns of `ROW`."""
    program = plan.program
    rows["compute"], rows["size"], rows["target"] = plan.compute, program.size, program.target
    rows["kind"], rows["mode"], rows["waiter"] = program.kind, program.mode, -1
    send = program.sends()
    rows["target"][send] = program.peer[send]


def task_table(plan: RunPlan) -> Table:
    """Return the tasks, each before its first row."""
    program = plan.program
    tasks = np.zeros(program.tasks, dtype=TASK)
    tasks["row"], tasks["message"] = program.offsets[:-1], plan.first
    tasks["rank"], tasks["entry"] = program.rank_of, plan.first_entry()
    tasks["begun_by"] = tasks["stuck"] = -1
    tasks["stream"], tasks["pauses"] = plan.noise.stream, 1
    tasks["wait"][program.main()] = plan.noise.delay
    return tasks


def begin_tasks(heap: Heap | IndexedHeap, plan: RunPlan) -> None:
    """Let every rank's own task go on when it starts. In order, such entries are a heap."""
    order = np.argsort(plan.noise.delay, kind="stable")
    main = plan.program.main()[order]
    heap.entries["time"][: len(main)] = plan.noise.delay[order]
    heap.entries["item"][: len(main)] = main
    heap.entries["key"][: len(main)] = [plan.order_key(RESUME, s) for s in main.tolist()]
    heap.count["size"] = len(main)
    if isinstance(heap, IndexedHeap):
        heap.places["entry"][main] = np.arange(1, len(main) + 1)


def unset_times(plan: RunPlan, record: Record) -> dict[str, Table]:
    """Return the times of messages and operations, of which none has been.

    They are of one row if they are not kept: a table is not empty, see `row_pointers`.
    """
    kinds = {"message_times": MESSAGE_TIMES, "operation_times": OPERATION_TIMES}
    return {
        name: np.full((max(1, rows), len(kind.names or ())), np.nan).view(kind)[:, 0]
        for (name, kind), rows in zip(kinds.items(), _kept_rows(plan, record), strict=True)
    }


def _kept_rows(plan: RunPlan, record: Record) -> tuple[int, int]:
    """Messages, and operations that run, loops unrolled, whose times are kept."""
    operations = int(plan.iterations.sum())
    return plan.messages * record.messages, operations * record.operations


def outcome_of(plan: RunPlan, record: Record, run: Any) -> dict[str, Any]:
    """Return what an `Outcome` says of ranks, messages and operations."""
    main = run.tasks[plan.program.main()]
    messages, operations = _kept_rows(plan, record)
    return {
        **{name: main[name].copy() for name in ("finish", "compute", "communicate", "wait")},
        "controls": int(run.loop["controls"][0]),
        "messages": _first_rows(MessageTimestamps, run.message_times, messages),
        "operations": _first_rows(OperationTimestamps, run.operation_times, operations),
    }


def _first_rows(kind: Any, times: Table, rows: int) -> Any:
    """Return the first rows of a table of times, column by column."""
    return kind(*(times[name][:rows].copy() for name in kind._fields))


def check_finished(
    plan: RunPlan,
    run: Any,
    place_of: Callable[[Ints], Ints],
    waits: Callable[[], dict[int, int]] = dict,
) -> None:
    """See that every task of a run that has ended has finished.

    `place_of` says how many messages, or receives, the channel of each of some rows had before the
    one that the row began last; for `waits` see `deadlock`.
    """
    stuck = np.flatnonzero(run.tasks["stuck"] >= 0)
    if len(stuck):
        rows, program = run.tasks["stuck"][stuck], plan.program
        awaited = np.where(program.kind[rows] == Op.WAIT, program.target[rows], rows)
        columns = stuck.tolist(), rows.tolist(), place_of(awaited).tolist()
        raise deadlock(plan, float(run.loop["now"][0]), list(zip(*columns, strict=True)), waits())
