"""The compiled event loop, routes that are chosen on the way; see `reference/routing.py`.

Runs with fixed routes have none of this in them, see `by_columns`. Where a packet is, is the number
of the place, or OUTSIDE before the link from a node that forwards nothing, or ARRIVED behind the
last link of all.

Among finite buffers, where any minimal way will do, buffers ask for all links of their place in one
list, and a link that grants looks for those whose first packet it is on a way of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import subroutine
from hopmap.simulator import routes
from hopmap.simulator.routes import ADAPTIVE, FIXED, PAR, SPRAYING, UGAL_G, VALIANT
from hopmap.simulator.row_pointers import by_columns, nth, wide
from hopmap.simulator.task_kernels import hashed

from .part_state import ARRIVED, OUTSIDE
from .slot_kernels import settle, watch_out
from .state import State

INNER = -(2**31)  # a stop that is to be chosen

intermediate = subroutine(routes.intermediate)
goes_minimally = subroutine(routes.goes_minimally)
decided = subroutine(routes.is_decided)


def _set_out(run: State, packet: Any, path: int) -> None:
    """Set a packet behind the first server of a path."""
    if run.loop["routing"] == FIXED:
        packet["at"] = path + 1
        return
    links, nodes = run.loop["links"], run.loop["nodes"]
    source = nth(run.ways.nodes, nth(run.paths, path)["server"] - links)
    packet["at"] = OUTSIDE if source["up"] >= 0 else source["home"]
    packet["target"] = ~nth(run.paths, path + 1)["server"] - links - nodes
    packet["via"] = -1
    packet["decided"] = run.loop["routing"] <= SPRAYING


def _next_stop(run: State, packet: Any, key: int, now: float) -> int:
    """Server that a packet takes next, ~server if it is the last; it counts as taken."""
    stop = only_stop(run, packet)
    if stop == INNER:
        if run.loop["routing"] == ADAPTIVE:
            stop = _least_loaded(run, packet["at"], packet["target"], now)["link"]
        elif run.loop["routing"] == SPRAYING:
            stop = any_minimal(run, packet["at"], packet["target"], key)["link"]
        else:
            stop = port_towards(run, packet["at"], goal(run, packet, key, now))["link"]
    if stop >= 0:
        packet["at"] = nth(run.ways.links, stop)["end"]
    return int(stop)


def _set_out_on_path(_run: State, packet: Any, path: int) -> None:
    packet["at"] = path + 1


def _next_on_path(run: State, packet: Any, _key: int, _now: float) -> int:
    at = packet["at"]
    packet["at"] = at + 1
    return int(nth(run.paths, at)["server"])


set_out = by_columns("via", _set_out, _set_out_on_path)
next_stop = by_columns("via", _next_stop, _next_on_path)


@subroutine
def only_stop(run: State, packet: Any) -> int:
    """Server that a packet takes next where it has no choice, or INNER; ~server of the last."""
    at, target = packet["at"], nth(run.ways.nodes, packet["target"])
    if at == OUTSIDE:
        first = nth(run.paths, nth(run.messages, packet["message"])["path"])["server"]
        return int(nth(run.ways.nodes, first - run.loop["links"])["up"])
    if at == target["home"] and target["down"] >= 0:
        return int(target["down"])
    if at == ARRIVED or at == target["home"]:
        return ~int(run.loop["links"] + run.loop["nodes"] + packet["target"])
    return INNER


@subroutine
def minimal(run: State, at: int, target: int, end: int) -> bool:
    """Whether one link less is left from where a port of a place ends."""
    rows = nth(run.ways.nodes, target)["hops"]
    left = nth(run.ways.left, rows + at)["hops"]
    return bool(nth(run.ways.left, rows + end)["hops"] + 1 == left)


@subroutine
def port_towards(run: State, at: int, goal: int) -> Any:
    """Port of the topology's own route to a node."""
    port = nth(run.ways.next, nth(run.ways.nodes, goal)["row"] + at)["port"]
    return nth(run.ways.ports, nth(run.ways.places, at)["ports"] + port)


def _seconds(run: State, link: int, now: float) -> float:
    """Seconds until a link is idle."""
    return float(max(0.0, nth(run.servers, link)["free"] - now))


def _places(run: State, link: int, now: float) -> float:
    """Places behind a link that are taken, as it knows."""
    settle(run, link, now)
    channels = run.loop["channels"]
    return float(run.loop["capacity"] - room_in(run, link, 0, channels))


queue = by_columns("buffer", _places, _seconds)


@subroutine
def room_in(run: State, link: int, first: int, count: int) -> int:
    """Places that some virtual channels behind a link have, as it knows."""
    begin, room = link * run.loop["channels"] + first, 0
    for number in range(begin, begin + count):
        room += nth(run.limits.buffers, number)["credits"]
    return room


