"""``scenario.lock.toml``: the scenario with all that its file leaves open."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import tomli_w

from hopmap.traces.safety.atomic_files import replacing
from hopmap.version import __version__

from .plan import Run
from .scenario import Scenario

HEAD = "# What these results were made from, written by hopmap run.\n"


def write_lock(path: Path, scenario: Scenario, runs: Sequence[Run]) -> None:
    """Write versions, digests of inputs, the scenario with its defaults, and every run.

    Raises
    ------
    OSError
        The file cannot be written.
    """
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
            try:
                found[match[0]] = version(match[0])
            except PackageNotFoundError:
                continue
    return dict(sorted(found.items()))


def _said(**values: Any) -> dict[str, Any]:
    """Leave out what is None, for which TOML has no word."""
    said = {key: value for key, value in values.items() if value is not None}
    return {key: str(v) if isinstance(v, Path) else v for key, v in said.items()}
