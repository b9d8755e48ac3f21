"""One answer: how ranks should be placed, what that buys, and whether it is worth it.

The default order is compared with what mappers find; the fastest of them by one replay each is
replayed again with noise, with the same seeds as the default order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hopmap.arrays import Floats
from hopmap.mappers import parse_pipeline
from hopmap.mappers.pipeline import time_mapping
from hopmap.progress import Progress, silent
from hopmap.simulator import DEFAULT_ENGINE, Program, Result, Steady, simulate
from hopmap.simulator.explain.sensitivity import free_makespan
from hopmap.simulator.noise import without_noise
from hopmap.simulator.simulate import prepare
from hopmap.simulator.steady_state import packet_hops
from hopmap.simulator.uncertainty import RELEVANCE, Interval, faster, ratio
from hopmap.units import show_seconds

from .machine import Machine, MachineLike
from .mapping import DEFAULT_ORDER, Placement
from .provenance import with_assumed
from .simulation import check_engine
from .workload import Workload, WorkloadLike

MAPPERS = ("auto", "auto(objective=max_link_load)", "recursive_bisection")
SECONDS = 10.0
REPEATS = 20
MANY = 50_000_000  # packet-hops of a replay: ten seconds, and there are dozens of replays
LONG = 20  # packet-hops of a message in the mean


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mapping and its replay."""

    placement: Placement
    # Without noise; the replays with noise, of the baseline and the best, are its ensemble.
    result: Result


