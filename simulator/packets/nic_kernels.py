"""The compiled event loop, network interfaces whose queues take turns.

Which queue a rail serves next is known only when it is done, so that there is an event for every
packet. Runs in which nothing takes turns are told by the type of their messages when code is
compiled, and have none of this in them.
"""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from hopmap.compilation import NO_WRAPPERS, subroutine
from hopmap.simulator.heap_kernels import push
from hopmap.simulator.model import DATA, LEFT, SERVED
from hopmap.simulator.model_kernels import packet_bytes
from hopmap.simulator.row_pointers import fields_of, nth

from .server_kernels import left, release, serve_from, watch
from .slot_kernels import key_of
from .state import State
from .turn_kernels import append, drop, enlist, queue_of, take_turn


def enter(run: State, slot: int, now: float) -> bool:
    """Put a message into its queue, if its first server is one whose queues take turns."""
    fields = *run.messages.dtype.names, *run.packets.dtype.names
    return "handed" in fields and "buffer" not in fields and _enter(run, slot, now)


def next_turn(run: State, number: int, now: float) -> None:
    """Let a rail that has served a packet of a queue take the next one."""
    _next_turn(run, number, now)


def _takes_turns(run: Any) -> bool:
    fields = {*fields_of(run, "messages"), *fields_of(run, "packets")}
    return "handed" in fields and "buffer" not in fields


@overload(enter, jit_options=NO_WRAPPERS, strict=False)
def _compiled_enter(run: Any, slot: Any, now: Any) -> Any:  # noqa: ARG001 (types)
    if _takes_turns(run):
        return _enter
    return lambda run, slot, now: False  # noqa: ARG005


@overload(next_turn, jit_options=NO_WRAPPERS, strict=False)
def _compiled_next_turn(run: Any, number: Any, now: Any) -> Any:  # noqa: ARG001 (types)
    if _takes_turns(run):
        return _next_turn
    return lambda run, number, now: None  # noqa: ARG005


def _enter(run: State, slot: int, now: float) -> bool:
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
            left(run, slot, end)
    release(run, slot, now, end, False)
