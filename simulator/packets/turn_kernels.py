"""The compiled event loop, queues of a network interface and their turns; see `reference/nic.py`.

Rails of their own, where buffers are unbounded, are in `nic_kernels`. Among finite buffers a node's
injection link is the only rail, and asks for room as other links do: its buffer knows only that
something waits, and which queue the link serves is settled when it begins.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.model import DATA
from hopmap.simulator.row_pointers import nth

from .state import State


@subroutine
def append(owner: Any, items: Any, item: int) -> None:
    """Put an item at the end of a list; its owner knows the first and the last."""
    nth(items, item)["next"] = -1
    if owner["first"] < 0:
        owner["first"] = item
    else:
        nth(items, owner["last"])["next"] = item
    owner["last"] = item


@subroutine
def drop(owner: Any, items: Any) -> None:
    """Take the first item out of a list."""
    owner["first"] = nth(items, owner["first"])["next"]


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


@subroutine(forceinline=False)
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


@subroutine(forceinline=False)
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


@subroutine(forceinline=False)
def stand_again(run: State, node: int) -> None:
    """Let the queue that was served wait for its next turn."""
    number = nth(run.nics.nodes, node)["serves"]
    queue = nth(run.nics.queues, number)
    if queue["first"] >= 0:
        enlist(run, queue, number)
