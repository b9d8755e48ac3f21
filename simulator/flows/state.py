"""The tables that the engines of whole messages work on, and how a run is laid out in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Floats, Ints, Table
from hopmap.simulator.heap_kernels import IndexedHeap, empty_heap
from hopmap.simulator.operations import Record
from hopmap.simulator.run_plan import RunPlan
from hopmap.simulator.task_state import (
    FACTOR,
    RANK,
    Columns,
    begin_tasks,
    fill_rows,
    loop_table,
    row_type,
    task_table,
    unset_times,
)

SERVER = np.dtype(
    [
        ("bandwidth", np.float64),
        ("latency", np.float64),
        ("messages", np.int64),  # of data
        ("bytes", np.int64),
        ("busy", np.float64),
    ]
)
# What is looked at for every server of a flow whose share changes.
LEVEL = np.dtype(
    [
        ("share", np.float64),  # of a flow with this bottleneck, for each unit of weight; or inf
        ("load", np.float64),  # rates of all flows over it
        ("highest", np.float64),  # no flow over it with another bottleneck has a higher share
        ("alarm", np.float64),  # load beyond which the share has to be found again
    ]
)
# The flows with one bottleneck.
GROUP = np.dtype(
    [
        ("first", np.int64),  # slot of one of them, -1 if there is none
        ("weight", np.float64),  # of all of them
        ("virtual", np.float64),  # bytes that each of them got until `since`, for a unit of weight
        ("since", np.float64),
        ("next", np.int64),  # slot of the one that ends first
        ("looks", np.int64),  # how often only they were looked at since all flows were
        ("noted", np.int64),  # whether the server is in the table `noted`
        ("crossing", np.int64),  # of any flow over the server, -1 if there is none
        ("users", np.float64),  # weight of all flows over it
        ("loose", np.int64),  # flows over it that have no bottleneck yet
    ]
)
SLOT = np.dtype(
    [
        ("begin", np.int64),  # its path, among the stops
        ("end", np.int64),
        ("weight", np.float64),  # its share is proportional to this
        ("finish", np.float64),  # virtual time of its bottleneck when it ends
        ("bottleneck", np.int32),  # server, -1 if all have room
        ("item", np.int32),  # the caller's name for it
        ("after", np.int32),  # the next one with its bottleneck, or the next free slot
        ("before", np.int32),
    ]
)
# A flow at one of its stops: slot * longest path + stop. The flows of a server are a list.
CROSSING = np.dtype([("after", np.int64), ("before", np.int64)])
STOP = np.dtype([("server", np.int32)])
NOTED = np.dtype([("place", np.int64)])
CANDIDATE = np.dtype(
    [
        ("slot", np.int64),
        ("weight", np.float64),
        ("cap", np.float64),  # share that other servers let it have
        ("place", np.int64),  # of the one that lets it have least
    ]
)
COUNTS = np.dtype(
    [
        ("free", np.int64),  # first free slot
        ("spare", np.int64),  # number of free slots
        ("noted", np.int64),  # servers in the table `noted`
        ("longest", np.int64),  # stops of the longest path
    ]
)


# Load, in bandwidths, beyond which a server that is no flow's bottleneck has to be looked at. It is
# above what rounding makes of a sum of rates.
FULL = 1 + 1e-12


class Flows(NamedTuple):
    """Open flows: tables, or in compiled code the first record of each."""

    servers: Any
    # levels, groups: table of LEVEL, table of GROUP: of each server
    levels: Any
    groups: Any
    stops: Any  # table of STOP: servers of all paths, one path behind the other
    slots: Any
    crossings: Any
    rows: Any  # table of CANDIDATE, as long as `slots`: flows of the server that is being looked at
    # table of NOTED, as long as `servers`: servers whose flows may end at other times than before
    noted: Any
    # servers whose share has to be found again, by the lower of it and the new one
    soiled: IndexedHeap
    counts: Any


def server_table(bandwidth: Floats, latency: Floats) -> Table:
    """Return idle servers."""
    servers = np.zeros(max(len(bandwidth), 1), dtype=SERVER)
    servers["bandwidth"][: len(bandwidth)] = bandwidth
    servers["latency"][: len(latency)] = latency
    return servers


def empty_flows(servers: Table, indptr: Ints, stops: Ints, room: int) -> Flows:
    """Return no flows over these servers and paths, with room for some."""
    counts = np.zeros(1, dtype=COUNTS)
    counts["free"] = -1
    counts["longest"] = np.diff(indptr).max(initial=1)
    levels, groups = np.zeros(len(servers), dtype=LEVEL), np.zeros(len(servers), dtype=GROUP)
    levels["share"], levels["alarm"] = np.inf, servers["bandwidth"] * FULL
    groups["first"] = groups["crossing"] = -1
    flows = Flows(
        servers=servers,
        levels=levels,
        groups=groups,
        stops=np.append(stops, -1).astype(np.int32).view(STOP),
        slots=np.zeros(0, dtype=SLOT),
        crossings=np.zeros(0, dtype=CROSSING),
        rows=np.zeros(0, dtype=CANDIDATE),
        noted=np.zeros(len(servers), dtype=NOTED),
        soiled=empty_heap(len(servers)),
        counts=counts,
    )
    return enlarge(flows, room)


def enlarge(flows: Flows, more: int) -> Flows:
    """Return the same flows with room for `more` others."""
    old, counts = len(flows.slots), flows.counts
    longer: dict[str, Any] = {}
    for name in ("slots", "crossings", "rows"):
        table = getattr(flows, name)
        extra = more * int(counts["longest"][0]) if name == "crossings" else more
        longer[name] = np.concatenate((table, np.zeros(extra, dtype=table.dtype)))
    longer["slots"]["after"][old:] = np.arange(old + 1, old + more + 1)
    longer["slots"]["after"][-1] = counts["free"][0]
    counts["free"] = old
    counts["spare"] += more
    return flows._replace(**longer)


SLOTS = 1 << 8  # for flows, to begin with

# Columns in addition to `task_state`'s.
LOOP: Columns = [
    ("flow", np.bool_),  # share servers by max-min fairness
    ("tasks", np.int64),
    ("messages", np.int64),
    ("events", np.int64),
]
ROW = row_type([("message", np.int32)])  # that it sends or receives, or -1
MESSAGE = np.dtype(
    [
        ("size", np.int64),
        ("send", np.int64),
        ("receive", np.int64),  # row, or -1
        ("path", np.int64),  # number of its path, and of that of its grant
        ("back", np.int64),
        ("rank", np.int32),  # that sends it
        ("cargo", np.int8),  # what of it is under way
        ("there", np.bool_),  # it or its request has arrived
        ("posted", np.bool_),  # its receive is there
    ],
    align=True,
)
PATH = np.dtype(
    [
        ("begin", np.int64),  # its first stop; the next path begins where it ends
        ("weight", np.float64),  # of its flows
    ]
)


class Run(NamedTuple):
    """All that a run is: tables, or in compiled code the first record of each."""

    loop: Any
    rows: Any
    tasks: Any
    messages: Any
    ranks: Any
    paths: Any
    message_times: Any
    operation_times: Any
    # items are the tasks, then the messages, then the messages that will have been sent, then the
    # servers, where flows end
    heap: IndexedHeap
    factors: Any  # FACTOR, of pauses, see `noise.py`
    flows: Flows


def begin(plan: RunPlan, record: Record, *, flow: bool) -> Run:
    """Lay out a run: every rank's own task goes on at 0."""
    program, parameters, messages = plan.program, plan.parameters, plan.messages
    send, receive = program.sends(), program.receives()
    loop = loop_table(plan, record, LOOP)
    loop["cut_through"] &= not flow
    loop["flow"], loop["tasks"], loop["messages"] = flow, program.tasks, messages
    bandwidth, latency = plan.bandwidth, plan.latency
    if flow:
        factor = parameters.flow_bandwidth_factor / parameters.flow_cross_traffic
        bandwidth, latency = bandwidth * factor, latency * parameters.flow_latency_factor
    heap = empty_heap(program.tasks + 2 * messages + len(bandwidth))
    begin_tasks(heap, plan)
    return Run(
        loop=loop,
        rows=_rows(plan, send, receive),
        tasks=task_table(plan),
        messages=_messages(plan, send, receive),
        ranks=np.zeros(program.ranks, dtype=RANK),
        paths=_paths(plan),
        **unset_times(plan, record),
        heap=heap,
        factors=plan.noise.factors.view(FACTOR),
        flows=empty_flows(
            server_table(bandwidth, latency), plan.indptr, plan.servers, SLOTS if flow else 1
        ),
    )


