"""The event loop of the engines that move whole messages: analytic and flow.

Strands, matching and rendezvous are those of `simpy_engine`, by the rules of `model.py`; only what
happens between handing a message to the network and its delivery differs.

numba's cache does not notice that `model.py` or another file of kernels changed: touch this file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import model
from .analytic_kernels import alone, hold
from .flow_kernels import DIRTY, SPARE, Flows, close_flow, open_flow, share
from .model import ARRIVE, DATA, DELIVER, GRANT, LEAVE, REQUEST, RESUME, SENT
from .program import Op
from .schedule_kernels import Schedule, put, take

SEND, ISEND, RECV, IRECV = int(Op.SEND), int(Op.ISEND), int(Op.RECV), int(Op.IRECV)
WAIT, START, FINISH = int(Op.WAIT), int(Op.START), int(Op.FINISH)

# Where a strand stands in its row: before its computation, before its overhead, before what it
# does, behind all that.
BEGIN, COMPUTED, READY, OVER = 0, 1, 2, 3

# Why `advance` returns: nothing is left, its share is done, no slot for another flow.
ENDED, MORE, CROWDED = 0, 1, 2

# Columns of `Run.strands` and of `Run.seconds`, places in `Run.counts`.
ROW, PHASE, BEGUN_BY, STUCK = 0, 1, 2, 3
SINCE, FINISHED, COMPUTE, COMMUNICATE, WAITED = 0, 1, 2, 3, 4
CONTROLS, EVENTS, ARRIVED = 0, 1, 2

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

order_key = njit(cache=True)(model.order_key)
is_eager = njit(cache=True)(model.is_eager)
leave_time = njit(cache=True)(model.leave_time)


class Rules(NamedTuple):
    """Parameters of a run, see `Parameters`."""

    overhead_send: float
    overhead_recv: float
    gap: float
    gap_per_byte: float
    eager_limit: int
    packet_size: int
    control_bytes: int
    cut_through: bool
    number_bits: int
    flow: bool  # share servers by max-min fairness
    record: bool  # keep `sent` and `delivered`


class Run(NamedTuple):
    """All that a run is.

    Attributes
    ----------
    kind, compute, target, message : ndarray, shape (operations,)
        Of the plan.
    done, waiter : ndarray, shape (operations,)
        Whether what a row began is complete; strand that waits for it, or -1.
    strands : ndarray(int64, shape=(strands, 4))
    seconds : ndarray(float64, shape=(strands, 5))
    size, path, back, send, receive : ndarray(int64, shape=(messages,))
        Of the plan.
    rank : ndarray(int32, shape=(messages,))
        Source rank.
    cargo : ndarray(int8, shape=(messages,))
        What of it is under way.
    requested, posted : ndarray(bool, shape=(messages,))
        Whether its request has arrived, whether its receive is there.
    slot : ndarray(int32, shape=(messages,))
        Of its flow, or -1.
    sent, delivered : ndarray(float64)
    free : ndarray(float64, shape=(ranks,))
        When the end point of a rank is free.
    bandwidth, latency : ndarray(float64, shape=(servers,))
    indptr, servers : ndarray(int64)
        Paths.
    messages, bytes : ndarray(int64, shape=(servers,))
    busy : ndarray(float64, shape=(servers,))
    clock : ndarray(float64, shape=(1,))
    counts : ndarray(int64, shape=(3,))
    schedule : Schedule
        Items are strands, then messages, then messages that will have been sent.
    flows : Flows
    """

    rules: Rules
    kind: NDArray[np.uint8]
    compute: Floats
    target: Ints
    message: Ints
    done: NDArray[np.bool_]
    waiter: NDArray[np.int32]
    strands: Ints
    seconds: Floats
    size: Ints
    path: Ints
    back: Ints
    send: Ints
    receive: Ints
    rank: NDArray[np.int32]
    cargo: NDArray[np.int8]
    requested: NDArray[np.bool_]
    posted: NDArray[np.bool_]
    slot: NDArray[np.int32]
    sent: Floats
    delivered: Floats
    free: Floats
    bandwidth: Floats
    latency: Floats
    indptr: Ints
    servers: Ints
    messages: Ints
    bytes: Ints
    busy: Floats
    clock: Floats
    counts: Ints
    schedule: Schedule
    flows: Flows


@njit(cache=True)
def advance(run: Run, budget: int) -> int:
    """Handle up to `budget` events; say why it stopped."""
    schedule, flows = run.schedule, run.flows
    strands, messages = len(run.strands), len(run.size)
    while True:
        # Rates are shared once an instant, when all that happens then has happened.
        if flows.counts[DIRTY] > 0 and (schedule.size[0] == 0 or schedule.time[0] > run.clock[0]):
            _share(run)
        if schedule.size[0] == 0:
            return ENDED
        if run.rules.flow and flows.counts[SPARE] == 0:
            return CROWDED
        if budget == 0:
            return MORE
        budget -= 1
        now, item = schedule.time[0], schedule.item[0]
        kind = schedule.key[0] >> run.rules.number_bits
        take(schedule, item)
        run.clock[0] = now
        if kind == RESUME:
            _go_on(run, item, now)
        elif kind == ARRIVE:
            _enter(run, item - strands, now)
        elif kind == DELIVER:
            _deliver(run, item - strands, now)
        elif kind == LEAVE:
            _send_data(run, item - strands, now)
        else:
            _complete(run, run.send[item - strands - messages], now)


@njit(cache=True)
def _schedule(run: Run, kind: int, number: int, at: float) -> None:
    """Schedule an event of a message."""
    item = len(run.strands) + number
    if kind == SENT:
        item += len(run.size)
    put(run.schedule, item, at, order_key(kind, number, 0, run.rules.number_bits, 0))


# Strands


@njit(cache=True)
def _wake(run: Run, strand: int, at: float) -> None:
    put(run.schedule, strand, at, order_key(RESUME, strand, 0, run.rules.number_bits, 0))


@njit(cache=True)
def _go_on(run: Run, strand: int, now: float) -> None:
    """Execute a strand until it has to wait for its next event."""
    at, phase = run.strands[strand, ROW], run.strands[strand, PHASE]
    while True:
        kind = run.kind[at]
        if phase == BEGIN:
            phase = COMPUTED
            pause = run.compute[at]
            if pause > 0:
                run.seconds[strand, COMPUTE] += pause
                _wake(run, strand, now + pause)
                break
        sending = kind in (SEND, ISEND)
        if phase == COMPUTED:
            phase = READY
            pause = run.rules.overhead_send
            if sending and pause > 0:
                run.seconds[strand, COMMUNICATE] += pause
                _wake(run, strand, now + pause)
                break
        if phase == READY:
            phase = OVER
            if sending:
                _post_send(run, run.message[at], now)
            elif kind in (RECV, IRECV):
                _post_receive(run, run.message[at], now)
            elif kind == START:
                run.strands[run.target[at], BEGUN_BY] = at
                _wake(run, run.target[at], now)
            elif kind == FINISH:
                run.strands[strand, STUCK] = -1
                run.seconds[strand, FINISHED] = now
                if run.strands[strand, BEGUN_BY] >= 0:
                    _complete(run, run.strands[strand, BEGUN_BY], now)
                break
            if kind in (WAIT, RECV, SEND):
                awaited = run.target[at] if kind == WAIT else at
                overhead = _overhead_of(run, awaited)
                run.seconds[strand, COMMUNICATE] += overhead
                if not run.done[awaited]:
                    run.strands[strand, STUCK] = at
                    run.seconds[strand, SINCE] = now
                    run.waiter[awaited] = strand
                    break
                if overhead > 0:
                    _wake(run, strand, now + overhead)
                    break
        at += 1
        phase = BEGIN
    run.strands[strand, ROW], run.strands[strand, PHASE] = at, phase


@njit(cache=True)
def _overhead_of(run: Run, row: int) -> float:
    """Seconds that a strand is busy once what it waited for is complete."""
    return run.rules.overhead_recv if run.kind[row] in (RECV, IRECV) else 0.0


@njit(cache=True)
def _complete(run: Run, row: int, now: float) -> None:
    """Note that what the row began is complete; a strand that waits for it goes on."""
    run.done[row] = True
    strand = run.waiter[row]
    if strand >= 0:
        run.waiter[row] = -1
        run.seconds[strand, WAITED] += now - run.seconds[strand, SINCE]
        _wake(run, strand, now + _overhead_of(run, row))


# Messages


@njit(cache=True)
def _post_send(run: Run, message: int, now: float) -> None:
    if run.rules.record:
        run.sent[message] = now
    if is_eager(run.size[message], run.rules.eager_limit):
        run.done[run.send[message]] = True
        _depart(run, message, now)
    else:
        run.counts[CONTROLS] += 1
        _transmit(run, message, REQUEST, now)


@njit(cache=True)
def _post_receive(run: Run, message: int, now: float) -> None:
    if message < 0:
        return  # nobody sends it
    run.posted[message] = True
    if run.requested[message]:
        _grant(run, message, now)


@njit(cache=True)
def _grant(run: Run, message: int, now: float) -> None:
    run.counts[CONTROLS] += 1
    _transmit(run, message, GRANT, now)


@njit(cache=True)
def _depart(run: Run, message: int, now: float) -> None:
    """Let a message's data pass the end point of its rank."""
    rank = run.rank[message]
    at = leave_time(now, run.free[rank], run.size[message], run.rules.gap_per_byte)
    run.free[rank] = at + run.rules.gap
    if at > now:
        _schedule(run, LEAVE, message, at)
    else:
        _send_data(run, message, now)


