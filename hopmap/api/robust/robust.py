"""Robust choice of a mapping: simulate candidates under models drawn from ranges.

The mapping of least worst regret is chosen, see `regret`. Sequential halving gives good candidates
the replays: in each of ceil(log2 n) rounds all candidates that are left are replayed under the same
further models, as many as an equal share of the budget pays for; then the half with the larger
worst regret so far is dropped. What is left over goes to those that were dropped last, so that a
budget for everything is the exhaustive search.

Sources: Karnin, Koren, Somekh, Almost optimal exploration in multi-armed bandits, ICML 2013
(Algorithm 1; there rewards are means, and a round forgets the rounds before it); Jamieson,
Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016, who
keep them. Regret needs all candidates under the same models (common random numbers). For a maximum
it counts which models come first: see `ranges.spread_out`. Cost: the replays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hopmap.api.comparison import Comparison, auto_by_both
from hopmap.api.input_kinds import MappingLike
from hopmap.api.machine import Machine, MachineLike, nodes_of_ranks
from hopmap.api.mapping import Placement
from hopmap.api.named_files import (
    canonical_mapper,
    initial_mapping,
    split_mapper,
)
from hopmap.api.simulation import check_engine
from hopmap.api.workload import Workload, WorkloadLike
from hopmap.arrays import Floats
from hopmap.errors import expect_between
from hopmap.notebook import ShownMixin
from hopmap.progress import Progress, silent
from hopmap.simulator import (
    DEFAULT_ENGINE,
    DeadlockError,
    ParameterError,
    Result,
    Steady,
    simulate,
)
from hopmap.simulator.in_threads import in_threads
from hopmap.simulator.parameters.settings import SettingError, configure
from hopmap.simulator.uncertainty import Standing, least_regret, regrets, sentence, standings
from hopmap.topologies.spec import FILE

from .ranges import RangesLike, Settings, draw_models, read_ranges

Candidate: TypeAlias = "MappingLike"

SECONDS, SAMPLES = 10.0, 100
MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class Sampling:
    """Models to draw, and how many replays they may take.

    Attributes
    ----------
    samples : int
        Models.
    max_simulations : int, optional
        Replays at most, one of each candidate at least. When left out, so many that the last two
        candidates have every model; candidates times samples replay everything.
    ranges : path or mapping, optional
        A TOML file with a table [ranges], or its contents: ``{"network.buffer": [0, 1, 4],
        "link.*.bandwidth": {"factor": [0.5, 2]}}``; see `hopmap/api/robust/ranges.py`.
    """

    samples: int = SAMPLES
    max_simulations: int | None = None
    ranges: RangesLike = None

    def __post_init__(self) -> None:
        expect_between(SettingError, f"samples {self.samples}", self.samples, 1, MOST_SAMPLES)


@dataclass(frozen=True, eq=False, repr=False)
class Choice(ShownMixin):
    """Candidates over models, and the one to take.

    Attributes
    ----------
    name : str
        Of the trace.
    placements : tuple of Placement
        The candidates; several mappers that find the same mapping are one, "rcm = auto".
    models : tuple of dict
        What each model sets, by key.
    times : ndarray(float64, shape=(candidates, models))
        Makespans, NaN where nothing was replayed.
    replays : int
        Made in all.
    rejected : tuple of str
        Why models were left out that cannot be replayed, one text a model.
    engine : str
        Of the replays.
    extrapolated : int
        Replays that ended once their main loop had settled.
    """

    name: str
    placements: tuple[Placement, ...]
    models: tuple[Settings, ...]
    times: Floats
    replays: int
    rejected: tuple[str, ...] = ()
    engine: str = DEFAULT_ENGINE
    extrapolated: int = 0

    def __repr__(self) -> str:
        return f"<Choice for {self.name}, {self.best.topology.spec}: {self.verdict}>"

    @cached_property
    def standings(self) -> list[Standing]:
        """How every candidate fares; its regrets are against those replayed under the model."""
        return standings(self.times)

    @property
    def best(self) -> Placement:
        """The mapping whose worst regret is the least."""
        return self.placements[least_regret(self.standings)]

    @property
    def verdict(self) -> str:
        """One sentence."""
        return sentence([each.mapper for each in self.placements], self.standings)

    @property
    def order(self) -> list[int]:
        """Candidates, the one to take first, those that were dropped early last."""
        found = self.standings
        return sorted(
            range(len(found)), key=lambda k: (-found[k].models, found[k].worst, found[k].mean, k)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``robust --json`` prints."""
        behind = regrets(self.times)
        rows = [
            {
                "mapper": self.placements[place].mapper,
                **self.standings[place]._asdict(),
                "worst_model": int(np.nanargmax(behind[place])),
                "regrets": [None if np.isnan(each) else float(each) for each in behind[place]],
                "seconds": self.placements[place].seconds,
                "node_of": self.placements[place].node_of.tolist(),
                **({"warning": text} if (text := self.placements[place].warning) else {}),
            }
            for place in self.order
        ]
        return {
            "name": self.name,
            "topology": self.best.topology.spec,
            "ranks": len(self.best),
            "verdict": self.verdict,
            "engine": self.engine,
            "assumed_rounds": self.best.workload.assumed_rounds,
            "replays": self.replays,
            "extrapolated": self.extrapolated,
            "rejected": list(self.rejected),
            "candidates": rows,
            "models": [dict(model) for model in self.models],
        }


