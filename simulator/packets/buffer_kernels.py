"""The compiled event loop, finite buffers; see `reference/buffered.py`, step by step the same.

Runs whose buffers are unbounded have none of this in them, see `by_columns`. A packet leaves the
list of its buffer when a link begins to serve it, but its place is free only when its tail has
left, or a flit.

A call hands over every pointer of a run, so that what happens at every hop is compiled into one
function, `_grant`. Only what it calls has `forceinline`: numba compiles a function once for callers
that have it and once for others. All that call `_grant` are optimised with it again, so `ask_next`
does after an event what would begin deep in it. A task with more to do stops for that long.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.model import ARRIVE, CREDIT, DATA, LEFT, PASSED
from hopmap.simulator.routes import FIXED
from hopmap.simulator.row_pointers import by_columns, nth, wide
from hopmap.simulator.task_kernels import credit_arrival, packet_bytes, place_free

from .arbitration_kernels import stand_again, stand_in, step_forward
from .routing_kernels import (
    channel_for,
    decide_ahead,
    list_of,
    most_room,
    preferred_link,
    request_output,
    watch_ways,
)
from .server_kernels import complete_send, finish, forward, release, serve_from, server_at, watch
from .slot_kernels import (
    append,
    drop,
    key_of,
    note_event,
    return_credit,
    schedule_credit,
    schedule_passed,
    send_back,
    settle,
    settle_tail,
    watch_out,
)
from .state import State


def _queue_up(run: State, slot: int, now: float) -> bool:
    """Put a message into its node's queue."""
    message = nth(run.messages, slot)
    place = nth(run.paths, message["path"])["server"]
    if place < 0:  # a node's memory: no other path ends where it begins
        return False
    number = run.loop["queues"] + place - run.loop["links"]
    queue = nth(run.limits.buffers, number)
    message["handed"] = now
    waits = queue["first"] >= 0 or _is_read(run, queue, now)
    if run.loop["turns"]:
        stand_in(run, slot, number - run.loop["queues"], queue)
    else:
        append(queue, run.messages, slot)
    if not waits:
        run.loop["asks"] = number
    return True


def _enter_buffer(run: State, slot: int, now: float) -> bool:
    """Put a packet into the buffer that it has reached."""
    packet = nth(run.packets, slot)
    number = wide(packet["buffer"])
    buffer = nth(run.limits.buffers, number)
    packet["behind"] = -1
    waits = True
    if buffer["first"] < 0:
        waits = _is_read(run, buffer, now)
        buffer["first"] = slot
    else:
        nth(run.packets, buffer["last"])["behind"] = slot
    buffer["last"] = slot
    if not waits:
        run.loop["asks"] = number
    return True


def _ask_next(run: State) -> None:
    """Let the buffer ask that got its first packet in the event that has been handled."""
    number = run.loop["asks"]
    if number >= 0:
        run.loop["asks"] = -1
        _ask(run, number, run.loop["now"])


@subroutine
def _is_read(run: State, buffer: Any, now: float) -> bool:
    """Whether a link serves a packet of a buffer; if so, what comes next waits for its end."""
    by = wide(buffer["by"])
    if by < 0:
        return False
    settle_tail(run, by, now)
    if buffer["by"] >= 0:
        schedule_passed(run, by)
    return bool(buffer["by"] >= 0)


def _make_room(run: State, kind: int, item: int, now: float) -> bool:
    """Handle the events that there are where buffers are finite."""
    if kind == PASSED:
        note_event(run, PASSED, item, now)
        _release(run, item, now)
    elif kind == CREDIT:
        number = wide(nth(run.packets, item)["buffer"])
        note_event(run, CREDIT, number, now)
        place = wide(nth(run.limits.buffers, number)["link"])
        settle(run, place, now)
        return_credit(run, place)
        _grant(run, place, now)
    else:
        return False
    return True


@subroutine
def _release(run: State, place: int, now: float) -> None:
    """Free the place of a packet whose tail has left, and let others ask for link and place."""
    link = nth(run.limits.links, place)
    number = wide(link["serves"])
    link["serves"], link["due"] = -1, False
    buffer = nth(run.limits.buffers, number)
    buffer["by"] = -1
    if link["owes"]:
        settle(run, wide(buffer["link"]), now)
        schedule_credit(run, send_back(run, number, now))
    if buffer["first"] >= 0:
        if run.loop["turns"] and number >= run.loop["queues"]:
            stand_again(run, number - run.loop["queues"])
        _ask(run, number, now)
    _grant(run, place, now)


