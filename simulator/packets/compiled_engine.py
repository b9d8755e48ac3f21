"""The compiled engine: the tables that `loop_kernels` works on, and what comes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopmap.arrays import Ints, Ints32, Table
from hopmap.progress import Progress
from hopmap.simulator import model, task_state
from hopmap.simulator.heap_kernels import COUNT, ENTRY, Heap
from hopmap.simulator.link_use import FINEST, LinkUse
from hopmap.simulator.operations import NOTHING, Record
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.programs.unrolling import unroll
from hopmap.simulator.result import Outcome, Servers
from hopmap.simulator.row_pointers import first_records
from hopmap.simulator.run_plan import RunPlan
from hopmap.simulator.steady_state import ITERATION_END, LoopWatch
from hopmap.simulator.task_kernels import CROWDED, ENDED
from hopmap.traces import require_memory

from . import state as tables
from .loop_kernels import advance
from .part_state import buffers_of, nics_of, waits_of, ways_of
from .state import State

# Events before Python may look at Ctrl-C and the progress: about a tenth of a second.
SHARE = 1 << 19
SPARE = 1 << 8  # slots for messages in flight, to begin with


def run(
    plan: RunPlan,
    record: Record = NOTHING,
    progress: Progress | None = None,
    watch: LoopWatch | None = None,
) -> Outcome:
    """Replay a plan, as far as its watch says; equal to `simpy_engine.run` in every bit."""
    state = _finish(plan, _state(plan, record), progress, watch)
    servers = state.servers
    return Outcome(
        **task_state.outcome_of(plan, record, state),
        servers=Servers(**{field: servers[field].copy() for field in Servers._fields}),
        events=int(state.loop["served"][0]),
        use=LinkUse(
            float(state.loop["width"][0]),
            state.use["busy"][: plan.links * record.bins].reshape(plan.links, record.bins),
        ),
    )


def watch(plan: RunPlan, numbers: Ints) -> Table:
    """Replay a plan; return how the packets of some messages crossed the network, a table of HOP.

    Hops come in order of their arrival, hops of one packet in order of its path.
    """
    watched = np.zeros(plan.messages + 1, dtype=tables.WATCHED)
    watched["yes"][numbers] = True
    latest = np.zeros(len(plan.bandwidth), dtype=tables.LATEST)
    latest["message"] = -1
    state = _state(plan, NOTHING)._replace(
        watched=watched,
        latest=latest,
        hops=np.zeros(_hops(plan, numbers) + 1, dtype=tables.HOP),
    )
    state.loop["watch"] = True
    state = _finish(plan, state, None)
    kept: Table = state.hops[: int(state.loop["hops"][0])]
    return kept


def _hops(plan: RunPlan, numbers: Ints) -> int:
    """Packet-hops of messages, their requests and grants included."""
    parameters = plan.parameters
    rows = unroll(plan.program)
    rows = rows[plan.path[rows] >= 0][numbers]
    size, length = plan.program.size[rows], np.diff(plan.indptr)
    if plan.routes is not None:
        length = np.maximum(length, plan.routes.longest)
    packets = np.maximum(1, -(-size // parameters.packet_size))
    controls = model.packet_count(parameters.control_bytes, parameters.packet_size)
    requests, answered = plan.controls(rows)
    way, back = length[plan.path[rows]], length[plan.back[rows]]
    return int((packets * way + controls * (requests * way + answered * back)).sum())


def _finish(
    plan: RunPlan, state: State, progress: Progress | None, watch: LoopWatch | None = None
) -> State:
    """Run to the end, or to where it gets stuck."""
    if watch is not None:
        state = _watch(state, watch)
    while (why := advance(first_records(state), 0 if _due(state) else SHARE)) != ENDED:
        if why == CROWDED:
            state = _enlarge(state)
        elif watch is not None and _due(state):
            _look(state, watch)
        if progress is not None:
            progress(int(state.loop["arrived"][0]), plan.messages)
    # A run that stands still does so since the last tail or credit, though that was no event.
    state.loop["now"] = np.maximum(state.loop["now"], state.loop["last"])
    places = state.rows["place"]
    task_state.check_finished(plan, state, lambda rows: places[rows], lambda: waits_of(plan, state))
    return state


def _watch(state: State, watch: LoopWatch) -> State:
    """Let the first iterations of a loop be written down."""
    ranks, iterations = watch.ends.shape
    state.rows["channel"][watch.rows] = watch.places
    state.loop["watched_iterations"], state.loop["look_at"] = iterations, ranks
    return state._replace(iteration_ends=watch.ends.reshape(-1))


def _due(state: State) -> bool:
    """Whether it is time to look at the iterations that have ended."""
    return bool(0 < state.loop["look_at"][0] <= state.loop["iterations_ended"][0])


def _look(state: State, watch: LoopWatch) -> None:
    """Go on as before, or have all ranks leave the loop."""
    loop, ranks = state.loop, len(watch.ends)
    loop["look_at"] = (loop["iterations_ended"] // ranks + 1) * ranks
    if watch.look(*(state.servers[name] for name in ("bytes", "busy", "waited"))):
        rows, size, target = watch.exits()
        state.rows["size"][rows], state.rows["target"][rows] = size, target
        state.rows["channel"][watch.rows] = -1
        loop["look_at"] = 0


def _check_key(plan: RunPlan) -> None:
    spare_bits = (
        63 - model.order_key(model.PASSED, 0, 0, plan.number_bits, plan.packet_bits).bit_length()
    )
    if spare_bits < 0:
        size = plan.parameters.packet_size
        raise ParameterError(
            f"packet_size {size}: {plan.messages} messages of up to 2^{plan.packet_bits} packets "
            f"are too many for the compiled engine: expected at least {size << -spare_bits} bytes"
        )


def _state(plan: RunPlan, record: Record) -> State:
    """Lay out a run that has not begun: every rank's own task goes on at 0."""
    _check_key(plan)
    program = plan.program
    servers = _allocate(len(plan.bandwidth), tables.SERVER)
    servers["bandwidth"], servers["latency"] = plan.bandwidth, plan.latency
    channels = np.zeros(int(plan.channel.max(initial=-1)) + 1, dtype=tables.CHANNEL)
    channels["first"] = -1
    begins, paths = _paths(plan)

    nics = nics_of(plan)
    turns = plan.parameters.nic == "round_robin"
    rails = int(nics.nodes["idle"].sum()) if turns else 0
    limited, limits = bool(len(plan.classes)), buffers_of(plan)
    routed, ways = plan.routes is not None, ways_of(plan)
    busy = len(limits.links) if limited else rails
    heap = Heap(np.zeros(program.tasks + busy, dtype=ENTRY), np.zeros(1, dtype=COUNT))
    task_state.begin_tasks(heap, plan)
    loop = task_state.loop_table(plan, record, tables.LOOP)
    loop["bins"], loop["width"] = record.bins, FINEST
    loop["tracked"] = plan.links if record.bins else 0
    loop["turns"] = turns
    loop["links"], loop["pairs"] = plan.links, len(nics.queues) - len(nics.nodes)
    loop["free"] = loop["task"] = loop["asks"] = -1
    loop["channels"] = plan.parameters.network_virtual_channels
    loop["ends"] = plan.injection.stop
    loop["queues"] = loop["ends"] * loop["channels"]
    loop["oldest_first"] = plan.parameters.network_arbitration == "age"
    loop["nodes"] = len(plan.injection)
    loop["routing_seed"] = plan.parameters.network_routing_seed
    if plan.routes is not None and plan.channels is not None:
        taken = plan.channels
        loop["capacity"] = plan.parameters.network_buffer * loop["channels"]
        loop["escapes"], loop["route_lanes"] = taken.escapes, taken.lanes
        loop["detour"], loop["direct"] = taken.detour, taken.direct
        loop["routing"], loop["groups"] = plan.routes.algorithm, plan.routes.groups
        loop["ahead"] = plan.routes.ahead
        loop["drawn"] = len(plan.routes.drawn)
    loop["credit_delay"] = plan.parameters.network_credit_delay
    loop["flit"] = plan.parameters.network_flit
    state = State(
        loop=loop,
        rows=_rows(plan, begins),
        tasks=task_state.task_table(plan),
        ranks=np.zeros(program.ranks, dtype=task_state.RANK),
        servers=servers,
        last=np.zeros(len(servers), dtype=tables.LAST),
        channels=channels,
        packets=np.zeros(program.tasks, dtype=tables.packet_type(limited, routed)),
        messages=np.zeros(
            program.tasks, dtype=tables.message_type(limited or turns, limited or routed)
        ),
        heap=heap,
        factors=plan.noise.factors.view(task_state.FACTOR),
        paths=paths.view(tables.STOP),
        **task_state.unset_times(plan, record),
        watched=np.zeros(0, dtype=tables.WATCHED),
        latest=np.zeros(0, dtype=tables.LATEST),
        hops=np.zeros(0, dtype=tables.HOP),
        use=np.zeros(plan.links * record.bins, dtype=tables.USE),
        iteration_ends=np.zeros(0, dtype=ITERATION_END),
        nics=nics,
        limits=limits,
        ways=ways,
    )
    empty = {name: table for name, table in state._asdict().items() if not len(table)}
    longer: dict[str, Any] = {n: np.zeros(1, table.dtype) for n, table in empty.items()}
    return _enlarge(state._replace(**longer), SPARE)


