"""The compiled event loop: events, strands and messages, by the rules of `model.py`."""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit
from hopmap.simulator import model
from hopmap.simulator.model import ARRIVE, DATA, DELIVER, GRANT, LEAVE, REQUEST, RESUME, SENT
from hopmap.simulator.programs.program import Op
from hopmap.simulator.row_pointers import nth, recording

from .heap_kernels import close, push
from .network_kernels import arrive, free, key_of, server_at, take, transmit
from .state import State

SEND, ISEND, RECV, IRECV = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.IRECV)
WAIT, START, FINISH, REPEAT = int(Op.WAIT), int(Op.START), int(Op.FINISH), int(Op.REPEAT)

# Where a strand stands in its row: before its computation, before its overhead, before what it
# does, behind all that.
BEGIN, COMPUTED, READY, OVER = 0, 1, 2, 3

# Why `advance` returns: nothing is left, its share is done, slots are short.
ENDED, MORE, CROWDED = 0, 1, 2
RESERVE = 4  # slots that one operation, or one event, may take

is_eager = njit(cache=False)(model.is_eager)
leave_time = njit(cache=False)(model.leave_time)


@njit
def advance(tables: State, budget: int) -> int:
    """Handle up to `budget` events; say why it stopped."""
    run = State(
        tables.loop[0],
        tables.rows[0],
        tables.strands[0],
        tables.ranks[0],
        tables.servers[0],
        tables.channels[0],
        tables.packets[0],
        tables.messages[0],
        tables.heap[0],
        tables.paths[0],
        tables.message_times[0],
        tables.operation_times[0],
        tables.watched[0],
        tables.latest[0],
        tables.hops[0],
        tables.use[0],
    )
    loop = run.loop
    kind_shift = loop["number_bits"] + loop["packet_bits"]
    if loop["strand"] >= 0:
        strand, loop["strand"] = loop["strand"], -1
        _go_on(run, strand, loop["now"])
    while loop["strand"] < 0:
        if loop["queued"] == 0:
            return ENDED
        if loop["spare"] < RESERVE:
            return CROWDED
        if budget == 0:
            return MORE
        budget -= 1
        top = nth(run.heap, 0)
        now, slot, key = top["time"], top["slot"], top["key"]
        kind = key >> kind_shift
        loop["now"] = now
        loop["hole"] = 1
        if kind == ARRIVE:
            arrive(run, slot, key, now)
        elif kind == RESUME:
            _go_on(run, slot, now)
        elif kind == DELIVER:
            _deliver(run, slot, now)
        elif kind == LEAVE:
            _leave(run, slot, now)
        else:
            sent = nth(run.messages, slot)
            _complete(run, sent["row"], sent["send_trip"], now)
            free(run, slot)
        close(run.heap, loop)
    return CROWDED


@njit(cache=False)
def _queue(run: State, queue: Any, slot: int) -> None:
    """Put a slot at the end of the queue of a channel."""
    nth(run.packets, slot)["next"] = -1
    if queue["first"] < 0:
        queue["first"] = slot
    else:
        nth(run.packets, queue["last"])["next"] = slot
    queue["last"] = slot


# Strands


@njit(cache=False)
def _wake(run: State, strand: int, at: float) -> None:
    push(run.heap, run.loop, at, key_of(run, RESUME, strand, 0), strand)


@njit(cache=False)
def _go_on(run: State, number: int, now: float) -> None:
    """Execute a strand until it has to wait for its next event."""
    loop, strand = run.loop, nth(run.strands, number)
    at, phase = strand["row"], strand["phase"]
    while True:
        row = nth(run.rows, at)
        kind = row["kind"]
        if phase == BEGIN:
            phase = COMPUTED
            pause = row["compute"]
            if pause > 0:
                strand["compute"] += pause
                _wake(run, number, now + pause)
                break
        sending = kind in (SEND, ISEND)
        if phase == COMPUTED:
            phase = READY
            if recording(run.operation_times) and loop["record_operations"]:
                nth(run.operation_times, strand["entry"])["ready"] = now
            pause = loop["overhead_send"]
            if sending and pause > 0:
                strand["communicate"] += pause
                _wake(run, number, now + pause)
                break
        if phase == READY:
            if loop["spare"] < RESERVE:
                loop["strand"] = number
                break
            phase = OVER
            if sending:
                _post_send(run, strand, row, at, now)
            elif kind in (RECV, IRECV):
                _post_receive(run, row, at, now)
            elif kind == REPEAT:
                row["trips"] += 1
                phase = BEGIN
                if recording(run.operation_times) and loop["record_operations"]:
                    _stamp(run, strand, now)
                if row["trips"] < row["size"]:
                    at = row["target"]
                else:
                    row["trips"] = 0
                    at += 1
                continue
            elif kind == START:
                nth(run.strands, row["target"])["begun_by"] = at
                _wake(run, row["target"], now)
            elif kind == FINISH:
                strand["stuck"] = -1
                strand["finish"] = now
                if recording(run.operation_times) and loop["record_operations"]:
                    _stamp(run, strand, now)
                if strand["begun_by"] >= 0:
                    _complete(run, strand["begun_by"], 0, now)
                break
            if kind in (WAIT, RECV, SEND):
                awaited = nth(run.rows, row["target"] if kind == WAIT else at)
                overhead = _overhead_of(run, awaited)
                strand["communicate"] += overhead
                if not awaited["done"]:
                    strand["stuck"] = at
                    strand["since"] = now
                    awaited["waiter"] = number
                    break
                if overhead > 0:
                    _wake(run, number, now + overhead)
                    break
        if recording(run.operation_times) and loop["record_operations"]:
            _stamp(run, strand, now)
        at += 1
        phase = BEGIN
    strand["row"] = at
    strand["phase"] = phase


