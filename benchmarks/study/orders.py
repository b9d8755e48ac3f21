"""Is the best mapping the best under other models? `orders.py RESULTS...` (README.md).

RESULTS are what `hopmap run models` leaves, and what `hopmap run models --set replay.engine=flow
--out FLOWS` does, of which the first model counts. Each model is held against the default one:
Kendall's tau of the order of the mappings, the ratio of runtimes over all of them, and the regret
of the mapping that the default finds fastest, T(chosen) / T(best) - 1 under the model. Mappings
whose runtimes agree to 1e-9 are ties in tau.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import hopmap as hm
from hopmap.scenarios.studies.correlation import kendall_tau

CASE = ["trace", "topology"]


def runtimes(folders: list[str]) -> pd.DataFrame:
    """Seconds of every mapping of a case (rows) under every model."""
    tables = []
    for folder in folders:
        runs = hm.load_results(folder)
        if set(runs["engine"]) == {"flow"}:
            runs = runs[runs["variant"] == "model default"].assign(variant="flows")
        tables.append(runs)
    whole = pd.concat(tables)
    whole["variant"] = whole["variant"].str.removeprefix("model ")
    return whole.pivot(index=[*CASE, "mapper"], columns="variant", values="makespan")


def compared(times: pd.DataFrame) -> pd.DataFrame:
    """Tau, ratios and regret of each model (rows), by the runtimes of one case."""
    default, rows = times["default"], {}
    for name in times.columns.drop("default"):
        here = times[name]
        rows[name] = {
            "tau": kendall_tau(_rounded(default), _rounded(here)).value,
            "least": (here / default).min(),
            "most": (here / default).max(),
            "regret": here[default.idxmin()] / here.min() - 1,
        }
    return pd.DataFrame(rows).T


def _rounded(seconds: pd.Series) -> np.ndarray:
    return np.array([float(f"{value:.9g}") for value in seconds])


def main(folders: list[str]) -> None:
    cases = {
        case: compared(times.droplevel(CASE)) for case, times in runtimes(folders).groupby(CASE)
    }
    by = pd.concat(cases, names=[*CASE, "model"]).groupby("model")
    regret = by["regret"]
    table = pd.DataFrame(
        {
            "tau, median": by["tau"].median(),
            "least": by["tau"].min(),
            "ratio, least": by["least"].min(),
            "most": by["most"].max(),
            "regret, median": regret.median(),
            "above 1 %": regret.agg(lambda each: (each > 0.01).sum()),
            "worst": regret.max(),
            "where": regret.agg(lambda each: " ".join(each.idxmax()[:2])),
        }
    )
    print(f"{len(cases)} cases\n" + table.to_string(float_format="%.4f"))


if __name__ == "__main__":
    main(sys.argv[1:])
