"""Ahead of VieM and Scotch? ``python benchmarks/mapping/mapping_peers.py FOLDER``.

FOLDER holds ``peers.csv`` (best J of every peer: instance, topology, tool, best_J) and
``instances/*.graph``. Every instance is shuffled by a fixed seed, so that no numbering helps, and
mapped by `auto` within so many processor seconds on one core, compiling apart. J is the sum of
weight times distance, every pair once; the ratio is to the best of all peers, however long it took
and the identity of the unshuffled instance included. Further means are of the ratio to the best
tool that took no longer than the budget. --only takes parts of "instance topology", any of which
may occur; of several --seeds the means are taken.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, load_traffic

SHUFFLE = 42


def shuffled(path: Path) -> Traffic:
    """Instance with its ranks renumbered at random."""
    traffic = load_traffic(path)
    new = np.random.default_rng(SHUFFLE).permutation(traffic.ranks)
    return Traffic.from_pairs(
        traffic.ranks, new[traffic.src], new[traffic.dst], traffic.messages, traffic.bytes
    )


def spec_of(topology: str) -> str:
    """Our spec of a topology of the table: hier:4:16:4/1:10:100 is tree:4:16:4@1:10:100."""
    return topology.replace("hier:", "tree:").replace("/", "@")


def soonest(peers: pd.DataFrame, row: tuple, seconds: float) -> float:
    """Least J of a tool that took no longer."""
    here = peers[(peers["instance"] == row.instance) & (peers["topology"] == row.topology)]
    tools = here[(here["mean_cpu_s"] <= seconds) & ~here["tool"].isin(["identity", "random"])]
    return float(tools["best_J"].min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 30.0])
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--mapper", default="auto(seconds={seconds},clock=cpu)")
    options = parser.parse_args()
    peers = pd.read_csv(options.folder / "peers.csv")
    best = peers.loc[peers.groupby(["instance", "topology"])["best_J"].idxmin()]
    ratios: dict[tuple[str, float], list[tuple[float, float]]] = {}
    names = f"{'ratio':>8}{'as soon':>8}{'CPU s':>8}"
    budgets = "".join(f"{f'J in {s:g} s':>12}{names}" for s in options.seconds)
    print(f"{'instance':<18}{'topology':<26}{'best peer':<12}{'J':>9}{budgets}")
    for row in best.sort_values(["topology", "instance"]).itertuples():
        if not any(part in f"{row.instance} {row.topology}" for part in options.only):
            continue
        traffic = shuffled(options.folder / "instances" / f"{row.instance}.graph")
        topology = topology_from_spec(spec_of(row.topology))
        line = f"{row.instance:<18}{row.topology:<26}{row.tool:<12}{row.best_J:>9.0f}"
        for seconds in options.seconds:
            mapper = options.mapper.format(seconds=seconds)
            map_ranks(traffic, topology, mapper, seconds=0.0)  # compile
            begin, found = time.process_time(), []
            for seed in range(options.seeds):
                node_of = map_ranks(traffic, topology, mapper, seed=seed)
                found.append(objective_value(traffic, topology, node_of, "hop_bytes"))
            spent = (time.process_time() - begin) / options.seeds
            value = float(np.mean(found))
            family = row.topology.partition(":")[0]
            kind = "LU" if row.instance.startswith("lu_") and family != "hier" else family
            both = value / row.best_J, value / soonest(peers, row, seconds)
            ratios.setdefault((kind, seconds), []).append(both)
            line += f"{value:>12.0f}{both[0]:>8.3f}{both[1]:>8.3f}{spent:>8.1f}"
        print(line, flush=True)
    for (kind, seconds), pairs in ratios.items():
        means, worst = np.exp(np.mean(np.log(pairs), axis=0)), np.max(pairs, axis=0)
        print(
            f"{kind:<6}{seconds:>4g} s: geometric mean {means[0]:.4f}, worst {worst[0]:.4f}, "
            f"of tools as soon {means[1]:.4f}, {worst[1]:.4f}, {len(pairs)} instances"
        )


if __name__ == "__main__":
    main()
