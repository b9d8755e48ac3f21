"""A finished study as the report sees it: cases, and in each the best seed of every mapper."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hopmap.arrays import Bools, Floats
from hopmap.simulator.uncertainty import (
    LEAST,
    RELEVANCE,
    Interval,
    faster,
    faster_over_models,
    not_significantly_slower,
    ratio,
)
from hopmap.traces.summary import Omission

from .plan_file import Plan, flat, read_plan
from .store import load_results
from .tables import StoreError

# Rank r on the r-th slot: the default of launchers. They are the same.
DEFAULTS = ("sweep", "identity")
TODAY = "file:"  # an existing mapping: what is run today
PARTS = ("total", "avg", "min", "max")  # of IeNPC
NO_PRACTICAL, NO_SIGNIFICANT = "no practical difference", "no significant difference"
NOT_OVER_MODELS = "no difference that holds over the models"
AS_FAST = 1e-3  # simulated runtimes that differ by less are the same


@dataclass(frozen=True, eq=False)
class Entry:
    """A mapper on one case: its pipeline, its best run (see `_best`), all seeds that went well."""

    mapper: str
    best: pd.Series[Any]
    runs: pd.DataFrame

    def value(self, column: str) -> float | None:
        """Return a figure of the best run, None where there is none."""
        return number(self.best.get(column))

    def mean(self, column: str) -> float | None:
        """Return the mean over the seeds."""
        return number(self.runs[column].mean()) if column in self.runs else None

    def worst(self, column: str) -> float | None:
        """Return the highest over the seeds."""
        return number(self.runs[column].max()) if column in self.runs else None


@dataclass(frozen=True, eq=False)
class Case:
    """A trace on a topology, with one of the values that vary, if any do."""

    trace: str
    topology: str
    variant: str  # Label of `Plan.variants`.
    runs: pd.DataFrame  # All that went well.
    entries: Sequence[Entry]  # In the scenario's order.
    best: Entry
    default: Entry | None  # The default order, where it is one of them.
    relevance: float = RELEVANCE  # Smaller differences make no practical difference.

    @property
    def by_models(self) -> bool:
        """Whether makespans are of models of the network instead of replays with noise."""
        return "models" in self.runs and bool(self.runs["models"].notna().any())

    @property
    def where(self) -> str:
        """Topology and variant."""
        return ", ".join(filter(None, (self.topology, self.variant)))

    @property
    def replayed(self) -> bool:
        """Whether there are simulated runtimes."""
        return self.best.value("makespan") is not None

    @cached_property
    def times(self) -> Floats | None:
        """Makespans of every entry's best run with noise, shape (entries, seeds); None without.

        Of models of the network, those that all entries could be replayed under.
        """
        found = [entry.best.get("makespans") for entry in self.entries]
        if any(each is None or np.ndim(each) == 0 for each in found):
            return None
        rows = np.array([np.asarray(each, dtype=np.float64) for each in found])
        rows = rows[:, ~np.isnan(rows).any(axis=0)]
        return rows if rows.shape[1] >= LEAST else None

    @cached_property
    def _faster(self) -> Bools:
        """Which entry is faster than which, beyond what noise or the models explain."""
        assert self.times is not None
        if self.by_models:
            return faster_over_models(self.times, self.relevance)
        return faster(self.times)

    @cached_property
    def leaders(self) -> Sequence[Entry]:
        """The best, then the mappers that differ from it by less than `relevance` or by chance."""
        tied = [] if self.times is None else not_significantly_slower(self.times, self._faster)
        near = (self.excess < self.relevance).nonzero()[0].tolist()
        fastest = self.entries.index(self.best) if self.times is None else tied[0]
        others = sorted({*tied, *near} - {fastest}, key=lambda k: self.excess[k])
        return [self.entries[k] for k in (fastest, *others)]

    @cached_property
    def excess(self) -> Floats:
        """How much longer each mapper runs than the fastest, 0.05 is 5 %: medians over seeds."""
        if self.times is None:
            times = np.array([entry.value("makespan") or np.inf for entry in self.entries])
            return times / (self.best.value("makespan") or 1.0) - 1
        fastest = np.median(self.times, axis=1).argmin()
        return np.asarray(np.median(self.times / self.times[fastest], axis=1) - 1)

    @property
    def likeness(self) -> str:
        """Why several mappers lead: their differences are small, or chance explains them."""
        places = [self.entries.index(entry) for entry in self.leaders]
        if (self.excess[places] < self.relevance).all():
            return NO_PRACTICAL
        return NOT_OVER_MODELS if self.by_models else NO_SIGNIFICANT

    @property
    def significant(self) -> bool:
        """Whether the best is known to be better than all others."""
        return not self.replayed or (self.times is not None and len(self.leaders) == 1)

    def against(self, entry: Entry, other: Entry) -> Interval | None:
        """Return how much longer a mapper runs than another, by seeds; None if they are tied."""
        if self.times is None:
            return None
        one, two = (self.entries.index(each) for each in (entry, other))
        apart = self._faster[one, two] | self._faster[two, one]
        gap = ratio(self.times[one], self.times[two], models=self.by_models)
        return gap if apart else None

    @property
    def order(self) -> str:
        """What the default order is called."""
        return self.default.mapper.strip() if self.default else DEFAULTS[0]

    @property
    def fewest_hop_bytes(self) -> Entry:
        """The mapper with the fewest hop-bytes."""
        return min(self.entries, key=lambda entry: (_cost(entry.best), entry is not self.best))


@dataclass(frozen=True)
class Study:
    """Everything the report is made of, pictures apart."""

    folder: Path
    name: str
    description: str
    scenario_text: str
    scenario: Mapping[str, Any]  # what that says
    settings: tuple[tuple[str, Any], ...]
    plan: Plan
    runs: pd.DataFrame
    failed: pd.DataFrame
    cases: Sequence[Case]
    steps: int | None = None
    rounds: int | None = None
    repeat: int | None = None

    @property
    def by_models(self) -> bool:
        """Whether repeats are models of the network instead of replays with noise."""
        return any(case.by_models for case in self.cases)

    @property
    def relevance(self) -> float:
        """Share of a runtime below which differences make no practical difference."""
        return self.cases[0].relevance if self.cases else RELEVANCE

    def spec_of(self, topology: str) -> str:
        """Return the spec of what is called so: of a file, where it lies."""
        return self.plan.networks.get(topology, topology)

    def traces(self) -> list[str]:
        """Return the traces that have a case, in the scenario's order."""
        return list(dict.fromkeys(case.trace for case in self.cases))

    def topologies(self) -> list[str]:
        """Return the topologies that have a case, in the scenario's order."""
        return list(dict.fromkeys(case.topology for case in self.cases))

    def cases_of(self, trace: str) -> list[Case]:
        """Return the cases of a trace."""
        return [case for case in self.cases if case.trace == trace]

    def variations(self, trace: str) -> list[list[Case]]:
        """Return the cases of a trace by topology, where something varies on it."""
        cases = self.cases_of(trace)
        groups = [[case for case in cases if case.topology == spec] for spec in self.topologies()]
        return [group for group in groups if len(group) > 1]

    def ends_of(self, trace: str) -> list[Case]:
        """Return the cases of a trace, where something varies the first and last of them only."""
        between = [id(case) for group in self.variations(trace) for case in group[1:-1]]
        return [case for case in self.cases_of(trace) if id(case) not in between]

    def settings_of(self, case: Case) -> tuple[tuple[str, Any], ...]:
        """Return the parameters that hold in a case."""
        varied = self.plan.variants.get(case.variant, {})
        settings = {**dict(self.settings), **varied}
        return tuple(sorted((key, v) for key, v in settings.items() if not isinstance(v, list)))