@subroutine
def _least_loaded(run: State, at: int, target: int, now: float) -> Any:
    """Minimal port with the shortest queue."""
    best, least = nth(run.ways.ports, 0), np.inf
    if nth(run.ways.next, nth(run.ways.nodes, target)["row"] + at)["port"] >= 0:
        best = port_towards(run, at, target)
        least = queue(run, best["link"], now)
    for number in range(nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]):
        port = nth(run.ways.ports, number)
        if minimal(run, at, target, port["end"]):
            wait = queue(run, port["link"], now)
            if wait < least:
                best, least = port, wait
    return best


@subroutine
def any_minimal(run: State, at: int, target: int, key: int) -> Any:
    """Return a minimal port at random."""
    begin, end = nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]
    ways = 0
    for number in range(begin, end):
        ways += minimal(run, at, target, nth(run.ways.ports, number)["end"])
    skip, number = hashed(_draw(run, key), at) % ways, begin - 1
    while skip >= 0:
        number += 1
        skip -= minimal(run, at, target, nth(run.ways.ports, number)["end"])
    return nth(run.ways.ports, number)


@subroutine
def _draw(run: State, key: int) -> int:
    """Draw a random number for a packet."""
    bits = run.loop["packet_bits"]
    message = (key >> bits) & ((1 << run.loop["number_bits"]) - 1)
    return int(hashed(hashed(run.loop["routing_seed"], message), key & ((1 << bits) - 1)))


@subroutine
def goal(run: State, packet: Any, key: int, now: float) -> int:
    """Node that a packet goes towards: its target, or that of its detour."""
    if not packet["decided"]:
        _decide(run, packet, key, now)
    if packet["via"] >= 0:
        via = nth(run.ways.nodes, packet["via"])["home"]
        if _region(run, via) == _region(run, packet["at"]):
            packet["via"] = -1
    return int(packet["via"] if packet["via"] >= 0 else packet["target"])


@subroutine
def _region(run: State, place: int) -> int:
    return int(nth(run.ways.places, place)["region"])


@subroutine
def _decide(run: State, packet: Any, key: int, now: float) -> None:
    """Choose between the minimal way and a detour, and with it the node to go to first."""
    packet["decided"] = True
    at, target, routing = packet["at"], packet["target"], run.loop["routing"]
    here, there = _region(run, at), _region(run, nth(run.ways.nodes, target)["home"])
    low, high = nth(run.ways.regions, min(here, there)), nth(run.ways.regions, max(here, there))
    left = run.loop["drawn"] - low["size"] - high["size"]
    if (run.loop["groups"] and here == there) or left < 1:
        return
    number = intermediate(
        _draw(run, key), left, low["first"], low["size"], high["first"], high["size"]
    )
    via = nth(run.ways.drawn, number)["node"]
    if routing != VALIANT:
        q_m, h_m, _, _ = _leg(run, at, target, True, 0.0, 0, now)
        q_nm, h_nm, place, over = _leg(run, at, via, False, 0.0, 0, now)
        if not over:
            q_nm, h_nm, _, _ = _leg(run, place, target, True, q_nm, h_nm, now)
        if routing == UGAL_G:
            h_m = h_nm = 1
        minimally = goes_minimally(q_m, h_m, q_nm, h_nm)
        packet["decided"] = decided(minimally, routing == PAR)
        if minimally:
            return
    packet["via"] = via


def _decide_ahead(run: State, packet: Any, key: int, now: float) -> None:
    """Decide, if not yet done, before a packet leaves for its first router."""
    if not run.loop["ahead"] or packet["decided"] or packet["at"] < 0:
        return
    if packet["at"] != nth(run.ways.nodes, packet["target"])["home"]:
        _decide(run, packet, key, now)


decide_ahead = by_columns("via", _decide_ahead, lambda _run, _packet, _key, _now: None)


@subroutine
def _leg(
    run: State, at: int, goal: int, last: bool, q: float, count: int, now: float
) -> tuple[float, int, int, bool]:
    """Add up queue and hops of a way to a node, or its region; say where it ends.

    The last is whether it is over before: with the queues of all links known, that at the first
    global link says all.
    """
    everywhere, groups = run.loop["routing"] == UGAL_G, run.loop["groups"]
    home = nth(run.ways.nodes, goal)["home"]
    while at != home and (last or _region(run, at) != _region(run, home)):
        port = port_towards(run, at, goal)
        count += 1
        if everywhere and groups and port["crosses"]:
            return queue(run, port["link"], now), count, at, True
        if (everywhere and not groups) or (not everywhere and count == 1):
            q += queue(run, port["link"], now)
        at = port["end"]
    return q, count, at, False


