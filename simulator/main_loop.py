"""The main loop of a program: the steps that all ranks go through, and what one of them moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.model import packet_count
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.run_plan import RunPlan

SENDS, RECEIVES = (Op.SEND, Op.ISEND), (Op.RECV, Op.IRECV)


class MainLoop(NamedTuple):
    """A loop that every rank has."""

    rows: Ints  # shape (ranks,): its REPEAT in each rank
    iterations: int


class Step(NamedTuple):
    """What all ranks together move on one iteration of a loop."""

    # messages, bytes: shape (servers,): data over each server
    messages: Ints
    bytes: Ints
    # events, controls: packet-hops; requests and grants
    events: int
    controls: int


def main_loop(plan: RunPlan) -> MainLoop | None:
    """Find the loop in which every rank does most.

    None if some rank has no loop; if they differ in their iterations or, of several with as many,
    in their place; or if only one side of a message is in them.
    """
    program = plan.program
    ends = _outermost(program)
    rank = program.rank_of_row()[ends]
    if not len(ends) or len(np.unique(rank)) < program.ranks:
        return None
    done = np.concatenate(([0], np.cumsum(plan.iterations)))
    work = done[ends + 1] - done[program.target[ends]]
    order = np.lexsort((work, rank))
    rows = ends[order[np.searchsorted(rank, np.arange(program.ranks), side="right") - 1]]
    iterations = int(program.size[rows[0]])
    alike = ends[program.size[ends] == iterations]
    place = np.searchsorted(alike, rows) - np.searchsorted(alike, _first_rows(program))
    if (program.size[rows] != iterations).any() or (place != place[0]).any():
        return None
    times = _iterations_in(plan, rows)
    sent, taken = (
        np.bincount(plan.channel[mine], times[mine], minlength=int(plan.channel.max()) + 2)
        for mine in (np.isin(program.kind, kinds) for kinds in (SENDS, RECEIVES))
    )
    return MainLoop(rows, iterations) if np.array_equal(sent, taken) else None


def _first_rows(program: Program) -> Ints:
    """First row of each rank's own task."""
    return program.offsets[program.main()]


def _outermost(program: Program) -> Ints:
    """REPEATs of ranks that stand in no other loop, rising."""
    ends = np.flatnonzero(program.kind == Op.REPEAT)
    depth = np.zeros(program.operations + 1, dtype=np.int64)
    np.add.at(depth, program.target[ends], 1)
    np.add.at(depth, ends + 1, -1)
    task = np.searchsorted(program.offsets, ends, side="right") - 1
    own = program.main()[program.rank_of[task]] == task
    outermost: Ints = ends[own & (np.cumsum(depth)[ends] == 1)]
    return outermost


def _iterations_in(plan: RunPlan, rows: Ints) -> Ints:
    """How often each operation runs on one iteration of the loops that end in these rows."""
    inside = np.zeros(plan.program.operations + 1, dtype=np.int64)
    inside[plan.program.target[rows]] = 1
    inside[rows + 1] -= 1
    times: Ints = np.cumsum(inside)[:-1] * plan.iterations // plan.program.size[rows[0]]
    return times


def step_of(plan: RunPlan, loop: MainLoop) -> Step:
    """Return what moves on one iteration."""
    times = _iterations_in(plan, loop.rows)
    sends = plan.program.sends()
    return _moved(plan, sends[times[sends] > 0], times)


def packet_hops(plan: RunPlan) -> int:
    """Packets that all servers have to serve in the whole run."""
    return _moved(plan, plan.program.sends(), plan.iterations).events


def _moved(plan: RunPlan, rows: Ints, times: Ints) -> Step:
    """Return what these rows move when they send so many times."""
    parameters = plan.parameters
    size, times, length = plan.program.size[rows], times[rows], np.diff(plan.indptr)
    way, back = length[plan.path[rows]], length[plan.back[rows]]
    at = np.repeat(plan.indptr[plan.path[rows]] - np.cumsum(way) + way, way)
    server = plan.servers[at + np.arange(len(at))]
    moved = np.zeros((2, len(plan.bandwidth)), dtype=np.int64)
    np.add.at(moved[0], server, np.repeat(times, way))
    np.add.at(moved[1], server, np.repeat(times * size, way))
    packets = np.maximum(1, -(-size // parameters.packet_size))
    asked, answered = (times * given for given in plan.controls(rows))
    control = packet_count(parameters.control_bytes, parameters.packet_size)
    return Step(
        moved[0],
        moved[1],
        events=int((times * packets * way + control * (asked * way + answered * back)).sum()),
        controls=int((asked + answered).sum()),
    )
