"""The engines that move whole messages: analytic, without contention, and flow, max-min fair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .deadlock import deadlock
from .flow_kernels import empty_flows, enlarged
from .message_kernels import (
    ARRIVED,
    BEGIN,
    COMMUNICATE,
    COMPUTE,
    CONTROLS,
    CROWDED,
    ENDED,
    EVENTS,
    FINISHED,
    PHASE,
    ROW,
    STUCK,
    WAITED,
    Rules,
    Run,
    advance,
)
from .model import RESUME, order_key
from .plan import Plan
from .result import Outcome, Servers
from .schedule_kernels import empty_schedule, put

Progress = Callable[[int, int], None]

SHARE = 1 << 17  # events before Python may look at Ctrl-C and the progress
SLOTS = 1 << 8  # for flows, to begin with


def run_analytic(
    plan: Plan, record_messages: bool = False, progress: Progress | None = None
) -> Outcome:
    """Replay a plan as if every message were alone in the network.

    Raises
    ------
    DeadlockError
        Nothing is left to happen and some strand has not finished.
    """
    return _outcome(plan, _state(plan, record_messages, flow=False), progress)


def run_flow(
    plan: Plan, record_messages: bool = False, progress: Progress | None = None
) -> Outcome:
    """Replay a plan with messages as flows, which share servers by max-min fairness.

    Raises
    ------
    DeadlockError
        Nothing is left to happen and some strand has not finished.
    """
    return _outcome(plan, _state(plan, record_messages, flow=True), progress)


def _outcome(plan: Plan, run: Run, progress: Progress | None) -> Outcome:
    while (why := advance(run, SHARE)) != ENDED:
        if why == CROWDED:
            run = run._replace(flows=enlarged(run.flows, len(run.flows.path)))
        if progress is not None:
            progress(int(run.counts[ARRIVED]), plan.messages)
    stuck = np.flatnonzero(run.strands[:, STUCK] >= 0)
    if len(stuck):
        waits = zip(stuck.tolist(), run.strands[stuck, STUCK].tolist(), strict=True)
        raise deadlock(plan, float(run.clock[0]), list(waits))
    seconds = run.seconds[plan.program.main()]
    nothing = np.zeros(len(plan.bandwidth))
    return Outcome(
        finish=seconds[:, FINISHED],
        compute=seconds[:, COMPUTE],
        communicate=seconds[:, COMMUNICATE],
        wait=seconds[:, WAITED],
        servers=Servers(run.messages, run.bytes, run.busy, nothing, nothing.copy()),
        events=int(run.counts[EVENTS]),
        controls=int(run.counts[CONTROLS]),
        sent=run.sent,
        delivered=run.delivered,
    )


def _state(plan: Plan, record_messages: bool, *, flow: bool) -> Run:
    """Lay out a run that has not begun: every rank's own strand goes on at 0."""
    program, parameters, messages = plan.program, plan.parameters, plan.messages
    bandwidth, latency = plan.bandwidth, plan.latency
    if flow:
        bandwidth = bandwidth * (parameters.flow_bandwidth_factor / parameters.flow_cross_traffic)
        latency = latency * parameters.flow_latency_factor
    strands = np.full((program.strands, 4), -1, dtype=np.int64)
    strands[:, ROW], strands[:, PHASE] = program.offsets[:-1], BEGIN
    times = np.full(messages if record_messages else 0, np.nan)
    servers = len(bandwidth)
    run = Run(
        rules=Rules(
            overhead_send=parameters.overhead_send,
            overhead_recv=parameters.overhead_recv,
            gap=parameters.gap,
            gap_per_byte=parameters.gap_per_byte,
            eager_limit=parameters.eager_limit,
            packet_size=parameters.packet_size,
            control_bytes=parameters.control_bytes,
            cut_through=parameters.switching == "cut_through",
            number_bits=plan.number_bits,
            flow=flow,
            record=record_messages,
        ),
        kind=program.kind,
        compute=plan.compute,
        target=program.target,
        message=plan.message,
        done=np.zeros(program.operations, dtype=np.bool_),
        waiter=np.full(program.operations, -1, dtype=np.int32),
        strands=strands,
        seconds=np.zeros((program.strands, 5)),
        size=plan.size,
        path=plan.path,
        back=plan.back,
        send=plan.send,
        receive=plan.receive,
        rank=program.rank_of_row()[plan.send],
        cargo=np.zeros(messages, dtype=np.int8),
        requested=np.zeros(messages, dtype=np.bool_),
        posted=np.zeros(messages, dtype=np.bool_),
        slot=np.full(messages, -1, dtype=np.int32),
        sent=times,
        delivered=times.copy(),
        free=np.zeros(program.ranks),
        bandwidth=bandwidth,
        latency=latency,
        indptr=plan.indptr,
        servers=plan.servers,
        messages=np.zeros(servers, dtype=np.int64),
        bytes=np.zeros(servers, dtype=np.int64),
        busy=np.zeros(servers),
        clock=np.zeros(1),
        counts=np.zeros(3, dtype=np.int64),
        schedule=empty_schedule(program.strands + 2 * messages),
        flows=empty_flows(bandwidth, plan.indptr, plan.servers, SLOTS if flow else 1),
    )
    for strand in program.main().tolist():
        put(run.schedule, strand, 0.0, order_key(RESUME, strand, 0, plan.number_bits, 0))
    return run
