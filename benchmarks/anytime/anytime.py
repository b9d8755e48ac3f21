"""How good, how soon? ``python benchmarks/anytime/anytime.py --out rows.csv --figures FOLDER``.

Generated traffic (`generated`), shuffled, every kind on one network after another, or with --all
on hierarchies, tori and meshes: what `auto` has reached after each of its members with several
budgets of processor seconds (compiling and the network apart), and J and seconds of Scotch and,
with ``--sharedmap PYTHON``, of SharedMap. The ratio is to the best peer that took no longer than
the budget, or to the fastest of all where none was as fast; `any` is to the best of all. Below are
gains of `FACTOR` times the budget, where both were measured. ``--only`` takes parts of "kind ranks
spec". Rows that --out holds already are not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from anytime_figures import draw_curves, draw_members
from anytime_peers import scotch, sharedmap
from every_mapper import NETWORKS
from generated import KINDS, LATER, networks_of, traffic_of

from hopmap.figures.style import write_figure
from hopmap.mappers import objective_value
from hopmap.mappers.auto import portfolio
from hopmap.mappers.stop import Budget
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic

SECONDS = [0.1, 0.3, 0.4, 0.5, 1.0, 2.0, 10.0]
COLUMNS = ["kind", "ranks", "spec", "budget", "tool", "J", "moves", "cpu_s"]
CASE = COLUMNS[:3]
FACTOR = 5
STENCILS = ("lu", "grid3d", "stencil27")
HIERARCHIES = ("tree", "fattree", "dragonfly")
Row = tuple[float, str, float, int, float]


def cases(sizes: list[int], everywhere: bool) -> Iterator[tuple[str, int, str]]:
    """Every kind but stencils in every size, or `KINDS` on three networks each."""
    for ranks in sizes:
        boxes = tuple(networks_of(ranks).values())
        if everywhere:
            yield from ((kind, ranks, spec) for kind in KINDS for spec in boxes)
            continue
        networks = NETWORKS.get(ranks, boxes)
        for k, kind in enumerate(KINDS | LATER):
            if kind not in STENCILS:
                yield kind, ranks, networks[k % len(networks)]


def peers(traffic: Traffic, topology: Topology, python: str | None) -> Iterator[Row]:
    """Rows of Scotch and SharedMap."""
    for found in (scotch(traffic, topology), sharedmap(traffic, topology, python)):
        for tool, node_of, seconds in found:
            yield 0.0, tool, objective_value(traffic, topology, node_of, "hop_bytes"), 0, seconds


def members(traffic: Traffic, topology: Topology, budget: float) -> Iterator[Row]:
    """Rows of what is best after each member of `auto`."""
    for seconds in (0.0, budget):  # first compile
        stop = Budget(seconds=seconds, clock="cpu")
        rng = np.random.default_rng(0)
        run = portfolio(traffic, topology, rng=rng, objective="hop_bytes", stop=stop)
    for step in run.steps:
        yield budget, step.member, step.best, step.moves, step.seconds


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a case and budget: J, seconds and ratios to the peers."""
    found = []
    for case, here in rows.groupby(CASE, sort=False):
        others = here[here["budget"] == 0]
        for ours in here[here["budget"] > 0].groupby("budget").tail(1).itertuples():
            row = {"family": case[2].partition(":")[0], **dict(zip(CASE, case, strict=True))}
            row |= {"budget": ours.budget, "J": ours.J, "moves": ours.moves, "cpu_s": ours.cpu_s}
            if len(others):
                soon = others[others["cpu_s"] <= ours.budget]
                soon = others.nsmallest(1, "cpu_s") if not len(soon) else soon
                best = soon.nsmallest(1, "J").iloc[0]
                row |= {"peer": best["tool"], "peer_s": best["cpu_s"], "ratio": ours.J / best["J"]}
                row["any"] = ours.J / others["J"].min()
            found.append(row)
    return pd.DataFrame(found)


def gains(shown: pd.DataFrame) -> pd.DataFrame:
    """What `FACTOR` times a budget gained, a row a case and budget that ended no earlier."""
    later = shown.assign(budget=(shown["budget"] / FACTOR).round(6))
    pairs = shown.merge(
        later[[*CASE, "budget", "J"]], on=[*CASE, "budget"], suffixes=("", "_later")
    )
    pairs = pairs[pairs["cpu_s"] > 0.9 * pairs["budget"]]
    return pairs.assign(
        gain=1 - pairs["J_later"] / pairs["J"], proposals=pairs["moves"] / pairs["ranks"]
    )


def show(rows: pd.DataFrame) -> None:
    """Print all cases, the means of the ratios, and the gains of more time."""
    shown = table(rows)
    pd.options.display.width = 200
    print(shown.to_string(index=False, float_format="%.3f"))
    if "ratio" in shown:
        logs = shown.assign(log=np.log(shown["ratio"]), late=shown["cpu_s"] / shown["budget"])
        by = logs.groupby(["family", "ranks", "budget"])
        means = np.exp(by["log"].mean()).rename("mean").to_frame()
        means = means.assign(worst=by["ratio"].max(), late=by["late"].max())
        print(means.to_string(float_format="%.3f"))
    if len(found := gains(shown)):
        levels = found["family"].isin(HIERARCHIES).rename("hierarchy")
        proposals = pd.cut(found["proposals"], [0, 1, 100, 10_000, np.inf], right=False)
        by = found.groupby([levels, proposals], observed=True)["gain"]
        print(by.describe(percentiles=[0.25, 0.5, 0.75]).to_string(float_format="%.4f"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("anytime.csv"))
    parser.add_argument("--figures", type=Path, help="folder for curves.svg and members.svg")
    parser.add_argument("--seconds", type=float, nargs="+", default=SECONDS)
    parser.add_argument("--ranks", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--all", action="store_true", help="hierarchies, tori and meshes")
    parser.add_argument("--sharedmap", metavar="PYTHON", help="with chszlablib")
    options = parser.parse_args()
    rows = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=COLUMNS)
    known = set(rows[COLUMNS[:4]].itertuples(index=False, name=None))
    for case in cases(options.ranks, options.all):
        budgets = [b for b in (0.0, *options.seconds) if (*case, b) not in known]
        if not budgets or not any(part in "{} {} {}".format(*case) for part in options.only):
            continue
        traffic, topology = traffic_of(*case[:2]), topology_from_spec(case[2])
        for budget in budgets:
            made = members(traffic, topology, budget) if budget else None
            for row in made or peers(traffic, topology, options.sharedmap):
                rows.loc[len(rows)] = [*case, *row]
        rows.to_csv(options.out, index=False, float_format="%.6g")
    show(rows)
    if options.figures is not None:
        write_figure(draw_curves(table(rows), rows), options.figures / "curves.svg")
        write_figure(draw_members(rows), options.figures / "members.svg")


if __name__ == "__main__":
    main()
