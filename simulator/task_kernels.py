"""The task machine: what ranks do between events, the same in all compiled engines.

The run of an engine is a named tuple of tables; those that are named here are described in
`task_state.py`, with the columns that any engine needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator import model
from hopmap.simulator.model import BUFFERED, DATA, GRANT, HARDWARE, QUANTILES, REQUEST, RESUME
from hopmap.simulator.noise import OF_COMPUTATION, OF_OVERHEAD
from hopmap.simulator.programs.program import Op
from hopmap.simulator.row_pointers import nth, wide

asks_first = subroutine(model.asks_first)
byte_overhead = subroutine(model.byte_overhead)
completion = subroutine(model.completion)
completion_time = subroutine(model.completion_time)
credit_arrival = subroutine(model.credit_arrival)
hashed = subroutine(model.mix_hash)
head_arrival = subroutine(model.head_arrival)
in_call = subroutine(model.in_call)
leave_time = subroutine(model.leave_time)
noticed = subroutine(model.notice_time)
order_key = subroutine(model.order_key)
packet_bytes = subroutine(model.packet_bytes)
packet_count = subroutine(model.packet_count)
place_free = subroutine(model.place_free)
receive_overhead = subroutine(model.receive_overhead)
service_end = subroutine(model.service_end)
service_start = subroutine(model.service_start)
tail_arrival = subroutine(model.tail_arrival)


SEND, ISEND, RECV, IRECV = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.IRECV)
WAIT, START, FINISH, REPEAT = int(Op.WAIT), int(Op.START), int(Op.FINISH), int(Op.REPEAT)

# Where a task stands in its row: before its computation, before its overhead, before what it
# does, behind all that.
BEGIN, COMPUTED, READY, OVER = 0, 1, 2, 3

# Why an engine's loop returns: nothing is left, its share is done, slots are short.
ENDED, MORE, CROWDED = 0, 1, 2


def task_machine(
    due: Callable[..., None],
    post_send: Callable[..., None],
    post_receive: Callable[..., float],
    crowded: Callable[..., bool],
    end_iteration: Callable[..., None],
) -> tuple[Callable[..., None], Callable[..., None]]:
    """Compile the machine for an engine from what differs, which are compiled functions.

    ``due(heap, item, time, key)`` schedules an event; items of tasks are their numbers. With
    ``post_send(run, task, row, at, now)`` a task sends what the row says, whose number is `at`;
    ``post_receive(run, row, at, now)`` likewise, and returns the seconds of copying a message that
    is there. ``crowded(run, number)`` says whether the task so numbered must stop here, to go on
    when the engine says so. ``end_iteration(run, task, row, now)``: a loop, whose REPEAT the row
    is, has ended an iteration.

    Returns ``go_on(run, number, now)``, which executes a task until it has to wait for its next
    event, and ``complete(run, at, iteration, now)``: what a row began on one of its iterations is
    complete.
    """

    @subroutine
    def wake(run: Any, number: int, at: float) -> None:
        loop = run.loop
        key = order_key(RESUME, number, 0, loop["number_bits"], loop["packet_bits"])
        due(run.heap, number, at, key)

    @subroutine
    def go_on(run: Any, number: int, now: float) -> None:
        loop, task = run.loop, nth(run.tasks, number)
        at, phase = task["row"], task["phase"]
        while True:
            row = nth(run.rows, at)
            kind = row["kind"]
            if phase == BEGIN:
                phase = COMPUTED
                pause = row["compute"]
                if pause > 0:
                    if loop["noisy"]:
                        pause *= _factor(run, task, OF_COMPUTATION)
                    task["compute"] += pause
                    if loop["by_calls"] and task["begun_by"] < 0:
                        nth(run.ranks, task["rank"])["until"] = now + pause
                    wake(run, number, now + pause)
                    break
            sending = kind in (SEND, ISEND)
            if phase == COMPUTED:
                phase = READY
                if loop["record_operations"]:
                    nth(run.operation_times, task["entry"])["ready"] = now
                pause = loop["overhead_send"]
                if sending:
                    pause += byte_overhead(
                        row["size"], row["mode"], loop["eager_limit"], loop["overhead_per_byte"]
                    )
                if sending and row["mode"] == BUFFERED:
                    pause += row["size"] * loop["copy_per_byte"]
                if sending and pause > 0 and row["mode"] != HARDWARE:
                    if loop["noisy"]:
                        pause *= _factor(run, task, OF_OVERHEAD)
                    task["communicate"] += pause
                    wake(run, number, now + pause)
                    break
            if phase == READY:
                if crowded(run, number):
                    break
                phase = OVER
                pause = 0.0
                if sending:
                    post_send(run, task, row, at, now)
                elif kind in (RECV, IRECV):
                    pause = post_receive(run, row, at, now)
                elif kind == REPEAT:
                    row["iterations"] += 1
                    end_iteration(run, task, row, now)
                    phase = BEGIN
                    _leave_operation(run, task, now)
                    if row["iterations"] < row["size"]:
                        at = row["target"]
                    else:
                        row["iterations"] = 0
                        at += 1
                    continue
                elif kind == START:
                    nth(run.tasks, row["target"])["begun_by"] = at
                    wake(run, wide(row["target"]), now)
                elif kind == FINISH:
                    task["stuck"] = -1
                    task["finish"] = now
                    _leave_operation(run, task, now)
                    if task["begun_by"] >= 0:
                        complete(run, task["begun_by"], 0, now)
                    break
                done = True
                if kind in (WAIT, RECV, SEND):
                    awaited = nth(run.rows, row["target"] if kind == WAIT else at)
                    pause += _overhead_of(run, awaited)
                    done = awaited["done"]
                    if not done:
                        task["stuck"] = at
                        task["since"] = now
                        awaited["waiter"] = number
                if pause > 0:
                    if loop["noisy"]:
                        pause *= _factor(run, task, OF_OVERHEAD)
                    task["communicate"] += pause
                if not done:
                    task["overhead"] = pause
                    break
                if pause > 0:
                    wake(run, number, now + pause)
                    break
            _leave_operation(run, task, now)
            at += 1
            phase = BEGIN
        task["row"] = at
        task["phase"] = phase

    @subroutine
    def complete(run: Any, at: int, iteration: int, now: float) -> None:
        """Let a task that waits for the row go on.

        No task can wait for it any more once the row began something new.
        """
        row = nth(run.rows, at)
        if row["iterations"] != iteration:
            return
        row["done"] = True
        number = wide(row["waiter"])
        if number >= 0:
            row["waiter"] = -1
            task = nth(run.tasks, number)
            # A rank's own task waits in a call, and an interface for no call at all.
            if task["begun_by"] >= 0 and row["mode"] != HARDWARE:
                now = in_call(now, nth(run.ranks, task["rank"])["until"])
            task["wait"] += now - task["since"]
            if run.loop["record_operations"]:
                nth(run.operation_times, task["entry"])["woken"] = now
            wake(run, number, now + task["overhead"])

    return go_on, complete


@subroutine
def _leave_operation(run: Any, task: Any, now: float) -> None:
    """Record that a task leaves the operation that it is at."""
    if run.loop["record_operations"]:
        nth(run.operation_times, task["entry"])["ended"] = now
        task["entry"] += 1


@subroutine
def _factor(run: Any, task: Any, first: int) -> float:
    """Draw the factor of a task's next pause; `first` is where its kind begins."""
    number = task["pauses"]
    task["pauses"] = number + 1
    drawn = hashed(task["stream"], number) & (QUANTILES - 1)
    return float(nth(run.factors, first + drawn)["factor"])


