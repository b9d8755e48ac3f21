"""How good, how soon? ``python benchmarks/anytime/anytime.py --out rows.csv``.

Generated traffic (`generated`), shuffled, on hierarchies, tori and meshes of 64 to 32,768 nodes:
J of `auto` after several budgets of processor seconds, the seconds really used (compiling and the
network apart), and J and seconds of Scotch and, with ``--sharedmap PYTHON``, of SharedMap. The
ratio is to the best peer that took no longer than the budget, or to the fastest of all where none
was as fast; `any` is to the best of all. ``--only`` takes parts of "kind ranks spec"; ``--kept``
leaves the numbering as it was made. Rows that --out holds already are not measured again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from anytime_peers import scotch, sharedmap
from generated import KINDS, networks_of, traffic_of

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec

COLUMNS = ["kind", "ranks", "spec", "tool", "J", "cpu_s"]
CASE = COLUMNS[:3]


def measured(options: argparse.Namespace, kind: str, ranks: int, spec: str, had: set[str]):
    """Rows (tool, J, seconds) of everything that is not in the table yet."""
    traffic = traffic_of(kind, ranks, shuffle=not options.kept)
    topology = topology_from_spec(spec)
    if not any(tool.startswith(("scotch", "sharedmap")) for tool in had):
        for found in (scotch(traffic, spec), sharedmap(traffic, spec, options.sharedmap)):
            for tool, node_of, seconds in found:
                yield tool, objective_value(traffic, topology, node_of, "hop_bytes"), seconds
    for budget in options.seconds:
        if (name := f"auto {budget:g}") in had:
            continue
        mapper = f"auto(seconds={budget},clock=cpu)"
        map_ranks(traffic, topology, mapper, seconds=0.0)  # compile
        begin = time.process_time()
        node_of = map_ranks(traffic, topology, mapper)
        spent = time.process_time() - begin
        yield name, objective_value(traffic, topology, node_of, "hop_bytes"), spent


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a case and budget: J, seconds and ratios to the peers."""
    found = []
    for case, here in rows.groupby(CASE, sort=False):
        peers = here[~here["tool"].str.startswith("auto")]
        for ours in here[here["tool"].str.startswith("auto")].itertuples():
            budget = float(ours.tool.split()[1])
            row = {"family": case[2].partition(":")[0], **dict(zip(CASE, case, strict=True))}
            row |= {"budget": budget, "J": ours.J, "cpu_s": ours.cpu_s}
            if len(peers):
                soon = peers[peers["cpu_s"] <= budget]
                soon = peers.nsmallest(1, "cpu_s") if not len(soon) else soon
                best = soon.nsmallest(1, "J").iloc[0]
                row |= {"peer": best["tool"], "peer_s": best["cpu_s"], "ratio": ours.J / best["J"]}
                row["any"] = ours.J / peers["J"].min()
            found.append(row)
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("anytime.csv"))
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.1, 0.3, 1.0, 2.0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024, 2048, 4096])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--sharedmap", metavar="PYTHON", help="with chszlablib")
    options = parser.parse_args()
    rows = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=COLUMNS)
    for ranks in options.ranks:
        for kind in KINDS:
            for spec in networks_of(ranks).values():
                if not any(part in f"{kind} {ranks} {spec}" for part in options.only):
                    continue
                here = (rows[CASE] == [kind, ranks, spec]).all(axis=1)
                for tool, value, spent in measured(
                    options, kind, ranks, spec, set(rows.loc[here, "tool"])
                ):
                    rows.loc[len(rows)] = [kind, ranks, spec, tool, value, spent]
                rows.to_csv(options.out, index=False, float_format="%.4g")
    shown = table(rows)
    pd.options.display.width = 200
    print(shown.to_string(index=False, float_format="%.3f"))
    if "ratio" in shown:
        logs = shown.assign(log=np.log(shown["ratio"]), late=shown["cpu_s"] / shown["budget"])
        by = logs.groupby(["family", "ranks", "budget"])
        means = np.exp(by["log"].mean()).rename("mean").to_frame()
        means = means.assign(worst=by["ratio"].max(), late=by["late"].max())
        print(means.to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