def number(value: object) -> float | None:
    """Return a float, or None for what is missing."""
    return None if value is None or pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]


def _co_running(scenario: dict[str, Any], runs: pd.DataFrame) -> str:
    """Say which other jobs ran at the same time in all runs, and what they cost these runs."""
    if not (file := scenario.get("co_running_jobs")):
        return ""
    slower = runs["slowdown"].dropna()
    span = f"{slower.min():.3g} to {slower.max():.3g}"
    took = "" if slower.empty else f", which take {span} times as long"
    return f"The jobs of {file} ran at the same time in all runs{took}."


KINDS: dict[str, Any] = {
    **dict.fromkeys(("name", "co_running_jobs"), str),
    **dict.fromkeys(("parameters", "prices", "replay", "validated"), dict),
    "relevance": int | float,
    "suites": list,
}
"""What a scenario has by these keys; results of others may have anything, which is left out."""


def load_study(folder: Path) -> Study:
    """Read a folder of results."""
    plan = read_plan(folder)
    runs = load_results(folder)
    # plain objects: thousands of small tables are taken from it, twice as fast as of Arrow's
    runs = runs.astype(dict.fromkeys(runs.select_dtypes("string").columns, object)).copy()
    text = ""
    if (folder / "scenario.toml").is_file():
        text = (folder / "scenario.toml").read_text(encoding="utf-8", errors="replace")
    try:
        scenario = {
            key: value
            for key, value in tomllib.loads(text).items()
            if isinstance(value, KINDS.get(key, object))
        }
    except tomllib.TOMLDecodeError:
        scenario = {}
    well = by_median(runs[runs["error"].isna()])
    if well[["trace", "topology", "mapper"]].isna().any(axis=None):
        raise StoreError(f"{folder}: a run without trace, topology or mapper: expected all three")
    replay = scenario.get("replay", {})
    steps, rounds = replay.get("steps"), replay.get("rounds")
    times = well["makespans"].dropna()
    return Study(
        folder=folder,
        name=str(scenario.get("name") or folder.resolve().name),
        description="\n".join(filter(None, (plan.description, _co_running(scenario, well)))),
        scenario_text=text,
        scenario=scenario,
        settings=tuple(sorted(flat(scenario.get("parameters", {})))),
        plan=plan,
        runs=well,
        failed=runs[runs["error"].notna()],
        cases=cases_of(well, scenario.get("relevance", RELEVANCE)),
        steps=steps if isinstance(steps, int) else None,
        rounds=rounds if isinstance(rounds, int) else None,
        repeat=len(times.iloc[0]) if len(times) else None,
    )