@subroutine
def _overhead_of(run: Any, row: Any) -> float:
    """Seconds that a task is busy once what it waited for is complete."""
    loop = run.loop
    if row["kind"] not in (RECV, IRECV) or row["mode"] == HARDWARE:
        return 0.0
    mode, limit = row["mode"], loop["eager_limit"]
    copying = byte_overhead(row["size"], mode, limit, loop["overhead_per_byte"])
    receiving = receive_overhead(mode, loop["overhead_recv"], loop["overhead_put_latency"])
    return float(receiving + copying)


@subroutine
def watch_nothing(run: Any, task: Any, row: Any, now: float) -> None:
    """End an iteration in an engine that watches no loop."""


@subroutine
def pass_end_point(run: Any, rank: int, size: int, now: float) -> float:
    """Let a message's data pass the end point of its rank; return when they have."""
    end_point = nth(run.ranks, rank)
    at = leave_time(now, end_point["free"], size, run.loop["gap_per_byte"])
    end_point["free"] = at + run.loop["gap"]
    return float(at)


@subroutine
def record_arrival(run: Any, number: int, cargo: int, now: float) -> None:
    """Record that a message, or a control message of it, has arrived at its target."""
    if run.loop["record_messages"]:
        times = nth(run.message_times, number)
        if cargo == DATA:
            times["delivered"] = now
        elif cargo == GRANT:
            times["granted"] = now
        elif cargo == REQUEST:
            times["requested"] = now
