"""Lower bounds: what no replay of packets can be faster than, from the program and its plan alone.

A server serves one packet at a time, or flows that have no more than its bandwidth together, so
that it takes bytes / bandwidth for all that crosses it, except in the engine without contention; a
rank is busy for all that it computes and for every overhead; LogGP's end point passes one message
at a time. Only messages count that some rank waits for: an eager message that is never received
may still be under way when the last rank has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Floats, Ints
from hopmap.simulator import model
from hopmap.simulator.noise import expect_no_noise
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.run_plan import ENDS, RunPlan, plan_run, server_name
from hopmap.topologies import Topology, check_mapping


class Overheads(NamedTuple):
    """Seconds of each row: before its send is posted, and once what it waited for has arrived."""

    sending: Floats
    receiving: Floats


def overheads(program: Program, parameters: Parameters) -> Overheads:
    """Return what messages cost their ranks, as both packet engines count it.

    What a network interface sends or takes by itself (`SendMode.HARDWARE`) costs nothing; the
    receiver pays where it waits, at a RECV or at the WAIT of an IRECV.
    """
    kind, size, mode = program.kind, program.size, program.mode
    eager = (size < parameters.eager_limit) & (mode != model.RENDEZVOUS)
    of_bytes = np.where(eager, size * parameters.overhead_per_byte, 0.0)
    busy = mode != model.HARDWARE

    sends = busy & ((kind == Op.SEND) | (kind == Op.ISEND))
    copied = np.where(mode == model.BUFFERED, size * parameters.copy_per_byte, 0.0)
    sending = sends * (parameters.overhead_send + of_bytes + copied)

    of = np.where(kind == Op.WAIT, program.target, np.arange(program.operations))
    takes = busy[of] & ((kind == Op.RECV) | ((kind == Op.WAIT) & (kind[of] == Op.IRECV)))
    of_put = model.receive_overhead(
        model.PUT, parameters.overhead_recv, parameters.overhead_put_latency
    )
    overhead = np.where(mode == model.PUT, of_put, parameters.overhead_recv)
    return Overheads(sending, takes * (overhead + of_bytes)[of])


class Bound(NamedTuple):
    """A lower bound of the makespan."""

    seconds: float
    place: str  # link, node or rank that needs so long


def lower_bounds(
    program: Program,
    topology: Topology,
    node_of: ArrayLike,
    *,
    parameters: Parameters | None = None,
) -> Mapping[str, Bound]:
    """Lower bounds of the makespan by what sets them, largest first; bounds of 0 s are left out.

    "rank": the longest computation and overheads of a rank; "link", "injection", "ejection",
    "memory": the most bytes / bandwidth of such a server; "end point": the longest that a rank's
    end point needs for the rank's messages.
    """
    nodes = check_mapping(node_of, topology, program.ranks)
    return bounds_of(plan_run(program, topology, nodes, parameters or Parameters()), topology)


def bounds_of(ready: RunPlan, topology: Topology) -> Mapping[str, Bound]:
    """Lower bounds of a plan, see `lower_bounds`."""
    expect_no_noise(ready.parameters, "lower bounds are of a run")
    busy = _rank_seconds(ready)
    sends = surely_received(ready)
    bandwidth = ready.bandwidth.copy()
    bandwidth[ready.injection] *= ready.parameters.nic_rails
    load = _server_bytes(ready, sends) / bandwidth
    links, nodes = topology.links, topology.nodes
    # which links bytes cross is not known before, if routes are chosen on the way
    parts = {"link": load[:links]} if ready.routes is None else {}
    parts |= {end: load[links + k * nodes :][:nodes] for k, end in enumerate(ENDS)}
    first = {"link": 0} | {end: links + k * nodes for k, end in enumerate(ENDS)}
    bounds = {"rank": _largest(busy), "end point": _largest(_end_point_seconds(ready, sends))}
    for name, seconds in parts.items():
        if seconds.any():
            worst = int(seconds.argmax())
            bounds[name] = Bound(
                float(seconds[worst]), server_name(topology, first[name] + worst).place
            )
    ranked = sorted(bounds.items(), key=lambda item: -item[1].seconds)
    return {name: bound for name, bound in ranked if bound.seconds > 0}


def _largest(of_rank: Floats) -> Bound:
    if not of_rank.size:
        return Bound(0.0, "")
    worst = int(of_rank.argmax())
    return Bound(float(of_rank[worst]), f"rank {worst}")


def _rank_seconds(ready: RunPlan) -> Floats:
    """Add up computation and overheads of each rank's own task, from when its job starts."""
    program, parameters = ready.program, ready.parameters
    once = ready.compute + sum(overheads(program, parameters))
    of_task = np.bincount(_task_of_row(program), once * ready.iterations, program.tasks)
    busy: Floats = of_task[program.main()] + program.begins()
    return busy


