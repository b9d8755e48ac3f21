"""Quality for time.

``python benchmarks/anytime/quality_time.py FOLDER [--measured CSV] [--out STEM]``

FOLDER holds ``peers.csv`` (mean J and mean processor seconds of every peer and setting) and
``instances/*.graph``. Ours get the instances shuffled (see mapping_peers.py) and several budgets,
presets and starts; processor seconds of one core, compiling, reading and the network's own tables
apart. All J are means, over three seeds, or one beyond half a second. Writes STEM.csv and STEM.svg,
and prints which points of peers lie below our front: ours were not as good in as little time.
About 20 minutes of one core; --measured draws and prints from an earlier CSV.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from quality_time_figure import NAMES, draw

from hopmap.figures.style import svg_text
from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec

sys.path.append(str(Path(__file__).parents[1] / "mapping"))
from mapping_peers import shuffled, spec_of

BUDGETS = (0.03, 0.1, 0.3, 1.0, 5.0)
PRESETS = ("fast", "eco", "strong")
N10 = "local_search(neighbourhood=10)"
TOPDOWN = "topdown(preset={}) | " + N10
CURVES = {
    "fast starts": [
        "mueller_merbach", "greedy_all_c", "fold", "recursive_bisection",
        "recursive_bisection(tries=4)", "recursive_bisection | local_search(neighbourhood=1)",
        f"recursive_bisection | {N10}", f"recursive_bisection(tries=4) | {N10}",
    ],
    "topdown | N_10": [TOPDOWN.format(preset) for preset in PRESETS],
    "multilevel": [f"multilevel(seconds={s},clock=cpu)" for s in BUDGETS],
    "auto": [f"auto(seconds={s},clock=cpu)" for s in BUDGETS],
}  # fmt: skip
LONG = 0.5  # seconds beyond which there is one seed
VIEM = "con=hierarchytopdown,pre={},ls=communication,d=10"


def measured(folder: Path, pairs: pd.MultiIndex, out: Path) -> pd.DataFrame:
    """Mean J and processor seconds of ours on every pair of instance and topology."""
    rows: list[dict[str, object]] = []
    for instance, name in pairs:
        traffic = shuffled(folder / "instances" / f"{instance}.graph")
        topology = topology_from_spec(spec_of(name))
        for curve, mappers in CURVES.items():
            if curve.startswith("topdown") and not name.startswith("hier:"):
                continue
            for mapper in mappers:
                map_ranks(traffic, topology, mapper, seconds=0.01)  # compile
                values, seconds = [], []
                for seed in range(3):
                    begin = time.process_time()
                    node_of = map_ranks(traffic, topology, mapper, seed=seed)
                    seconds.append(time.process_time() - begin)
                    values.append(objective_value(traffic, topology, node_of, "hop_bytes"))
                    if seconds[0] > LONG and curve != "topdown | N_10":
                        break
                rows.append(
                    {
                        "instance": instance,
                        "topology": name,
                        "curve": curve,
                        "mapper": mapper,
                        "runs": len(values),
                        "best_J": min(values),
                        "mean_J": np.mean(values),
                        "mean_cpu_s": np.mean(seconds),
                    }
                )
        print(f"measured: {instance} on {name}", flush=True)
        pd.DataFrame(rows).to_csv(out, index=False, float_format="%.6g")
    return pd.read_csv(out)


def points(frame: pd.DataFrame, best: pd.Series[float]) -> pd.DataFrame:
    """One row for each instance: its class, J over the best peer's, and seconds."""
    rows = frame.join(best.rename("least"), on=["instance", "topology"])
    rows["family"] = rows["topology"].str.partition(":")[0]
    rows["graph"] = rows["instance"].str.partition("_")[0]
    rows["sizes"] = rows.groupby(["family", "graph"])["instance"].transform("nunique")
    rows["ratio"] = rows["mean_J"] / rows["least"]
    rows["seconds"] = rows["mean_cpu_s"].clip(lower=5e-4)  # peers' are rounded to milliseconds
    return rows


