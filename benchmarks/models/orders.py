"""Is the best mapping the best under other models? ``python benchmarks/models/orders.py``.

Communication alone of NAS programs on 64 ranks, two time steps, under a dozen mappings; each model
is held against the default one (unbounded queues, fixed routes, one message after the other from a
node): Kendall's tau of the order of the mappings, the ratio of runtimes over all of them, and the
regret of the mapping that the default model finds fastest, T(chosen) / T(best) - 1 under the model.
Mappings whose runtimes agree to 1e-9 are ties in tau. ``--class A`` is that of the programs,
``--only torus`` takes parts of "program topology"; ``--csv FILE`` keeps every runtime.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from hopmap.errors import HopmapError
from hopmap.mappers import map_ranks
from hopmap.scenarios.study.correlation import kendall_tau
from hopmap.simulator import simulate
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.programs.from_source import program_of_source, traffic_of_source
from hopmap.topologies import topology_from_spec
from hopmap.traces.sources import open_source

PROGRAMS = ("cg", "bt", "mg", "ft", "lu", "is")
NETWORKS = ("torus:8x8", "mesh:4x4x4", "haec:4x4x4", "dragonfly:2x4x2")
MAPPERS = (
    *("identity", "random", "sweep", "hilbert", "gray", "rcm", "greedy", "minmd", "multilevel"),
    *("recursive_bisection | local_search", "treematch", "auto(moves=20000)"),
)
BUFFERS = {"network.virtual_channels": 8}
MODELS = {
    "one-packet buffers": {"network.buffer": 1, **BUFFERS},
    "four-packet buffers": {"network.buffer": 4, **BUFFERS},
    "minimal adaptive": {"network.routing": "adaptive"},
    "minimal adaptive, four-packet buffers": {
        "network.routing": "adaptive",
        "network.buffer": 4,
        **BUFFERS,
    },
    "Valiant": {"network.routing": "valiant"},
    "UGAL-L": {"network.routing": "ugal_l"},
    "UGAL-G": {"network.routing": "ugal_g"},
    "round robin at the node": {"nic": "round_robin"},
    "flows": {"engine": "flow"},
}


def runtimes(program: str, spec: str) -> pd.DataFrame:
    """Seconds of every mapping (rows) under every model; NaN under those that cannot be."""
    source, network = open_source(program), topology_from_spec(spec)
    lowered, traffic = (
        program_of_source(source, steps=2)[0],
        traffic_of_source(source, "auto").traffic,
    )
    table = {}
    for mapper in MAPPERS:
        try:
            node_of = map_ranks(traffic, network, mapper, seed=0)
        except HopmapError:
            continue  # a mapper of other networks
        found = {}
        for name, given in {"default": {}, **MODELS}.items():
            settings = {"compute.scale": 0, **given}
            engine = settings.pop("engine", "compiled")
            try:
                here, parameters = configure(network, tuple(settings.items()))
                run = simulate(lowered, here, node_of, parameters=parameters, engine=engine)
                found[name] = run.makespan
            except HopmapError as error:
                print(f"{program} {spec} {name}: {error}", flush=True)
                found[name] = np.nan
        table[mapper] = found
    return pd.DataFrame(table).T


def compared(times: pd.DataFrame) -> pd.DataFrame:
    """Tau, ratios and regret of each model, by one case's runtimes."""
    rows, default = {}, times["default"]
    for name in MODELS:
        here = times[name]
        if here.isna().any():
            continue
        ratio = here / default
        rows[name] = {
            "tau": kendall_tau(_rounded(default), _rounded(here)).value,
            "least": ratio.min(),
            "most": ratio.max(),
            "regret": here[default.idxmin()] / here.min() - 1,
        }
    return pd.DataFrame(rows).T


def _rounded(seconds: pd.Series) -> np.ndarray:
    return np.array([float(f"{value:.9g}") for value in seconds])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--class", dest="size", default="A")
    parser.add_argument("--only", default="")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    cases, kept = {}, []
    for name, spec in product(PROGRAMS, NETWORKS):
        program = f"{name}.{options.size}.64"
        if options.only not in f"{program} {spec}":
            continue
        times = runtimes(program, spec)
        kept.append(times.assign(program=program, topology=spec))
        cases[program, spec] = compared(times)
        print(f"\n{program} {spec}, {len(times)} mappings")
        print(cases[program, spec].to_string(float_format="%.3f"), flush=True)
        if options.csv:
            pd.concat(kept).to_csv(options.csv, index_label="mapper")
    whole = pd.concat(cases, names=["program", "topology", "model"])
    worst = whole["regret"].groupby("model").idxmax()
    by = whole.groupby("model", sort=False)
    summary = pd.DataFrame(
        {
            "cases": by.size(),
            "tau, median": by["tau"].median(),
            "least tau": by["tau"].min(),
            "ratio, least": by["least"].min(),
            "most": by["most"].max(),
            "worst regret": by["regret"].max(),
            "of": {model: f"{case[0]} {case[1]}" for model, case in worst.items()},
        }
    )
    print("\n" + summary.to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
