"""Replay a program on a network, with a named engine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.errors import expect_between, expect_one_of
from hopmap.progress import Progress
from hopmap.simulator.parameters.energy import energy_of
from hopmap.simulator.parameters.keys import DETERMINISTIC, ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.computation import omissions
from hopmap.simulator.programs.from_trace import lower
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.programs.steps import EXACT, vary
from hopmap.simulator.programs.unrolling import unroll
from hopmap.topologies import Topology, check_mapping
from hopmap.traces import Folded, Trace, require_memory

from .engines import DEFAULT_ENGINE, ENGINES
from .in_threads import in_threads
from .link_use import fit_bins
from .noise import levels, with_noise, without_noise
from .operations import NOTHING, Record, operations_of
from .result import MessageTimes, Outcome, Result, Servers
from .run_plan import RunPlan, plan_run
from .steady_state import MOST, SOME, LoopWatch, Steady, packet_hops, steps_of_run
from .uncertainty import LEAST, Ensemble

MOST_REPLAYS = 10**6

BYTES_PER_ROW = 140  # of the tables of an engine, measured: 140 compiled, 160 flow and analytic
BYTES_PER_MESSAGE = 80  # that is kept, measured
BYTES_PER_OPERATION = 180  # that is kept, measured


def simulate(
    program: Program | Trace | Folded,
    topology: Topology,
    node_of: ArrayLike,
    *,
    parameters: Parameters | None = None,
    engine: str = DEFAULT_ENGINE,
    record: Record = NOTHING,
    steady: Steady | None = None,
    repeat: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Simulate a run of what the ranks do, on the node of each.

    A trace is lowered first, with the parameters' algorithms. The engine is a name in `ENGINES`;
    "simpy" is the reference, whose times "compiled" has to the last bit.

    Parameters
    ----------
    record : Record
        What to keep: when each message moved, when each operation ran (and the messages), and in
        how many bins the use of every link over time, of which more than half are used.
    steady : Steady, optional
        When a run may be extrapolated from its first steps; never when left out. Runs that keep
        anything, and runs of engines that write loops out, are replayed whole.
    repeat : int
        How often to replay with noise, see `Result.ensemble`. Levels are the parameters', or else
        `noise.USUAL`; seeds count from theirs. The run itself has no noise then.
    progress : callable, optional
        Called now and then with the messages delivered so far and those to come in all.
    """
    from hopmap.compilation import wall

    chosen = parameters or Parameters()
    parameters = without_noise(chosen) if repeat else chosen
    if repeat:
        expect_between(ParameterError, f"repeat {repeat}", repeat, LEAST, MOST_REPLAYS)
    record = record._replace(messages=record.messages or record.operations)
    ready = prepare(program, topology, node_of, parameters, engine, record)
    run = ENGINES[engine].run
    begin, begin_running = time.perf_counter(), wall()
    extrapolated = None
    for most in (SOME, MOST):
        watch, whole = _watch(ready, steady, engine, record, most)
        if watch is None:
            break
        outcome = run(watch.steps.plan, record, progress, watch)
        if watch.left or not watch.steps.short:
            break
        watch = None
    if watch is None:
        outcome = run(ready, record, progress)
    elif watch.left:
        (outcome, extrapolated), whole = watch.extrapolate(outcome), ""
    seconds = wall() - begin_running
    compiled = time.perf_counter() - begin - seconds
    nodes = check_mapping(node_of, topology, ready.program.ranks)
    result = _result(
        ready,
        outcome,
        record,
        engine=engine,
        network=topology,
        wall_seconds=seconds,
        compile_seconds=compiled,
        omitted=omissions(ready.program, ready.channel, ready.iterations),
        extrapolated=extrapolated,
        whole=whole,
        node_of=nodes,
        parameters=chosen,
    )
    if parameters.energy:
        energy = energy_of(
            parameters.energy, topology, nodes, result.link_bytes, result.compute, result.makespan
        )
        result = replace(result, energy=energy)
    if repeat:
        ensemble = _ensemble(engine, ready, with_noise(chosen), repeat, progress)
        result = replace(result, ensemble=ensemble)
    return result


def _ensemble(
    engine: str, ready: RunPlan, noisy: Parameters, repeats: int, progress: Progress | None
) -> Ensemble:
    """Replay a plan with the noise of one seed after the other."""

    def makespan(turn: int, check: Progress) -> float:
        again = ready.again(replace(noisy, noise_seed=noisy.noise_seed + turn))
        return float(ENGINES[engine].run(again, NOTHING, check).finish.max(initial=0.0))

    makespans = np.zeros(repeats)
    for done, found in enumerate(in_threads(makespan, range(repeats))):
        makespans[done] = found
        if progress is not None:
            progress(done + 1, repeats, f"with noise, {done + 1} of {repeats}")
    return Ensemble(makespans, noisy.noise_seed, levels(noisy))


def expect_known(parameters: Parameters, engine: str) -> None:
    """Raise `ParameterError` where an engine has nothing that parameters are of."""
    if ENGINES[engine].packets:
        return
    for key, value, what, known in (
        ("nic", parameters.nic, "could take turns", "fifo"),
        ("network.buffer", parameters.network_buffer, "wait for room", 0),
        ("network.routing", parameters.network_routing, "find their way", DETERMINISTIC),
    ):
        if value != known:
            raise ParameterError(
                f"{key} {value}: engine {engine} has no packets that {what}: expected {known}"
            )