def class_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Geometric means over the sizes of a class, of what ran on all of them."""
    grouped = rows.groupby(["family", "graph", "curve", "name"])
    logs = grouped[["ratio", "seconds"]].agg(lambda column: np.exp(np.log(column).mean()))
    return logs[grouped["instance"].nunique() == grouped["sizes"].first()].reset_index()


def below(ours: pd.DataFrame, peers: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Peers' points below our front: what ours reach by then, and when they are as good."""
    rows = []
    for here, theirs in peers.groupby(keys):
        mine = ours[(ours[keys] == list(here)).all(axis=1)]
        for peer in theirs.itertuples():
            by_then = mine.loc[mine["seconds"] <= peer.seconds, "ratio"].min()
            if not by_then <= peer.ratio:
                as_good = mine.loc[mine["ratio"] <= peer.ratio, "seconds"].min()
                rows.append((*here, peer.name, peer.seconds, peer.ratio, by_then, as_good))
    columns = [*keys, "peer", "CPU s", "J/best", "ours by then", "ours as good after"]
    return pd.DataFrame(rows, columns=columns)


def short(tool: str, settings: str) -> str:
    """Name of a peer and its settings in a few letters; VieM starts with topdown if unnamed."""
    if tool == "viem":
        construction, preset, *search = re.findall(r"=([^,]*)", settings)
        start = {"hierarchytopdown": "", "growing": "Mueller-Merbach "}.get(
            construction, construction.removeprefix("hierarchy") + " "
        )
        pairs = {"nsquare": "N^2", "nsquarepruned": "N_p"}.get(search[0], f"N_{search[-1]}")
        return f"VieM {start}{preset} {pairs}"
    for common in (" -b0", ",eps=0.0", "greedy=0,"):
        settings = settings.replace(common, "")
    return f"{NAMES.get(tool, tool)} {settings}"


def topdown_times(ours: pd.DataFrame, peers: pd.DataFrame) -> pd.DataFrame:
    """Compare topdown and N_10 at 1,024 ranks with VieM at the same partitioner setting."""
    rows = []
    for preset in PRESETS:
        mine = ours[ours["mapper"] == TOPDOWN.format(preset)]
        both = mine.merge(
            peers[peers["settings"] == VIEM.format(preset)],
            on=["instance", "topology"],
            suffixes=("", "_viem"),
        )
        columns = ["instance", "mean_cpu_s", "mean_cpu_s_viem", "mean_J", "mean_J_viem"]
        rows.append(both.loc[both["instance"].str.endswith("n1024"), columns])
    return pd.concat(rows, keys=PRESETS, names=["preset", ""]).droplevel(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measured", type=Path)
    parser.add_argument("--out", type=Path, default=Path("quality_time"))
    options = parser.parse_args()
    table = pd.read_csv(options.folder / "peers.csv")
    best = table.groupby(["instance", "topology"])["best_J"].min()
    ours = (
        pd.read_csv(options.measured)
        if options.measured
        else measured(options.folder, best.index, options.out.with_suffix(".csv"))
    )
    mine = points(ours.assign(name=ours["mapper"]), best)
    theirs = points(
        table.assign(
            curve=table["tool"],
            name=table[["tool", "settings"]].agg(lambda row: short(*row), axis=1),
        ),
        best,
    )
    orders = theirs["tool"].isin(["identity", "random"])  # cost nothing, and are no tools
    tools = theirs[~orders]
    each = below(mine, tools, ["family", "graph", "instance"])
    print(f"\npoints of peers below our front, by instance: {len(each)} of {len(tools)}")
    print(each.to_string(index=False, float_format="%.3f"))
    ours_means, peers_means = class_means(mine), class_means(tools)
    classes = below(ours_means, peers_means, ["family", "graph"])
    print(f"\nby class, means over its sizes: {len(classes)} of {len(peers_means)}")
    print(classes.to_string(index=False, float_format="%.3f"))
    print("\ntopdown | local_search(10) and VieM's, 1,024 ranks")
    print(topdown_times(ours, table).to_string(float_format="%.3f"))
    unshuffled = class_means(theirs[theirs["tool"] == "identity"])
    options.out.with_suffix(".svg").write_text(svg_text(draw(ours_means, peers_means, unshuffled)))


if __name__ == "__main__":
    main()