def by_median(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs whose makespan is the median of their replays with noise, if there were any."""
    return runs.assign(makespan=runs["makespan_median"].fillna(runs["makespan"]))


def cases_of(runs: pd.DataFrame, relevance: float = RELEVANCE) -> list[Case]:
    """Return the cases of runs that went well."""
    cases = []
    for (trace, topology, variant), group in runs.groupby(
        ["trace", "topology", "variant"], sort=False
    ):
        figures = group[["makespan", "hop_bytes", "hop_messages"]].to_numpy(dtype=float)
        which, mappers = pd.factorize(group["mapper"])
        entries, chosen = [], []
        for place, mapper in enumerate(mappers):
            seeds = np.flatnonzero(which == place)
            chosen.append(seeds[_best(figures[seeds])])
            entries.append(Entry(str(mapper), group.iloc[chosen[-1]], group.iloc[seeds]))
        best = entries[_best(figures[chosen])]
        called = {entry.mapper.strip(): entry for entry in entries}
        defaults = [name for name in called if name.startswith(TODAY) and "|" not in name]
        default = next((called[name] for name in (*defaults, *DEFAULTS) if name in called), None)
        names = str(trace), str(topology), str(variant)
        cases.append(Case(*names, group, entries, best, default, relevance))
    return cases


def _best(figures: Floats) -> int:
    """Return which run has the least simulated runtime; of those as fast, the fewest hop-bytes.

    Runs are rows of runtime, hop-bytes and hop-messages.
    """
    time, size, messages = figures.T
    time = np.nan_to_num(time, nan=np.inf)  # not replayed: last, or all equal
    slow = time > time.min() * (1 + AS_FAST)
    return int(np.lexsort((messages, size, slow))[0])


def _cost(row: pd.Series[Any]) -> tuple[float, float]:
    return float(row["hop_bytes"]), float(row["hop_messages"])


def collectives_dominate(
    runs: pd.DataFrame, rounds: int | None, expanded: Collection[str]
) -> list[str]:
    """Return the traces whose collectives cross more links than the messages that were mapped.

    What was replayed counts, messages and collectives; files of traffic count so many rounds. Of
    traces that are `expanded`, collectives were mapped, too.
    """
    hops = runs.groupby("trace", sort=False)[["hop_bytes", "replayed_hop_bytes"]].sum()
    more = hops["replayed_hop_bytes"] > (1 + (rounds or 1)) * hops["hop_bytes"]
    names = map(str, hops.index[more.fillna(False).astype(bool)])
    return [name for name in names if name not in expanded]


def omissions_by_trace(runs: pd.DataFrame) -> dict[str, list[Omission]]:
    """Return what the replays of each trace left out or took for something else."""
    rows = runs.dropna(subset="omitted").drop_duplicates("trace")
    try:
        return {
            str(trace): [Omission(**entry) for entry in json.loads(text)]
            for trace, text in zip(rows["trace"], rows["omitted"], strict=True)
        }
    except (TypeError, ValueError):
        raise StoreError("runs: omitted: expected a JSON list of omissions") from None
