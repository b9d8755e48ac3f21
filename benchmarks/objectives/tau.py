"""Which metric puts mappings in the order of their simulated runtime? Kendall's tau by case.

``hopmap run ienpc_time_energy --workers 2`` first, then
``python benchmarks/objectives/tau.py [results/ienpc_time_energy]``

The 24 cases of the study (benchmarks/study): the metrics of the study's runs, the bound of the
makespan, its longest path alone, and the milliseconds of processor time that a bound takes. The
last lines are medians and the lowest.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from hopmap.api.workload import Workload
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.studies.correlation import distinct, kendall_tau
from hopmap.scenarios.sweep import SHIPPED
from hopmap.simulator import MakespanBound, Program
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import topology_from_spec

HELD = (
    *("hop_bytes", "replayed_hop_bytes", "bytes_congestion_max"),
    *("link_seconds_total", "link_seconds_max"),
)
COLUMNS = (*HELD, "path", "makespan_bound")


@cache
def program_of(trace: str) -> Program:
    """Lower a trace of the study; a recorded one lies in the scenario's folder."""
    recorded = SHIPPED["first"].parent / "recorded" / trace
    return Workload(recorded if recorded.is_dir() else trace).program()


def main(folder: str = "results/ienpc_time_energy") -> None:
    """Print a row a case."""
    print(f"{'':<34}" + "".join(f"{name:>22}" for name in COLUMNS) + f"{'ms':>8}")
    study, rows = load_study(Path(folder)), []
    for case in study.cases:
        runs = distinct(case.runs[case.runs["makespan"].notna()])
        network, parameters = configure(
            topology_from_spec(study.spec_of(case.topology)), study.settings_of(case)
        )
        bound = MakespanBound(program_of(case.trace), network, parameters)
        mappings = [np.asarray(node_of) for node_of in runs["node_of"]]
        bound(mappings[0])
        begin = time.process_time()
        bounds = [bound(node_of) for node_of in mappings]
        spent = 1000 * (time.process_time() - begin) / len(mappings)
        metrics = {name: runs[name] for name in HELD}
        metrics |= {"path": [bound.path(each) for each in mappings], "makespan_bound": bounds}
        taus = [kendall_tau(metrics[name], runs["makespan"]).value for name in COLUMNS]
        rows.append(taus)
        where = f"{case.trace} {case.topology} {case.variant.rpartition(' ')[2]}"
        _print(f"{where:<34}", taus, f"{spent:>8.2f}")
    table = pd.DataFrame(rows)
    _print(f"{'median':<34}", table.median())
    _print(f"{'lowest':<34}", table.min())


def _print(name: str, values, behind: str = "") -> None:
    print(name + "".join(f"{value:>+22.2f}" for value in values) + behind, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
