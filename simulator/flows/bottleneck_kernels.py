"""Which server is whose bottleneck, what servers carry, and when the flows of one end.

All flows with one bottleneck get the same share for each unit of weight. A server therefore counts
in virtual time (Parekh and Gallager, IEEE/ACM Trans. Networking 1, 1993) what each of them got, and
a flow ends when that reaches its `finish`: another share costs nothing for each flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import subroutine
from hopmap.simulator.heap_kernels import put
from hopmap.simulator.row_pointers import nth

from .state import FULL, Flows


@subroutine
def first_to_end(flows: Flows, place: int) -> int:
    """Slot of the flow that ends first of those with this bottleneck, -1 if there is none.

    Of those that end together it is the one of the lowest item.
    """
    best = number = nth(flows.groups, place)["first"]
    while number >= 0:
        slot, first = nth(flows.slots, number), nth(flows.slots, best)
        sooner = slot["finish"] < first["finish"]
        if sooner or (slot["finish"] == first["finish"] and slot["item"] < first["item"]):
            best = number
        number = slot["after"]
    return int(best)


@subroutine
def end_of(flows: Flows, number: int) -> float:
    """When a flow ends if shares stay as they are."""
    slot = nth(flows.slots, number)
    group = nth(flows.groups, slot["bottleneck"])
    left = max(0.0, slot["finish"] - group["virtual"])
    return float(group["since"] + left / nth(flows.levels, slot["bottleneck"])["share"])


@subroutine
def tightest(flows: Flows, begin: int, end: int, but: int) -> tuple[float, int]:
    """Lowest share on the path of a flow, and where, one server left out; -1 if all have room."""
    lowest, where = np.inf, -1
    for stop in range(begin, end):
        place: Any = np.int64(nth(flows.stops, stop)["server"])
        share = nth(flows.levels, place)["share"]
        if share < lowest and place != but:
            lowest, where = share, place
    return lowest, where


@subroutine
def assign(flows: Flows, number: int, old: float, place: int, new: float, now: float) -> None:
    """Give a flow, whose share was `old`, another bottleneck and share."""
    slot = nth(flows.slots, number)
    leave(flows, slot, now)
    join(flows, number, place, now)
    charge_share(flows, slot, new, slot["weight"] * (new - old))


@subroutine
def join(flows: Flows, number: int, place: int, now: float) -> None:
    """Count a flow, whose `finish` is what is left of it, at its bottleneck."""
    slot, group = nth(flows.slots, number), nth(flows.groups, place)
    advance_virtual(flows, place, now)
    slot["finish"] += group["virtual"]
    group["weight"] += slot["weight"]
    first = group["first"]
    slot["bottleneck"], slot["before"], slot["after"] = place, -1, first
    if first >= 0:
        nth(flows.slots, first)["before"] = number
    group["first"] = number
    note(flows, place)


@subroutine
def leave(flows: Flows, slot: Any, now: float) -> None:
    """Undo `join`, or `stay_loose`."""
    place: Any = np.int64(slot["bottleneck"])
    if place < 0:
        _count_loose(flows, slot, -1)
        return
    group = nth(flows.groups, place)
    advance_virtual(flows, place, now)
    slot["finish"] -= group["virtual"]
    group["weight"] -= slot["weight"]
    before, after = slot["before"], slot["after"]
    if before >= 0:
        nth(flows.slots, before)["after"] = after
    else:
        group["first"] = after
    if after >= 0:
        nth(flows.slots, after)["before"] = before
    if group["first"] < 0:
        group["weight"] = group["virtual"] = 0.0
    note(flows, place)


@subroutine
def stay_loose(flows: Flows, slot: Any) -> None:
    """Note that a flow has no bottleneck yet, since all its servers have room."""
    slot["bottleneck"] = -1
    _count_loose(flows, slot, 1)
    for stop in range(slot["begin"], slot["end"]):
        place: Any = np.int64(nth(flows.stops, stop)["server"])
        soil(flows, place)


@subroutine
def _count_loose(flows: Flows, slot: Any, change: int) -> None:
    for stop in range(slot["begin"], slot["end"]):
        nth(flows.groups, nth(flows.stops, stop)["server"])["loose"] += change


@subroutine
def charge_share(flows: Flows, slot: Any, share: float, change: float) -> None:
    """Change the load of all servers of a flow that has another share."""
    bottleneck = slot["bottleneck"]
    for stop in range(slot["begin"], slot["end"]):
        place: Any = np.int64(nth(flows.stops, stop)["server"])
        level = nth(flows.levels, place)
        level["load"] += change
        if place != bottleneck and share > level["highest"]:
            level["highest"] = share
        if change != 0 and level["load"] > level["alarm"]:
            soil(flows, place)


@subroutine
def set_share(flows: Flows, place: int, share: float, now: float) -> None:
    """Give a server another share."""
    advance_virtual(flows, place, now)
    level = nth(flows.levels, place)
    level["share"] = share
    bandwidth = nth(flows.servers, place)["bandwidth"]
    level["alarm"] = bandwidth * FULL if share == np.inf else -np.inf


@subroutine
def advance_virtual(flows: Flows, place: int, now: float) -> None:
    """Count what the flows with this bottleneck got until now."""
    group = nth(flows.groups, place)
    if group["first"] >= 0 and now > group["since"]:
        group["virtual"] += nth(flows.levels, place)["share"] * (now - group["since"])
    group["since"] = now


@subroutine
def note(flows: Flows, place: int) -> None:
    """Note that the flows with this bottleneck may end at other times."""
    group = nth(flows.groups, place)
    if not group["noted"]:
        group["noted"] = True
        nth(flows.noted, flows.counts["noted"])["place"] = place
        flows.counts["noted"] += 1


@subroutine
def soil(flows: Flows, place: int) -> None:
    """Note that the share of a server has to be found again."""
    if nth(flows.soiled.places, place)["entry"] == 0:
        put(
            flows.soiled,
            place,
            min(nth(flows.levels, place)["share"], expected_share(flows, place)),
            place,
        )


@subroutine
def expected_share(flows: Flows, place: int) -> float:
    """Return the share that a server will have if its load by all other flows stays the same."""
    level, group = nth(flows.levels, place), nth(flows.groups, place)
    bandwidth = nth(flows.servers, place)["bandwidth"]
    if level["share"] == np.inf:
        return float(bandwidth / max(1.0, group["users"]))
    if group["weight"] <= 0:
        return float(level["share"])
    return float(level["share"] + (bandwidth - level["load"]) / group["weight"])
