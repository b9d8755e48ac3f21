"""The compiled engine: the tables that `compiled_kernels` works on, and what comes of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.progress import Progress
from hopmap.simulator import model
from hopmap.simulator.deadlock import deadlock
from hopmap.simulator.link_use import FINEST, LinkUse
from hopmap.simulator.parameters.parameters import ParameterError
from hopmap.simulator.programs.program import Op
from hopmap.simulator.programs.unrolling import unrolled
from hopmap.simulator.record import NOTHING, MessageTimestamps, OperationTimestamps, Record
from hopmap.simulator.result import Outcome, Servers
from hopmap.simulator.run_plan import RunPlan

from .loop_kernels import CROWDED, ENDED, advance
from .state import (
    CHANNEL,
    ENTRY,
    HOP,
    LATEST,
    LOOP,
    MESSAGE,
    MESSAGE_TIMES,
    OPERATION_TIMES,
    PACKET,
    RANK,
    ROW,
    SERVER,
    STOP,
    STRAND,
    UNRECORDED,
    USE,
    WATCHED,
    State,
    Table,
    columns,
    unhappened,
)

SHARE = (
    1 << 19
)  # events before Python may look at Ctrl-C and the progress: about a tenth of a second
SPARE = 1 << 8  # slots for messages in flight, to begin with


def run(plan: RunPlan, record: Record = NOTHING, progress: Progress | None = None) -> Outcome:
    """Replay a plan; equal to `simpy_engine.run` in every bit.

    Raises
    ------
    ParameterError
        Packets so small that the order key does not fit 63 bits.
    DeadlockError
        Nothing is left to happen and some strand has not finished.
    """
    state = _finished(plan, _state(plan, record), progress)
    main, servers = state.strands[plan.program.main()], state.servers
    entries = int(plan.trips.sum())
    return Outcome(
        finish=main["finish"].copy(),
        compute=main["compute"].copy(),
        communicate=main["communicate"].copy(),
        wait=main["wait"].copy(),
        servers=Servers(**{field: servers[field].copy() for field in Servers._fields}),
        events=int(state.loop["served"][0]),
        controls=int(state.loop["controls"][0]),
        messages=MessageTimestamps(
            *columns(
                state.message_times, MessageTimestamps._fields, plan.messages * record.messages
            )
        ),
        operations=OperationTimestamps(
            *columns(
                state.operation_times, OperationTimestamps._fields, entries * record.operations
            )
        ),
        use=LinkUse(
            float(state.loop["width"][0]),
            state.use["busy"][: plan.links * record.bins].reshape(plan.links, record.bins),
        ),
    )


def watch(plan: RunPlan, numbers: NDArray[np.int64]) -> Table:
    """Replay a plan; return how the packets of some messages crossed the network.

    Parameters
    ----------
    numbers : ndarray(int64)
        Messages.

    Returns
    -------
    ndarray(HOP)
        In order of their arrival, those of each packet in order of its path.
    """
    watched = np.zeros(plan.messages + 1, dtype=WATCHED)
    watched["yes"][numbers] = True
    state = _state(plan, NOTHING)._replace(
        operation_times=unhappened(OPERATION_TIMES, 1),  # not UNRECORDED: this run records
        watched=watched,
        latest=np.full(len(plan.bandwidth), -1).view(LATEST),
        hops=np.zeros(_hops(plan, numbers) + 1, dtype=HOP),
    )
    state.loop["watch"] = True
    state = _finished(plan, state, None)
    kept: Table = state.hops[: int(state.loop["hops"][0])]
    return kept


def _hops(plan: RunPlan, numbers: NDArray[np.int64]) -> int:
    """Packet-hops of messages, their requests and grants included."""
    parameters = plan.parameters
    rows = unrolled(plan.program)
    rows = rows[plan.path[rows] >= 0][numbers]
    size, length = plan.program.size[rows], np.diff(plan.indptr)
    packets = np.maximum(1, -(-size // parameters.packet_size))
    controls = model.packet_count(parameters.control_bytes, parameters.packet_size)
    asked = size >= parameters.eager_limit
    way, back = length[plan.path[rows]], length[plan.back[rows]]
    return int((packets * way + asked * controls * (way + back)).sum())


def _finished(plan: RunPlan, state: State, progress: Progress | None) -> State:
    """Run to the end, or to where it gets stuck."""
    while (why := advance(state, SHARE)) != ENDED:
        if why == CROWDED:
            state = _enlarged(state)
        if progress is not None:
            progress(int(state.loop["arrived"][0]), plan.messages)
    stuck = np.flatnonzero(state.strands["stuck"] >= 0)
    if len(stuck):
        rows = state.strands["stuck"][stuck]
        awaited = np.where(plan.program.kind[rows] == Op.WAIT, plan.program.target[rows], rows)
        told = stuck.tolist(), rows.tolist(), state.rows["place"][awaited].tolist()
        raise deadlock(plan, float(state.loop["now"][0]), list(zip(*told, strict=True)))
    return state


def _check_key(plan: RunPlan) -> None:
    spare_bits = (
        63 - model.order_key(model.RESUME, 0, 0, plan.number_bits, plan.packet_bits).bit_length()
    )
    if spare_bits < 0:
        size = plan.parameters.packet_size
        raise ParameterError(
            f"packet_size {size}: {plan.messages} messages of up to 2^{plan.packet_bits} packets "
            f"are too many for the compiled engine: expected at least {size << -spare_bits} bytes"
        )


def _state(plan: RunPlan, record: Record) -> State:
    """Lay out a run that has not begun: every rank's own strand goes on at 0."""
    _check_key(plan)
    program, parameters = plan.program, plan.parameters
    strands = np.zeros(program.strands, dtype=STRAND)
    strands["row"], strands["message"] = program.offsets[:-1], plan.first
    strands["rank"], strands["entry"] = program.rank_of, plan.first_entry()
    strands["begun_by"] = strands["stuck"] = -1
    servers = _aligned(len(plan.bandwidth), SERVER)
    servers["bandwidth"], servers["latency"] = plan.bandwidth, plan.latency
    channels = np.zeros(int(plan.channel.max(initial=-1)) + 1, dtype=CHANNEL)
    channels["first"] = -1
    paths = plan.servers.astype(np.int32)
    paths[plan.indptr[1:] - 1] ^= -1  # ~, which marks the last of each

    # The keys of strands rise: such an array is a heap.
    main = program.main()
    bits = plan.number_bits, plan.packet_bits
    keys = [model.order_key(model.RESUME, strand, 0, *bits) for strand in main.tolist()]
    heap = np.zeros(program.strands, dtype=ENTRY)
    heap["slot"][: len(main)] = main
    heap["key"][: len(main)] = keys
    loop = np.zeros(1, dtype=LOOP)
    for name in (
        *("overhead_send", "overhead_recv", "gap", "gap_per_byte"),
        *("eager_limit", "packet_size", "control_bytes"),
    ):
        loop[name] = getattr(parameters, name)
    loop["cut_through"] = parameters.switching == "cut_through"
    loop["number_bits"], loop["packet_bits"] = bits
    loop["record_messages"], loop["record_operations"] = record.messages, record.operations
    loop["bins"], loop["width"] = record.bins, FINEST
    loop["tracked"] = plan.links if record.bins else 0
    loop["queued"] = len(main)
    loop["free"] = loop["strand"] = -1
    state = State(
        loop=loop,
        rows=_rows(plan),
        strands=strands,
        ranks=np.zeros(program.ranks, dtype=RANK),
        servers=servers,
        channels=channels,
        packets=np.zeros(program.strands, dtype=PACKET),
        messages=np.zeros(program.strands, dtype=MESSAGE),
        heap=heap,
        paths=paths.view(STOP),
        message_times=unhappened(MESSAGE_TIMES, plan.messages * record.messages),
        operation_times=unhappened(
            UNRECORDED if record == NOTHING else OPERATION_TIMES,
            int(plan.trips.sum()) * record.operations,
        ),
        watched=np.zeros(0, dtype=WATCHED),
        latest=np.zeros(0, dtype=LATEST),
        hops=np.zeros(0, dtype=HOP),
        use=np.zeros(plan.links * record.bins, dtype=USE),
    )
    state = State(*(table if len(table) else np.zeros(1, table.dtype) for table in state))
    return _enlarged(state, SPARE)


