"""Does `auto` lose to one of its own members? ``python benchmarks/anytime/members.py``.

Generated traffic without structure (`generated`), shuffled, on meshes, tori, hierarchies, fat trees
and dragonflies of 256, 1,024 and 4,096 nodes. J of `auto` and of single mappers after the same
processor seconds, the mean of some seeds; the ratio is to the mapper with the best mean. Rows that
--out holds already are not measured again; --as names what `auto` is called there, so that two
commits can be compared.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from generated import KINDS, LATER, traffic_of

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec

NETWORKS = {
    256: ("mesh:16x16", "torus:8x8x4", "tree:4:8:8@1:10:100", "fattree:8x8x4"),
    1024: ("torus:8x8x16", "mesh:32x32", "tree:4:16:16@1:10:100", "dragonfly:4x8x4"),
    4096: ("torus:16x16x16", "tree:4:16:64@1:10:100", "mesh:64x64"),
}
MEMBERS = ("annealing", "multilevel", "recursive_bisection | annealing")
GRIDS = ("lu", "grid3d")
LATE = 1.1  # a member that took longer, as a bisection before it may, does not count
FEW = 256  # slots up to which `tabu` is a member
COLUMNS = ["kind", "ranks", "spec", "tool", "budget", "seed", "J", "cpu_s"]
CASE = ["kind", "ranks", "spec", "budget"]


def cases(kinds: list[str]) -> list[tuple[str, int, str]]:
    """Every kind in every size, on one network after another."""
    return [
        (kind, ranks, networks[k % len(networks)])
        for ranks, networks in NETWORKS.items()
        for k, kind in enumerate(kinds)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("members.csv"))
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.3, 2.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[""], help='parts of "kind ranks spec"')
    parser.add_argument("--as", dest="name", default="auto")
    parser.add_argument("--alone", action="store_true", help="do not measure the members")
    options = parser.parse_args()
    rows = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=COLUMNS)
    known = set(rows[COLUMNS[:6]].itertuples(index=False, name=None))
    for kind, ranks, spec in cases([*LATER, *(k for k in KINDS if k not in GRIDS)]):
        if not any(part in f"{kind} {ranks} {spec}" for part in options.only):
            continue
        traffic, topology = traffic_of(kind, ranks), topology_from_spec(spec)
        tools = {options.name: "auto(objective=hop_bytes)"}
        if not options.alone:
            few = ("tabu(steps=1000000000)",) * (ranks <= FEW)
            tools |= {member.partition("(")[0]: member for member in (*MEMBERS, *few)}
        for tool, mapper in tools.items():
            stage = mapper.removesuffix(")") + (", " if mapper.endswith(")") else "(")
            for budget in options.seconds:
                for seed in range(options.seeds):
                    row = (kind, ranks, spec, tool, budget, seed)
                    if row in known:
                        continue
                    mapping = f"{stage}seconds={budget:g}, clock=cpu)"
                    if not known:
                        map_ranks(traffic, topology, mapping)  # compile
                    begin = time.process_time()
                    node_of = map_ranks(traffic, topology, mapping, seed=seed)
                    spent = time.process_time() - begin
                    value = objective_value(traffic, topology, node_of, "hop_bytes")
                    known.add(row)
                    rows.loc[len(rows)] = [*row, value, round(spent, 3)]
        rows.to_csv(options.out, index=False)
    show(rows, options.name)


def show(rows: pd.DataFrame, name: str) -> None:
    """Print a row a case and budget, and the means."""
    pd.options.display.width = 200
    ours = rows["tool"].str.startswith("auto")
    in_time = rows[ours | (rows["cpu_s"] < LATE * rows["budget"])]
    mean = in_time.groupby([*CASE, "tool"])["J"].mean().unstack()
    ours = [tool for tool in mean if str(tool).startswith("auto")]
    members = mean.drop(columns=ours)
    table = mean[ours].div(members.min(axis=1), axis=0)
    table["best"] = members.idxmin(axis=1)
    print(table.sort_values(name).to_string(float_format="%.3f"))
    for tool in ours:
        by = table[tool].dropna().groupby(["ranks", "budget"])
        print(f"\n{tool}: means, worst, cases above 1.005")
        shown = by.agg([lambda r: np.exp(np.log(r).mean()), "max", lambda r: (r > 1.005).sum()])
        print(shown.to_string(header=False, float_format="%.3f"))


if __name__ == "__main__":
    main()