def robust(
    workload: WorkloadLike,
    machine: MachineLike,
    candidates: Sequence[Candidate] | None = None,
    *,
    sampling: Sampling | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
    engine: str = DEFAULT_ENGINE,
    progress: Progress = silent,
) -> Choice:
    """Choose the mapping that is never far behind the best under any model.

    Candidates are replayed under models that are drawn from ranges of parameters, all of them with
    the same noise; those that fall behind are dropped, so that good ones get the replays.

    Parameters
    ----------
    workload, machine
        See `simulate` and `map_ranks`. What is set stays as it is set; factors are drawn of it.
    candidates : sequence, optional
        Pipelines, files ("file:today.csv", or a path), or mappings. When left out "identity",
        "rcm", "recursive_bisection", and "auto" for hop-bytes and for the busiest link.
    sampling : Sampling, optional
        Models to draw, and how many replays they may take.
    seed : int
        Of mappers and models.
    seconds : float
        Time budget of all searches together.
    engine : str
        Of the replays.

    Examples
    --------
    >>> few = Sampling(samples=8)
    >>> grid = "stencil:4x4,5pt,bytes=100000"
    >>> found = robust(grid, "torus:4x4", ["identity", "random"], sampling=few)
    >>> found.best.mapper
    'identity'
    """
    sampling = sampling or Sampling()
    samples, replays = sampling.samples, sampling.max_simulations
    check_engine(engine)
    workload, machine = Workload.of(workload), Machine.of(machine)
    if candidates is None:
        usual = ("identity", "rcm", "recursive_bisection")
        candidates = (*usual, *auto_by_both(machine.network))
    names = [_canonical(each) for each in candidates]
    if len(names) < 2:
        raise SettingError(f"candidates: {len(names)}: expected two or more to choose from")
    twice = [name for name in names if isinstance(name, str) and names.count(name) > 1]
    if twice:
        raise SettingError(f"candidates: {twice[0]} is listed twice: expected once")
    machine.expect_alone("robust")
    workload.program(machine.parameters.algorithms)  # read before anything takes long
    ranges = read_ranges(sampling.ranges)
    found = draw_models(ranges, machine.network, machine.settings, samples, seed)
    so_far = _comparison(workload, machine, names)
    with so_far:  # Ctrl-C keeps the best
        placements = _placements(so_far, names, seed, seconds, progress)
    if replays is None:
        replays = budget(len(placements), samples)
    if replays < len(placements):
        raise SettingError(
            f"max_simulations {replays}: expected at least {len(placements)}, one for each"
        )
    made, rejected = list[bool](), dict[int, str]()  # whether each replay was extrapolated

    def replay(candidate: int, model: int, check: Progress | None = None) -> float:
        progress(len(made), replays, f"{len(made)} of {replays} replays")
        try:
            result = replay_under(placements[candidate], found[model], engine, check)
        except (ParameterError, DeadlockError) as error:
            rejected[model] = f"{error}"
            so_far.reject(model)
            made.append(False)
            return np.nan
        made.append(result.extrapolated is not None)
        so_far.times[candidate, model] = result.makespan
        return result.makespan

    with so_far:
        times = halving(len(placements), samples, replay, replays)
    why = tuple(rejected[model] for model in sorted(rejected))
    if np.isnan(times).all():
        raise ParameterError(f"ranges: no model can be replayed: {why[0]}")
    models = tuple(found)
    return Choice(workload.name, placements, models, times, len(made), why, engine, sum(made))


def replay_under(
    placement: Placement, model: Settings, engine: str, progress: Progress | None = None
) -> Result:
    """Replay a mapping on its machine, with what a model sets.

    Raise `ParameterError` or `DeadlockError` where the model cannot be replayed.
    """
    workload, machine = placement.workload, placement.machine
    network, parameters = configure(machine.network, tuple({**machine.settings, **model}.items()))
    program = workload.program(parameters.algorithms)
    steady = Steady()
    return simulate(
        program,
        network,
        placement.node_of,
        parameters=parameters,
        engine=engine,
        steady=steady,
        progress=progress,
    )


