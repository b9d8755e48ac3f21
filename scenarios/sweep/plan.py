"""The runs of a scenario: what is crossed, less what is excluded, each with its id.

A run's id is the hash of all that determines its result: trace and network by their digests,
parameters in SI units, hopmap's own code by the digest of what the run uses of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, product
from pathlib import Path
from typing import Any

from hopmap.api.job import jobs_digest
from hopmap.api.named_files import (
    change_mapper_path,
    change_paths,
    is_random,
    mapping_digest,
    relative_to,
    split_mapper,
)
from hopmap.mappers import parse_pipeline
from hopmap.plugins import source_file
from hopmap.simulator.parameters.keys import names_algorithm
from hopmap.simulator.parameters.settings import Settings, normalise
from hopmap.simulator.uncertainty import least_repeats
from hopmap.source_files import PACKAGE, digest_of, sources_of
from hopmap.topologies.spec import FILE, all_families
from hopmap.traces.sources import Source

from . import ScenarioError
from .inputs import counts_collectives, network_digest
from .scenario import Scenario
from .scenario_tables import Replay


@dataclass(frozen=True)
class Run:
    """One cell of the sweep; everything that its result depends on."""

    trace: Source
    digest: str  # Of the trace's content.
    topology: str
    mapper: str  # A pipeline, after a file of a mapping or without.
    seed: int
    engine: str | None  # None measures only.
    steps: int | None  # Of a benchmark; None for all.
    settings: Settings  # Parameters of network and model, sorted.
    variant: str = ""  # What reports call parameters that vary; no part of the hash.
    messages: bool = False  # Whether to keep when each message was sent.
    network: str = ""  # Hash of the topology's file; empty where it has none.
    rounds: int | None = None  # Of a file of traffic.
    expanded: bool = False  # Whether what collectives send is mapped, too.
    repeat: int | None = None  # Number of additional replays with noise.
    models: int | None = None  # Number of models of the network to replay under.
    called: str = ""  # What reports call the topology; no part of the hash.
    exact: bool = False  # Whether to replay all steps of a long run.
    tolerance: float | None = None  # Error bound at which a replay of any length may end.
    spread: bool = False  # Whether ranks are spread as evenly as nodes have room.
    published: bool = False  # Whether IeNPC is counted as MapLib counts it, too.
    mapping: str = ""  # Hash of the file of a mapping; empty where the mapper starts from none.
    mapper_called: str = ""  # What reports call the mapper; no part of the hash.
    others: str = ""  # File of co-running jobs; empty if there are none.
    others_digest: str = ""

    @cached_property
    def run_id(self) -> str:
        """Hash of the run and of the code that does it."""
        code = code_of(self.mapper, self.topology.partition(":")[0], _code_of_source(self.trace))
        text = json.dumps(self.normal() | {"code": code}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def normal(self) -> dict[str, Any]:
        """Return what determines the result, in one way of writing it."""
        what = {
            "trace": self.trace.name,
            "digest": self.digest,
            "topology": FILE + self.network if self.network else self.topology,
            "mapper": f"{FILE}{self.mapping} | {split_mapper(self.mapper)[1]}"
            if self.mapping
            else self.mapper,
            "seed": self.seed,
            "engine": self.engine,
            "steps": self.steps,
            "parameters": normalise(self.settings),
        }
        names = (
            *("messages", "rounds", "expanded", "repeat", "models", "exact", "spread", "published"),
            *("others_digest", "tolerance"),
        )
        more = {name: getattr(self, name) for name in names}
        return what | {key: value for key, value in more.items() if value}

    @property
    def algorithms(self) -> dict[str, str]:
        """Algorithms of collectives that are set, by operation."""
        chosen = {key: str(v) for key, v in self.settings if names_algorithm(key)}
        return {key.removeprefix("collective."): value for key, value in chosen.items()}

    @property
    def traffic_of(self) -> str:
        """What determines the traffic that is mapped: trace, collectives' algorithms, and code."""
        algorithms = f" {sorted(self.algorithms.items())}" if self.expanded else ""
        return _reading(self.trace, f"{self.digest}{algorithms}")

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.called or self.topology, self.variant)))
        mapper = self.mapper_called or self.mapper
        return f"{self.trace.name} on {where} by {mapper}, seed {self.seed}"


def plan(scenario: Scenario, folder: Path, known: Mapping[str, bool] | None = None) -> list[Run]:
    """Return the runs of a scenario, in its order; `folder` is where the scenario file lies.

    `known` is what `auto_expanded` returned before, so that traces need not be read again.
    """
    runs = {run.run_id: run for run in _runs(scenario, folder.absolute(), known or {})}
    if not runs:
        raise ScenarioError(f"scenario {scenario.name!r}: exclude leaves nothing to run")
    _expect_enough_repeats(list(runs.values()))
    return list(runs.values())


