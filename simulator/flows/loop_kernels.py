"""The event loop of the engines that move whole messages: analytic and flow.

Strands, matching and rendezvous are those of `simpy_engine`, by the rules of `model.py`; only what
happens between handing a message to the network and its delivery differs.

numba's cache does not notice that `model.py` or another file of kernels changed: touch this file.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import njit
from hopmap.simulator import model
from hopmap.simulator.heap_kernels import IndexedHeap, put, take
from hopmap.simulator.model import ARRIVE, DATA, DELIVER, GRANT, LEAVE, REQUEST, RESUME, SENT
from hopmap.simulator.programs.program import Op
from hopmap.simulator.row_pointers import nth

from .analytic_kernels import alone, charge
from .max_min_kernels import close_flow, open_flow, share
from .max_min_state import Flows
from .state import Run

SEND, ISEND, RECV, IRECV = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.IRECV)
WAIT, START, FINISH = int(Op.WAIT), int(Op.START), int(Op.FINISH)

# Where a strand stands in its row: before its computation, before its overhead, before what it
# does, behind all that.
BEGIN, COMPUTED, READY, OVER = 0, 1, 2, 3

# Why `advance` returns: nothing is left, its share is done, no slot for another flow.
ENDED, MORE, CROWDED = 0, 1, 2

order_key = njit(cache=True)(model.order_key)
leave_time = njit(cache=True)(model.leave_time)


@njit
def advance(tables: Run, budget: int) -> int:
    """Handle up to `budget` events; say why it stopped."""
    queue, open_flows = tables.heap, tables.flows
    shares = open_flows.shares
    heap = IndexedHeap(queue.entries[0], queue.places[0], queue.count[0])
    flows = Flows(
        open_flows.servers[0],
        open_flows.stops[0],
        open_flows.slots[0],
        open_flows.crossings[0],
        open_flows.found[0],
        open_flows.reached[0],
        IndexedHeap(shares.entries[0], shares.places[0], shares.count[0]),
        open_flows.counts[0],
    )
    run = Run(
        tables.loop[0],
        tables.rows[0],
        tables.strands[0],
        tables.messages[0],
        tables.ranks[0],
        tables.paths[0],
        tables.message_times[0],
        tables.operation_times[0],
        heap,
        flows,
    )
    loop, first = run.loop, nth(heap.entries, 0)
    strands, messages = loop["strands"], loop["messages"]
    while True:
        # Rates are shared once an instant, when all that happens then has happened.
        if flows.counts["dirty"] > 0 and (heap.count["size"] == 0 or first["time"] > loop["now"]):
            _share(run)
        if heap.count["size"] == 0:
            return ENDED
        if loop["flow"] and flows.counts["spare"] == 0:
            return CROWDED
        if budget == 0:
            return MORE
        budget -= 1
        now, item, kind = first["time"], first["item"], first["key"] >> loop["number_bits"]
        take(heap, item)
        loop["now"] = now
        if kind == RESUME:
            _go_on(run, item, now)
        elif kind == ARRIVE:
            _enter(run, item - strands, now)
        elif kind == DELIVER:
            _deliver(run, item - strands, now)
        elif kind == LEAVE:
            _send_data(run, item - strands, now)
        else:
            _complete(run, nth(run.messages, item - strands - messages)["send"], now)


@njit
def _schedule(run: Run, kind: int, number: int, at: float) -> None:
    """IndexedHeap an event of a message."""
    item = run.loop["strands"] + number
    if kind == SENT:
        item += run.loop["messages"]
    put(run.heap, item, at, order_key(kind, number, 0, run.loop["number_bits"], 0))


# Strands


@njit
def _wake(run: Run, strand: int, at: float) -> None:
    put(run.heap, strand, at, order_key(RESUME, strand, 0, run.loop["number_bits"], 0))


@njit
def _go_on(run: Run, number: int, now: float) -> None:
    """Execute a strand until it has to wait for its next event."""
    strand = nth(run.strands, number)
    at, phase = strand["row"], strand["phase"]
    while True:
        row = nth(run.rows, at)
        kind = row["kind"]
        if phase == BEGIN:
            phase = COMPUTED
            pause = row["compute"]
            if pause > 0:
                strand["compute"] += pause
                _wake(run, number, now + pause)
                break
        sending = kind in (SEND, ISEND)
        if phase == COMPUTED:
            phase = READY
            if run.loop["record_operations"]:
                nth(run.operation_times, at)["ready"] = now
            pause = run.loop["overhead_send"]
            if sending and pause > 0:
                strand["communicate"] += pause
                _wake(run, number, now + pause)
                break
        if phase == READY:
            phase = OVER
            if sending:
                _post_send(run, row["message"], now)
            elif kind in (RECV, IRECV):
                _post_receive(run, row["message"], now)
            elif kind == START:
                nth(run.strands, row["target"])["begun_by"] = at
                _wake(run, row["target"], now)
            elif kind == FINISH:
                strand["stuck"] = -1
                strand["finish"] = now
                if run.loop["record_operations"]:
                    nth(run.operation_times, at)["ended"] = now
                if strand["begun_by"] >= 0:
                    _complete(run, strand["begun_by"], now)
                break
            if kind in (WAIT, RECV, SEND):
                awaited = nth(run.rows, row["target"] if kind == WAIT else at)
                overhead = _overhead_of(run, awaited)
                strand["communicate"] += overhead
                if not awaited["done"]:
                    strand["stuck"] = at
                    strand["since"] = now
                    awaited["waiter"] = number
                    break
                if overhead > 0:
                    _wake(run, number, now + overhead)
                    break
        if run.loop["record_operations"]:
            nth(run.operation_times, at)["ended"] = now
        at += 1
        phase = BEGIN
    strand["row"] = at
    strand["phase"] = phase


@njit
def _overhead_of(run: Run, row: Any) -> float:
    """Seconds that a strand is busy once what it waited for is complete."""
    receives = row["kind"] in (RECV, IRECV)
    return float(run.loop["overhead_recv"]) if receives else 0.0


@njit
def _complete(run: Run, at: int, now: float) -> None:
    """Note that what the row began is complete; a strand that waits for it goes on."""
    row = nth(run.rows, at)
    row["done"] = True
    number = row["waiter"]
    if number >= 0:
        row["waiter"] = -1
        strand = nth(run.strands, number)
        strand["wait"] += now - strand["since"]
        if run.loop["record_operations"]:
            nth(run.operation_times, strand["row"])["woken"] = now
        _wake(run, number, now + _overhead_of(run, row))


# Messages


@njit
def _post_send(run: Run, number: int, now: float) -> None:
    message = nth(run.messages, number)
    if run.loop["record_messages"]:
        nth(run.message_times, number)["sent"] = now
    if message["eager"]:
        nth(run.rows, message["send"])["done"] = True
        _depart(run, number, now)
    else:
        run.loop["controls"] += 1
        _transmit(run, number, REQUEST, now)


@njit
def _post_receive(run: Run, number: int, now: float) -> None:
    if number < 0:
        return  # nobody sends it
    message = nth(run.messages, number)
    message["posted"] = True
    if message["requested"]:
        _grant(run, number, now)


@njit
def _grant(run: Run, number: int, now: float) -> None:
    run.loop["controls"] += 1
    _transmit(run, number, GRANT, now)


@njit
def _depart(run: Run, number: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    message = nth(run.messages, number)
    rank = nth(run.ranks, message["rank"])
    at = leave_time(now, rank["free"], message["size"], run.loop["gap_per_byte"])
    rank["free"] = at + run.loop["gap"]
    if at > now:
        _schedule(run, LEAVE, number, at)
    else:
        _send_data(run, number, now)


@njit
def _send_data(run: Run, number: int, now: float) -> None:
    """Hand a message's data to the network; a rendezvous alone has left its first server then."""
    _transmit(run, number, DATA, now)
    if run.loop["record_messages"]:
        nth(run.message_times, number)["departed"] = now
    message = nth(run.messages, number)
    if not message["eager"] and not run.loop["flow"]:
        stop = nth(run.flows.stops, nth(run.paths, message["path"])["begin"])
        bandwidth = nth(run.flows.servers, stop["server"])["bandwidth"]
        _schedule(run, SENT, number, now + message["size"] / bandwidth)