@njit(cache=False)
def _stamp(run: State, strand: Any, now: float) -> None:
    """Record that a strand leaves the operation that it is at."""
    nth(run.operation_times, strand["entry"])["ended"] = now
    strand["entry"] += 1


@njit(cache=False)
def _overhead_of(run: State, row: Any) -> float:
    """Seconds that a strand is busy once what it waited for is complete."""
    receives = row["kind"] in (RECV, IRECV)
    return float(run.loop["overhead_recv"]) if receives else 0.0


@njit(cache=False)
def _complete(run: State, at: int, trip: int, now: float) -> None:
    """Note that what the row began is complete; a strand that waits for it goes on.

    Nobody can wait for it any more once the row began something new.
    """
    row = nth(run.rows, at)
    if row["trips"] != trip:
        return
    row["done"] = True
    number = row["waiter"]
    if number >= 0:
        row["waiter"] = -1
        strand = nth(run.strands, number)
        strand["wait"] += now - strand["since"]
        if recording(run.operation_times) and run.loop["record_operations"]:
            nth(run.operation_times, strand["entry"])["woken"] = now
        _wake(run, number, now + _overhead_of(run, row))


# Messages


@njit(cache=False)
def _post_send(run: State, strand: Any, row: Any, at: int, now: float) -> None:
    slot, queue = take(run), nth(run.channels, row["channel"])
    message = nth(run.messages, slot)
    number = strand["message"]
    strand["message"] = number + 1
    row["place"] = queue["sends"]
    queue["sends"] += 1
    row["trips"] += 1
    message["number"] = number
    message["row"] = at
    message["rank"] = strand["rank"]
    message["send_trip"] = row["trips"]
    message["there"] = False
    if recording(run.operation_times) and run.loop["record_messages"]:
        nth(run.message_times, number)["sent"] = now
    waiting = queue["first"]
    if waiting >= 0 and nth(run.messages, waiting)["receive"] >= 0:
        queue["first"] = nth(run.packets, waiting)["next"]
        message["receive"] = nth(run.messages, waiting)["receive"]
        message["receive_trip"] = nth(run.messages, waiting)["receive_trip"]
        free(run, waiting)
    else:
        message["receive"] = -1
        _queue(run, queue, slot)
    eager = is_eager(row["size"], run.loop["eager_limit"])
    row["done"] = eager
    if eager:
        _depart(run, slot, now)
    else:
        transmit(run, slot, REQUEST, now)


@njit(cache=False)
def _post_receive(run: State, row: Any, at: int, now: float) -> None:
    queue = nth(run.channels, row["channel"])
    row["place"] = queue["receives"]
    queue["receives"] += 1
    row["trips"] += 1
    row["done"] = False
    slot = queue["first"]
    none = slot < 0 or nth(run.messages, slot)["receive"] >= 0
    if none:
        slot = take(run)
        _queue(run, queue, slot)
    else:
        queue["first"] = nth(run.packets, slot)["next"]
    message = nth(run.messages, slot)
    message["receive"] = at
    message["receive_trip"] = row["trips"]
    if none or not message["there"]:
        return
    if nth(run.packets, slot)["cargo"] == DATA:
        row["done"] = True
        free(run, slot)
    else:
        transmit(run, slot, GRANT, now)


@njit(cache=False)
def _deliver(run: State, slot: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    message = nth(run.messages, slot)
    cargo, receive = nth(run.packets, slot)["cargo"], message["receive"]
    if recording(run.operation_times) and run.loop["record_messages"]:
        times = nth(run.message_times, message["number"])
        if cargo == DATA:
            times["delivered"] = now
        elif cargo == GRANT:
            times["granted"] = now
        else:
            times["requested"] = now
    if cargo == GRANT:
        _depart(run, slot, now)
        return
    if cargo == DATA:
        run.loop["arrived"] += 1
    if receive < 0:
        message["there"] = True
    elif cargo == DATA:
        _complete(run, receive, message["receive_trip"], now)
        free(run, slot)
    else:
        transmit(run, slot, GRANT, now)


@njit(cache=False)
def _depart(run: State, slot: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    loop, message = run.loop, nth(run.messages, slot)
    rank = nth(run.ranks, message["rank"])
    size = nth(run.rows, message["row"])["size"]
    at = leave_time(now, rank["free"], size, loop["gap_per_byte"])
    rank["free"] = at + loop["gap"]
    if at > now:
        push(run.heap, loop, at, key_of(run, LEAVE, message["number"], 0), slot)
    else:
        _leave(run, slot, now)


@njit(cache=False)
def _leave(run: State, slot: int, now: float) -> None:
    """Hand a message's data to the network; of a rendezvous, see when it has left."""
    transmit(run, slot, DATA, now)
    message = nth(run.messages, slot)
    if recording(run.operation_times) and run.loop["record_messages"]:
        nth(run.message_times, message["number"])["departed"] = now
    row = nth(run.rows, message["row"])
    if not is_eager(row["size"], run.loop["eager_limit"]):
        sent = take(run)
        nth(run.messages, sent)["row"] = message["row"]
        nth(run.messages, sent)["send_trip"] = message["send_trip"]
        first = nth(run.servers, server_at(nth(run.paths, row["path"])["server"]))
        push(run.heap, run.loop, first["free"], key_of(run, SENT, message["number"], 0), sent)
