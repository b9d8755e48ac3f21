"""The sweep: every run of a scenario once, finished runs never again.

A run's id is the hash of all that determines its result. Runs are independent, so that several
processes can work on them; each file appears whole, so that a sweep can be stopped at any time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..simulator import (
    Program,
    Result,
    evaluate,
    link_loads,
    lower,
    program_of_traffic,
    simulate,
)
from ..topologies import Mapping, MappingError, Topology, topology_from_spec
from ..topologies.files import file_and_name
from ..traces import Traffic
from ..traces.atomic import replacing
from ..traces.formats import save_traffic
from . import store
from .console import Progress
from .failures import debugging, one_line
from .scenario import Exclude, Scenario, canonical_mapper
from .settings import Settings, configure
from .sources import Source
from .timed import timed_mapping
from .variants import variants
from .workers import share


@dataclass(frozen=True)
class Run:
    """One cell of the sweep; everything that its result depends on.

    Attributes
    ----------
    trace : Source
        Where traffic and program come from.
    digest : str
        Hash of the trace's content.
    topology, mapper : str
        Spec and pipeline.
    seed : int
        Of the mapper.
    engine : str or None
        Engine of the replay; None measures only.
    steps : int or None
        Time steps replayed of a benchmark; None for all.
    settings : tuple of (str, str or float)
        Parameters of network and model, sorted.
    variant : str
        What reports call those of them that vary; no part of the hash.
    """

    trace: Source
    digest: str
    topology: str
    mapper: str
    seed: int
    engine: str | None
    steps: int | None
    settings: Settings
    variant: str = ""

    @property
    def run_id(self) -> str:
        """Hash of the run and of hopmap's version."""
        what = asdict(self) | {"trace": self.trace.name, "version": version("hopmap")}
        del what["variant"]
        if self.topology.startswith("file:"):
            content = file_and_name(self.topology.removeprefix("file:"))[0].read_bytes()
            what["network"] = hashlib.blake2b(content, digest_size=8).hexdigest()
        text = json.dumps(what, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.topology, self.variant)))
        return f"{self.trace.name} on {where} by {self.mapper}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a sweep did: runs in all, done now, found finished, failed (with their errors)."""

    runs: int
    done: int
    skipped: int
    failed: dict[str, str]


def plan(scenario: Scenario, folder: Path) -> list[Run]:
    """Return the runs of a scenario, in its order; `folder` is where the scenario file lies."""
    return list({run.run_id: run for run in _runs(scenario, folder)}.values())


def missing(runs: list[Run], results: Path) -> list[Run]:
    """Return the runs that have not finished, or have failed."""
    errors = store.finished(results)
    return [run for run in runs if errors.get(run.run_id, "not there") is not None]


