"""Does `auto` lose to any mapper, peer or numbering? ``python benchmarks/anytime/every_mapper.py``.

Graphs of all kinds (`generated`, `structured`, and with ``--instances FOLDER`` files of
`quality_time`), shuffled and as they were made, on tori, meshes, hierarchies, fat trees and
dragonflies. J of `auto` in 2 processor seconds against the natural order, every mapper of hopmap
with as many seconds, Scotch and, with ``--sharedmap PYTHON``, SharedMap. What takes longer does not
count. Rows that --out holds already are not measured again; --as names what `auto` is called there,
so that two commits can be compared, and --alone measures nothing else.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import structured
from anytime_peers import scotch, sharedmap
from generated import KINDS, LATER, traffic_of
from numpy.typing import NDArray

from hopmap.mappers import MAPPERS, map_ranks, objective_value
from hopmap.topologies import MappingError, Topology, topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.formats.graphs import read_metis

NETWORKS = {
    128: ("dragonfly:2x4x4", "mesh:4x4x8", "torus:4x4x8"),
    256: ("mesh:16x16", "torus:8x8x4", "tree:4:8:8@1:10:100", "fattree:8x8x4"),
    1024: ("torus:8x8x16", "mesh:32x32", "tree:4:16:16@1:10:100", "dragonfly:4x8x4"),
    4096: ("torus:16x16x16", "tree:4:16:64@1:10:100", "fattree:16x16x16", "mesh:64x64"),
}
AUTO = "auto(objective=hop_bytes, seconds={0:g}, clock=cpu)"
PIPELINES = ("recursive_bisection | annealing", "topdown | local_search")
LATE = 1.1  # what took longer does not count
COLUMNS = ["case", "spec", "tool", "budget", "seed", "J", "cpu_s"]


class Case(NamedTuple):
    """Traffic, and where its own numbering would put the ranks."""

    name: str
    traffic: Traffic
    natural: NDArray[np.int64]
    spec: str


def cases(instances: Path | None) -> Iterator[Case]:
    """Every kind in every size on hierarchies and one other network, stencils, and instances."""
    kinds = [*LATER, *KINDS]
    for ranks, networks in NETWORKS.items():
        for k, kind in enumerate(kinds):
            new = np.random.default_rng(3).permutation(ranks)
            kept = traffic_of(kind, ranks, shuffle=False)
            spec = networks[k % len(networks)]
            hierarchies = {each for each in networks if each.startswith("tree")}
            for each in (spec, *sorted(hierarchies - {spec})):
                yield Case(f"{kind} {ranks}", renumbered(kept, new), new, each)
            if k % 4 == 0:
                yield Case(f"{kind} {ranks} kept", kept, np.arange(ranks), spec)
    for case, specs in structured.cases():
        ranks = prod(case.dims)
        ones = np.ones(len(case.src), dtype=np.int64)
        kept = Traffic.from_pairs(ranks, case.src, case.dst, ones, case.weight)
        new = np.random.default_rng(3).permutation(ranks)
        for spec in specs:
            yield Case(case.name, renumbered(kept, new), new, spec)
    for path in sorted(instances.glob("*.graph")) if instances else ():
        kept = read_metis(path)
        for spec in networks_of(kept.ranks):
            yield Case(path.stem, kept, np.arange(kept.ranks), spec)


def networks_of(ranks: int) -> list[str]:
    """Hierarchy, torus and mesh of the published table."""
    found = {64: ("4:4:4", "4x4x4"), 256: ("4:16:4", "4x8x8"), 512: ("4:16:8", "8x8x8")}
    levels, box = found.get(ranks, ("4:16:16", "8x8x16"))
    return [f"tree:{levels}@1:10:100", f"torus:{box}", f"mesh:{box}"]


def renumbered(traffic: Traffic, new: NDArray[np.int64]) -> Traffic:
    """The same traffic with other numbers of the ranks."""
    src, dst = new[traffic.src], new[traffic.dst]
    return Traffic.from_pairs(traffic.ranks, src, dst, traffic.messages, traffic.bytes)


def natural_order(case: Case, topology: Topology) -> NDArray[np.int64]:
    """Node after node filled in the graph's own numbering."""
    node_of = np.empty(case.traffic.ranks, dtype=np.int64)
    node_of[case.natural] = np.repeat(np.arange(topology.nodes), topology.slots)[: len(node_of)]
    return node_of


def stages() -> dict[str, str]:
    """All mappers of hopmap but `auto`, ready for a budget."""
    found = {}
    for name, info in MAPPERS.items():
        if (
            name == "auto"
            or info.needs_initial
            or info.takes("objective", "max_link_load") > (info.takes("objective", "hop_bytes"))
        ):
            continue
        words = ["objective=hop_bytes"] if info.takes("objective", "hop_bytes") else []
        words += ["steps=1000000000"] if name == "tabu" else []
        words += ["seconds={0:g}, clock=cpu"] if info.has("seconds") else []
        found[name] = f"{name}({', '.join(words)})"
    return found | {
        line: f"{line.split(' | ')[0]} | {line.split(' | ')[1]}(seconds={{0:g}}, clock=cpu)"
        for line in PIPELINES
    }


