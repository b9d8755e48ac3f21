"""What a sweep writes before its first run: traffic, scenario, published numbers, lock and plan.

``scenario.lock.toml`` is the scenario with all that its file leaves open.
"""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import tomli_w

from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.traces import Traffic
from hopmap.traces.safety.atomic_files import replacing
from hopmap.version import __version__

from .inputs import planned_traffic
from .plan import Run, auto_expanded
from .scenario import Scenario
from .scenario_files import changed, read_toml

HEAD = "# What these results were made from, written by hopmap run.\n"


def save_inputs(
    path: Path,
    scenario: Scenario,
    runs: list[Run],
    results: Path,
    changes: Sequence[str],
    traffic: Mapping[str, Traffic],
    impossible: Mapping[str, int],
) -> None:
    """Write what the runs need and were made from: traffic, scenario, published numbers, plan.

    `traffic` is what `new_traffic` has read. Reports say how many runs are impossible, by the
    reason; see `possible`.
    """
    (results / "traffic").mkdir(parents=True, exist_ok=True)
    made_of = {run.trace.name: run.traffic_of for run in runs}
    for name, new in traffic.items():
        if name in made_of:
            store.save_traffic(results, name, new, made_of[name])
    if not scenario.published:
        (results / "published.csv").unlink(missing_ok=True)
    else:
        with replacing(results / "published.csv") as file:
            shutil.copyfile(path.parent / scenario.published.file, file)
    with replacing(results / "scenario.toml") as file:
        if changes:
            head = "".join(f"# --set {change}\n" for change in changes)
            file.write_text(head + tomli_w.dumps(changed(read_toml(path), changes, path)), "utf-8")
        else:
            shutil.copyfile(path, file)
    _write_lock(results / "scenario.lock.toml", scenario, runs)
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
            impossible=dict(impossible),
            expanded=list(dict.fromkeys(run.trace.name for run in runs if run.expanded)),
            auto_expanded=auto_expanded(scenario, runs),
            description=scenario.description,
        ),
    )


def new_traffic(runs: list[Run], results: Path) -> dict[str, Traffic]:
    """Read the traffic of every trace that the results do not hold as it is now."""
    return {
        name: planned_traffic(run.trace, run.digest, run.algorithms if run.expanded else None)
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
            name: _said(
                kind=run.trace.kind, path=getattr(run.trace, "path", None), digest=run.digest
            )
            for name, run in traces.items()
        },
        "networks": dict(sorted(networks.items())),
        "runs": {run.run_id: _said(**run.normal()) for run in runs},
    }
    with replacing(path) as partial:
        partial.write_text(HEAD + tomli_w.dumps(document), encoding="utf-8")


def packages() -> dict[str, str]:
    """Return the versions of the packages that hopmap needs, extras that are there included."""
    found = {}
    for requirement in requires("hopmap") or []:
        match = re.match(r"[\w.-]+", requirement)
        if match and match[0] != "hopmap":
            with suppress(PackageNotFoundError):
                found[match[0]] = version(match[0])
    return dict(sorted(found.items()))


def _said(**values: Any) -> dict[str, Any]:
    """Leave out what is None, for which TOML has no word."""
    said = {key: value for key, value in values.items() if value is not None}
    return {key: str(v) if isinstance(v, Path) else v for key, v in said.items()}
