"""The compiled event loop, routes among finite buffers; see `reference/routing.py`.

Where any minimal way will do, buffers ask for all links of their place in one list, and a link that
grants looks for those whose first packet it is on a way of.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.routes import ADAPTIVE, FIXED, PAR, SPRAYING
from hopmap.simulator.row_pointers import nth, wide

from .credit_kernels import settle, watch_out
from .routing_kernels import INNER, any_minimal, goal, minimal, only_stop, port_towards, room_in
from .state import State


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


@subroutine(forceinline=True)
def preferred(run: State, packet: Any, now: float) -> int:
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


@subroutine(forceinline=True)
def _open(run: State, link: int, first: int, count: int, now: float) -> bool:
    """Whether a link is idle and some virtual channels behind it have room."""
    settle(run, link, now)
    return nth(run.limits.links, link)["serves"] < 0 and most_room(run, link, first, count) >= 0


@subroutine(forceinline=True)
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