def _rows(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    rows = np.zeros(plan.program.operations, dtype=ROW)
    fill_rows(rows, plan)
    rows["message"] = -1
    rows["message"][send] = np.arange(len(send))
    rows["message"][receive[receive >= 0]] = np.flatnonzero(receive >= 0)
    return rows


def _messages(plan: RunPlan, send: Ints, receive: Ints) -> Table:
    program = plan.program
    messages = np.zeros(max(1, plan.messages), dtype=MESSAGE)
    columns: dict[str, NDArray[Any]] = {
        "size": program.size[send],
        "send": send,
        "receive": receive,
        "path": plan.path[send],
        "back": plan.back[send],
        "rank": program.rank_of_row()[send],
    }
    for name, column in columns.items():
        messages[name][: len(column)] = column
    return messages


def _paths(plan: RunPlan) -> Table:
    """Return the paths; where round trips count, weights are as SimGrid's CM02 and LV08 have them.

    A path of no latency counts there as one of a second.
    """
    table, parameters = np.zeros(len(plan.indptr), dtype=PATH), plan.parameters
    table["begin"], table["weight"] = plan.indptr, 1.0
    if parameters.flow_sharing == "round_trip" and len(plan.servers):
        delay, slow = (
            np.add.reduceat(column[plan.servers], plan.indptr[:-1])
            for column in (plan.latency, parameters.flow_weight_s / plan.bandwidth)
        )
        table["weight"][:-1] = 1 / np.where(delay > 0, delay + slow, 1.0)
    return table
