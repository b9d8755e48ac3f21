"""The compiled event loop, packets: how messages and control messages cross the network.

At a message's first server all its packets are served at once, but only one of them has an event:
the next one's arrival at the second server is no earlier, and later in the key, so that it is
scheduled when the one before it arrives.
"""

from __future__ import annotations

from hopmap.compilation import subroutine
from hopmap.simulator.model import ACKNOWLEDGEMENT, DATA, GRANT
from hopmap.simulator.model_kernels import packet_bytes, packet_count, service_end, tail_arrival
from hopmap.simulator.row_pointers import nth, wide

from .buffer_kernels import enter_buffer, queue_up
from .nic_kernels import enter
from .routing_kernels import next_stop
from .server_kernels import arrived, came, forward, release, send_off, serve, server_at, watch
from .state import State


@subroutine
def transmit(run: State, slot: int, cargo: int, now: float) -> float:
    """Hand a message to its first server, where its packets queue at once.

    Returns when it will have left that server, or -1 if it waits there for its turn.
    """
    loop, message = run.loop, nth(run.messages, slot)
    row = nth(run.rows, message["row"])
    size, path = row["size"], row["path"]
    if cargo != DATA:
        loop["controls"] += 1
        size = loop["control_bytes"]
        if cargo in (GRANT, ACKNOWLEDGEMENT):
            path = row["back"]
    stop = nth(run.paths, path)["server"]
    place = server_at(stop)
    count = packet_count(size, loop["packet_size"])
    nth(run.packets, slot)["cargo"] = cargo
    message["path"] = path
    message["size"] = size
    message["packet"] = 0
    send_off(message, count)
    if enter(run, slot, now) or queue_up(run, slot, now):
        return -1.0
    loop["served"] += count
    first_start = first_end = end = 0.0
    for packet in range(count):
        part = packet_bytes(size, loop["packet_size"], packet)
        start, end = serve(run, place, now, part, now, cargo == DATA, packet == count - 1)
        if packet == 0:
            first_start, first_end = start, end
        if loop["watch"]:
            watch(run, message["number"], cargo, packet, place, part, now, start, end)
    if stop < 0:
        arrived(run, slot, tail_arrival(end, nth(run.servers, place)["latency"]))
    else:
        release(run, slot, first_start, first_end, True)
    return end


@subroutine
def arrive(run: State, slot: int, key: int, now: float) -> None:
    """Serve a packet at the next server of its path."""
    if enter_buffer(run, slot, key, now):
        return
    packet = nth(run.packets, slot)
    whole, leads = wide(packet["message"]), packet["leads"]
    stop = next_stop(run, packet, key, now)
    place = server_at(stop)
    server = nth(run.servers, place)
    last = whole == slot
    run.loop["served"] += 1
    data = packet["cargo"] == DATA
    start, end = serve(run, place, now, packet["size"], packet["tail"], data, last)
    if run.loop["watch"]:
        number, size = nth(run.messages, whole)["number"], packet["size"]
        part = key & ((1 << run.loop["packet_bits"]) - 1)
        watch(run, number, packet["cargo"], part, place, size, now, start, end)
    if stop >= 0:
        packet["leads"] = False
        forward(run, slot, packet, key, server["latency"], start, end)
    else:
        came(run, slot, whole, tail_arrival(end, server["latency"]))
    if leads:
        message = nth(run.messages, whole)
        first = nth(run.servers, nth(run.paths, message["path"])["server"])
        size = packet_bytes(message["size"], run.loop["packet_size"], message["packet"])
        begin = message["end"]
        release(run, whole, begin, service_end(begin, size, first["bandwidth"], begin), True)