@njit(cache=True)
def _send_data(run: Run, message: int, now: float) -> None:
    """Hand a message's data to the network; see for when a rendezvous has been sent."""
    _transmit(run, message, DATA, now)
    if not run.rules.flow and not is_eager(run.size[message], run.rules.eager_limit):
        first = run.bandwidth[run.servers[run.indptr[run.path[message]]]]
        _schedule(run, SENT, message, now + run.size[message] / first)


@njit(cache=True)
def _deliver(run: Run, message: int, now: float) -> None:
    """Handle the arrival of a message, or control message, at its target."""
    if run.slot[message] >= 0:
        close_flow(run.flows, run.slot[message])
        run.slot[message] = -1
    cargo = run.cargo[message]
    if cargo == DATA:
        run.counts[ARRIVED] += 1
        if run.rules.record:
            run.delivered[message] = now
        if run.receive[message] >= 0:
            _complete(run, run.receive[message], now)
        if run.rules.flow and not is_eager(run.size[message], run.rules.eager_limit):
            _schedule(run, SENT, message, now)
    elif cargo == REQUEST:
        run.requested[message] = True
        if run.posted[message]:
            _grant(run, message, now)
    else:
        _depart(run, message, now)


# The network


@njit(cache=True)
def _transmit(run: Run, message: int, cargo: int, now: float) -> None:
    """Hand a message to the network."""
    rules = run.rules
    run.cargo[message] = cargo
    size = run.size[message] if cargo == DATA else rules.control_bytes
    number = run.back[message] if cargo == GRANT else run.path[message]
    path = run.servers[run.indptr[number] : run.indptr[number + 1]]
    run.counts[EVENTS] += len(path)
    if cargo == DATA:
        for server in path:
            run.messages[server] += 1
            run.bytes[server] += size
    hold(run.bandwidth, path, size, rules.cut_through and not rules.flow, run.busy)
    if not rules.flow:
        after = alone(run.bandwidth, run.latency, path, size, rules.packet_size, rules.cut_through)
        _schedule(run, DELIVER, message, now + after)
        return
    at = now
    for server in path:
        at += run.latency[server]
    _schedule(run, ARRIVE if size > 0 else DELIVER, message, at)


@njit(cache=True)
def _enter(run: Run, message: int, now: float) -> None:
    """Begin a flow; its latency is over."""
    cargo = run.cargo[message]
    size = run.size[message] if cargo == DATA else run.rules.control_bytes
    path = run.back[message] if cargo == GRANT else run.path[message]
    run.slot[message] = open_flow(run.flows, path, message, float(size), now)


@njit(cache=True)
def _share(run: Run) -> None:
    """Share the servers again, and move the ends of the flows whose rate that changed."""
    flows = run.flows
    for k in range(share(flows, run.clock[0])):
        slot = flows.found[k]
        end = flows.since[slot] + flows.remaining[slot] / flows.rate[slot]
        _schedule(run, DELIVER, flows.item[slot], end)