def _rows(plan: RunPlan) -> Table:
    program, send = plan.program, plan.program.sends()
    rows = _aligned(program.operations, ROW)
    rows["compute"], rows["size"], rows["target"] = plan.compute, program.size, program.target
    rows["kind"], rows["channel"] = program.kind, plan.channel
    rows["path"][send], rows["back"][send] = (
        plan.indptr[plan.path[send]],
        plan.indptr[plan.back[send]],
    )
    rows["waiter"] = -1
    return rows


def _enlarged(state: State, more: int = 0) -> State:
    """Add free slots, twice as many if not told, and room for their events."""
    old = len(state.heap)
    total = old + (more or old)
    grown = {}
    for name in ("packets", "messages", "heap"):
        table = getattr(state, name)
        grown[name] = _aligned(total, table.dtype)
        grown[name][:old] = table
    free = grown["packets"]["next"][old:]
    free[:] = np.arange(old + 1, total + 1)
    free[-1] = state.loop["free"][0]
    state.loop["free"] = old
    state.loop["spare"] += total - old
    return state._replace(**grown)


def _aligned(rows: int, dtype: np.dtype[np.void]) -> Table:
    """Make a table of zeros whose rows of 64 bytes are lines of the cache."""
    line = 64
    raw = np.zeros(rows * dtype.itemsize + line, dtype=np.uint8)
    begin = -raw.ctypes.data % line
    return raw[begin : begin + rows * dtype.itemsize].view(dtype)
