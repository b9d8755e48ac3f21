"""The compiled event loop, packets: how messages and control messages cross the network.

At a message's first server all its packets are served at once, but only one of them has an event:
the next one's arrival at the second server is no earlier, and later in the key, so that it is
scheduled when the one before it arrives.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit
from hopmap.simulator import model
from hopmap.simulator.heap_kernels import push
from hopmap.simulator.model import ARRIVE, DATA, DELIVER, GRANT
from hopmap.simulator.row_pointers import nth, recording
from hopmap.simulator.strand_kernels import order_key

from .link_use_kernels import use
from .state import State

packet_count = njit(cache=False)(model.packet_count)
packet_bytes = njit(cache=False)(model.packet_bytes)
service_start = njit(cache=False)(model.service_start)
service_end = njit(cache=False)(model.service_end)
head_arrival = njit(cache=False)(model.head_arrival)
tail_arrival = njit(cache=False)(model.tail_arrival)


@njit(cache=False)
def take(run: State) -> int:
    """Take a free slot; `loop_kernels.RESERVE` sees to it that there is one."""
    slot = run.loop["free"]
    run.loop["free"] = nth(run.packets, slot)["next"]
    run.loop["spare"] -= 1
    return int(slot)


@njit(cache=False)
def free(run: State, slot: int) -> None:
    """Give a slot back."""
    nth(run.packets, slot)["next"] = run.loop["free"]
    run.loop["free"] = slot
    run.loop["spare"] += 1


@njit(cache=False)
def key_of(run: State, kind: int, number: int, packet: int) -> int:
    """Rank of an event, see `model.order_key`."""
    return int(order_key(kind, number, packet, run.loop["number_bits"], run.loop["packet_bits"]))


@njit(cache=False)
def server_at(stop: int) -> int:
    """Server at a stop of a path, be it the last or not."""
    return stop if stop >= 0 else ~stop


@njit(cache=False)
def _serve(
    run: State, place: int, now: float, size: int, tail: float, data: bool, last: bool
) -> tuple[float, float]:
    """Serve a packet: when it arrives it is known when the server will be done with it."""
    server = nth(run.servers, place)
    start = service_start(now, server["free"])
    end = service_end(start, size, server["bandwidth"], tail)
    server["free"] = end
    server["busy"] += end - start
    if start > now:
        server["waited"] += start - now
        server["longest_wait"] = max(server["longest_wait"], start - now)
    if data:
        server["bytes"] += size
        if last:
            server["messages"] += 1
    if recording(run.operation_times) and place < run.loop["tracked"]:
        use(run, place, start, end)
    return start, end


@njit(cache=False)
def _watch(
    run: State,
    number: int,
    cargo: int,
    packet: int,
    server: int,
    size: int,
    arrival: float,
    start: float,
    end: float,
) -> None:
    """Write down a hop, if its message is watched, and whose packet was served before."""
    latest = nth(run.latest, server)
    if nth(run.watched, number)["yes"]:
        hop = nth(run.hops, run.loop["hops"])
        run.loop["hops"] += 1
        hop["message"] = number
        hop["cargo"] = cargo
        hop["packet"] = packet
        hop["server"] = server
        hop["size"] = size
        hop["arrival"] = arrival
        hop["start"] = start
        hop["end"] = end
        hop["behind"] = latest["message"]
    latest["message"] = number


@njit(cache=False)
def transmit(run: State, slot: int, cargo: int, now: float) -> None:
    """Hand a message to its first server, where its packets queue at once."""
    loop, message = run.loop, nth(run.messages, slot)
    row = nth(run.rows, message["row"])
    size, path = row["size"], row["path"]
    if cargo != DATA:
        loop["controls"] += 1
        size = loop["control_bytes"]
        if cargo == GRANT:
            path = row["back"]
    stop = nth(run.paths, path)["server"]
    place = server_at(stop)
    count = packet_count(size, loop["packet_size"])
    loop["served"] += count
    first_start = first_end = end = 0.0
    for packet in range(count):
        part = packet_bytes(size, loop["packet_size"], packet)
        start, end = _serve(run, place, now, part, now, cargo == DATA, packet == count - 1)
        if packet == 0:
            first_start, first_end = start, end
        if recording(run.operation_times) and loop["watch"]:
            _watch(run, message["number"], cargo, packet, place, part, now, start, end)
    nth(run.packets, slot)["cargo"] = cargo
    if stop < 0:
        _arrived(run, slot, tail_arrival(end, nth(run.servers, place)["latency"]))
    else:
        message["path"] = path
        message["size"] = size
        message["packet"] = 0
        message["packets"] = count
        _release(run, slot, first_start, first_end)


@njit(cache=False)
def _release(run: State, slot: int, start: float, end: float) -> None:
    """Let a message's next packet go on from the first server, which serves it in that time."""
    message, taken = nth(run.messages, slot), slot
    number, path = message["packet"], message["path"]
    leads = number < message["packets"] - 1
    if leads:
        taken = take(run)
        nth(run.packets, taken)["cargo"] = nth(run.packets, slot)["cargo"]
        message["packet"] = number + 1
        message["end"] = end
    packet = nth(run.packets, taken)
    packet["message"] = slot
    packet["leads"] = leads
    packet["at"] = path + 1
    packet["size"] = packet_bytes(message["size"], run.loop["packet_size"], number)
    key = key_of(run, ARRIVE, message["number"], number)
    server = nth(run.servers, nth(run.paths, path)["server"])
    _forward(run, taken, packet, key, server["latency"], start, end)


@njit(cache=False)
def _forward(
    run: State, slot: int, packet: Any, key: int, latency: float, start: float, end: float
) -> None:
    """Schedule a packet's arrival behind a server that serves it from start to end."""
    packet["tail"] = tail_arrival(end, latency)
    head = head_arrival(start, end, latency, run.loop["cut_through"])
    push(run.heap, slot, head, key)


@njit(cache=False)
def _arrived(run: State, slot: int, at: float) -> None:
    """Schedule the delivery of a message: its last packet has been served."""
    number = nth(run.messages, slot)["number"]
    push(run.heap, slot, at, key_of(run, DELIVER, number, 0))


@njit(cache=False)
def arrive(run: State, slot: int, key: int, now: float) -> None:
    """Serve a packet at the next server of its path."""
    packet = nth(run.packets, slot)
    whole, leads = packet["message"], packet["leads"]
    stop = nth(run.paths, packet["at"])["server"]
    place = server_at(stop)
    server = nth(run.servers, place)
    last = whole == slot
    run.loop["served"] += 1
    data = packet["cargo"] == DATA
    start, end = _serve(run, place, now, packet["size"], packet["tail"], data, last)
    if recording(run.operation_times) and run.loop["watch"]:
        number, size = nth(run.messages, whole)["number"], packet["size"]
        part = key & ((1 << run.loop["packet_bits"]) - 1)
        _watch(run, number, packet["cargo"], part, place, size, now, start, end)
    if stop >= 0:
        packet["at"] += 1
        packet["leads"] = False
        _forward(run, slot, packet, key, server["latency"], start, end)
    elif last:
        _arrived(run, slot, tail_arrival(end, server["latency"]))
    else:
        free(run, slot)
    if leads:
        message = nth(run.messages, whole)
        first = nth(run.servers, nth(run.paths, message["path"])["server"])
        size = packet_bytes(message["size"], run.loop["packet_size"], message["packet"])
        begin = message["end"]
        _release(run, whole, begin, service_end(begin, size, first["bandwidth"], begin))
