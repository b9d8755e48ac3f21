"""Replay a program on a network, with a named engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.compilation import compiling
from hopmap.progress import Progress
from hopmap.simulator.parameters.energy import energy_of
from hopmap.simulator.parameters.parameters import ParameterError, Parameters, unknown
from hopmap.simulator.programs.from_trace import lower
from hopmap.simulator.programs.program import Program
from hopmap.simulator.programs.unrolling import unrolled
from hopmap.topologies import Topology, check_mapping
from hopmap.traces import Folded, Trace, require_memory

from .flows import message_engine
from .link_use import fitted
from .operations import operations_of
from .packets import compiled_engine
from .record import Record
from .reference import simpy_engine
from .result import MessageTimes, Outcome, Result, Servers
from .run_plan import RunPlan, plan_run

BYTES_PER_ROW = 140  # of the tables of an engine, measured: 140 compiled, 160 flow and analytic
BYTES_PER_MESSAGE = 80  # that is kept, measured
BYTES_PER_OPERATION = 180  # that is kept, measured


class Engine(NamedTuple):
    """A way to run a plan.

    Attributes
    ----------
    run : callable
        ``(plan, record, progress) -> Outcome``.
    summary : str
        One line for ``hopmap list engines``.
    packets : bool
        Whether links serve packets one after the other, so that their use over time is known; and
        what repeats stands in memory once.
    """

    run: Callable[[RunPlan, Record, Progress | None], Outcome]
    summary: str
    packets: bool = False


ENGINES: Mapping[str, Engine] = {
    "simpy": Engine(simpy_engine.run, "packets on SimPy's event queue, the reference", True),
    "compiled": Engine(compiled_engine.run, "the same packets and times, compiled", True),
    "flow": Engine(message_engine.run_flow, "messages as flows that share links max-min fairly"),
    "analytic": Engine(message_engine.run_analytic, "messages that never meet: no contention"),
}


DEFAULT_ENGINE = "compiled"


def simulate(
    program: Program | Trace | Folded,
    topology: Topology,
    node_of: ArrayLike,
    *,
    parameters: Parameters | None = None,
    engine: str = DEFAULT_ENGINE,
    record_messages: bool = False,
    record_operations: bool = False,
    record_links: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Simulate a run.

    Parameters
    ----------
    program : Program, Trace or Folded
        What the ranks do; a trace is lowered first, with the parameters' algorithms.
    node_of : array_like of int, shape (ranks,)
        Node of each rank.
    parameters : Parameters, optional
        End points, packets, collectives.
    engine : str
        A name in `ENGINES`; "simpy" is the reference, whose times "compiled" has to the last bit.
    record_messages : bool
        Whether to keep when each message was sent and delivered.
    record_operations : bool
        Whether to keep when each operation ran, and the messages; see `Operations`.
    record_links : int
        In how many bins at most to keep the use of every link over time, see `LinkUse`; more than
        half of them are used. Engines of packets only.
    progress : callable, optional
        Called now and then with the messages delivered so far and those to come in all.

    Raises
    ------
    ParameterError
        Unknown engine, algorithms other than those the program was lowered with, or the use of
        links over time, or turns of packets, from an engine that does not know them.
    MappingError
        See `check_mapping`.
    DeadlockError
        The run gets stuck.
    OutOfMemoryError
        The tables of the run would not fit; what is in flight comes on top and is not known before.
    """
    if engine not in ENGINES:
        raise ParameterError(unknown("engine", engine, ENGINES))
    if record_links < 0:
        raise ParameterError(f"record_links {record_links}: expected at least 0 bins")
    if record_links and not ENGINES[engine].packets:
        packets = " or ".join(name for name, entry in ENGINES.items() if entry.packets)
        raise ParameterError(
            f"use of links over time: engine {engine} does not serve packets: expected {packets}"
        )
    parameters = parameters or Parameters()
    if parameters.nic != "fifo" and not ENGINES[engine].packets:
        raise ParameterError(
            f"nic {parameters.nic}: engine {engine} has no packets that could take turns: "
            f"expected fifo"
        )
    if not isinstance(program, Program):
        program = lower(program, parameters.algorithms)
    elif parameters.algorithms and dict(parameters.algorithms) != dict(program.algorithms):
        raise ParameterError(
            f"algorithms {dict(parameters.algorithms)}: the program was lowered with "
            f"{dict(program.algorithms)}: expected the same"
        )
    nodes = check_mapping(node_of, topology, program.ranks)
    record = Record(record_messages or record_operations, record_operations, record_links)
    _require_memory(program, engine, record, topology.links)
    ready = plan_run(program, topology, nodes, parameters)
    begin = time.perf_counter()
    with compiling() as spent:
        outcome = ENGINES[engine].run(ready, record, progress)
    compiled = sum(spent)
    seconds = time.perf_counter() - begin - compiled
    result = _result(engine, topology, ready, outcome, seconds, record)
    result = replace(result, compile_seconds=compiled, network=topology)
    if not parameters.energy:
        return result
    energy = energy_of(
        parameters.energy, topology, nodes, result.link_bytes, result.compute, result.makespan
    )
    return replace(result, energy=energy)


def _require_memory(program: Program, engine: str, record: Record, links: int) -> None:
    times = program.trips()
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
    )


def _result(
    engine: str,
    topology: Topology,
    ready: RunPlan,
    outcome: Outcome,
    seconds: float,
    record: Record,
) -> Result:
    program = ready.program
    edges = np.cumsum([topology.links, topology.nodes, topology.nodes])
    split = zip(*(np.split(column, edges) for column in outcome.servers), strict=True)
    links, injection, ejection, memory = (Servers(*columns) for columns in split)
    makespan = float(outcome.finish.max(initial=0.0))
    times = None
    if record.messages:
        rows = unrolled(program)
        rows = rows[ready.path[rows] >= 0]
        times = MessageTimes(
            source=program.rank_of_row()[rows],
            target=program.peer[rows],
            size=program.size[rows],
            **outcome.messages._asdict(),
        )
    return Result(
        engine=engine,
        topology=topology.spec,
        makespan=makespan,
        messages=ready.messages,
        bytes=ready.bytes,
        events=outcome.events,
        controls=outcome.controls,
        wall_seconds=seconds,
        finish=outcome.finish,
        compute=outcome.compute,
        communicate=outcome.communicate,
        wait=outcome.wait,
        link_messages=links.messages,
        link_bytes=links.bytes,
        link_busy=links.busy,
        link_queue=links.longest_wait,
        link_waited=links.waited,
        injection=injection,
        ejection=ejection,
        memory=memory,
        message_times=times,
        link_use=fitted(*outcome.use, makespan) if record.bins else None,
        operations=operations_of(program, outcome.operations) if record.operations else None,
    )
