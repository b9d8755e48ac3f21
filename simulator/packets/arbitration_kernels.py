"""The compiled event loop, network interfaces whose queues take turns; see `reference/network.py`.

Which queue a rail serves next is known only when it is done, so that there is an event for every
packet. Runs in which nothing takes turns have none of this in them, see `by_columns`.

Among finite buffers a node's injection link is the only rail, and asks for room as other links do:
its buffer knows only that something waits, and which queue the link serves is settled when it
begins.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.heap_kernels import push
from hopmap.simulator.model import DATA, LEFT, SERVED
from hopmap.simulator.row_pointers import by_columns, nth
from hopmap.simulator.task_kernels import packet_bytes

from .server_kernels import complete_send, release, serve_from, watch
from .slot_kernels import append, drop, key_of
from .state import State


@subroutine
def queue_of(run: State, slot: int, node: int) -> int:
    """Queue that a message of a node stands in."""
    if nth(run.packets, slot)["cargo"] != DATA:
        return int(run.loop["pairs"] + node)
    channel = nth(run.rows, nth(run.messages, slot)["row"])["channel"]
    return int(nth(run.nics.of_channel, channel)["queue"])


@subroutine
def enlist(run: State, queue: Any, number: int) -> None:
    """Let a queue wait for its turn."""
    if number < run.loop["pairs"]:
        rank = nth(run.nics.ranks, queue["rank"])
        if rank["first"] < 0:
            append(nth(run.nics.nodes, queue["node"]), run.nics.ranks, queue["rank"])
        append(rank, run.nics.queues, number)


@subroutine
def take_turn(run: State, node: int) -> int:
    """Queue whose turn it is, which no longer waits, or -1."""
    number = run.loop["pairs"] + node
    control = nth(run.nics.queues, number)
    if not control["served"] and control["first"] >= 0:
        return int(number)
    nic = nth(run.nics.nodes, node)
    turn = nic["first"]
    if turn < 0:
        return -1
    drop(nic, run.nics.ranks)
    rank = nth(run.nics.ranks, turn)
    number = rank["first"]
    drop(rank, run.nics.queues)
    if rank["first"] >= 0:
        append(nic, run.nics.ranks, turn)
    return int(number)


@subroutine
def stand_in(run: State, slot: int, node: int, buffer: Any) -> None:
    """Put a message into its queue of a node whose buffer has no end."""
    number = queue_of(run, slot, node)
    queue = nth(run.nics.queues, number)
    served = buffer["by"] >= 0 and nth(run.nics.nodes, node)["serves"] == number
    waits = queue["first"] >= 0 or served
    append(queue, run.messages, slot)
    if not waits:
        enlist(run, queue, number)
    if buffer["first"] < 0:
        buffer["first"] = slot


@subroutine
def step_forward(run: State, node: int, buffer: Any) -> int:
    """Message whose turn it is; with its last packet it leaves its queue."""
    number = take_turn(run, node)
    nth(run.nics.nodes, node)["serves"] = number
    queue = nth(run.nics.queues, number)
    slot = queue["first"]
    message = nth(run.messages, slot)
    if message["packet"] == message["packets"] - 1:
        drop(queue, run.messages)
    buffer["first"] = _waiting(run, node, queue)
    return int(slot)


@subroutine
def _waiting(run: State, node: int, served: Any) -> int:
    """One of the messages of a node that have packets left, or -1."""
    control = nth(run.nics.queues, run.loop["pairs"] + node)
    turn = nth(run.nics.nodes, node)["first"]
    if control["first"] >= 0:
        return int(control["first"])
    if turn >= 0:
        return int(nth(run.nics.queues, nth(run.nics.ranks, turn)["first"])["first"])
    return int(served["first"])


@subroutine
def stand_again(run: State, node: int) -> None:
    """Let the queue that was served wait for its next turn."""
    number = nth(run.nics.nodes, node)["serves"]
    queue = nth(run.nics.queues, number)
    if queue["first"] >= 0:
        enlist(run, queue, number)


def _enter(run: State, slot: int, now: float) -> bool:
    """Put a message into its queue, if its first server is one whose queues take turns."""
    message = nth(run.messages, slot)
    place = nth(run.paths, message["path"])["server"]
    if place < 0:  # a node's memory: no other path ends where it begins
        return False
    node = place - run.loop["links"]
    number = queue_of(run, slot, node)
    message["handed"] = now
    queue = nth(run.nics.queues, number)
    waits = queue["first"] >= 0 or queue["served"]
    append(queue, run.messages, slot)
    if not waits:
        enlist(run, queue, number)
    _inject(run, node, now)
    return True


def _next_turn(run: State, number: int, now: float) -> None:
    """Let a rail that has served a packet of a queue take the next one."""
    queue = nth(run.nics.queues, number)
    queue["served"] = False
    nth(run.nics.nodes, queue["node"])["idle"] += 1
    if queue["first"] >= 0:
        enlist(run, queue, number)
    _inject(run, queue["node"], now)


@subroutine
def _inject(run: State, node: int, now: float) -> None:
    """Let an idle rail of a node serve the packet whose turn it is."""
    nic = nth(run.nics.nodes, node)
    if nic["idle"] == 0:
        return
    number = take_turn(run, node)
    if number < 0:
        return
    queue = nth(run.nics.queues, number)
    nic["idle"] -= 1
    queue["served"] = True
    _serve(run, queue, number, run.loop["links"] + node, now)


@subroutine
def _serve(run: State, queue: Any, number: int, place: int, now: float) -> None:
    """Serve the next packet of a queue."""
    slot = queue["first"]
    message, cargo = nth(run.messages, slot), nth(run.packets, slot)["cargo"]
    packet = message["packet"]
    last = packet == message["packets"] - 1
    size = packet_bytes(message["size"], run.loop["packet_size"], packet)
    end = serve_from(run, place, message["handed"], now, size, now, cargo == DATA, last)
    run.loop["served"] += 1
    if run.loop["watch"]:
        arrival = message["handed"]
        watch(run, message["number"], cargo, packet, place, size, arrival, now, end)
    push(run.heap, number, end, key_of(run, SERVED, message["number"], packet))
    if last:
        drop(queue, run.messages)
        if cargo == DATA and message["completion"] == LEFT:
            complete_send(run, slot, end)
    release(run, slot, now, end, False)


enter = by_columns("handed", _enter, lambda _run, _slot, _now: False, without=("buffer",))
next_turn = by_columns("handed", _next_turn, lambda _run, _number, _now: None, without=("buffer",))