@subroutine
def request_output(run: State, packet: Any, now: float) -> int:
    """Let a packet that comes to the head of its buffer ask; return one of the links."""
    loop, key = run.loop, packet["key"]
    stop = only_stop(run, packet)
    packet["output"], packet["own"], packet["any"] = stop, -1, False
    packet["first"], packet["count"] = 0, loop["channels"]
    if stop != INNER:
        return stop if stop >= 0 else ~stop
    at, target = packet["at"], packet["target"]
    if loop["routing"] > SPRAYING:
        packet["output"] = port_towards(run, at, goal(run, packet, key, now))["link"]
        packet["first"] = _class(run, packet) * loop["route_lanes"]
        packet["count"] = loop["route_lanes"]
        return int(packet["output"])
    packet["first"], packet["count"] = loop["escapes"], loop["channels"] - loop["escapes"]
    packet["own"] = port_towards(run, at, target)["link"]
    if loop["routing"] == ADAPTIVE:
        packet["any"] = True
    else:
        packet["output"] = any_minimal(run, at, target, key)["link"]
    return int(packet["own"])


@subroutine
def _kind(run: State, at: int, node: int) -> int:
    return int(nth(run.ways.classes, nth(run.ways.nodes, node)["row"] + at)["kind"])


@subroutine
def _class(run: State, packet: Any) -> int:
    """Class of virtual channels of a packet on the link that it asks for."""
    loop, at = run.loop, packet["at"]
    if packet["via"] >= 0:
        return int(loop["detour"] + _kind(run, at, packet["via"]))
    undecided = loop["routing"] == PAR and not packet["decided"]
    if undecided and not port_towards(run, at, packet["target"])["crosses"]:
        return 0
    return int(loop["direct"] + _kind(run, at, packet["target"]))


@subroutine
def list_of(run: State, place: int) -> int:
    """Link in whose list buffers ask for another."""
    if run.loop["routing"] == FIXED or place >= run.loop["links"]:
        return place
    return int(nth(run.ways.links, place)["list"])


@subroutine
def channel_for(run: State, packet: Any, place: int) -> int:
    """Buffer behind a link that a packet would take, or -1."""
    loop = run.loop
    if place == packet["output"] or (
        packet["any"]
        and minimal(run, packet["at"], packet["target"], nth(run.ways.links, place)["end"])
    ):
        best = most_room(run, place, wide(packet["first"]), wide(packet["count"]))
        if best >= 0:
            return best
    if place == packet["own"] and loop["escapes"] > 0:
        kind = wide(_kind(run, packet["at"], packet["target"]))
        return most_room(run, place, kind, 1)
    return -1


@subroutine
def most_room(run: State, place: int, first: int, count: int) -> int:
    """Of some buffers behind a link the one with most room, the first among equals; or -1."""
    best = place * run.loop["channels"] + first
    for other in range(best + 1, best + count):
        if nth(run.limits.buffers, other)["credits"] > nth(run.limits.buffers, best)["credits"]:
            best = other
    return int(best) if nth(run.limits.buffers, best)["credits"] > 0 else -1


@subroutine
def preferred_link(run: State, packet: Any, now: float) -> int:
    """Idle link with room that a packet asks for and would rather have, or -1."""
    own, output = wide(packet["own"]), wide(packet["output"])
    first, count = wide(packet["first"]), wide(packet["count"])
    best, most = -1, 0
    if not packet["any"]:
        if _open(run, output, first, count, now):
            best = output
    else:
        if _open(run, own, first, count, now):
            best, most = own, room_in(run, own, first, count)
        at = packet["at"]
        for number in range(
            nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]
        ):
            port = nth(run.ways.ports, number)
            if minimal(run, at, packet["target"], port["end"]):
                link = wide(port["link"])
                able = _open(run, link, first, count, now)
                room = room_in(run, link, first, count)
                if room > most and able:
                    best, most = link, room
    if best >= 0 or run.loop["escapes"] == 0:
        return int(best)
    escape = wide(_kind(run, packet["at"], packet["target"]))
    return int(own) if _open(run, own, escape, 1, now) else -1


@subroutine
def _open(run: State, link: int, first: int, count: int, now: float) -> bool:
    """Whether a link is idle and some virtual channels behind it have room."""
    settle(run, link, now)
    return nth(run.limits.links, link)["serves"] < 0 and most_room(run, link, first, count) >= 0


@subroutine
def watch_ways(run: State, packet: Any, now: float) -> None:
    """Let there be an event when a link that a packet asks for may take it."""
    at = packet["at"]
    settle(run, wide(packet["own"]), now)
    watch_out(run, wide(packet["own"]))
    if not packet["any"]:
        watch_out(run, wide(packet["output"]))
        return
    for number in range(nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]):
        port = nth(run.ways.ports, number)
        if minimal(run, at, packet["target"], port["end"]):
            watch_out(run, wide(port["link"]))
