"""The compiled event loop, free slots, and the keys of events."""

from __future__ import annotations

from hopmap.compilation import subroutine
from hopmap.simulator.model_kernels import order_key
from hopmap.simulator.row_pointers import nth

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
