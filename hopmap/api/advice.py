"""One answer: how ranks should be placed, what that buys, and whether it is worth it.

The default order is compared with what mappers find, under models of the machine that are drawn
from the ranges of `robust`: every model replays all of them with the same speeds and the same
noise. After each `FEW` models the worse half of the mappers is dropped (sequential halving, see
`robust`), until one is left. Its gains over all models are the answer. Cost: a replay for each
mapper, two for each model, and some for the mappers that are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats
from hopmap.errors import expect_between
from hopmap.mappers import parse_pipeline
from hopmap.notebook import ShownMixin
from hopmap.progress import Progress, silent
from hopmap.simulator import (
    DEFAULT_ENGINE,
    DeadlockError,
    ParameterError,
    Program,
    Result,
    Steady,
    simulate,
)
from hopmap.simulator.explain.sensitivity import free_makespan
from hopmap.simulator.in_threads import in_threads
from hopmap.simulator.noise import without_noise
from hopmap.simulator.parameters.settings import SettingError
from hopmap.simulator.simulate import prepare
from hopmap.simulator.steady_state import packet_hops
from hopmap.simulator.uncertainty import LEAST, RELEVANCE, Interval, prediction_interval
from hopmap.traces.trace import SharedCores

from .comparison import Comparison, auto_by_both
from .default_order import DEFAULT_ORDER
from .machine import Machine, MachineLike
from .mapping import Placement
from .provenance import with_assumed
from .robust.ranges import Settings, draw_models, read_ranges, without_packets
from .robust.robust import MOST_SAMPLES, Sampling, replay_under
from .simulation import check_engine
from .workload import Workload, WorkloadLike

SECONDS = 10.0
SAMPLES = 40  # models: of so many the next one lies between the extremes with 95 %
FEW = 4  # models after which the worse half of the mappers is dropped
MANY = 25_000_000  # packet-hops of a replay: five seconds, and there are a hundred replays
TURNS_WITHIN = 1.1  # of the compute.scale at which a verdict changes
LONG = 20  # packet-hops of a message in the mean


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mapping and its replay."""

    placement: Placement
    result: Result  # By the parameters as they are, without noise.


