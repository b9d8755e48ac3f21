"""Max-min fair shares of servers, kept up to date as flows open and close.

Progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): all rates rise
together, in proportion to their weights, until a server is full; the flows over it have it as their
bottleneck and keep their rate, the others go on rising. Rates are fair if and only if every flow
has a bottleneck: a full server where no other flow has a higher share for each unit of weight.

A server is locally right if its share is the level up to which its flows fill it, each no further
than the lowest share of its other servers lets it. Rates are fair where all servers are. A change
makes some servers wrong, and `allot` puts these right, then others that this makes wrong, until
none is: what a change does not reach costs nothing. Any order has the same result; taken
lowest share first, as in filling, few servers are looked at twice, since a share depends only on
lower ones. The same idea is in Ros-Giralt et al., Proc. ACM Meas. Anal. Comput. Syst. 3 (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import subroutine
from hopmap.simulator.heap_kernels import put, take
from hopmap.simulator.row_pointers import nth

from .bottleneck_kernels import (
    assign,
    charge_share,
    expected_share,
    join,
    leave,
    note,
    set_share,
    soil,
    stay_loose,
    tightest,
)
from .state import Flows

# Part of a server's bandwidth that a share need not be right to: what rounding leaves of it would
# otherwise be handed on for ever.
SLACK = 1e-14
# How often a server looks at those flows only whose bottleneck it is. Its load by the others is a
# sum of changes until then.
LOOKS = 64


@subroutine
def open_flow(
    flows: Flows, begin: int, end: int, item: int, size: float, weight: float, now: float
) -> int:
    """Start a flow of `size` bytes; it has no rate before the next `allot`."""
    counts = flows.counts
    number = counts["free"]
    slot = nth(flows.slots, number)
    counts["free"] = slot["after"]
    counts["spare"] -= 1
    slot["begin"], slot["end"], slot["item"] = begin, end, item
    slot["weight"], slot["finish"] = weight, size / weight
    at = number * counts["longest"]
    alone, slowest, narrow = True, np.inf, -1
    for stop in range(begin, end):
        place: Any = np.int64(nth(flows.stops, stop)["server"])
        group, crossing = nth(flows.groups, place), nth(flows.crossings, at)
        first, bandwidth = group["crossing"], nth(flows.servers, place)["bandwidth"]
        crossing["after"], crossing["before"] = first, -1
        if first >= 0:
            nth(flows.crossings, first)["before"] = at
            alone = False
        if bandwidth < slowest:
            slowest, narrow = bandwidth, place
        group["crossing"] = at
        group["users"] += weight
        at += 1
    lowest, where = slowest / weight, narrow
    if alone:
        set_share(flows, where, lowest, now)
    else:
        lowest, where = tightest(flows, begin, end, -1)
    if where < 0:
        stay_loose(flows, slot)
        return int(number)
    join(flows, number, where, now)
    charge_share(flows, slot, lowest, weight * lowest)
    if alone:
        take(flows.soiled, where)
    return int(number)


@subroutine
def close_flow(flows: Flows, number: int, now: float) -> None:
    """End a flow."""
    counts, slot = flows.counts, nth(flows.slots, number)
    rate = 0.0
    if slot["bottleneck"] >= 0:
        rate = slot["weight"] * nth(flows.levels, slot["bottleneck"])["share"]
    leave(flows, slot, now)
    at = number * counts["longest"]
    for stop in range(slot["begin"], slot["end"]):
        place: Any = np.int64(nth(flows.stops, stop)["server"])
        level, group = nth(flows.levels, place), nth(flows.groups, place)
        crossing = nth(flows.crossings, at)
        before, after = crossing["before"], crossing["after"]
        if before >= 0:
            nth(flows.crossings, before)["after"] = after
        else:
            group["crossing"] = after
        if after >= 0:
            nth(flows.crossings, after)["before"] = before
        group["users"] -= slot["weight"]
        level["load"] -= rate
        if group["crossing"] < 0:
            group["users"] = level["load"] = level["highest"] = 0.0
            set_share(flows, place, np.inf, now)
        elif level["share"] < np.inf:
            soil(flows, place)
        at += 1
    slot["after"] = counts["free"]
    counts["free"] = number
    counts["spare"] += 1


@subroutine
def allot(flows: Flows, now: float) -> int:
    """Give all flows fair shares; return how many servers of `noted` need new ends of flows."""
    counts, soiled = flows.counts, flows.soiled
    while soiled.count["size"] > 0:
        lowest = nth(soiled.entries, 0)
        place, known = lowest["item"], lowest["time"]
        key = min(nth(flows.levels, place)["share"], expected_share(flows, place))
        if key > known:
            put(soiled, place, key, place)
            if nth(soiled.entries, 0)["item"] != place:
                continue
        _settle(flows, place, now)
    changed = counts["noted"]
    counts["noted"] = 0
    for k in range(changed):
        nth(flows.groups, nth(flows.noted, k)["place"])["noted"] = False
    return int(changed)


@subroutine
def _settle(flows: Flows, place: int, now: float) -> None:
    """Put a server right, unless another one has to be before."""
    soiled, level, group = flows.soiled, nth(flows.levels, place), nth(flows.groups, place)
    old, bandwidth = level["share"], nth(flows.servers, place)["bandwidth"]
    everyone = (
        old == np.inf
        or group["loose"] > 0
        or group["weight"] <= 0
        or group["looks"] == LOOKS
        or expected_share(flows, place) < level["highest"]
    )
    if everyone:
        count, room = _gather_all(flows, place), bandwidth
    else:
        count = _gather_group(flows, place)
        room = bandwidth - (level["load"] - group["weight"] * old)
    slack = SLACK * bandwidth
    new = _fill(flows, count, room, slack, old)
    if new > old or group["loose"] > 0:
        # Only a flow that gets more, or had nothing, may meet another server.
        for k in range(count):
            row = nth(flows.rows, k)
            slot = nth(flows.slots, row["slot"])
            if slot["bottleneck"] < 0 or slot["bottleneck"] == place:
                begin, end = slot["begin"], slot["end"]
                row["cap"], row["place"] = tightest(flows, begin, end, place)
        new = _fill(flows, count, room, slack, old)
    take(soiled, place)
    key = min(new, old)
    if soiled.count["size"] > 0 and key > nth(soiled.entries, 0)["time"]:
        put(soiled, place, key, place)
        return
    if 0 < group["weight"] * abs(new - old) <= slack and group["loose"] == 0:
        new = old
    _hand_out(flows, place, count, new, everyone, now)
    if nth(soiled.places, place)["entry"] > 0:
        take(soiled, place)


@subroutine
def _hand_out(flows: Flows, place: int, count: int, new: float, everyone: bool, now: float) -> None:
    """Give the flows in `rows` what the new share of a server lets them have."""
    level, group = nth(flows.levels, place), nth(flows.groups, place)
    old = level["share"]
    set_share(flows, place, new, now)
    if new != old:
        note(flows, place)
    load = weight = highest = 0.0
    for k in range(count):
        row = nth(flows.rows, k)
        number, cap = row["slot"], row["cap"]
        slot = nth(flows.slots, number)
        bottleneck = slot["bottleneck"]
        if bottleneck == place and new <= cap:
            if new != old:
                charge_share(flows, slot, new, slot["weight"] * (new - old))
        elif bottleneck == place or bottleneck < 0:
            was = old if bottleneck == place else 0.0
            if new <= cap:
                assign(flows, number, was, place, new, now)
            else:
                assign(flows, number, was, row["place"], cap, now)
        elif new < cap:
            assign(flows, number, cap, place, new, now)
        load += slot["weight"] * min(new, cap)
        if slot["bottleneck"] == place:
            weight += slot["weight"]
        else:
            highest = max(highest, cap)
    group["weight"] = weight
    group["looks"] += 1
    if everyone:
        level["load"], level["highest"], group["looks"] = load, highest, 0


@subroutine
def _gather_all(flows: Flows, place: int) -> int:
    """List the flows over a server in `rows`, with what others of their servers let them have."""
    longest, at, count = flows.counts["longest"], nth(flows.groups, place)["crossing"], 0
    while at >= 0:
        number = at // longest
        at = nth(flows.crossings, at)["after"]
        slot, row = nth(flows.slots, number), nth(flows.rows, count)
        bottleneck = slot["bottleneck"]
        row["slot"], row["weight"], row["cap"] = number, slot["weight"], np.inf
        if bottleneck >= 0 and bottleneck != place:
            row["cap"] = nth(flows.levels, bottleneck)["share"]
        count += 1
    return count


@subroutine
def _gather_group(flows: Flows, place: int) -> int:
    """List the flows whose bottleneck a server is in `rows`."""
    number, count = nth(flows.groups, place)["first"], 0
    while number >= 0:
        slot, row = nth(flows.slots, number), nth(flows.rows, count)
        row["slot"], row["weight"], row["cap"] = number, slot["weight"], np.inf
        number = slot["after"]
        count += 1
    return count


@subroutine
def _fill(flows: Flows, count: int, room: float, slack: float, start: float) -> float:
    """Level up to which the flows in `rows` fill a server, infinite if they do not.

    What they take is concave in the level, so that Newton's method comes from below from its second
    step on, and ends as it does not get any further.
    """
    load = weight = 0.0
    for k in range(count):
        row = nth(flows.rows, k)
        load += row["weight"] * row["cap"]
        weight += row["weight"]
    if count == 0 or load <= room + slack:
        return np.inf
    level, first = start if start < np.inf else room / weight, True
    while True:
        capped = open_ended = 0.0
        for k in range(count):
            row = nth(flows.rows, k)
            if row["cap"] <= level:
                capped += row["weight"] * row["cap"]
            else:
                open_ended += row["weight"]
        new = (room - capped) / open_ended if open_ended > 0 else room / weight
        if not first and (open_ended == 0 or new <= level):
            return level
        level, first = new, False