def measured(
    case: Case, topology: Topology, stage: str, budget: float, seed: int
) -> tuple[int, float] | None:
    """J and processor seconds of a mapper; None where it does not apply."""
    mapping = stage.format(budget)
    total = budget if "|" in stage else None  # of all stages
    try:
        map_ranks(case.traffic, topology, stage.format(0.02), seed=seed)  # compile
        for _ in range(2 if "seconds" in stage else 1):  # the first may compile what that did not
            begin = time.process_time()
            node_of = map_ranks(case.traffic, topology, mapping, seed=seed, seconds=total)
            spent = time.process_time() - begin
            if spent <= LATE * budget:
                break
    except MappingError:
        return None
    return objective_value(case.traffic, topology, node_of, "hop_bytes"), round(spent, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("every_mapper.csv"))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[""], help='parts of "case spec"')
    parser.add_argument("--tools", nargs="+", help="these mappers alone")
    parser.add_argument("--as", dest="name", default="auto")
    parser.add_argument("--alone", action="store_true", help="measure auto alone")
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--sharedmap", metavar="PYTHON", help="with chszlablib")
    options = parser.parse_args()
    rows = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=COLUMNS)
    for case in cases(options.instances):
        if not any(part in f"{case.name} {case.spec}" for part in options.only):
            continue
        for row in rows_of(case, options, rows):
            rows.loc[len(rows)] = row
        rows.to_csv(options.out, index=False)
    if options.name in set(rows["tool"]):
        show(rows, options.name)


def rows_of(case: Case, options: argparse.Namespace, rows: pd.DataFrame) -> Iterator[list[object]]:
    """Rows of a case that are not in the table yet."""
    topology = topology_from_spec(case.spec)
    known = set(rows[COLUMNS[:5]].itertuples(index=False, name=None))
    had = {row[2] for row in known if row[:2] == (case.name, case.spec)}
    if not options.alone and "natural" not in had:
        places = natural_order(case, topology)
        value = objective_value(case.traffic, topology, places, "hop_bytes")
        yield [case.name, case.spec, "natural", options.seconds, 0, value, 0.0]
        for peers in (
            scotch(case.traffic, topology),
            sharedmap(case.traffic, topology, options.sharedmap),
        ):
            for tool, places, seconds in peers:
                value = objective_value(case.traffic, topology, places, "hop_bytes")
                yield [case.name, case.spec, tool, options.seconds, 0, value, seconds]
    mappers = {options.name: AUTO}
    mappers |= {} if options.alone else stages()
    for tool, stage in mappers.items():
        if options.tools and tool not in options.tools:
            continue
        for seed in range(options.seeds if "seconds" in stage else 1):
            row = (case.name, case.spec, tool, options.seconds, seed)
            if row in known:
                continue
            found = measured(case, topology, stage, options.seconds, seed)
            if found is None:
                break
            yield [*row, *found]
            if found[1] > LATE * options.seconds:
                break


def show(rows: pd.DataFrame, name: str) -> None:
    """Print a row a case, and the means by family."""
    pd.options.display.width = 250
    pd.options.display.max_rows = 500
    ours = rows["tool"].str.startswith("auto")
    in_time = rows[ours | (rows["cpu_s"] < LATE * rows["budget"])]
    mean = in_time.groupby(["case", "spec", "tool"])["J"].mean().unstack()
    own = [tool for tool in mean if str(tool).startswith("auto")]
    peers = [tool for tool in mean if str(tool).startswith(("scotch", "sharedmap"))]
    others = mean.drop(columns=own).dropna(how="all")
    mean = mean.loc[others.index]
    table = mean[own].div(others.min(axis=1), axis=0).round(3)
    table["best"] = others.idxmin(axis=1)
    table["natural"] = mean[name] / mean["natural"] if "natural" in mean else np.nan
    table["peers"] = mean[name] / mean[peers].min(axis=1) if peers else np.nan
    print(table.sort_values(name).to_string(float_format="%.3f"))
    for column in (*own, "peers"):
        ratios = table[column].dropna()
        by = ratios.groupby(ratios.index.get_level_values("spec").str.split(":").str[0])
        above = [lambda r: np.exp(np.log(r).mean()), "max", lambda r: (r > 1.0).sum(), "size"]
        shown = by.agg(above)
        print(f"\n{column}: means, worst, above 1, cases")
        print(shown.to_string(header=False, float_format="%.3f"))


if __name__ == "__main__":
    main()
