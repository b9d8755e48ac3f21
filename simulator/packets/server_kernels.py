"""The compiled event loop, servers: how one serves a packet and lets it go on."""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.heap_kernels import push
from hopmap.simulator.model import ARRIVE, DELIVER, SENT
from hopmap.simulator.row_pointers import by_columns, nth, prefetch, wide
from hopmap.simulator.task_kernels import (
    completion_time,
    head_arrival,
    noticed,
    packet_bytes,
    service_end,
    service_start,
    tail_arrival,
)

from .routing_kernels import set_out
from .slot_kernels import free, key_of, take
from .state import State


@subroutine
def use(run: State, link: int, start: float, end: float) -> None:
    """Spread a service over the bins that it touches."""
    bins = run.loop["bins"]
    while end > bins * run.loop["width"]:
        _merge(run)
    width, at = run.loop["width"], link * bins
    first, last = int(start / width), int(end / width)
    if start == end:  # perhaps where the last bin ends
        return
    if first == last:
        nth(run.use, at + first)["busy"] += end - start
        return
    nth(run.use, at + first)["busy"] += (first + 1) * width - start
    for k in range(first + 1, last):
        nth(run.use, at + k)["busy"] += width
    if end > last * width:
        nth(run.use, at + last)["busy"] += end - last * width


@subroutine
def _merge(run: State) -> None:
    """Make bins twice as long."""
    bins = run.loop["bins"]
    run.loop["width"] *= 2
    for at in range(0, run.loop["tracked"] * bins, bins):
        for k in range(bins):
            busy = nth(run.use, at + 2 * k)["busy"] if 2 * k < bins else 0.0
            if 2 * k + 1 < bins:
                busy += nth(run.use, at + 2 * k + 1)["busy"]
            nth(run.use, at + k)["busy"] = busy


@subroutine
def server_at(stop: int) -> int:
    """Server at a stop of a path, be it the last or not."""
    return stop if stop >= 0 else ~stop


@subroutine
def serve(
    run: State, place: int, now: float, size: int, tail: float, data: bool, last: bool
) -> tuple[float, float]:
    """Serve a packet: when it arrives it is known when the server will be done with it."""
    start = service_start(now, nth(run.servers, place)["free"])
    return start, serve_from(run, place, now, start, size, tail, data, last)


@subroutine
def serve_from(
    run: State,
    place: int,
    arrival: float,
    start: float,
    size: int,
    tail: float,
    data: bool,
    last: bool,
) -> float:
    """Serve a packet that has arrived, from a time on; return when that is over."""
    server = nth(run.servers, place)
    end = service_end(start, size, server["bandwidth"], tail)
    server["free"] = end
    server["busy"] += end - start
    if start > arrival:
        server["waited"] += start - arrival
        server["longest_wait"] = max(server["longest_wait"], start - arrival)
    if data:
        server["bytes"] += size
        if last:
            server["messages"] += 1
    if place < run.loop["tracked"]:
        use(run, place, start, end)
    return float(end)


@subroutine
def watch(
    run: State,
    number: int,
    cargo: int,
    packet: int,
    server: int,
    size: int,
    arrival: float,
    start: float,
    end: float,
) -> None:
    """Write down a hop, if its message is watched, and whose packet was served before."""
    latest = nth(run.latest, server)
    if nth(run.watched, number)["yes"]:
        hop = nth(run.hops, run.loop["hops"])
        run.loop["hops"] += 1
        hop["message"] = number
        hop["cargo"] = cargo
        hop["packet"] = packet
        hop["server"] = server
        hop["size"] = size
        hop["arrival"] = arrival
        hop["start"] = start
        hop["end"] = end
        hop["behind"] = latest["message"]
        hop["idle"] = latest["end"]
    latest["message"], latest["end"] = number, end


@subroutine
def release(run: State, slot: int, start: float, end: float, chained: bool) -> int:
    """Let a message's next packet go on from the first server, which serves it in that time.

    If chained, the packet behind it goes on when it has arrived at the second server. Returns the
    packet's slot.
    """
    message, taken = nth(run.messages, slot), slot
    number, path = message["packet"], message["path"]
    leads = number < message["packets"] - 1
    if leads:
        taken = take(run)
        nth(run.packets, taken)["cargo"] = nth(run.packets, slot)["cargo"]
        message["packet"] = number + 1
        if chained:
            message["end"] = end
    packet = nth(run.packets, taken)
    packet["message"] = slot
    packet["leads"] = leads and chained
    set_out(run, packet, path)
    packet["size"] = packet_bytes(message["size"], run.loop["packet_size"], number)
    key = key_of(run, ARRIVE, message["number"], number)
    forward(run, taken, packet, key, wide(nth(run.paths, path)["server"]), start, end)
    return int(taken)


