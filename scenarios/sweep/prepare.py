"""What a sweep does before its first run: which runs can be, and what is written.

Runs that cannot be are left out, and said to be: ranks without a slot, mappers not made for a
network or a traffic, engines that know nothing of what a variant sets. Written are traffic,
scenario, published numbers, lock and plan.

``scenario.lock.toml`` is the scenario with all that its file leaves open.
"""

from __future__ import annotations

import platform
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import tomli_w

from hopmap.api.named_files import initial_mapping, split_mapper
from hopmap.mappers.pipeline import expect_applicable, parse_pipeline
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.scenarios.results.stored_runs import read_errors
from hopmap.simulator import DEFAULT_ENGINE
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.simulate import expect_known
from hopmap.topologies import MappingError, check_fits
from hopmap.traces import Traffic
from hopmap.traces.safety.atomic_files import replacing, write_text
from hopmap.version import __version__

from .inputs import load_planned_network, load_planned_traffic
from .measure import usable_network
from .plan import Run, auto_expanded
from .scenario import Scenario
from .scenario_files import override, read_toml


def select_runs(
    runs: Sequence[Run], results: Path, new: Mapping[str, Traffic]
) -> tuple[list[Run], dict[str, int]]:
    """Return the runs that can be done, and how many cannot, by the reason.

    Looks at every trace on every network by every mapper; what has gone well before is possible.
    `new` has the traffic of traces of which the results hold none. Raises `MappingError` with the
    first reason where nothing is left.
    """
    errors = read_errors(results)

    @lru_cache(maxsize=1)
    def traffic_of(name: str, made_of: str) -> Traffic:
        return new[name] if name in new else store.load_traffic(results, name, made_of)

    @lru_cache
    def unknown_to_engine(run: Run) -> str:
        try:
            _, parameters = configure(load_planned_network(run.topology, run.network), run.settings)
            expect_known(parameters, run.engine or DEFAULT_ENGINE)
        except ParameterError as error:
            return str(error)
        return ""

    @lru_cache
    def does_not_fit(run: Run) -> str:
        trace, topology = run.trace.name, run.topology
        traffic = traffic_of(trace, run.traffic_of)
        try:
            network = usable_network(run)
            check_fits(traffic.ranks, network)
        except MappingError as error:
            return f"{trace}: {error}"
        usable = network.evenly(traffic.ranks) if run.spread else network
        _, pipeline = split_mapper(run.mapper)
        try:
            initial_mapping(run.mapper, network, usable, traffic.ranks)
            if pipeline:
                expect_applicable(parse_pipeline(pipeline), traffic, usable)
        except MappingError as error:
            return str(error) if topology in str(error) else f"{trace} on {topology}: {error}"
        return ""

    kept: list[Run] = []
    infeasible: Counter[str] = Counter()
    for run in runs:
        reason = ""
        if errors.get(run.run_id, "") is not None:
            case = replace(run, seed=0, variant="", called="", mapper_called="")
            if run.engine:
                reason = unknown_to_engine(replace(case, mapper="", mapping=""))
            settings = run.settings if run.others or run.expanded else ()
            reason = reason or does_not_fit(replace(case, engine=None, settings=settings))
        if reason:
            infeasible[reason] += 1
        else:
            kept.append(run)
    if not kept:
        raise MappingError(f"{next(iter(infeasible))} (none of {len(runs)} runs can be done)")
    return kept, dict(infeasible)


HEAD = "# What these results were made from, written by hopmap run.\n"


def save_inputs(
    path: Path,
    scenario: Scenario,
    runs: list[Run],
    results: Path,
    changes: Sequence[str],
    traffic: Mapping[str, Traffic],
    infeasible: Mapping[str, int],
) -> None:
    """Write what the runs need and were made from: traffic, scenario, published numbers, plan.

    `traffic` is what `new_traffic` has read. Reports say how many runs are infeasible, by the
    reason; see `select_runs`.
    """
    (results / "traffic").mkdir(parents=True, exist_ok=True)
    made_of = {run.trace.name: run.traffic_of for run in runs}
    for name, new in traffic.items():
        if name in made_of:
            store.save_traffic(results, name, new, made_of[name])
    _write_lock(results / "scenario.lock.toml", scenario, runs)  # all else is ours from here on
    if not scenario.published:
        (results / "published.csv").unlink(missing_ok=True)
    else:
        with replacing(results / "published.csv") as file:
            shutil.copyfile(path.parent / scenario.published.file, file)
    with replacing(results / "scenario.toml") as file:
        if changes:
            head = "".join(f"# --set {change}\n" for change in changes)
            file.write_text(head + tomli_w.dumps(override(read_toml(path), changes, path)), "utf-8")
        else:
            shutil.copyfile(path, file)
    variants: dict[str, dict[str, Any]] = {}
    for run in runs:
        variants.setdefault(run.variant, {}).update(run.settings)
    save_plan(
        results,
        Plan(
            runs=[run.run_id for run in runs],
            variant_of=[run.variant for run in runs],
            topology_of=[run.called for run in runs],
            variants=variants,
            networks={run.called: run.topology for run in runs if run.network},
            infeasible=dict(infeasible),
            expanded=list(dict.fromkeys(run.trace.name for run in runs if run.expanded)),
            auto_expanded=auto_expanded(scenario, runs),
            description=scenario.description,
        ),
    )


def new_traffic(runs: list[Run], results: Path) -> dict[str, Traffic]:
    """Read the traffic of every trace that the results do not hold as it is now."""
    return {
        name: load_planned_traffic(run.trace, run.digest, run.algorithms if run.expanded else None)
        for name, run in {run.trace.name: run for run in runs}.items()
        if not store.has_traffic(results, name, run.traffic_of)
    }


def _write_lock(path: Path, scenario: Scenario, runs: Sequence[Run]) -> None:
    """Write versions, digests of inputs, the scenario with its defaults, and every run."""
    traces = {run.trace.name: run for run in runs}
    networks = {run.topology: run.network for run in runs if run.network}
    document: dict[str, Any] = {
        "hopmap": __version__,
        "python": platform.python_version(),
        "packages": packages(),
        "scenario": scenario.model_dump(mode="json", exclude_none=True),
        "traces": {
            name: _drop_none(
                kind=run.trace.kind, path=getattr(run.trace, "path", None), digest=run.digest
            )
            for name, run in traces.items()
        },
        "networks": dict(sorted(networks.items())),
        "runs": {run.run_id: _drop_none(**run.normal()) for run in runs},
    }
    write_text(path, HEAD + tomli_w.dumps(document))


def packages() -> dict[str, str]:
    """Return the versions of the packages that hopmap needs, extras that are there included."""
    found = {}
    for requirement in requires("hopmap") or []:
        match = re.match(r"[\w.-]+", requirement)
        if match and match[0] != "hopmap":
            with suppress(PackageNotFoundError):
                found[match[0]] = version(match[0])
    return dict(sorted(found.items()))


def _drop_none(**values: Any) -> dict[str, Any]:
    """Leave out what is None, for which TOML has no word."""
    present = {key: value for key, value in values.items() if value is not None}
    return {key: str(v) if isinstance(v, Path) else v for key, v in present.items()}
