"""The best mapping of a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from hopmap.scenarios.results.plan_file import read_plan
from hopmap.scenarios.results.store import load_runs
from hopmap.scenarios.results.tables import StoreError
from hopmap.topologies import Mapping, Topology, topology_from_spec

CASE = ["trace", "topology", "variant"]


class BestRun(NamedTuple):
    """A mapping, its network, and in words what it is the best of."""

    node_of: Mapping
    topology: Topology
    about: str


def best_run(folder: str | Path, trace: str | None = None, topology: str | None = None) -> BestRun:
    """Return the mapping that is fastest by the median, by its replay, or has least hop-bytes.

    Parameters
    ----------
    trace, topology : str, optional
        Which case, as the results call it, where there are several.

    Raises
    ------
    StoreError
        No results, no run that has finished, or several cases to choose from.
    """
    runs = load_runs(folder)
    done = runs[runs["error"].isna()]
    for column, wanted in (("trace", trace), ("topology", topology)):
        if wanted is not None:
            done = done[done[column] == wanted]
    cases = [tuple(case) for case in done[CASE].drop_duplicates().itertuples(index=False)]
    if not cases:
        known = ", ".join(sorted(set(runs["trace"] + " on " + runs["topology"])))
        raise StoreError(f"{folder}: no such run has finished: expected one of {known or 'none'}")
    if len(cases) > 1:
        named = ", ".join(" on ".join(map(str, case[:2])) + _of(case[2]) for case in cases[:4])
        raise StoreError(
            f"{folder}: {len(cases)} cases ({named}{', ...' * (len(cases) > 4)}): expected one: "
            "--trace and -t (--topology) choose"
        )
    columns = ("makespan_median", "makespan", "hop_bytes")
    by = next(column for column in columns if done[column].notna().all())
    best = done.sort_values(by, kind="stable").iloc[0]
    called = str(best["topology"])
    network = topology_from_spec(read_plan(Path(folder)).networks.get(called, called))
    about = (
        f"{best['trace']} on {called}: {best['mapper']}, seed {best['seed']}, {_shown(best, by)}"
    )
    return BestRun(np.asarray(best["node_of"], dtype=np.int64), network, about)


def _of(variant: object) -> str:
    return f", {variant}" if variant else ""


def _shown(best: pd.Series, by: str) -> str:
    unit = "" if by == "hop_bytes" else " s"
    return f"{by.replace('_', ' ')} {best[by]:,.4g}{unit}"
