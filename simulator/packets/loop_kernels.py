"""The compiled event loop: events, strands and messages, by the rules of `model.py`."""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit, subroutine
from hopmap.simulator.heap_kernels import close, push
from hopmap.simulator.model import (
    ACKNOWLEDGED,
    ACKNOWLEDGEMENT,
    ANSWER,
    ARRIVE,
    DATA,
    DELIVER,
    GRANT,
    HARDWARE,
    LEAVE,
    LEFT,
    POSTED,
    REQUEST,
    RESUME,
    SENT,
)
from hopmap.simulator.model_kernels import asks_first, completion, in_call
from hopmap.simulator.row_pointers import nth, wide
from hopmap.simulator.strand_kernels import (
    CROWDED,
    ENDED,
    MORE,
    pass_end_point,
    record_arrival,
    strand_machine,
)

from .buffer_kernels import make_room
from .network_kernels import arrive, transmit
from .nic_kernels import next_turn
from .server_kernels import left
from .slot_kernels import free, key_of, take
from .state import State

RESERVE = 8  # slots that one operation, or one event, may take


@njit
def advance(run: State, budget: int) -> int:
    """Handle up to `budget` events; say why it stopped."""
    return _advance(run, budget)  # see DECISIONS, few kinds of each kernel


@subroutine
def _advance(run: State, budget: int) -> int:
    loop, count = run.loop, run.heap.count
    loop["budget"] = budget
    kind_shift = loop["number_bits"] + loop["packet_bits"]
    if loop["strand"] >= 0:
        strand, loop["strand"] = loop["strand"], -1
        go_on(run, strand, loop["now"])
    while loop["strand"] < 0:
        if count["size"] == 0:
            return ENDED
        if loop["spare"] < RESERVE:
            return CROWDED
        if loop["budget"] <= 0:
            return MORE
        loop["budget"] -= 1
        top = nth(run.heap.entries, 0)
        now, slot, key = top["time"], top["item"], top["key"]
        kind = key >> kind_shift
        loop["now"] = now
        count["hole"] = 1
        if kind == ARRIVE:
            arrive(run, slot, key, now)
        elif kind == RESUME:
            go_on(run, slot, now)
        elif kind == DELIVER:
            _deliver(run, slot, now)
        elif kind == LEAVE:
            _leave(run, slot, now)
        elif kind == SENT:
            _complete_send(run, slot, now)
        else:
            _handle_rare(run, kind, slot, now)
        close(run.heap)
    return CROWDED


@subroutine
def _handle_rare(run: State, kind: int, item: int, now: float) -> None:
    """Handle a kind of event that only some parameters bring about."""
    if kind == ANSWER:
        _answer(run, item, now)
    elif not make_room(run, kind, item, now):
        next_turn(run, item, now)


@subroutine
def _queue(run: State, queue: Any, slot: int) -> None:
    """Put a slot at the end of the queue of a channel."""
    nth(run.packets, slot)["next"] = -1
    if queue["first"] < 0:
        queue["first"] = slot
    else:
        nth(run.packets, queue["last"])["next"] = slot
    queue["last"] = slot


@subroutine
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
    if run.loop["record_messages"]:
        nth(run.message_times, number)["sent"] = now
    waiting = wide(queue["first"])
    if waiting >= 0 and nth(run.messages, waiting)["receive"] >= 0:
        queue["first"] = nth(run.packets, waiting)["next"]
        message["receive"] = nth(run.messages, waiting)["receive"]
        message["receive_trip"] = nth(run.messages, waiting)["receive_trip"]
        free(run, waiting)
    else:
        message["receive"] = -1
        _queue(run, queue, slot)
    message["completion"] = completion(row["size"], row["mode"], run.loop["eager_limit"])
    row["done"] = message["completion"] == POSTED
    if asks_first(row["size"], row["mode"], run.loop["eager_limit"]):
        transmit(run, slot, REQUEST, now)
    else:
        _depart(run, slot, now)