@subroutine(forceinline=True)
def _next_stop(run: State, number: int) -> int:
    """Where in `paths` the next link of the first packet of a buffer is."""
    slot = nth(run.limits.buffers, number)["first"]
    if nth(run.limits.buffers, number)["link"] >= 0:
        return int(nth(run.packets, slot)["at"])
    return int(nth(run.messages, slot)["path"])


@subroutine
def _ask(run: State, number: int, now: float) -> None:
    """Let the packet at the head of a buffer ask for its next link."""
    buffer = nth(run.limits.buffers, number)
    if run.loop["routing"] == FIXED or buffer["link"] < 0:
        place = wide(server_at(nth(run.paths, _next_stop(run, number))["server"]))
        _enlist(run, number, place)
        _grant(run, place, now)
    else:
        _ask_any(run, number, now)


@subroutine
def _ask_any(run: State, number: int, now: float) -> None:
    """Likewise for any link that will do."""
    buffer = nth(run.limits.buffers, number)
    packet = nth(run.packets, buffer["first"])
    place = wide(request_output(run, packet, now))
    _enlist(run, number, list_of(run, place))
    if packet["own"] < 0:
        _grant(run, place, now)
        return
    while buffer["by"] < 0:
        place = wide(preferred_link(run, packet, now))
        if place < 0:
            watch_ways(run, packet, now)
            return
        _grant(run, place, now)


@subroutine(forceinline=True)
def _enlist(run: State, number: int, place: int) -> None:
    """Put a buffer into the list of those that ask for a link."""
    link = nth(run.limits.links, place)
    nth(run.limits.buffers, number)["next"] = link["asking"]
    link["asking"] = number


@subroutine(forceinline=True)
def _room(run: State, number: int, place: int) -> int:
    """Buffer behind a link that the first packet of another would take, or -1 without room."""
    if place >= run.loop["ends"]:
        return 0  # an end that takes everything
    if run.loop["routing"] == FIXED:
        taken = nth(run.limits.classes, _next_stop(run, number))
        return int(most_room(run, place, wide(taken["first"]), wide(taken["count"])))
    return _room_on_ways(run, number, place)


@subroutine
def _room_on_ways(run: State, number: int, place: int) -> int:
    """Likewise where routes are chosen on the way."""
    if number >= run.loop["queues"]:
        return int(most_room(run, place, 0, run.loop["channels"]))
    slot = nth(run.limits.buffers, number)["first"]
    return int(channel_for(run, nth(run.packets, slot), place))


@subroutine
def _age(run: State, number: int) -> tuple[float, int]:
    """When the first packet of a buffer entered the network, and its key."""
    slot = nth(run.limits.buffers, number)["first"]
    if number < run.loop["queues"]:
        packet = nth(run.packets, slot)
        return float(packet["born"]), int(packet["key"])
    message = nth(run.messages, slot)
    key = key_of(run, ARRIVE, message["number"], message["packet"])
    return float(message["handed"]), key


@subroutine
def _goes_first(run: State, number: int, other: int, latest: int) -> bool:
    """Whether a buffer's packet is granted before another's."""
    if run.loop["oldest_first"]:
        return _age(run, number) < _age(run, other)
    return (number <= latest, number) < (other <= latest, other)


@subroutine
def _grant(run: State, place: int, now: float) -> None:
    """Let an idle link serve one of the packets that ask for it and have room behind it."""
    link, asking = nth(run.limits.links, place), nth(run.limits.links, list_of(run, place))
    if asking["asking"] < 0:
        return
    settle(run, place, now)
    if link["serves"] >= 0:
        watch_out(run, place)
        return
    number = wide(asking["asking"])
    best, room, before_best, before = -1, -1, -1, -1
    while number >= 0:
        behind = _room(run, number, place)
        if behind >= 0 and (best < 0 or _goes_first(run, number, best, link["latest"])):
            best, room, before_best = number, behind, before
        before, number = number, wide(nth(run.limits.buffers, number)["next"])
    if best < 0:
        watch_out(run, place)
        return
    after = nth(run.limits.buffers, best)["next"]
    if before_best < 0:
        asking["asking"] = after
    else:
        nth(run.limits.buffers, before_best)["next"] = after
    link["serves"] = link["latest"] = best
    nth(run.limits.buffers, best)["by"] = place
    if place < run.loop["ends"]:
        nth(run.limits.buffers, room)["credits"] -= 1
    run.loop["served"] += 1
    if nth(run.limits.buffers, best)["link"] >= 0:
        size = wide(nth(run.packets, nth(run.limits.buffers, best)["first"])["size"])
        end = _serve_packet(run, best, place, room, now)
    else:
        size = 0
        end = _serve_message(run, best, place, room, now)
    _end_later(run, place, asking["asking"] >= 0, size, now, end)