@subroutine
def schedule(run: State, place: int, slot: int, at: float, key: int) -> None:
    """Schedule an event that a server brings about.

    If it does not come before the server's last one, that one lets it in. The heap therefore holds
    a few events of each server, however many packets wait there.
    """
    newest, event = nth(run.last, place), nth(run.packets, slot)
    last = nth(run.packets, newest["slot"])
    due = last["server"] == place + 1
    event["due"], event["key"] = at, key
    event["server"], event["then"] = place + 1, 0
    event["tied"] = event["in_heap"] = False
    # What is in the heap could be handled before an event of the same instant and a lower key.
    tied = last["due"] == at and not last["in_heap"]
    waits = due and (last["due"] < at or tied)
    if waits:
        last["then"], last["tied"] = slot, tied
    else:
        event["in_heap"] = True
        push(run.heap, slot, at, key)
    if waits or not due:
        newest["slot"] = slot


@subroutine
def succeed(run: State, slot: int) -> None:
    """Let in the event behind one that is handled, and those tied to it, in any order."""
    event = nth(run.packets, slot)
    event["server"] = 0
    tied = True
    while tied and event["then"] > 0:
        slot = wide(event["then"])
        event["then"] = 0
        event = nth(run.packets, slot)
        event["in_heap"] = True
        prefetch(run.paths, event["at"])
        prefetch(run.packets, event["then"])
        push(run.heap, slot, event["due"], event["key"])
        tied = event["tied"]


MANY = 1 << 12  # events, below which a cache holds all that they need


def _look_ahead(run: State) -> None:
    """Bring into the cache the packets of the next events, one of which is next, and their stops.

    Entries may be stale, and of tasks, but every item is a slot.
    """
    if run.heap.count["size"] < MANY:
        return
    for child in range(1, 5):
        packet = nth(run.packets, nth(run.heap.entries, child)["item"])
        prefetch(run.paths, packet["at"])


look_ahead = by_columns("tail", _look_ahead, lambda _run: None, without=("handed", "via"))


@subroutine
def forward(
    run: State, slot: int, packet: Any, key: int, place: int, start: float, end: float
) -> None:
    """Schedule a packet's arrival behind a server that serves it from start to end."""
    latency = nth(run.servers, place)["latency"]
    packet["tail"] = tail_arrival(end, latency)
    head = head_arrival(start, end, latency, run.loop["cut_through"])
    schedule(run, place, slot, head, key)


@subroutine
def deliver(run: State, slot: int, place: int, end: float) -> None:
    """Schedule the delivery of a message, whose last packet a server serves until then."""
    at = tail_arrival(end, nth(run.servers, place)["latency"])
    loop, message = run.loop, nth(run.messages, slot)
    cargo, mode = nth(run.packets, slot)["cargo"], nth(run.rows, message["row"])["mode"]
    at = noticed(at, cargo, mode, loop["overhead_control"], loop["overhead_put_latency"])
    schedule(run, place, slot, at, key_of(run, DELIVER, message["number"], 0))


def _note(run: State, slot: int, packets: int) -> None:
    """Note of how many packets a message is."""
    nth(run.messages, slot)["packets"] = packets


def _note_and_count(run: State, slot: int, packets: int) -> None:
    message = nth(run.messages, slot)
    message["packets"] = message["under_way"] = packets


def _end_in_order(run: State, slot: int, first: int, place: int, end: float) -> None:
    """Let a packet end with its last server; the last to come has the message delivered."""
    if slot == first:
        deliver(run, slot, place, end)
    else:
        free(run, slot)


def _end_any_order(run: State, slot: int, first: int, place: int, end: float) -> None:
    message = nth(run.messages, first)
    message["under_way"] -= 1
    if slot != first:
        free(run, slot)
    if message["under_way"] == 0:
        deliver(run, first, place, end)


send_off = by_columns("under_way", _note_and_count, _note)
finish = by_columns("under_way", _end_any_order, _end_in_order)


@subroutine
def complete_send(run: State, slot: int, at: float) -> None:
    """Complete the send of a message whose last byte will have left the first server then."""
    message, sent = nth(run.messages, slot), take(run)
    limit, later = run.loop["eager_limit"], run.loop["eager_completion"]
    row = nth(run.rows, message["row"])
    at = completion_time(at, row["size"], row["mode"], limit, later)
    nth(run.messages, sent)["row"] = message["row"]
    nth(run.messages, sent)["send_iteration"] = message["send_iteration"]
    place = server_at(nth(run.paths, message["path"])["server"])
    schedule(run, place, sent, at, key_of(run, SENT, message["number"], 0))
