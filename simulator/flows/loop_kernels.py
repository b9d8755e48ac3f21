"""The event loops of the engines of whole messages: analytic, and flow.

Tasks, matching and rendezvous follow `simpy_engine`, by the rules of `model.py`; only what
happens between handing a message to the network and its delivery differs. For the flow engine
messages are flows that share servers, max-min fair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.compilation import njit, subroutine
from hopmap.simulator import model
from hopmap.simulator.heap_kernels import put, take
from hopmap.simulator.row_pointers import nth, wide
from hopmap.simulator.task_kernels import (
    CROWDED,
    ENDED,
    MORE,
    asks_first,
    completion,
    completion_time,
    in_call,
    noticed,
    order_key,
    packet_count,
    pass_end_point,
    record_arrival,
    task_machine,
    watch_nothing,
)

from .bottleneck_kernels import end_of, first_to_end
from .max_min_kernels import allot, close_flow, open_flow
from .state import Run


@subroutine
def unloaded_time(
    servers: Any, stops: Any, begin: int, end: int, size: int, packet_size: int, cut_through: bool
) -> float:
    """Seconds from handing a message to the first server of a path to its delivery.

    A store-and-forward pipeline of packets is a grid of (packet, server), each cell waiting for
    those above and to the left of it, so that its time is its longest path: full packets as far as
    some server, held up behind the slowest one there, and from that one on the last packet.
    """
    packets = packet_count(size, packet_size)
    last = size - (packets - 1) * packet_size
    latencies, rest, slowest = 0.0, 0.0, np.inf
    for stop in range(begin, end):
        server = nth(servers, nth(stops, stop)["server"])
        latencies += server["latency"]
        rest += last / server["bandwidth"]
        slowest = min(slowest, server["bandwidth"])
    if cut_through:
        return latencies + size / slowest
    if packets == 1:
        return latencies + rest
    longest, full, slowest = 0.0, 0.0, np.inf
    for stop in range(begin, end):
        bandwidth = nth(servers, nth(stops, stop)["server"])["bandwidth"]
        full += packet_size / bandwidth
        slowest = min(slowest, bandwidth)
        longest = max(longest, full + (packets - 2) * packet_size / slowest + rest)
        rest -= last / bandwidth
    return latencies + longest


@subroutine
def charge(
    servers: Any, stops: Any, begin: int, end: int, size: int, cut_through: bool, data: bool
) -> float:
    """Count a message at the servers of a path; return the sum of their latencies.

    Alone, cut-through holds a fast server behind a slow one for as long as the slow one.
    """
    latencies, slowest = 0.0, np.inf
    for stop in range(begin, end):
        server = nth(servers, nth(stops, stop)["server"])
        latencies += server["latency"]
        slowest = min(slowest, server["bandwidth"])
        server["busy"] += size / (slowest if cut_through else server["bandwidth"])
        if data:
            server["messages"] += 1
            server["bytes"] += size
    return latencies


@njit
def advance(run: Run, budget: int) -> int:
    """Handle up to `budget` events of messages that never share a server; say why it stopped."""
    return _advance(run, budget)  # see DECISIONS, few kinds of each kernel


@subroutine
def _advance(run: Run, budget: int) -> int:
    while run.heap.count["size"] > 0:
        if budget == 0:
            return MORE
        budget -= 1
        kind, item, now = take_event(run)
        handle(run, kind, item, now)
    return ENDED


@subroutine(forceinline=True)
def take_event(run: Run) -> tuple[int, int, float]:
    """Take the next event out of the heap; return its kind, its item and its time."""
    loop, first = run.loop, nth(run.heap.entries, 0)
    kind = first["key"] >> (loop["number_bits"] + loop["packet_bits"])
    item, now = first["item"], first["time"]
    take(run.heap, item)
    loop["now"] = now
    return kind, item, now


@subroutine
def handle(run: Run, kind: int, item: int, now: float) -> None:
    """Handle an event of a task or a message."""
    tasks = run.loop["tasks"]
    if kind == model.RESUME:
        go_on(run, item, now)
    elif kind == model.DELIVER:
        deliver(run, item - tasks, now)
    elif kind == model.LEAVE:
        _send_data(run, item - tasks, now)
    elif kind == model.ANSWER:
        _answer(run, item - tasks, now)
    else:
        complete(run, nth(run.messages, item - tasks - run.loop["messages"])["send"], 0, now)


@subroutine
def _schedule(run: Run, kind: int, number: int, at: float) -> None:
    """Schedule an event of a message."""
    item = run.loop["tasks"] + number
    if kind == model.SENT:
        item += run.loop["messages"]
    loop = run.loop
    key = order_key(kind, number, 0, loop["number_bits"], loop["packet_bits"])
    put(run.heap, item, at, key)


# Messages


@subroutine
def _post_send(run: Run, _task: Any, row: Any, _at: int, now: float) -> None:
    number = wide(row["message"])  # as in the loop, or all is compiled for both widths
    if run.loop["record_messages"]:
        nth(run.message_times, number)["sent"] = now
    row["done"] = _completion_of(run, row) == model.POSTED
    if asks_first(row["size"], row["mode"], run.loop["eager_limit"]):
        _transmit(run, number, model.REQUEST, now)
    else:
        _depart(run, number, now)


@subroutine
def _post_receive(run: Run, row: Any, _at: int, now: float) -> float:
    number = wide(row["message"])
    if number < 0:
        return 0.0  # no rank sends it
    message = nth(run.messages, number)
    message["posted"] = True
    copying = 0.0
    if message["there"]:
        if message["cargo"] == model.DATA and row["mode"] != model.HARDWARE:
            copying = message["size"] * run.loop["copy_per_byte"]
        _answer(run, number, now)
    return copying


@subroutine
def _attend(run: Run, number: int, rank: int, now: float) -> None:
    """Let a rank answer what has arrived: now, or if it computes, in its next call."""
    at = in_call(now, nth(run.ranks, rank)["until"])
    if at > now:
        _schedule(run, model.ANSWER, number, at)
    else:
        _answer(run, number, now)


@subroutine
def _answer(run: Run, number: int, now: float) -> None:
    """Grant a request, send the data after a grant, acknowledge data that ask for it."""
    message = nth(run.messages, number)
    if message["cargo"] == model.REQUEST:
        _transmit(run, number, model.GRANT, now)
    elif message["cargo"] == model.GRANT:
        _depart(run, number, now)
    elif _completion(run, message) == model.ACKNOWLEDGED:
        _transmit(run, number, model.ACKNOWLEDGEMENT, now)


@subroutine
def _completion(run: Run, message: Any) -> int:
    """Say what completes the send of a message, see `model.completion`."""
    return _completion_of(run, nth(run.rows, message["send"]))


@subroutine
def _completion_of(run: Run, row: Any) -> int:
    limit, later = run.loop["eager_limit"], run.loop["eager_completion"]
    return int(completion(row["size"], row["mode"], limit, later))


@subroutine
def _complete_send(run: Run, number: int, left: float) -> None:
    """Complete the send of a message whose last byte will have left the first server then."""
    limit, later = run.loop["eager_limit"], run.loop["eager_completion"]
    row = nth(run.rows, nth(run.messages, number)["send"])
    at = completion_time(left, row["size"], row["mode"], limit, later)
    _schedule(run, model.SENT, number, at)


@subroutine
def _depart(run: Run, number: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    message = nth(run.messages, number)
    at = pass_end_point(run, message["rank"], message["size"], now)
    if at > now:
        _schedule(run, model.LEAVE, number, at)
    else:
        _send_data(run, number, now)


@subroutine
def _send_data(run: Run, number: int, now: float) -> None:
    """Hand a message's data to the network; a rendezvous alone has left its first server then."""
    _transmit(run, number, model.DATA, now)
    if run.loop["record_messages"]:
        nth(run.message_times, number)["departed"] = now
    message = nth(run.messages, number)
    if not run.loop["flow"] and _completion(run, message) == model.LEFT:
        stop = nth(run.flows.stops, nth(run.paths, message["path"])["begin"])
        bandwidth = nth(run.flows.servers, stop["server"])["bandwidth"]
        _complete_send(run, number, now + message["size"] / bandwidth)