@subroutine(forceinline=True)
def _end_later(run: State, place: int, requested: bool, size: int, now: float, end: float) -> None:
    """Note when the packet that a link serves will have left, and when its place is free."""
    link = nth(run.limits.links, place)
    number, known = wide(link["serves"]), end
    link["end"], link["owes"] = end, False
    upstream = wide(nth(run.limits.buffers, number)["link"])
    if upstream >= 0:
        before = nth(run.servers, upstream)
        over = nth(run.servers, place)
        free = place_free(now, end, size, run.loop["flit"], over["bandwidth"], before["bandwidth"])
        known = credit_arrival(free, before["latency"], run.loop["credit_delay"])
        if known > end or free < end:
            send_back(run, number, known)
            if nth(run.limits.links, list_of(run, upstream))["asking"] >= 0:
                settle(run, upstream, now)
                watch_out(run, upstream)
        else:  # at that instant the tail has to leave first
            link["owes"] = True
    run.loop["last"] = max(run.loop["last"], known, end)
    waits = requested or nth(run.limits.buffers, number)["first"] >= 0
    if waits or link["owes"] or end <= now:
        schedule_passed(run, place)


@subroutine(forceinline=True)
def _serve_message(run: State, number: int, place: int, room: int, now: float) -> float:
    """Serve the next packet of a node's queue."""
    queue = nth(run.limits.buffers, number)
    slot, turns = wide(queue["first"]), run.loop["turns"]
    if turns:
        slot = step_forward(run, number - run.loop["queues"], queue)
    message, cargo = nth(run.messages, slot), nth(run.packets, slot)["cargo"]
    packet, handed = message["packet"], message["handed"]
    last = packet == message["packets"] - 1
    size = packet_bytes(message["size"], run.loop["packet_size"], packet)
    end = serve_from(run, place, handed, now, size, handed, cargo == DATA, last)
    if run.loop["watch"]:
        watch(run, message["number"], cargo, packet, place, size, handed, now, end)
    if last:
        if not turns:
            drop(queue, run.messages)
        if cargo == DATA and message["completion"] == LEFT:
            complete_send(run, slot, end)
    taken = nth(run.packets, release(run, slot, now, end, False))
    taken["buffer"] = room
    taken["born"] = handed
    if place < run.loop["ends"]:
        decide_ahead(run, taken, taken["key"], now)
    return end


@subroutine(forceinline=True)
def _serve_packet(run: State, number: int, place: int, room: int, now: float) -> float:
    """Serve the first packet of a buffer."""
    buffer = nth(run.limits.buffers, number)
    slot = buffer["first"]
    packet = nth(run.packets, slot)
    buffer["first"] = packet["behind"]
    whole, cargo, key = packet["message"], packet["cargo"], packet["key"]
    arrival, size, last = packet["due"], packet["size"], whole == slot
    end = serve_from(run, place, arrival, now, size, packet["tail"], cargo == DATA, last)
    if run.loop["watch"]:
        part = key & ((1 << run.loop["packet_bits"]) - 1)
        watch(run, nth(run.messages, whole)["number"], cargo, part, place, size, arrival, now, end)
    if place < run.loop["ends"]:
        fixed = run.loop["routing"] == FIXED
        packet["at"] = packet["at"] + 1 if fixed else nth(run.ways.links, place)["end"]
        packet["buffer"] = room
        decide_ahead(run, packet, key, now)
        forward(run, slot, packet, key, place, now, end)
        return end
    finish(run, slot, whole, place, end)
    return end


queue_up = by_columns("buffer", _queue_up, lambda _run, _slot, _now: False)
ask_next = by_columns("buffer", _ask_next, lambda _run: None)
enter_buffer = by_columns("buffer", _enter_buffer, lambda _run, _slot, _now: False)
make_room = by_columns("buffer", _make_room, lambda _run, _kind, _item, _now: False)
