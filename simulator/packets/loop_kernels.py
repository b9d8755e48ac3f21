"""The compiled event loop: events, tasks and messages, by the rules of `model.py`."""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit, subroutine
from hopmap.simulator import model
from hopmap.simulator.heap_kernels import close, push
from hopmap.simulator.row_pointers import nth, wide
from hopmap.simulator.task_kernels import (
    CROWDED,
    ENDED,
    MORE,
    asks_first,
    completion,
    in_call,
    packet_bytes,
    packet_count,
    pass_end_point,
    record_arrival,
    service_end,
    task_machine,
)

from .arbitration_kernels import enter, next_turn
from .buffer_kernels import ask_next, enter_buffer, make_room, queue_up
from .routing_kernels import next_stop
from .server_kernels import (
    complete_send,
    deliver,
    finish,
    forward,
    look_ahead,
    release,
    send_off,
    serve,
    server_at,
    succeed,
    watch,
)
from .slot_kernels import append, drop, free, key_of, take
from .state import State


@subroutine
def transmit(run: State, slot: int, cargo: int, now: float) -> float:
    """Hand a message to its first server, where its packets queue at once.

    Returns when it will have left that server, or -1 if it waits there for its turn.
    """
    loop, message = run.loop, nth(run.messages, slot)
    row = nth(run.rows, message["row"])
    size, path = row["size"], row["path"]
    if cargo != model.DATA:
        loop["controls"] += 1
        size = loop["control_bytes"]
        if cargo in (model.GRANT, model.ACKNOWLEDGEMENT):
            path = row["back"]
    stop = nth(run.paths, path)["server"]
    place = server_at(stop)
    count = packet_count(size, loop["packet_size"])
    nth(run.packets, slot)["cargo"] = cargo
    message["path"] = path
    message["size"] = size
    message["packet"] = 0
    send_off(run, slot, count)
    if enter(run, slot, now) or queue_up(run, slot, now):
        return -1.0
    loop["served"] += count
    first_start = first_end = end = 0.0
    for packet in range(count):
        part = packet_bytes(size, loop["packet_size"], packet)
        start, end = serve(run, place, now, part, now, cargo == model.DATA, packet == count - 1)
        if packet == 0:
            first_start, first_end = start, end
        if loop["watch"]:
            watch(run, message["number"], cargo, packet, place, part, now, start, end)
    if stop < 0:
        deliver(run, slot, place, end)
    else:
        release(run, slot, first_start, first_end, True)
    return end


@subroutine
def arrive(run: State, slot: int, key: int, now: float) -> None:
    """Serve a packet at the next server of its path."""
    if enter_buffer(run, slot, now):
        return
    packet = nth(run.packets, slot)
    whole, leads = wide(packet["message"]), packet["leads"]
    stop = next_stop(run, packet, key, now)
    place = server_at(stop)
    last = whole == slot
    run.loop["served"] += 1
    data = packet["cargo"] == model.DATA
    start, end = serve(run, place, now, packet["size"], packet["tail"], data, last)
    if run.loop["watch"]:
        number, size = nth(run.messages, whole)["number"], packet["size"]
        part = key & ((1 << run.loop["packet_bits"]) - 1)
        watch(run, number, packet["cargo"], part, place, size, now, start, end)
    if stop >= 0:
        packet["leads"] = False
        forward(run, slot, packet, key, place, start, end)
    else:
        finish(run, slot, whole, place, end)
    if leads:
        message = nth(run.messages, whole)
        first = nth(run.servers, nth(run.paths, message["path"])["server"])
        size = packet_bytes(message["size"], run.loop["packet_size"], message["packet"])
        begin = message["end"]
        release(run, whole, begin, service_end(begin, size, first["bandwidth"], begin), True)


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
    while True:
        ask_next(run)
        if loop["spare"] < RESERVE:
            return CROWDED
        if loop["task"] >= 0:
            task, loop["task"] = loop["task"], -1
            go_on(run, task, loop["now"])
            continue
        if count["size"] == 0:
            return ENDED
        if loop["budget"] <= 0:
            return MORE
        loop["budget"] -= 1
        top = nth(run.heap.entries, 0)
        now, slot, key = top["time"], top["item"], top["key"]
        kind = key >> kind_shift
        look_ahead(run)
        loop["now"] = now
        count["hole"] = 1
        if model.ARRIVE <= kind <= model.SENT:
            succeed(run, slot)
        if kind == model.ARRIVE:
            arrive(run, slot, key, now)
        elif kind == model.RESUME:
            go_on(run, slot, now)
        elif kind == model.DELIVER:
            _deliver(run, slot, now)
        elif kind == model.LEAVE:
            _leave(run, slot, now)
        elif kind == model.SENT:
            _complete_send(run, slot, now)
        else:
            _handle_rare(run, kind, slot, now)
        close(run.heap)


@subroutine
def _handle_rare(run: State, kind: int, item: int, now: float) -> None:
    """Handle a kind of event that only some parameters bring about."""
    if kind == model.ANSWER:
        _answer(run, item, now)
    elif not make_room(run, kind, item, now):
        next_turn(run, item, now)