def _expect_enough_repeats(runs: Sequence[Run]) -> None:
    """Refuse a sweep with too few repeats to call one of its mappings faster than another."""
    mappers: dict[tuple[str, str, str], dict[str, None]] = {}
    for run in runs:
        if run.repeat:
            case = (run.trace.name, run.called, run.variant)
            mappers.setdefault(case, {})[run.mapper] = None
    most = max(map(len, mappers.values()), default=0)
    repeats = max((run.repeat or 0 for run in runs), default=0)
    if most > 1 and repeats < (least := least_repeats(most)):
        raise ScenarioError(
            f"replay.repeat: {repeats} for {most} mappers: expected at least {least}; with fewer, "
            "chance alone could explain any difference"
        )


def auto_expanded(scenario: Scenario, runs: Sequence[Run]) -> dict[str, bool]:
    """Return of which traces collectives outweigh the messages, where "auto" asks; see `plan`."""
    if scenario.collectives != "auto" or scenario.varies_algorithms:
        return {}
    return {_reading(run.trace, run.digest): run.expanded for run in runs}


def _reading(source: Source, digest: str) -> str:
    return f"{digest} by {reading_code(_code_of_source(source))}"


def _code_of_source(source: Source) -> tuple[str, ...]:
    """Return the files that define a source's kind and the kinds of its parts."""
    own = {source_file(type(source)), *chain(*map(_code_of_source, source.parts()))}
    return tuple(sorted(own - {""}))


HERE = Path(__file__).parent


@cache
def code_of(pipeline: str, family: str, reading: tuple[str, ...]) -> str:
    """Return the digest of hopmap's modules, and of others' mappers and networks, that do a run.

    `reading` are the files that define the kind of the source.
    """
    _, stages = split_mapper(pipeline)
    functions: list[Callable[..., Any]] = [
        stage.info.function for stage in (parse_pipeline(stages) if stages else ())
    ]
    functions += [all_families()[family].build] if family in all_families() else []
    files = sorted({*reading, *(file for each in functions if (file := source_file(each)))})
    return digest_of(sources_of(HERE / "measure.py", *map(Path, files), full=True))


@cache
def reading_code(reading: tuple[str, ...] = ()) -> str:
    """Return the digest of the modules that read traces, those that a source names among them."""
    own = (PACKAGE / "traces").rglob("*.py")
    return digest_of(sources_of(HERE / "inputs.py", *own, *map(Path, reading), full=True))


def _runs(scenario: Scenario, folder: Path, known: Mapping[str, bool]) -> Iterator[Run]:
    sources = scenario.sources(folder)
    digests = {trace: source.digest() for trace, source in sources.items()}
    how = "ignore" if scenario.varies_algorithms else scenario.collectives
    known = known if how == "auto" else {}
    expanded = {
        trace: known[read]
        if (read := _reading(source, digests[trace])) in known
        else counts_collectives(source, digests[trace], how)
        for trace, source in sources.items()
    }
    others: dict[str, Any] = {
        "others": scenario.co_running_jobs,
        "others_digest": jobs_digest(scenario.co_running_jobs),
    }
    for group in scenario.groups:
        networks = [(scenario.networks[spec], network_digest(spec)) for spec in group.topologies]
        names = [_of_mapper(mapper, folder) for mapper in group.mappers or ()]
        # what draws no random numbers would find the same again
        seeds = {m: (group.seeds or [])[: None if is_random(m) else 1] for m in group.mappers or ()}
        for trace, (network, hashed) in product(group.traces, networks):
            of_network: dict[str, Any] = {
                "topology": network.spec,
                "network": hashed,
                "called": change_paths(network.spec, relative_to(folder)),
            }
            replayed = _replay_options(scenario.replay, sources[trace])
            for (label, settings), of_mapper in product(scenario.variants(network), names):
                mapper = of_mapper["mapper"]
                if any(rule.matches(trace, network, mapper) for rule in scenario.exclude):
                    continue
                for seed in seeds[mapper]:
                    yield Run(
                        trace=sources[trace],
                        digest=digests[trace],
                        seed=seed,
                        settings=settings,
                        variant=label,
                        expanded=expanded[trace],
                        spread=scenario.balanced,
                        published=scenario.published is not None,
                        **of_network,
                        **of_mapper,
                        **replayed,
                        **others,
                    )


def _of_mapper(mapper: str, folder: Path) -> dict[str, Any]:
    called = change_mapper_path(mapper, relative_to(folder))
    return {"mapper": mapper, "mapper_called": called, "mapping": mapping_digest(mapper)}


def _replay_options(replay: Replay, source: Source) -> dict[str, Any]:
    """Return how a source is replayed: traffic alone in rounds, if at all."""
    engine = replay.engine or None
    if source.needs_rounds and replay.rounds is None:
        engine = None
    if engine is None:
        return {"engine": None, "steps": None}
    return {
        "engine": engine,
        "steps": replay.steps if source.has_steps else None,
        "rounds": None if source.has_program else replay.rounds,
        "messages": replay.messages,
        "exact": not replay.extrapolate,
        "tolerance": replay.tolerance,
        "repeat": replay.repeat,
        "models": replay.models,
    }
