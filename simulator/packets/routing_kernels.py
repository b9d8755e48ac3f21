"""The compiled event loop, routes that are chosen on the way; see `reference/routing.py`.

Runs with fixed routes are told by the type of their packets when code is compiled, and have none of
this in them. Where a packet is, is the number of the place, or OUTSIDE before the link from a node
that forwards nothing, or ARRIVED behind the last link of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from hopmap.compilation import NO_WRAPPERS, subroutine
from hopmap.simulator import route_choices
from hopmap.simulator.routes import ADAPTIVE, FIXED, PAR, SPRAYING, UGAL_G, VALIANT
from hopmap.simulator.row_pointers import fields_of, nth
from hopmap.simulator.task_kernels import hashed

from .credit_kernels import settle
from .part_state import ARRIVED, OUTSIDE
from .state import State

INNER = -(2**31)  # a stop that is to be chosen

shorter = subroutine(route_choices.shorter)
chosen = subroutine(route_choices.chosen)
choices = subroutine(route_choices.choices)
intermediate = subroutine(route_choices.intermediate)
goes_minimally = subroutine(route_choices.goes_minimally)
decided = subroutine(route_choices.decided)


def set_out(run: State, packet: Any, path: int) -> None:
    """Set a packet behind the first server of a path."""
    if "via" in run.packets.dtype.names:
        _set_out(run, packet, path)
    else:
        packet["at"] = path + 1


def next_stop(run: State, packet: Any, key: int, now: float) -> int:
    """Server that a packet takes next, ~server if it is the last; it counts as taken."""
    if "via" in run.packets.dtype.names:
        return _next_stop(run, packet, key, now)
    packet["at"] += 1
    return int(nth(run.paths, packet["at"] - 1)["server"])


@overload(set_out, jit_options=NO_WRAPPERS, strict=False)
def _compiled_set_out(run: Any, packet: Any, path: Any) -> Any:  # noqa: ARG001 (types)
    if "via" in packet.fields:
        return _set_out

    def follow(run: Any, packet: Any, path: Any) -> None:  # noqa: ARG001
        packet["at"] = path + 1

    return follow


@overload(next_stop, jit_options=NO_WRAPPERS, strict=False)
def _compiled_next_stop(run: Any, packet: Any, key: Any, now: Any) -> Any:  # noqa: ARG001 (types)
    if "via" in packet.fields:
        return _next_stop

    def follow(run: Any, packet: Any, key: Any, now: Any) -> int:  # noqa: ARG001
        at = packet["at"]
        packet["at"] = at + 1
        return int(nth(run.paths, at)["server"])

    return follow


def _set_out(run: State, packet: Any, path: int) -> None:
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
    stop = only_stop(run, packet)
    if stop == INNER:
        if run.loop["routing"] == ADAPTIVE:
            stop = _least(run, packet["at"], packet["target"], now)["link"]
        elif run.loop["routing"] == SPRAYING:
            stop = any_minimal(run, packet["at"], packet["target"], key)["link"]
        else:
            stop = port_towards(run, packet["at"], goal(run, packet, key, now))["link"]
    if stop >= 0:
        packet["at"] = nth(run.ways.links, stop)["end"]
    return int(stop)


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


def queue(run: State, link: int, now: float) -> float:
    """Seconds until a link is idle; places behind it that are taken, if buffers are finite."""
    known = _places if "buffer" in run.packets.dtype.names else _seconds
    return float(known(run, link, now))


@overload(queue, jit_options=NO_WRAPPERS, strict=False)
def _compiled_queue(run: Any, link: Any, now: Any) -> Any:  # noqa: ARG001 (types)
    if "buffer" in fields_of(run, "packets"):
        return _places
    return _seconds


def _seconds(run: State, link: int, now: float) -> float:
    return float(max(0.0, nth(run.servers, link)["free"] - now))


def _places(run: State, link: int, now: float) -> float:
    settle(run, link, now)
    channels = run.loop["channels"]
    return float(run.loop["capacity"] - room_in(run, link, 0, channels))


@subroutine
def room_in(run: State, link: int, first: int, count: int) -> int:
    """Places that some virtual channels behind a link have, as it knows."""
    begin, room = link * run.loop["channels"] + first, 0
    for number in range(begin, begin + count):
        room += nth(run.limits.buffers, number)["credits"]
    return room


@subroutine
def _least(run: State, at: int, target: int, now: float) -> Any:
    """Minimal port with the shortest queue."""
    best, least = nth(run.ways.ports, 0), np.inf
    if nth(run.ways.next, nth(run.ways.nodes, target)["row"] + at)["port"] >= 0:
        best = port_towards(run, at, target)
        least = queue(run, best["link"], now)
    for number in range(nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]):
        port = nth(run.ways.ports, number)
        if minimal(run, at, target, port["end"]):
            wait = queue(run, port["link"], now)
            if shorter(wait, least):
                best, least = port, wait
    return best


@subroutine
def any_minimal(run: State, at: int, target: int, key: int) -> Any:
    """Return a minimal port at random."""
    begin, end = nth(run.ways.places, at)["ports"], nth(run.ways.places, at + 1)["ports"]
    ways = 0
    for number in range(begin, end):
        ways += minimal(run, at, target, nth(run.ways.ports, number)["end"])
    skip, number = chosen(hashed(_draw(run, key), at), ways), begin - 1
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
    left = choices(run.loop["drawn"], low["size"], high["size"])
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