@subroutine
def _post_receive(run: State, row: Any, at: int, now: float) -> float:
    queue = nth(run.channels, row["channel"])
    row["place"] = queue["receives"]
    queue["receives"] += 1
    row["trips"] += 1
    row["done"] = False
    slot = wide(queue["first"])
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
        return 0.0
    if nth(run.packets, slot)["cargo"] != DATA:
        transmit(run, slot, GRANT, now)
        return 0.0
    row["done"] = True
    copying = 0.0 if row["mode"] == HARDWARE else message["size"] * run.loop["copy_per_byte"]
    if message["completion"] == ACKNOWLEDGED:
        transmit(run, slot, ACKNOWLEDGEMENT, now)
    else:
        free(run, slot)
    return float(copying)


@subroutine
def _deliver(run: State, slot: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    message = nth(run.messages, slot)
    cargo, receive = nth(run.packets, slot)["cargo"], message["receive"]
    record_arrival(run, message["number"], cargo, now)
    if cargo == DATA:
        run.loop["arrived"] += 1
    if receive < 0:
        message["there"] = True
        return
    if cargo == DATA:
        complete(run, receive, wide(message["receive_trip"]), now)
        if message["completion"] != ACKNOWLEDGED:
            free(run, slot)
            return
    if cargo == ACKNOWLEDGEMENT:
        _complete_send(run, slot, now)
    else:
        _attend(run, slot, now)


@subroutine
def _attend(run: State, slot: int, now: float) -> None:
    """Let a rank answer what has arrived: now, or if it computes, in its next call."""
    message = nth(run.messages, slot)
    rank = message["rank"]
    if nth(run.packets, slot)["cargo"] != GRANT:
        rank = nth(run.rows, message["row"])["target"]
    at = in_call(now, nth(run.ranks, rank)["until"])
    if at > now:
        push(run.heap, slot, at, key_of(run, ANSWER, message["number"], 0))
    else:
        _answer(run, slot, now)


@subroutine
def _answer(run: State, slot: int, now: float) -> None:
    """Grant a request, send the data after a grant, acknowledge data."""
    cargo = nth(run.packets, slot)["cargo"]
    if cargo == REQUEST:
        transmit(run, slot, GRANT, now)
    elif cargo == GRANT:
        _depart(run, slot, now)
    else:
        transmit(run, slot, ACKNOWLEDGEMENT, now)


@subroutine
def _complete_send(run: State, slot: int, now: float) -> None:
    """Complete the send of a slot that nothing else is to happen to."""
    sent = nth(run.messages, slot)
    complete(run, sent["row"], wide(sent["send_trip"]), now)
    free(run, slot)


@subroutine
def _depart(run: State, slot: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    message = nth(run.messages, slot)
    size = nth(run.rows, message["row"])["size"]
    at = pass_end_point(run, message["rank"], size, now)
    if at > now:
        push(run.heap, slot, at, key_of(run, LEAVE, message["number"], 0))
    else:
        _leave(run, slot, now)


@subroutine
def _leave(run: State, slot: int, now: float) -> None:
    """Hand a message's data to the network."""
    end = transmit(run, slot, DATA, now)
    if nth(run.messages, slot)["completion"] == LEFT and end >= 0:
        left(run, slot, end)
    if run.loop["record_messages"]:
        nth(run.message_times, nth(run.messages, slot)["number"])["departed"] = now


@subroutine
def _crowded(run: State, number: int) -> bool:
    """Whether slots are short; that is the strand then with which to begin again."""
    if run.loop["spare"] >= RESERVE:
        return False
    run.loop["strand"] = number
    return True


@subroutine
def _end_trip(run: State, strand: Any, row: Any, now: float) -> None:
    """Write the end of a trip of a watched loop down; stop when it is time to look at them."""
    loop = run.loop
    if row["channel"] < 0 or row["trips"] > loop["watched_trips"]:
        return
    end = nth(run.trip_ends, row["channel"] + row["trips"] - 1)
    end["time"] = now
    end["compute"] = strand["compute"]
    end["communicate"] = strand["communicate"]
    loop["trips_ended"] += 1
    if loop["trips_ended"] == loop["look_at"]:
        loop["budget"] = 0


go_on, complete = strand_machine(push, _post_send, _post_receive, _crowded, _end_trip)
