"""The file plan.json of a folder of results: which runs the scenario has now, and their names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.traces.safety.atomic_files import replacing

from .tables import StoreError


class Plan(NamedTuple):
    """What `save_plan` wrote: runs in order, what they are called now, where networks lie."""

    runs: list[str]
    variant_of: list[str]
    topology_of: list[str]
    variants: dict[str, dict[str, Any]]
    networks: dict[str, str]
    impossible: dict[str, int]
    expanded: list[str]
    auto_expanded: dict[str, bool]
    description: str


def save_plan(
    folder: Path,
    run_ids: Sequence[str],
    labels: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    topologies: Sequence[str] = (),
    networks: Mapping[str, str] | None = None,
    impossible: Mapping[str, int] | None = None,
    expanded: Sequence[str] = (),
    auto_expanded: Mapping[str, bool] | None = None,
    description: str = "",
) -> None:
    """Write which runs the scenario consists of, in order.

    Parameters
    ----------
    labels : sequence of str
        What varies in each run; none where nothing does.
    settings : mapping, optional
        Parameters by label.
    topologies : sequence of str
        What the topology of each run is called: a file may have been moved since it was run.
    networks : mapping of str to str, optional
        Specs of the topologies that are called otherwise.
    impossible : mapping of str to int, optional
        How many runs were left out since they cannot be, by the reason.
    expanded : sequence of str
        Traces of which what collectives send is mapped, too.
    auto_expanded : mapping of str to bool, optional
        See `sweep.plan.auto_expanded`.
    description : str
        Of the scenario, and of what it leaves out.
    """
    plan = {
        "runs": list(run_ids),
        "variant_of": list(labels),
        "topology_of": list(topologies),
        "variants": {label: dict(each) for label, each in (settings or {}).items()},
        "networks": dict(networks or {}),
        "impossible": dict(impossible or {}),
        "expanded": list(expanded),
        "auto_expanded": dict(auto_expanded or {}),
        "description": description,
    }
    with replacing(folder / "plan.json") as partial:
        partial.write_text(json.dumps(plan, indent=1) + "\n")


def read_plan(folder: Path) -> Plan:
    """Return all that `save_plan` wrote.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    try:
        plan = json.loads((Path(folder) / "plan.json").read_text())
        runs = list(plan["runs"])
        return Plan(
            runs,
            list(plan.get("variant_of") or [""] * len(runs)),
            list(plan.get("topology_of") or []),
            dict(plan.get("variants", {})),
            dict(plan.get("networks", {})),
            dict(plan.get("impossible", {})),
            list(plan.get("expanded", [])),
            dict(plan.get("auto_expanded", {})),
            str(plan.get("description", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(f"{folder}: no results there: expected a folder of `hopmap run`") from None


def known_auto_expanded(folder: Path) -> dict[str, bool]:
    """Return what the plan of a folder says of traces' collectives; nothing if it has none yet."""
    try:
        return read_plan(folder).auto_expanded
    except StoreError:
        return {}
