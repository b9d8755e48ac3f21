"""The file plan.json of a folder of results: which runs the scenario has now, and their names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, model_validator

from hopmap.traces.safety.atomic_files import write_text

from .tables import StoreError


class Plan(BaseModel, frozen=True):
    """Runs in order, what they are called now, where networks lie."""

    runs: list[str]  # Their ids.
    variant_of: list[str] = []  # Of each run; none where nothing varies.
    topology_of: list[str] = []  # What it is called: a file may have been moved since it was run.
    variants: dict[str, dict[str, Any]] = {}  # Parameters by label.
    networks: dict[str, str] = {}  # Specs of the topologies that are called otherwise.
    # How many runs were left out since they cannot be, by the reason.
    infeasible: dict[str, int] = {}
    expanded: list[str] = []  # Traces of which what collectives send is mapped, too.
    auto_expanded: dict[str, bool] = {}  # See `sweep.plan.auto_expanded`.
    description: str = ""  # Of the scenario, and of what it leaves out.

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        lengths = {len(self.variant_of), len(self.topology_of)}
        if not lengths <= {0, len(self.runs)}:
            raise ValueError("variant_of and topology_of: expected one for each run")
        return self

    def names(self) -> dict[str, tuple[str, str | None]]:
        """Return variant and topology of every run, None for what its row calls it."""
        variants = self.variant_of or [""] * len(self.runs)
        topologies: list[str | None] = [*self.topology_of] or [None] * len(self.runs)
        return dict(zip(self.runs, zip(variants, topologies, strict=True), strict=True))


def save_plan(folder: Path, plan: Plan) -> None:
    """Write which runs the scenario consists of."""
    write_text(folder / "plan.json", plan.model_dump_json(indent=1) + "\n")


OWN = ("scenario.toml", "published.csv", "report.html", "cases.csv", "figures", "timelines")
"""What a sweep and its report replace in a folder of results."""


def expect_results_folder(folder: Path, scenario: Path, changes: Sequence[str]) -> None:
    """Raise `StoreError` where a sweep would replace files that are not its own."""
    if changes and scenario.resolve() == (folder / "scenario.toml").resolve():
        raise StoreError(f"{scenario}: belongs to these results: expected a copy to change")
    began = any((folder / name).exists() for name in ("plan.json", "scenario.lock.toml"))
    for name in () if began else OWN:
        if (folder / name).exists():
            raise StoreError(f"{folder}: holds {name}: expected a new folder, or one of results")


def read_plan(folder: Path) -> Plan:
    """Return what `save_plan` wrote, of a folder that has everything in itself."""
    _expect_inside(folder)
    try:
        return Plan.model_validate_json((folder / "plan.json").read_text("utf-8"))
    except (OSError, ValueError):
        raise StoreError(
            f"{folder}: no results there: plan.json is missing or damaged: expected a folder of "
            "`hopmap run`"
        ) from None


LOCK = "scenario.lock.toml"


def read_traces(folder: Path) -> dict[str, dict[str, str]]:
    """Return where each trace lay when it was run, and its digest; nothing without the lock."""
    with suppress(OSError, ValueError, KeyError, AttributeError):
        traces = tomllib.loads((folder / LOCK).read_text(encoding="utf-8"))["traces"]
        return {name: dict(entry) for name, entry in traces.items()}
    return {}


def _expect_inside(folder: Path) -> None:
    """Refuse links that lead out: who makes a folder must not choose what we read or remove."""
    for place in (folder, folder / "earlier"):
        for entry in place.iterdir() if place.is_dir() else ():
            if entry.is_symlink() and not entry.resolve().is_relative_to(folder.resolve()):
                raise StoreError(f"{entry}: a link out of the results: expected them in {folder}")


def read_auto_expanded(folder: Path) -> dict[str, bool]:
    """Return what the plan of a folder says of traces' collectives; nothing if it has none yet."""
    try:
        return read_plan(folder).auto_expanded
    except StoreError:
        return {}


def flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Join the keys of nested tables with dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