@subroutine
def _post_send(run: State, task: Any, row: Any, at: int, now: float) -> None:
    slot, queue = take(run), nth(run.channels, row["channel"])
    message = nth(run.messages, slot)
    number = task["message"]
    task["message"] = number + 1
    row["place"] = queue["sends"]
    queue["sends"] += 1
    row["iterations"] += 1
    message["number"] = number
    message["row"] = at
    message["rank"] = task["rank"]
    message["send_iteration"] = row["iterations"]
    message["there"] = False
    if run.loop["record_messages"]:
        nth(run.message_times, number)["sent"] = now
    waiting = wide(queue["first"])
    if waiting >= 0 and nth(run.messages, waiting)["receive"] >= 0:
        drop(queue, run.packets)
        message["receive"] = nth(run.messages, waiting)["receive"]
        message["receive_iteration"] = nth(run.messages, waiting)["receive_iteration"]
        free(run, waiting)
    else:
        message["receive"] = -1
        append(queue, run.packets, slot)
    message["completion"] = completion(
        row["size"], row["mode"], run.loop["eager_limit"], run.loop["eager_completion"]
    )
    row["done"] = message["completion"] == model.POSTED
    if asks_first(row["size"], row["mode"], run.loop["eager_limit"]):
        transmit(run, slot, model.REQUEST, now)
    else:
        _depart(run, slot, now)


@subroutine
def _post_receive(run: State, row: Any, at: int, now: float) -> float:
    queue = nth(run.channels, row["channel"])
    row["place"] = queue["receives"]
    queue["receives"] += 1
    row["iterations"] += 1
    row["done"] = False
    slot = wide(queue["first"])
    none = slot < 0 or nth(run.messages, slot)["receive"] >= 0
    if none:
        slot = take(run)
        append(queue, run.packets, slot)
    else:
        drop(queue, run.packets)
    message = nth(run.messages, slot)
    message["receive"] = at
    message["receive_iteration"] = row["iterations"]
    if none or not message["there"]:
        return 0.0
    if nth(run.packets, slot)["cargo"] != model.DATA:
        transmit(run, slot, model.GRANT, now)
        return 0.0
    row["done"] = True
    copying = 0.0 if row["mode"] == model.HARDWARE else message["size"] * run.loop["copy_per_byte"]
    if message["completion"] == model.ACKNOWLEDGED:
        transmit(run, slot, model.ACKNOWLEDGEMENT, now)
    else:
        free(run, slot)
    return float(copying)


@subroutine
def _deliver(run: State, slot: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    message = nth(run.messages, slot)
    cargo, receive = nth(run.packets, slot)["cargo"], message["receive"]
    record_arrival(run, message["number"], cargo, now)
    if cargo == model.DATA:
        run.loop["arrived"] += 1
    if receive < 0:
        message["there"] = True
        return
    if cargo == model.DATA:
        complete(run, receive, wide(message["receive_iteration"]), now)
        if message["completion"] != model.ACKNOWLEDGED:
            free(run, slot)
            return
    if cargo == model.ACKNOWLEDGEMENT:
        _complete_send(run, slot, now)
    else:
        _attend(run, slot, now)


@subroutine
def _attend(run: State, slot: int, now: float) -> None:
    """Let a rank answer what has arrived: now, or if it computes, in its next call."""
    message = nth(run.messages, slot)
    rank = message["rank"]
    if nth(run.packets, slot)["cargo"] != model.GRANT:
        rank = nth(run.rows, message["row"])["target"]
    at = in_call(now, nth(run.ranks, rank)["until"])
    if at > now:
        push(run.heap, slot, at, key_of(run, model.ANSWER, message["number"], 0))
    else:
        _answer(run, slot, now)


@subroutine
def _answer(run: State, slot: int, now: float) -> None:
    """Grant a request, send the data after a grant, acknowledge data."""
    cargo = nth(run.packets, slot)["cargo"]
    if cargo == model.REQUEST:
        transmit(run, slot, model.GRANT, now)
    elif cargo == model.GRANT:
        _depart(run, slot, now)
    else:
        transmit(run, slot, model.ACKNOWLEDGEMENT, now)


@subroutine
def _complete_send(run: State, slot: int, now: float) -> None:
    """Complete the send of a slot that nothing else is to happen to."""
    sent = nth(run.messages, slot)
    complete(run, sent["row"], wide(sent["send_iteration"]), now)
    free(run, slot)


@subroutine
def _depart(run: State, slot: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    message = nth(run.messages, slot)
    size = nth(run.rows, message["row"])["size"]
    at = pass_end_point(run, message["rank"], size, now)
    if at > now:
        push(run.heap, slot, at, key_of(run, model.LEAVE, message["number"], 0))
    else:
        _leave(run, slot, now)


@subroutine
def _leave(run: State, slot: int, now: float) -> None:
    """Hand a message's data to the network."""
    end = transmit(run, slot, model.DATA, now)
    if nth(run.messages, slot)["completion"] == model.LEFT and end >= 0:
        complete_send(run, slot, end)
    if run.loop["record_messages"]:
        nth(run.message_times, nth(run.messages, slot)["number"])["departed"] = now


@subroutine
def _stops(run: State, number: int) -> bool:
    """Whether a task stops until there are more slots, or its node's buffer has asked."""
    if run.loop["spare"] >= RESERVE and run.loop["asks"] < 0:
        return False
    run.loop["task"] = number
    return True


@subroutine
def _end_iteration(run: State, task: Any, row: Any, now: float) -> None:
    """Write the end of an iteration of a watched loop down; stop when it is time to look."""
    loop = run.loop
    if row["channel"] < 0 or row["iterations"] > loop["watched_iterations"]:
        return
    end = nth(run.iteration_ends, row["channel"] + row["iterations"] - 1)
    end["time"] = now
    end["compute"] = task["compute"]
    end["communicate"] = task["communicate"]
    loop["iterations_ended"] += 1
    if loop["iterations_ended"] == loop["look_at"]:
        loop["budget"] = 0


go_on, complete = task_machine(push, _post_send, _post_receive, _stops, _end_iteration)