def _end_point_seconds(ready: RunPlan, sends: Ints) -> Floats:
    """Time that these messages take at the end point of each rank, behind the last no gap."""
    program, parameters = ready.program, ready.parameters
    rank, times = program.rank_of_row()[sends], ready.iterations[sends]
    data = np.maximum(program.size[sends] - 1, 0) * times * parameters.gap_per_byte
    messages = np.bincount(rank, times, program.ranks)
    gaps = np.maximum(messages - 1, 0) * parameters.gap
    return np.bincount(rank, data, program.ranks) + gaps


def _server_bytes(ready: RunPlan, sends: Ints) -> Ints:
    """Bytes of these messages over each server."""
    program = ready.program
    of_path = np.zeros(len(ready.indptr) - 1, dtype=np.int64)
    np.add.at(of_path, ready.path[sends], program.size[sends] * ready.iterations[sends])
    carried = np.zeros(len(ready.bandwidth), dtype=np.int64)
    np.add.at(carried, ready.servers, np.repeat(of_path, np.diff(ready.indptr)))
    return carried


def surely_received(ready: RunPlan) -> Ints:
    """Rows that send what some rank has received before it finishes, for any timing.

    By channels: none counts in which a message may find no receive, or a receive is not waited for
    each time it is posted. That a bound leaves out what counts does not make it wrong.
    """
    program, channel = ready.program, ready.channel
    kind, loop = program.kind, _innermost_loop(program)
    waits = np.flatnonzero(kind == Op.WAIT)
    begun = program.target[waits]
    awaited = kind == Op.RECV
    awaited[begun[(waits > begun) & (loop[waits] == loop[begun])]] = True
    starts = np.flatnonzero(kind == Op.START)
    joined = np.zeros(program.tasks, dtype=np.bool_)
    joined[program.main()] = True
    joined[program.target[starts]] = awaited[starts]
    certain = awaited & joined[_task_of_row(program)]

    sends, takes = program.sends(), np.flatnonzero((kind == Op.RECV) | (kind == Op.IRECV))
    channels = int(channel.max(initial=-1)) + 1
    doubtful = np.bincount(channel[takes], ~certain[takes], channels) > 0
    sent = np.bincount(channel[sends], ready.iterations[sends], channels)
    taken = np.bincount(channel[takes], ready.iterations[takes], channels)
    return sends[(~doubtful & (sent <= taken))[channel[sends]]]


def _task_of_row(program: Program) -> Ints:
    return np.repeat(np.arange(program.tasks), np.diff(program.offsets))


def _innermost_loop(program: Program) -> Ints:
    """Row of the REPEAT of the innermost loop around each row, or -1."""
    loop = np.full(program.operations, -1, dtype=np.int64)
    # An outer loop ends behind the inner ones, which then overwrite it.
    for end in np.flatnonzero(program.kind == Op.REPEAT)[::-1].tolist():
        loop[program.target[end] : end + 1] = end
    return loop