def _canonical(candidate: Candidate) -> Candidate:
    """Return a candidate as it is always written: files as "file:PATH"."""
    text = str(candidate) if isinstance(candidate, str | Path) else ""
    is_file = isinstance(candidate, Path) or text.endswith(".csv") or Path(text).is_file()
    if is_file and not text.startswith(FILE):
        candidate = f"{FILE}{text}"
    return canonical_mapper(candidate) if isinstance(candidate, str) else candidate


def _comparison(
    workload: Workload, machine: Machine, candidates: Sequence[Candidate]
) -> Comparison:
    """Begin to compare candidates, by their names."""
    program = workload.program(machine.parameters.algorithms)
    names = [
        each if isinstance(each, str) else getattr(each, "mapper", f"mapping {number}")
        for number, each in enumerate(candidates, 1)
    ]
    return Comparison(
        workload, machine, program.traffic(), machine.usable(program.ranks), tuple(names)
    )


def _placements(
    so_far: Comparison,
    candidates: Sequence[Candidate],
    seed: int,
    seconds: float,
    progress: Progress,
) -> tuple[Placement, ...]:
    """Make the mappings; those that are equal become one of several names."""
    workload, machine, traffic = so_far.workload, so_far.machine, so_far.traffic
    network, ranks, found = machine.network, traffic.ranks, so_far.placements
    for done, (name, each) in enumerate(zip(so_far.names, candidates, strict=True)):
        progress(done, len(candidates), name)
        took, start = 0.0, None
        if isinstance(each, str):
            start = initial_mapping(each, network, so_far.room, ranks)
            pipeline = split_mapper(each)[1]
            if pipeline:
                start, took = so_far.search(
                    *(pipeline, name),
                    seed=seed,
                    seconds=seconds / len(candidates),
                    initial=start,
                )
        node_of = nodes_of_ranks(each if start is None else start, network, ranks)
        same = [k for k, made in enumerate(found) if np.array_equal(made.node_of, node_of)]
        if not same:
            made = Placement(workload, machine, node_of, traffic, network, name, took)
            found.append(replace(made, warning=so_far.warnings.get(name, "")))
        elif name not in found[same[0]].mapper.split(" = "):
            found[same[0]] = replace(found[same[0]], mapper=f"{found[same[0]].mapper} = {name}")
    return tuple(found)


def halving(
    candidates: int,
    models: int,
    replay: Callable[[int, int, Progress], float],
    replays: int,
) -> Floats:
    """Replay candidates under models, good ones under more of them, several models at once.

    `replay` is ``(candidate, model, check) -> seconds``, and `replays` the budget; every candidate
    is replayed once at least. Return the seconds, shape (candidates, models), NaN where nothing was
    simulated. All candidates of a round share their models.
    """
    times = np.full((candidates, models), np.nan)
    left, dropped, rejected = list(range(candidates)), list[list[int]](), set[int]()
    simulated, rest, rounds = 0, replays, rounds_of(candidates)

    def fill(model: int, who: Sequence[int], check: Progress = silent) -> int:
        """Replay a model with some candidates; return how many replays that took."""
        for done, each in enumerate(who):
            times[each, model] = replay(each, model, check)
            if np.isnan(times[each, model]):
                times[:, model] = np.nan
                rejected.add(model)
                return done + 1
        return len(who)

    for to_come in range(rounds, 0, -1):
        until = min(models, simulated + max(rest // (to_come * len(left)), not simulated))
        every = [(model, left) for model in range(simulated, until)]
        rest -= sum(in_threads(lambda item, check: fill(*item, check), every))
        simulated = until
        found = standings(times)
        left.sort(key=lambda each: (found[each].worst, found[each].mean, each))
        keep = ceil(len(left) / 2) if to_come > 1 else len(left)
        left, gone = left[:keep], left[keep:]
        dropped.append(gone)
    for group in (left, *reversed(dropped)):
        for model in sorted(set(range(models)) - rejected):
            missing = [each for each in group if np.isnan(times[each, model])]
            if len(missing) > rest:
                return times
            rest -= fill(model, missing)
    return times


def rounds_of(candidates: int) -> int:
    """Return how many rounds halve so many candidates to one; one at least.

    Examples
    --------
    >>> [rounds_of(n) for n in (1, 2, 3, 12)]
    [1, 1, 2, 4]
    """
    return max(1, ceil(log2(candidates)))


def budget(candidates: int, models: int) -> int:
    """Return how many replays let the last ones that are left have every model.

    Examples
    --------
    >>> budget(12, 100)
    382
    """
    sizes = [ceil(candidates / (1 << done)) for done in range(rounds_of(candidates))]
    enough = ceil(len(sizes) * models / sum(1 / size for size in sizes))
    return min(candidates * models, enough + candidates)  # the first round takes one model at least