@dataclass(frozen=True, eq=False)
class Advice:
    """What to do.

    Attributes
    ----------
    name : str
        Of the trace.
    baseline : Candidate
        The default order: rank after rank on node after node.
    best : Candidate
        The fastest of all by one replay; may be the default order.
    candidates : tuple of Candidate
        All other candidates, the fastest first.
    free : float
        Seconds of the run on a network that takes no time.
    engine : str
        Of all replays.
    relevance : float
        Share of the runtime below which a gain makes no practical difference.
    """

    name: str
    baseline: Candidate
    best: Candidate
    candidates: tuple[Candidate, ...]
    free: float
    engine: str = DEFAULT_ENGINE
    relevance: float = RELEVANCE

    @property
    def network_share(self) -> float:
        """Share of the run in default order that the network decides, and with it the mapping."""
        makespan = self.baseline.result.makespan
        return max(0.0, 1 - self.free / makespan) if makespan > 0 else 0.0

    @property
    def gain(self) -> Interval:
        """How much shorter the best is than the default order, 0.1 being 10 %; 95 %."""
        if self.best is self.baseline:
            return Interval(0.0, 0.0, 0.0)
        of = ratio(_times(self.best), _times(self.baseline))
        return Interval(1 - of.median, 1 - of.high, 1 - of.low)

    @property
    def seconds_saved(self) -> float:
        """Seconds by which the best is shorter than the default order, without noise."""
        return self.baseline.result.makespan - self.best.result.makespan

    @property
    def significant(self) -> bool:
        """Whether the best is faster beyond what noise explains."""
        if self.best is self.baseline:
            return False
        return bool(faster([_times(self.best), _times(self.baseline)])[0, 1])

    @property
    def worth_it(self) -> bool:
        """Whether the best is significantly faster, with a practical difference."""
        return self.significant and self.gain.median >= self.relevance

    @property
    def verdict(self) -> str:
        """One sentence."""
        gain, share = self.gain, self.network_share
        if self.worth_it:
            return (
                f"worth it: {self.best.placement.mapper} makes the run {_percent(gain.median)} "
                f"shorter ({_percent(gain.low)} to {_percent(gain.high)}), "
                f"by {show_seconds(self.seconds_saved)}"
            )
        if share < self.relevance:
            rest = "more than 99.9 %" if 1 - share > 0.999 else _percent(1 - share)
            return f"no practical difference: {rest} of the run is computing and overhead"
        if self.best is self.baseline:
            return "keep the default order: no mapper found a faster one"
        if self.significant:
            return (
                f"no practical difference: {self.best.placement.mapper} makes the run "
                f"{_percent(gain.median)} shorter, less than {_percent(self.relevance)}"
            )
        return (
            f"keep the default order: {self.best.placement.mapper} is not significantly faster "
            f"({_percent(gain.low)} to {_percent(gain.high)} shorter)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``advise --json`` prints."""
        return {
            "name": self.name,
            "topology": self.baseline.placement.topology.spec,
            "ranks": len(self.baseline.placement),
            "verdict": self.verdict,
            "worth_it": self.worth_it,
            "network_share": self.network_share,
            "engine": self.engine,
            "gain": self.gain._asdict(),
            "seconds_saved": self.seconds_saved,
            "significant": self.significant,
            "baseline": _facts(self.baseline),
            "best": _facts(self.best),
            "candidates": [_facts(each) for each in self.candidates],
            "assumed": list(self.best.result.assumed),
        }


def advise(
    workload: WorkloadLike,
    machine: MachineLike,
    mappers: Sequence[str] = MAPPERS,
    *,
    seed: int = 0,
    seconds: float = SECONDS,
    repeat: int = REPEATS,
    engine: str | None = None,
    relevance: float = RELEVANCE,
    progress: Progress = silent,
) -> Advice:
    """Say how ranks should be placed, what that buys, and whether it is worth it.

    Mappers see all that the replay sends, messages of collectives included.

    Parameters
    ----------
    workload, machine
        See `simulate` and `map_ranks`.
    mappers : sequence of str
        Pipelines to compare with the default order.
    seconds : float
        Time budget of all searches together.
    repeat : int
        Replays with noise of the best and of the default order, 6 at least.
    engine : str, optional
        Of the replays. When left out "compiled", or "flow" for long messages of so many packets
        that dozens of replays would take long.
    relevance : float
        Share of the runtime below which a gain makes no practical difference.

    Examples
    --------
    >>> advise("stencil:4x4,5pt,bytes=1e5", "torus:2x2x4", ["auto(moves=100)"]).worth_it
    True
    """
    pipelines = list(dict.fromkeys(" | ".join(map(str, parse_pipeline(text))) for text in mappers))
    if engine is not None:
        check_engine(engine)
    workload, machine = Workload.of(workload), Machine.of(machine)
    machine.expect_alone("advise")
    program = workload.program(machine.parameters.algorithms)
    room, traffic = machine.usable(program.ranks), program.traffic()
    found: list[Candidate] = []
    for done, mapper in enumerate((DEFAULT_ORDER, *pipelines)):
        progress(done, len(pipelines) + 3, mapper)
        budget = seconds / max(len(pipelines), 1)
        node_of, took = time_mapping(traffic, room, mapper, seed=seed, seconds=budget)
        placement = Placement(workload, machine, node_of, traffic, room, mapper, took)
        engine = engine or _engine(placement)
        found.append(Candidate(placement, _replay(placement, engine)))
    baseline = found[0]
    ranked = sorted(found, key=lambda each: each.result.makespan)  # of equals the first, baseline
    best = ranked[0]
    progress(len(pipelines) + 1, len(pipelines) + 3, "noise")
    assert engine is not None
    noisy = {id(each): _with_noise(each, engine, repeat) for each in (baseline, best)}
    progress(len(pipelines) + 2, len(pipelines) + 3, "free network")
    others = tuple(each for each in ranked if each is not best and each is not baseline)
    node_of = baseline.placement.node_of
    free = free_makespan(program, machine.network, node_of, machine.parameters, engine)
    pair = noisy[id(baseline)], noisy[id(best)]
    return Advice(workload.name, *pair, others, free, engine, relevance)


def _engine(baseline: Placement) -> str:
    """Return the engine for dozens of replays."""
    parameters = baseline.machine.parameters  # which only packets know:
    turns = parameters.nic != "fifo" or parameters.network_buffer
    if turns or parameters.network_routing != "deterministic":
        return DEFAULT_ENGINE
    program, network = _program(baseline), baseline.machine.network
    plan = prepare(program, network, baseline.node_of, parameters, DEFAULT_ENGINE)
    hops = packet_hops(plan)
    return "flow" if hops > max(MANY, LONG * plan.messages) else DEFAULT_ENGINE


def _program(placement: Placement) -> Program:
    return placement.workload.program(placement.machine.parameters.algorithms)


def _replay(placement: Placement, engine: str, repeat: int = 0) -> Result:
    parameters = placement.machine.parameters
    return simulate(
        _program(placement),
        placement.machine.network,
        placement.node_of,
        parameters=parameters if repeat else without_noise(parameters),
        engine=engine,
        steady=Steady(),
        repeat=repeat,
    )


def _with_noise(candidate: Candidate, engine: str, repeat: int) -> Candidate:
    placement = candidate.placement
    settings, generated = placement.machine.settings, placement.workload.generated
    result = _replay(placement, engine, repeat)
    return Candidate(placement, with_assumed(result, settings, generated=generated))


def _times(candidate: Candidate) -> Floats:
    assert candidate.result.ensemble is not None
    return candidate.result.ensemble.makespans


def _facts(candidate: Candidate) -> dict[str, Any]:
    placement, result = candidate.placement, candidate.result
    found = {"mapper": placement.mapper, "makespan": result.makespan, "seconds": placement.seconds}
    if result.ensemble is not None:
        found["ensemble"] = result.ensemble.to_dict()
    return found | {"node_of": placement.node_of.tolist()}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