def run_scenario(
    path: Path,
    scenario: Scenario,
    results: Path,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Outcome:
    """Do what is missing of a scenario.

    Parameters
    ----------
    path : Path
        The scenario file, which is copied to the results.
    results : Path
        Folder of results; made if it is not there.
    workers : int
        Processes to share the runs.
    progress : callable, optional
        ``progress(done, total, text)`` after every run.

    Raises
    ------
    TraceError
        A trace that cannot be read; errors of single runs are kept in their rows instead.
    OSError
        The folder cannot be written.
    """
    runs = plan(scenario, path.parent)
    traffic = _new_traffic(runs, results)
    for part in ("runs", "links", "traffic"):
        (results / part).mkdir(parents=True, exist_ok=True)
    _save_inputs(path, scenario, runs, traffic, results)
    todo = missing(runs, results)
    failed: dict[str, str] = {}
    for done, (run, error) in enumerate(share(_do, todo, results, workers), 1):
        if error is not None:
            failed[str(run)] = error
        if progress is not None:
            progress(done, len(todo), str(run))
    return Outcome(len(runs), len(todo), len(runs) - len(todo), failed)


def _runs(scenario: Scenario, folder: Path) -> Iterator[Run]:
    axes = [vary.axis for vary in scenario.vary]
    rules = [_rule(exclude) for exclude in scenario.exclude]
    sources = dict(zip(scenario.traced(), scenario.sources(folder), strict=True))
    digests = {trace: source.digest() for trace, source in sources.items()}
    for group in scenario.groups():
        networks = [topology_from_spec(spec) for spec in group.topologies]
        mappers = [canonical_mapper(mapper) for mapper in group.mappers or ()]
        for trace, network in product(group.traces, networks):
            source, unequal = sources[trace], len(set(network.slots.tolist())) > 1
            replayed = source.has_program or source.kind == "stencil"
            engine = (scenario.replay.engine or None) if replayed else None
            steps = scenario.replay.steps if engine and source.kind == "benchmark" else None
            for variant, mapper in product(variants(axes, scenario.parameters, network), mappers):
                cell = (trace, network.spec, mapper, unequal)
                if any(_matches(rule, cell) for rule in rules):
                    continue
                for seed in group.seeds or ():
                    yield Run(
                        source,
                        digests[trace],
                        network.spec,
                        mapper,
                        seed,
                        engine,
                        steps,
                        variant.settings,
                        variant.label,
                    )


def _rule(exclude: Exclude) -> tuple[Sequence[object] | None, ...]:
    """Return what to leave out, as runs have it; None for all."""
    specs = exclude.topologies and [topology_from_spec(spec).spec for spec in exclude.topologies]
    mappers = exclude.mappers and [canonical_mapper(mapper) for mapper in exclude.mappers]
    return exclude.traces, specs, mappers, exclude.unequal_nodes and [True]


def _matches(rule: tuple[Sequence[object] | None, ...], cell: tuple[object, ...]) -> bool:
    return all(some is None or value in some for some, value in zip(rule, cell, strict=True))


def _new_traffic(runs: list[Run], results: Path) -> dict[str, Traffic]:
    """Read the traffic of every trace that the results do not hold as it is now."""
    try:
        _, known = store.load_plan(results)
    except store.StoreError:
        known = {}
    return {
        name: run.trace.traffic()
        for name, run in {run.trace.name: run for run in runs}.items()
        if known.get(name) != run.digest or not store.traffic_path(results, name).exists()
    }


def _save_inputs(
    path: Path, scenario: Scenario, runs: list[Run], traffic: dict[str, Traffic], results: Path
) -> None:
    """Write the traffic, copies of scenario and published numbers, and the plan."""
    for name, new in traffic.items():
        save_traffic(store.traffic_path(results, name), new)
    inputs = [(path, results / "scenario.toml")]
    if scenario.published:
        inputs.append((path.parent / scenario.published.file, results / "published.csv"))
    for source, target in inputs:
        with replacing(target) as partial:
            shutil.copyfile(source, partial)
    digests = {run.trace.name: run.digest for run in runs}
    settings: dict[str, dict[str, Any]] = {}
    for run in runs:
        settings.setdefault(run.variant, {}).update(run.settings)
    labels = [run.variant for run in runs]
    store.save_plan(results, [run.run_id for run in runs], digests, labels, settings)


def _do(run: Run, results: Path) -> str | None:
    """Do one run and write its files; return its error, if any."""
    row: dict[str, Any] = {
        "run_id": run.run_id,
        "trace": run.trace.name,
        "topology": run.topology,
        "mapper": run.mapper,
        "seed": run.seed,
        "engine": run.engine,
    }
    try:
        _measure(run, results, row)
    except OSError:
        raise  # a full disk would fail every run
    except Exception as error:
        if debugging():
            raise
        row["error"] = one_line(error)
    store.save_run(results, row)
    return row.get("error")


def _measure(run: Run, results: Path, row: dict[str, Any]) -> None:
    traffic = _traffic(results, run.trace.name, run.digest)
    topology, _ = configure(topology_from_spec(run.topology), run.settings)
    row |= {"ranks": traffic.ranks, "nodes": topology.nodes}
    node_of, row["mapping_seconds"] = timed_mapping(traffic, topology, run.mapper, seed=run.seed)
    row["node_of"] = node_of.astype(np.int32)
    row |= _static(traffic, topology, node_of)
    messages, size = link_loads(traffic, topology, node_of)
    bandwidth = np.array([kind.bandwidth for kind in topology.kinds])[topology.link_kind]
    seconds = size / bandwidth
    row |= {
        "link_seconds_total": float(seconds.sum()),
        "link_seconds_max": float(seconds.max(initial=0.0)),
    }
    busy = None
    if run.engine is not None:
        result = _replay(replace(run, mapper="", seed=0), node_of.tobytes())
        row |= {
            "replay_seconds": result.wall_seconds,
            "makespan": result.makespan,
            "compute": float(np.mean(result.compute)),
            "communicate": float(np.mean(result.communicate)),
            "wait": float(np.mean(result.wait)),
            "events": result.events,
            "replayed_hop_bytes": int(result.link_bytes.sum()),
            "replayed_congestion_max": int(result.link_bytes.max(initial=0)),
        }
        if result.energy is not None:
            transfer = sum(result.energy.transfer.values())
            row |= {"energy": result.energy.total, "energy_transfer": transfer}
        busy = result.link_busy
    store.save_links(results, run.run_id, topology, messages, size, busy)


def _static(traffic: Traffic, topology: Topology, node_of: Mapping) -> dict[str, Any]:
    """Return the metric columns of a row."""
    row: dict[str, Any] = {}
    for convention, prefix in (("hopmap", ""), ("maplib", "maplib_")):
        try:
            metrics = evaluate(traffic, topology, node_of, convention).as_dict()
        except MappingError:
            continue  # maplib knows boxes only
        for quantity in ("messages", "bytes"):
            measure = metrics[quantity]
            for metric in store.METRICS[:4] if prefix else store.METRICS:
                group, part = metric.rsplit("_", 1)
                row[f"{prefix}{quantity}_{metric}"] = measure[group][part]
            if not prefix:
                row[f"hop_{quantity}"] = measure["dilation"]["sum"]
    return row


@lru_cache(maxsize=2)
def _traffic(results: Path, name: str, _digest: str) -> Traffic:
    return store.load_traffic(results, name)


@lru_cache(maxsize=32)
def _replay(run: Run, nodes: bytes) -> Result:
    """Replay a mapping once, even where several mappers or seeds find the same one."""
    topology, parameters = configure(topology_from_spec(run.topology), run.settings)
    algorithms = tuple(parameters.algorithms.items())
    program = _program(run.trace, run.steps, algorithms, run.digest)
    node_of = np.frombuffer(nodes, dtype=np.int64)
    assert run.engine is not None
    return simulate(program, topology, node_of, parameters=parameters, engine=run.engine)


@lru_cache(maxsize=1)
def _program(
    source: Source, steps: int | None, algorithms: tuple[tuple[str, str], ...], _digest: str
) -> Program:
    if source.kind == "stencil":  # all receives, all sends, wait for all: Lehr's listing 7.2
        return program_of_traffic(source.traffic(), "at_once", name=source.name)
    return lower(source.calls(steps), dict(algorithms))