@subroutine
def deliver(run: Run, number: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    message = nth(run.messages, number)
    cargo = message["cargo"]
    record_arrival(run, number, cargo, now)
    if cargo == model.DATA:
        run.loop["arrived"] += 1
        if message["receive"] >= 0:
            complete(run, message["receive"], 0, now)
        if run.loop["flow"] and _completion(run, message) == model.LEFT:
            _complete_send(run, number, now)
    if cargo == model.ACKNOWLEDGEMENT:
        complete(run, message["send"], 0, now)
    elif cargo == model.GRANT:
        _attend(run, number, wide(message["rank"]), now)
    elif not message["posted"]:
        message["there"] = True
    elif cargo == model.REQUEST or _completion(run, message) == model.ACKNOWLEDGED:
        _attend(run, number, wide(nth(run.rows, message["send"])["target"]), now)


# The network


@subroutine
def _transmit(run: Run, number: int, cargo: int, now: float) -> None:
    """Hand a message, or control message, to the network."""
    loop, message = run.loop, nth(run.messages, number)
    servers, stops = run.flows.servers, run.flows.stops
    message["cargo"] = cargo
    data = cargo == model.DATA
    loop["controls"] += not data
    size = message["size"] if data else loop["control_bytes"]
    begin, end, _ = path_of(run, message)
    loop["events"] += end - begin
    cut_through = loop["cut_through"]
    latencies = charge(servers, stops, begin, end, size, cut_through, data)
    mode = nth(run.rows, message["send"])["mode"]
    now = noticed(now, cargo, mode, loop["overhead_control"], loop["overhead_put_latency"])
    if not loop["flow"]:
        after = unloaded_time(servers, stops, begin, end, size, loop["packet_size"], cut_through)
        _schedule(run, model.DELIVER, number, now + after)
    elif size > 0:
        _schedule(run, model.ARRIVE, number, now + latencies)
    else:
        _schedule(run, model.DELIVER, number, now + latencies)


@subroutine
def path_of(run: Run, message: Any) -> tuple[int, int, float]:
    """Return the first stop of what of a message is under way, behind the last, and its weight."""
    forth = message["cargo"] in (model.DATA, model.REQUEST)
    number = message["path"] if forth else message["back"]
    path = nth(run.paths, number)
    return path["begin"], nth(run.paths, number + 1)["begin"], path["weight"]


@subroutine
def _never(_run: Run, _number: int) -> bool:
    """Slots are taken when a flow opens, not by tasks."""
    return False


go_on, complete = task_machine(put, _post_send, _post_receive, _never, watch_nothing)


# Times within this factor are one instant, for which rates are shared once. Sums of the same delays
# in another order differ by as much.
SAME_INSTANT = 1 + 1e-13


@njit
def advance_flows(run: Run, budget: int) -> int:
    """Handle up to `budget` events of messages that are flows; say why it stopped."""
    return _advance_flows(run, budget)  # see DECISIONS, few kinds of each kernel


@subroutine
def _advance_flows(run: Run, budget: int) -> int:
    loop, heap, flows = run.loop, run.heap, run.flows
    first = nth(heap.entries, 0)
    groups_from = loop["tasks"] + 2 * loop["messages"]
    while True:
        # Rates are shared once an instant, when all that happens then has happened.
        if flows.counts["noted"] + flows.soiled.count["size"] > 0 and (
            heap.count["size"] == 0 or first["time"] > loop["now"] * SAME_INSTANT
        ):
            _reallot(run)
        if heap.count["size"] == 0:
            return ENDED
        if flows.counts["spare"] == 0:
            return CROWDED
        if budget == 0:
            return MORE
        budget -= 1
        kind, item, now = take_event(run)
        if kind == model.ARRIVE:
            _enter(run, item - loop["tasks"], now)
        elif kind == model.DELIVER and item >= groups_from:
            _end(run, nth(flows.groups, item - groups_from)["next"], now)
        else:
            handle(run, kind, item, now)


@subroutine
def _enter(run: Run, number: int, now: float) -> None:
    """Begin a flow; its latency is over."""
    message = nth(run.messages, number)
    size = message["size"] if message["cargo"] == model.DATA else run.loop["control_bytes"]
    begin, end, weight = path_of(run, message)
    open_flow(run.flows, begin, end, number, float(size), weight, now)


@subroutine
def _end(run: Run, slot: int, now: float) -> None:
    """End a flow: its message is there."""
    number = wide(nth(run.flows.slots, slot)["item"])
    place = wide(nth(run.flows.slots, slot)["bottleneck"])
    close_flow(run.flows, slot, now)
    _schedule_end(run, place)
    deliver(run, number, now)


@subroutine
def _reallot(run: Run) -> None:
    """Share the servers again, and move the ends of the flows whose rate that changed."""
    flows = run.flows
    for k in range(allot(flows, run.loop["now"])):
        _schedule_end(run, nth(flows.noted, k)["place"])


@subroutine
def _schedule_end(run: Run, place: int) -> None:
    """Make the first end among the flows with one bottleneck due."""
    loop, flows = run.loop, run.flows
    item = loop["tasks"] + 2 * loop["messages"] + place
    first = first_to_end(flows, place)
    if first >= 0:
        nth(flows.groups, place)["next"] = first
        number = wide(nth(flows.slots, first)["item"])
        key = order_key(model.DELIVER, number, 0, loop["number_bits"], loop["packet_bits"])
        put(run.heap, item, end_of(flows, first), key)
    elif nth(run.heap.places, item)["entry"] > 0:
        take(run.heap, item)
