"""The best mapping of a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from hopmap.topologies import Mapping, Topology, topology_from_spec
from hopmap.units import show_seconds

from .plan_file import read_plan
from .store import load_runs
from .tables import StoreError

CASE = {"trace": "--trace", "topology": "-t", "variant": "--variant"}
"""What makes a case, and the option that chooses it."""


class BestRun(NamedTuple):
    """A mapping, its network, and in words what it is the best of."""

    node_of: Mapping
    topology: Topology
    about: str


def best_run(
    folder: str | Path,
    trace: str | None = None,
    topology: str | None = None,
    variant: str | None = None,
) -> BestRun:
    """Return the mapping that is fastest by the median, by its replay, or has least hop-bytes.

    Trace, topology and variant, as the results call them, say which case where there are several.
    """
    runs = load_runs(folder)
    done = runs[runs["error"].isna()]
    for column, wanted in zip(CASE, (trace, topology, variant), strict=True):
        if wanted is not None:
            done = done[done[column] == wanted]
    cases = done[list(CASE)].drop_duplicates()
    if cases.empty:
        known = "; ".join(_named(runs[list(CASE)].drop_duplicates()))
        raise StoreError(f"{folder}: no such run has finished: expected one of {known or 'none'}")
    if len(cases) > 1:
        named = "; ".join(_named(cases[:4])) + "; ..." * (len(cases) > 4)
        options = " ".join(option for column, option in CASE.items() if cases[column].nunique() > 1)
        raise StoreError(
            f"{folder}: {len(cases)} cases ({named}): expected one, as {options} tells them apart"
        )
    columns = ("makespan_median", "makespan", "hop_bytes")
    by = next(column for column in columns if done[column].notna().all())
    best = done.sort_values(by, kind="stable").iloc[0]
    called = str(best["topology"])
    network = topology_from_spec(read_plan(Path(folder)).networks.get(called, called))
    (case,) = _named(cases)
    shown = f"{best[by]:,.4g}" if by == "hop_bytes" else show_seconds(best[by])
    about = f"{case}: {best['mapper']}, seed {best['seed']}, {by.replace('_', ' ')} {shown}"
    return BestRun(np.asarray(best["node_of"], dtype=np.int64), network, about)


def _named(cases: pd.DataFrame) -> list[str]:
    """Name cases: trace, network and, if any, variant."""
    return [
        f"{trace} on {', '.join(filter(None, (topology, variant)))}"
        for trace, topology, variant in cases.itertuples(index=False)
    ]