class Rescaled(NamedTuple):
    """What the verdict would be if computing took less time than was recorded on shared cores.

    Attributes
    ----------
    shared : SharedCores
        How ranks sat when they were recorded.
    least : float
        The least "compute.scale" that this explains: cores / ranks.
    gain : float
        What the best of the mappings gains there, without noise.
    relevance : float
        Gain from which on a mapping is worth it.
    turns : float or None
        The "compute.scale" at which the gain crosses that.
    """

    shared: SharedCores
    least: float
    gain: float
    relevance: float
    turns: float | None

    def __str__(self) -> str:
        least = f"--set compute.scale={self.least:.3g}"
        turns = "does not cross" if self.turns is None else "crosses"
        where = "" if self.turns is None else f" at compute.scale={self.turns:.2g}"
        return (
            f"{self.shared}: with {least} the best mapping saves {_percent(self.gain)}; the gain "
            f"{turns} {_percent(self.relevance)}{where}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Advice(ShownMixin):
    """What to do.

    Attributes
    ----------
    name : str
        Of the trace.
    baseline : Candidate
        The default order: rank after rank on node after node.
    best : Candidate
        The one that gains most over the models; may be the default order.
    candidates : tuple of Candidate
        All other candidates, the fastest first.
    free : float
        Seconds of the run on a network that takes no time.
    gains : ndarray(float64, shape=(models,))
        How much shorter the best is than the default order under each model, 0.1 being 10 %.
    models : tuple of dict
        What each model sets, by key.
    rejected : tuple of str
        Why models were left out that cannot be replayed, one text a model.
    engine : str
        Of all replays.
    relevance : float
        Share of the runtime below which a gain makes no practical difference.
    rescaled : Rescaled or None
        If ranks shared cores while they were recorded, what less computing would mean.
    """

    name: str
    baseline: Candidate
    best: Candidate
    candidates: tuple[Candidate, ...]
    free: float
    gains: Floats
    models: tuple[Settings, ...]
    rejected: tuple[str, ...] = ()
    engine: str = DEFAULT_ENGINE
    relevance: float = RELEVANCE
    rescaled: Rescaled | None = None

    def __repr__(self) -> str:
        return f"<Advice on {self.name}, {self.baseline.placement.topology.spec}: {self.verdict}>"

    @property
    def network_share(self) -> float:
        """Share of the run in default order that the network decides, and with it the mapping."""
        makespan = self.baseline.result.makespan
        return max(0.0, 1 - self.free / makespan) if makespan > 0 else 0.0

    @property
    def gain(self) -> Interval:
        """How much shorter the best is than the default order: median, and 95 % of the models."""
        return prediction_interval(self.gains)

    @property
    def seconds_saved(self) -> float:
        """Seconds by which the best is shorter than the default order, without noise."""
        return self.baseline.result.makespan - self.best.result.makespan

    @property
    def worth_it(self) -> bool:
        """Whether the gain makes a practical difference at both ends of its interval."""
        return self.best is not self.baseline and self.gain.low >= self.relevance

    @property
    def verdict(self) -> str:
        """One sentence."""
        gain, share = self.gain, self.network_share
        if self.worth_it:
            return f"worth it: {self._saves}"
        if share < self.relevance:
            rest = "more than 99.9 %" if 1 - share > 0.999 else _percent(1 - share)
            return f"no practical difference: {rest} of the run is computing and overhead"
        if self.best is self.baseline:
            if any(c.result.makespan < self.baseline.result.makespan for c in self.candidates):
                return f"keep the default order: no other is faster over {len(self.models)} models"
            return "keep the default order: no mapper found a faster one"
        if gain.high < self.relevance:
            return f"no practical difference: {self._saves}, less than {_percent(self.relevance)}"
        return f"uncertain: {self._saves}"

    @property
    def _saves(self) -> str:
        """Say what the best saves: "auto saves 1.6 %, between -0.2 and 4.0 % over ..."."""
        median, low, high = (f"{100 * each:.1f}" for each in self.gain)
        return (
            f"{self.best.placement.mapper} saves {median} %, between {low} and {high} % over "
            f"{len(self.gains)} models of this network"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``advise --json`` prints."""
        extrapolated = self.best.result.extrapolated
        return {
            "name": self.name,
            "topology": self.baseline.placement.topology.spec,
            "ranks": len(self.baseline.placement),
            "verdict": self.verdict,
            "worth_it": self.worth_it,
            "network_share": self.network_share,
            "engine": self.engine,
            "assumed_rounds": self.best.placement.workload.assumed_rounds,
            "extrapolated": None if extrapolated is None else asdict(extrapolated),
            "gain": self.gain._asdict(),
            "gains": self.gains.tolist(),
            "models": [dict(model) for model in self.models],
            "rejected": list(self.rejected),
            "rescaled": self.rescaled
            and self.rescaled._asdict() | {"shared": self.rescaled.shared._asdict()},
            "seconds_saved": self.seconds_saved,
            "baseline": _facts(self.baseline),
            "best": _facts(self.best),
            "candidates": [_facts(each) for each in self.candidates],
            "assumed": list(self.best.result.assumed),
        }


def advise(
    workload: WorkloadLike,
    machine: MachineLike,
    mappers: Sequence[str] | None = None,
    *,
    seed: int = 0,
    seconds: float = SECONDS,
    sampling: Sampling | None = None,
    engine: str | None = None,
    relevance: float = RELEVANCE,
    progress: Progress = silent,
) -> Advice:
    """Say how ranks should be placed, what that buys, and whether it is worth it.

    Mappers see all that the replay sends, messages of collectives included. Ctrl-C raises an
    `InterruptedComparison`, which has the best mapping so far.

    Parameters
    ----------
    workload, machine
        See `simulate` and `map_ranks`.
    mappers : sequence of str, optional
        Pipelines to compare with the default order. When left out "auto" for hop-bytes and for the
        busiest link, and "recursive_bisection".
    seed : int
        Of mappers and models.
    seconds : float
        Time budget of all searches together.
    sampling : Sampling, optional
        Models of the machine to draw, 6 at least; 40 when left out.
    engine : str, optional
        Of the replays. When left out "compiled", or "flow" for long messages of so many packets
        that a hundred replays would take long. Other engines than "compiled" know no buffers and
        fixed routes only, so that models do not differ in these.
    relevance : float
        Share of the runtime below which a gain makes no practical difference.

    Examples
    --------
    >>> advise("stencil:4x4,5pt,bytes=100kB", "torus:2x2x4", ["auto(moves=100)"]).worth_it
    False
    """
    sampling = sampling or Sampling(SAMPLES)
    samples = sampling.samples
    expect_between(SettingError, f"samples {samples}", samples, LEAST, MOST_SAMPLES)
    if engine is not None:
        check_engine(engine)
    workload, machine = Workload.of(workload), Machine.of(machine)
    machine.expect_alone("advise")
    if mappers is None:
        mappers = (*auto_by_both(machine.network), "recursive_bisection")
    pipelines = list(dict.fromkeys(" | ".join(map(str, parse_pipeline(text))) for text in mappers))
    program = workload.program(machine.parameters.algorithms)
    room, traffic = machine.usable(program.ranks), program.traffic()
    ranges = read_ranges(sampling.ranges)
    models = draw_models(ranges, machine.network, machine.settings, sampling.samples, seed)
    found: list[Candidate] = []
    steps = len(pipelines) + 1 + sampling.samples
    names = (DEFAULT_ORDER, *pipelines)
    with Comparison(workload, machine, traffic, room, names) as so_far:  # Ctrl-C keeps the best
        for done, mapper in enumerate(names):
            progress(done, steps, mapper)
            budget = seconds / max(len(pipelines), 1)
            mapping = so_far.search(mapper, mapper, seed=seed, seconds=budget)
            placement = so_far.add(*mapping, mapper)
            engine = engine or _engine(placement)
            found.append(Candidate(placement, _replay(placement, engine)))
            so_far.times[done, 0] = found[-1].result.makespan
        assert engine is not None
        if engine != DEFAULT_ENGINE:
            models = [without_packets(model) for model in models]
        times, rejected = _times(
            so_far, models, engine, lambda k: progress(len(found) + k, steps, "models")
        )
        rescaled = _rescaled([each.placement for each in found], engine, relevance)
    replayed = ~np.isnan(times[0])
    if not replayed.any():
        raise ParameterError(f"ranges: no model can be replayed: {rejected[0]}")
    complete = [k for k in range(len(found)) if not np.isnan(times[k, replayed]).any()]
    gains = {k: _gains(times[0, replayed], times[k, replayed]) for k in complete}
    best = max(complete, key=lambda k: (np.median(gains[k]), -k))  # of equals the default order
    node_of = found[0].placement.node_of
    free = free_makespan(program, machine.network, node_of, machine.parameters, engine)
    others = [each for k, each in enumerate(found) if k not in (0, best)]
    others.sort(key=lambda each: float(f"{each.result.makespan:.3g}"))  # as shown, ties as tried
    baseline = _with_assumed(found[0])
    shown = baseline, _with_assumed(found[best]) if best else baseline
    kept = tuple(model for model, fine in zip(models, replayed, strict=True) if fine)
    return Advice(
        workload.name,
        *shown,
        tuple(others),
        free,
        gains[best],
        kept,
        tuple(rejected),
        engine,
        relevance,
        rescaled,
    )


def _rescaled(placements: list[Placement], engine: str, relevance: float) -> Rescaled | None:
    """Find what less computing would mean, by bisection, where ranks shared cores."""
    workload, machine = placements[0].workload, placements[0].machine
    shared = workload.shared_cores
    if shared is None or "compute.scale" in machine.settings:
        return None
    distinct = list({each.node_of.tobytes(): each for each in placements}.values())

    def gain(scale: float) -> float:
        model: Settings = {"compute.scale": scale}
        times = [replay_under(each, model, engine).makespan for each in distinct]
        return 1 - min(times) / times[0] if times[0] else 0.0

    least = shared.cores / shared.ranks
    low, high, gain_at_least = least, 1.0, gain(least)
    if (gain_at_least >= relevance) == (gain(high) >= relevance):
        return Rescaled(shared, least, gain_at_least, relevance, None)
    while high / low > TURNS_WITHIN:
        middle = (low * high) ** 0.5
        turned = (gain(middle) >= relevance) == (gain_at_least >= relevance)
        low, high = (middle, high) if turned else (low, middle)
    return Rescaled(shared, least, gain_at_least, relevance, (low * high) ** 0.5)


def _times(
    so_far: Comparison,
    models: Sequence[Settings],
    engine: str,
    report: Callable[[int], object],
) -> tuple[Floats, list[str]]:
    """Replay the default order and the mappers that are left under every model.

    Return the makespans, shape (candidates, models), and why models were rejected; NaN is where
    nothing was replayed.
    """
    placements = so_far.placements
    times, rejected = np.full((len(placements), len(models)), np.nan), list[str]()
    node_of = [each.node_of.tobytes() for each in placements]
    left = [k for k in range(1, len(placements)) if node_of[k] not in node_of[:k]]

    def fill(number: int, check: Progress) -> str:
        """Replay a model with all that are left; return why it cannot be."""
        try:
            for each in (0, *left):
                result = replay_under(placements[each], models[number], engine, check)
                times[each, number] = so_far.times[each, 1 + number] = result.makespan
        except (ParameterError, DeadlockError) as error:
            times[:, number] = np.nan
            so_far.reject(1 + number)
            return f"{error}"
        return ""

    for begin in range(0, len(models), FEW):
        few = range(begin, min(begin + FEW, len(models)))
        for number, why in zip(few, in_threads(fill, few), strict=True):
            report(number)
            rejected += [why] * bool(why)
        due = len(few) == FEW and len(rejected) <= few[-1]
        if due and len(left) > 1:
            gain = {k: np.nanmedian(_gains(times[0], times[k])) for k in left}
            left = sorted(left, key=gain.__getitem__, reverse=True)[: ceil(len(left) / 2)]
    return times, rejected


def _gains(baseline: Floats, times: Floats) -> Floats:
    """Return how much shorter runs are; where nothing takes time, 0."""
    return np.asarray(1 - np.divide(times, baseline, out=np.ones_like(times), where=baseline != 0))


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


def _replay(placement: Placement, engine: str) -> Result:
    """Replay by the parameters as they are, without noise."""
    machine = placement.machine
    return simulate(
        _program(placement),
        machine.network,
        placement.node_of,
        parameters=without_noise(machine.parameters),
        engine=engine,
        steady=Steady(),
    )


def _with_assumed(candidate: Candidate) -> Candidate:
    placement = candidate.placement
    settings, generated = placement.machine.settings, placement.workload.generated
    return replace(candidate, result=with_assumed(candidate.result, settings, generated=generated))


def _facts(candidate: Candidate) -> dict[str, Any]:
    placement, result = candidate.placement, candidate.result
    found = {"mapper": placement.mapper, "makespan": result.makespan, "seconds": placement.seconds}
    if placement.warning:
        found["warning"] = placement.warning
    return found | {"node_of": placement.node_of.tolist()}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
