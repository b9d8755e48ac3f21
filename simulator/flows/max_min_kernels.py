"""Max-min fair rates of flows over servers, kept up to date as flows open and close.

Progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2): all rates rise
together, in proportion to their weights, until a server is full; the flows over it keep their rate,
the others go on rising. Only the flows that are joined with an opened or closed one by a chain of
shared servers are looked at. A change costs O(h log s) for s servers and h flow-hops in that chain.
"""

from __future__ import annotations

from hopmap.compilation import njit
from hopmap.simulator.heap_kernels import put, take
from hopmap.simulator.row_pointers import nth

from .max_min_state import Flows


@njit
def open_flow(
    flows: Flows, begin: int, end: int, item: int, size: float, weight: float, now: float
) -> int:
    """Start a flow of `size` bytes; it has no rate before the next `share`."""
    counts = flows.counts
    number = counts["free"]
    slot = nth(flows.slots, number)
    counts["free"] = slot["free"]
    counts["spare"] -= 1
    slot["begin"], slot["end"], slot["item"] = begin, end, item
    slot["remaining"], slot["rate"], slot["since"] = size, 0.0, now
    slot["weight"] = weight
    at = number * counts["longest"]
    for stop in range(begin, end):
        place = nth(flows.stops, stop)["server"]
        server, crossing = nth(flows.servers, place), nth(flows.crossings, at)
        first = server["first"]
        crossing["after"], crossing["before"] = first, -1
        if first >= 0:
            nth(flows.crossings, first)["before"] = at
        server["first"] = at
        _soil(flows, place)
        at += 1
    return int(number)


@njit
def close_flow(flows: Flows, number: int) -> None:
    """End a flow."""
    counts, slot = flows.counts, nth(flows.slots, number)
    at = number * counts["longest"]
    for stop in range(slot["begin"], slot["end"]):
        place, crossing = nth(flows.stops, stop)["server"], nth(flows.crossings, at)
        before, after = crossing["before"], crossing["after"]
        if before >= 0:
            nth(flows.crossings, before)["after"] = after
        else:
            nth(flows.servers, place)["first"] = after
        if after >= 0:
            nth(flows.crossings, after)["before"] = before
        _soil(flows, place)
        at += 1
    slot["free"] = counts["free"]
    counts["free"] = number
    counts["spare"] += 1


@njit
def _soil(flows: Flows, place: int) -> None:
    """Note that the flows over a server have changed."""
    server = nth(flows.servers, place)
    if server["mark"] >= 0:
        server["mark"] = ~server["mark"]
        nth(flows.reached, flows.counts["dirty"])["dirty"] = place
        flows.counts["dirty"] += 1


@njit
def share(flows: Flows, now: float) -> int:
    """Give all flows their fair rates; return how many changed, which `found` lists first."""
    visited, reached = _reach(flows)
    _fill(flows, visited)
    changed = 0
    for k in range(reached):
        number = nth(flows.found, k)["slot"]
        slot = nth(flows.slots, number)
        if slot["fair"] != slot["rate"]:
            sent = slot["rate"] * (now - slot["since"])
            slot["remaining"] = max(0.0, slot["remaining"] - sent)
            slot["since"], slot["rate"] = now, slot["fair"]
            nth(flows.found, changed)["slot"] = number
            changed += 1
    return changed


@njit
def _reach(flows: Flows) -> tuple[int, int]:
    """Find the servers and flows that a change may affect; return their numbers."""
    counts = flows.counts
    counts["stamp"] += 1
    stamp, visited, reached = counts["stamp"], counts["dirty"], 0
    counts["dirty"] = 0
    for k in range(visited):
        row = nth(flows.reached, k)
        row["visited"] = row["dirty"]
        server = nth(flows.servers, row["dirty"])
        server["mark"], server["users"], server["weight"] = stamp, 0, 0.0
    done = 0
    while done < visited:
        at = nth(flows.servers, nth(flows.reached, done)["visited"])["first"]
        done += 1
        while at >= 0:
            number = at // counts["longest"]
            at = nth(flows.crossings, at)["after"]
            slot = nth(flows.slots, number)
            if slot["seen"] == stamp:
                continue
            slot["seen"], slot["fair"] = stamp, -1.0
            nth(flows.found, reached)["slot"] = number
            reached += 1
            for stop in range(slot["begin"], slot["end"]):
                place = nth(flows.stops, stop)["server"]
                server = nth(flows.servers, place)
                if server["mark"] != stamp:
                    server["mark"], server["users"], server["weight"] = stamp, 0, 0.0
                    nth(flows.reached, visited)["visited"] = place
                    visited += 1
                server["users"] += 1
                server["weight"] += slot["weight"]
    return visited, reached


@njit
def _fill(flows: Flows, visited: int) -> None:
    """Progressive filling over the servers that were reached."""
    longest, shares = flows.counts["longest"], flows.shares
    for k in range(visited):
        place = nth(flows.reached, k)["visited"]
        server = nth(flows.servers, place)
        server["left"] = server["bandwidth"]
        if server["users"] > 0:
            put(shares, place, server["left"] / server["weight"], place)
    level = 0.0
    while shares.count["size"] > 0:
        lowest = nth(shares.entries, 0)
        full, known = lowest["item"], lowest["time"]
        server = nth(flows.servers, full)
        if server["users"] == 0:
            take(shares, full)
            continue
        # Shares only rise, so that the lowest known one is looked at again before it counts. The
        # level never falls, but by rounding.
        now = max(level, server["left"] / server["weight"])
        if now > known:
            put(shares, full, now, full)
            continue
        level = now
        take(shares, full)
        at = server["first"]
        while at >= 0:
            slot = nth(flows.slots, at // longest)
            at = nth(flows.crossings, at)["after"]
            if slot["fair"] < 0:
                slot["fair"] = level * slot["weight"]
                for stop in range(slot["begin"], slot["end"]):
                    server = nth(flows.servers, nth(flows.stops, stop)["server"])
                    server["users"] -= 1
                    server["weight"] -= slot["weight"]
                    server["left"] -= slot["fair"]