@njit
def _deliver(run: Run, number: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    message = nth(run.messages, number)
    if message["slot"] >= 0:
        close_flow(run.flows, message["slot"])
        message["slot"] = -1
    cargo = message["cargo"]
    if run.loop["record_messages"]:
        times = nth(run.message_times, number)
        if cargo == DATA:
            times["delivered"] = now
        elif cargo == GRANT:
            times["granted"] = now
        else:
            times["requested"] = now
    if cargo == DATA:
        run.loop["arrived"] += 1
        if message["receive"] >= 0:
            _complete(run, message["receive"], now)
        if not message["eager"] and run.loop["flow"]:
            _schedule(run, SENT, number, now)
    elif cargo == REQUEST:
        message["requested"] = True
        if message["posted"]:
            _grant(run, number, now)
    else:
        _depart(run, number, now)


# The network


@njit
def _transmit(run: Run, number: int, cargo: int, now: float) -> None:
    """Hand a message, or control message, to the network."""
    loop, message = run.loop, nth(run.messages, number)
    servers, stops = run.flows.servers, run.flows.stops
    message["cargo"] = cargo
    data = cargo == DATA
    size = message["size"] if data else loop["control_bytes"]
    begin, end, _ = _path(run, message)
    loop["events"] += end - begin
    cut_through = loop["cut_through"]
    latencies = charge(servers, stops, begin, end, size, cut_through, data)
    if not loop["flow"]:
        after = alone(servers, stops, begin, end, size, loop["packet_size"], cut_through)
        _schedule(run, DELIVER, number, now + after)
    elif size > 0:
        _schedule(run, ARRIVE, number, now + latencies)
    else:
        _schedule(run, DELIVER, number, now + latencies)


@njit
def _path(run: Run, message: Any) -> tuple[int, int, float]:
    """Return the first stop of what of a message is under way, behind the last, and its weight."""
    number = message["back"] if message["cargo"] == GRANT else message["path"]
    path = nth(run.paths, number)
    return path["begin"], nth(run.paths, number + 1)["begin"], path["weight"]


@njit
def _enter(run: Run, number: int, now: float) -> None:
    """Begin a flow; its latency is over."""
    message = nth(run.messages, number)
    size = message["size"] if message["cargo"] == DATA else run.loop["control_bytes"]
    begin, end, weight = _path(run, message)
    message["slot"] = open_flow(run.flows, begin, end, number, float(size), weight, now)


@njit
def _share(run: Run) -> None:
    """Share the servers again, and move the ends of the flows whose rate that changed."""
    flows = run.flows
    for k in range(share(flows, run.loop["now"])):
        slot = nth(flows.slots, nth(flows.found, k)["slot"])
        end = slot["since"] + slot["remaining"] / slot["rate"]
        _schedule(run, DELIVER, slot["item"], end)