def prepare(
    program: Program | Trace | Folded,
    topology: Topology,
    node_of: ArrayLike,
    parameters: Parameters,
    engine: str,
    record: Record = NOTHING,
) -> RunPlan:
    """Check what a run is to be of, see `simulate`, and return its plan."""
    expect_one_of(ParameterError, "unknown engine", engine, ENGINES)
    if record.bins < 0:
        raise ParameterError(f"record: {record.bins} bins: expected at least 0")
    if record.bins and not ENGINES[engine].packets:
        packets = " or ".join(name for name, entry in ENGINES.items() if entry.packets)
        raise ParameterError(
            f"use of links over time: engine {engine} does not serve packets: expected {packets}"
        )
    expect_known(parameters, engine)
    if not isinstance(program, Program):
        program = lower(program, parameters.algorithms)
    elif parameters.algorithms and dict(parameters.algorithms) != dict(program.algorithms):
        raise ParameterError(
            f"algorithms {dict(parameters.algorithms)}: the program was lowered with "
            f"{dict(program.algorithms)}: expected the same"
        )
    nodes = check_mapping(node_of, topology, program.ranks)
    _require_memory(program, engine, record, topology.links)
    return plan_run(program, topology, nodes, parameters)


def _watch(
    plan: RunPlan, steady: Steady | None, engine: str, record: Record, most: int
) -> tuple[LoopWatch | None, str]:
    """Return what watches a run, if anything, and why it is replayed whole otherwise."""
    if steady is None or (steady.hops and packet_hops(plan) < steady.hops):
        return None, ""
    if record != NOTHING:
        return None, "what it keeps is of all steps"
    if len(plan.program.jobs) > 1:
        return None, "its jobs have steps of their own"
    if plan.parameters != without_noise(plan.parameters):
        return None, "with noise no two steps are the same"
    if not ENGINES[engine].packets:
        return None, f"engine {engine} writes loops out"
    if plan.routes is not None:
        routing = plan.parameters.network_routing
        return None, f"with network.routing {routing} no two steps are the same"
    loops = (plan.program.kind == Op.REPEAT).any()
    tolerance = steady.tolerance if loops else steady.written
    unsettled = f"its steps do not settle to {tolerance:.2%}"
    if tolerance <= EXACT:
        unsettled = "its steps do not repeat exactly, and no tolerance is set"
        if not loops and vary(plan.program, plan.compute):
            return None, unsettled
    steps = steps_of_run(plan, most)
    if isinstance(steps, str):
        return None, steps
    return LoopWatch(steps, tolerance), unsettled


def _require_memory(program: Program, engine: str, record: Record, links: int) -> None:
    times = program.iterations()
    ran = int(times.sum())
    rows = program.operations if ENGINES[engine].packets else ran
    kept = int(times[program.sends()].sum()) if record.messages else 0
    need = BYTES_PER_ROW * rows + BYTES_PER_MESSAGE * kept + 8 * links * record.bins
    what = f" that keeps {kept:,} messages" if kept else ""
    if record.operations:
        need += BYTES_PER_OPERATION * ran
        what = f" that keeps {ran:,} operations"
    if record.bins:
        what += f"{' and' if what else ' that keeps'} {record.bins:,} bins of {links:,} links"
    loops = rows > program.operations
    require_memory(
        need,
        f"{program.name}: a replay of {rows:,} operations{what}",
        "take fewer steps or ranks"
        + (" or bins" if record.bins else "")
        + (", or engine compiled, which keeps loops" if loops else ""),
        part=None if what else (BYTES_PER_ROW, "operations"),
    )


def _result(
    ready: RunPlan, outcome: Outcome, record: Record, *, network: Topology, **more: Any
) -> Result:
    """Say what came of a run, server by server; `more` are fields of `Result`."""
    program = ready.program
    edges = np.cumsum([network.links, network.nodes, network.nodes])
    split = zip(*(np.split(column, edges) for column in outcome.servers), strict=True)
    links, injection, ejection, memory = (Servers(*columns) for columns in split)
    makespan = float(outcome.finish.max(initial=0.0))
    times = None
    if record.messages:
        rows = unroll(program)
        rows = rows[ready.path[rows] >= 0]
        times = MessageTimes(
            source=program.rank_of_row()[rows],
            target=program.peer[rows],
            size=program.size[rows],
            **outcome.messages._asdict(),
        )
    of_ranks = ("finish", "compute", "communicate", "wait")
    return Result(
        **{name: getattr(outcome, name) for name in (*of_ranks, "events", "controls")},
        topology=network.spec,
        network=network,
        program=program,
        notes=program.notes,
        makespan=makespan,
        messages=ready.messages,
        bytes=ready.bytes,
        link_messages=links.messages,
        link_bytes=links.bytes,
        link_busy=links.busy,
        link_queue=links.longest_wait,
        link_waited=links.waited,
        injection=injection,
        ejection=ejection,
        memory=memory,
        message_times=times,
        link_use=fit_bins(*outcome.use, makespan) if record.bins else None,
        operations=operations_of(program, outcome.operations) if record.operations else None,
        **more,
    )
