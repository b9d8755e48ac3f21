"""The compiled event loop, what all its parts use: free slots, linked lists, the keys of events."""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.row_pointers import nth
from hopmap.simulator.task_kernels import order_key

from .state import State


@subroutine
def take(run: State) -> int:
    """Take a free slot; `loop_kernels.RESERVE` sees to it that there is one."""
    slot = run.loop["free"]
    run.loop["free"] = nth(run.packets, slot)["next"]
    run.loop["spare"] -= 1
    return int(slot)


@subroutine
def free(run: State, slot: int) -> None:
    """Give a slot back."""
    nth(run.packets, slot)["next"] = run.loop["free"]
    run.loop["free"] = slot
    run.loop["spare"] += 1


@subroutine
def key_of(run: State, kind: int, number: int, packet: int) -> int:
    """Rank of an event, see `model.order_key`."""
    return int(order_key(kind, number, packet, run.loop["number_bits"], run.loop["packet_bits"]))


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