def _paths(plan: RunPlan) -> tuple[Ints, Ints32]:
    """Where each path begins, and the servers of all; of routes that are not fixed, the ends."""
    servers, indptr = plan.servers.astype(np.int32), plan.indptr
    servers[indptr[1:] - 1] ^= -1  # ~, which marks the last of each
    if plan.routes is None:
        return indptr[:-1], servers
    inner = np.ones(len(servers), dtype=np.bool_)
    inner[indptr[:-1]] = inner[indptr[1:] - 1] = False
    kept = np.minimum(np.diff(indptr), 2)
    return np.cumsum(kept) - kept, servers[~inner]


def _rows(plan: RunPlan, begins: Ints) -> Table:
    program, send = plan.program, plan.program.sends()
    rows = _allocate(program.operations, tables.ROW)
    task_state.fill_rows(rows, plan)
    rows["channel"] = plan.channel
    rows["path"][send], rows["back"][send] = begins[plan.path[send]], begins[plan.back[send]]
    return rows


def _enlarge(state: State, more: int = 0) -> State:
    """Add free slots, twice as many by default, and room for their events."""
    old = len(state.packets)
    total = old + (more or old)
    each = state.packets.dtype.itemsize + state.messages.dtype.itemsize
    if not more:
        require_memory(
            each * total,
            f"a replay of more than {old:,} messages and packets at a time",
            "take fewer ranks, fewer messages at once, or a larger packet_size",
            part=(each, "of these"),
        )
    grown = []
    due = int(state.heap.count["size"][0])
    for table, used in ((state.packets, old), (state.messages, old), (state.heap.entries, due)):
        grown.append(_allocate(len(table) + total - old, table.dtype))
        grown[-1][:used] = table[:used]
    packets, messages, entries = grown
    free = packets["next"][old:]
    free[:] = np.arange(old + 1, total + 1)
    free[-1] = state.loop["free"][0]
    state.loop["free"] = old
    state.loop["spare"] += total - old
    heap = state.heap._replace(entries=entries)
    return state._replace(packets=packets, messages=messages, heap=heap)


def _allocate(rows: int, dtype: np.dtype[np.void]) -> Table:
    """Make a table of zeros whose rows of 64 bytes are lines of the cache."""
    line = 64
    raw = np.zeros(rows * dtype.itemsize + line, dtype=np.uint8)
    begin = -raw.ctypes.data % line
    return raw[begin : begin + rows * dtype.itemsize].view(dtype)
