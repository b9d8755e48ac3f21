"""Figures 3 and 4 of the VieM paper.

``python benchmarks/mapping/viem_figures.py [--exponent E] [--racks K,K,...]``

Models are of graphs of 2^E vertices (14), for S = 4:16:k with every k of ``--racks``. Improvements
over Mueller-Merbach's J on the model by recursive bisection are geometric means over all models,
seconds arithmetic ones, of the processor and without the compiler. "RMS 1 %" is multisection with
that slack at every level.
"""

from __future__ import annotations

import sys
import time
from math import log
from statistics import fmean

import numpy as np
from viem_graphs import inputs

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.partitions.partition import Model, bisection_model, multisection_model
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic

BASE = "mueller_merbach"
TOPDOWN = "topdown(in_order=false)"
N10 = "local_search(neighbourhood=10)"
HEURISTICS = {
    "GreedyAllC": "greedy_all_c",
    "Identity": "identity",
    "Random": "random",
    "recursive_bisection": "recursive_bisection",
    "Bottom-Up": "bottomup(in_order=false)",
    "Top-Down": TOPDOWN,
    "Top-Down + N10": f"{TOPDOWN} | {N10}",
}
CREATED = {
    "Identity": "identity",
    "Identity + N10": f"identity | {N10}",
    "Top-Down": TOPDOWN,
    "Top-Down + N10": f"{TOPDOWN} | {N10}",
}
# Means of section 5: over Mueller-Merbach's on RB, %, and times of its time.
PUBLISHED = {
    "RB GreedyAllC": 1.0,
    "RB Identity": 18.2,
    "RB recursive_bisection": 8.0,
    "RB Top-Down": 52.6,
    "RMS Identity": 51.6,
    "RMS Identity + N10": 55.4,
    "RMS Top-Down": 54.1,
    "RMS Top-Down + N10": 56.1,
}


def machine(racks: int) -> Topology:
    """S = 4:16:k, D = 1:10:100."""
    return topology_from_spec(f"tree:4:16:{racks}@1:10:100")


def models(graph: Traffic, racks: int) -> dict[str, tuple[Model, float]]:
    """Models of a graph by the ways to make them, each with its processor seconds."""
    sizes = [4, 16, racks]
    ways = {
        "RB": lambda rng: bisection_model(graph, 64 * racks, rng),
        "RMS": lambda rng: multisection_model(graph, sizes, rng),
        "RMS 1 %": lambda rng: multisection_model(graph, sizes, rng, epsilon=0.01),
    }
    made = {}
    for name, way in ways.items():
        begin = time.process_time()
        made[name] = way(np.random.default_rng(0)), time.process_time() - begin
    return made


def reached(graph: Traffic, racks: int) -> tuple[dict[str, float], dict[str, float]]:
    """J and seconds of all mappers on all models; "RB" alone is the base, or what KaHIP took."""
    topology = machine(racks)
    values, seconds = {}, {}
    for way, (model, took) in models(graph, racks).items():
        mappers = {**HEURISTICS, **CREATED} if way == "RB" else CREATED
        seconds[way] = took
        for name, pipeline in {"": BASE, **mappers}.items():
            begin = time.process_time()
            node_of = map_ranks(model.traffic, topology, pipeline)
            label = f"{way} {name}" if name else f"{way} {BASE}"
            seconds[label] = time.process_time() - begin
            values[label] = objective_value(model.traffic, topology, node_of, "hop_bytes")
    return values, seconds


def figures(racks: list[int], exponent: int) -> dict[str, float]:
    """Print improvements over the base by k and over all, %, and times; return those over all."""
    graphs = inputs(exponent)
    gains: dict[int, list[dict[str, float]]] = {}
    times = []
    for k in racks:
        for graph in graphs.values():
            values, seconds = reached(graph, k)
            base = values[f"RB {BASE}"]
            gains.setdefault(k, []).append({n: log(base / v) for n, v in values.items()})
            times.append(seconds)
        shown = (f"{n} {100 * np.expm1(_mean(gains[k], n)):.1f}" for n in gains[k][0])
        print(f"k = {k}: " + ", ".join(shown), flush=True)
    names = list(gains[racks[0]][0])
    title = f"over Mueller-Merbach on RB [%], {len(graphs)} graphs of 2^{exponent} vertices"
    print(f"\nFigures 3 and 4: {title}\n{'k':<24}" + "".join(f"{k:>7}" for k in racks), end="")
    print(f"{'all':>8}{'paper':>8}{'s':>9}{'times the base':>16}{'of KaHIP':>10}")
    overall = {}
    for name in names:
        rows = [_mean(gains[k], name) for k in racks]
        overall[name] = 100 * np.expm1(fmean(rows))
        spent = fmean(row[name] for row in times)
        base, kahip = (fmean(row[key] for row in times) for key in (f"RB {BASE}", "RB"))
        cells = "".join(f"{100 * np.expm1(row):>7.1f}" for row in rows)
        paper = f"{PUBLISHED[name]:>8.1f}" if name in PUBLISHED else f"{'':>8}"
        print(f"{name:<24}{cells}{overall[name]:>8.1f}{paper}{spent:>9.3f}", end="")
        print(f"{spent / base:>16.1f}{spent / kahip:>10.2f}")
    for way in ("RB", "RMS", "RMS 1 %"):
        print(f"model by {way}: {fmean(row[way] for row in times):.2f} s", flush=True)
    return overall


def _mean(cases: list[dict[str, float]], name: str) -> float:
    return fmean(case[name] for case in cases)


def main(words: list[str]) -> None:
    """Run the parts."""
    exponent = int(words[words.index("--exponent") + 1]) if "--exponent" in words else 14
    racks = words[words.index("--racks") + 1] if "--racks" in words else "1,2,3,4,5,6,7,8"
    ks = [int(k) for k in racks.split(",")]
    small = bisection_model(inputs(10)["grid 2-D"], 64, np.random.default_rng(0)).traffic
    for pipeline in {BASE: BASE, **HEURISTICS, **CREATED}.values():  # compile
        map_ranks(small, machine(1), pipeline)
    figures(ks, exponent)


if __name__ == "__main__":
    main(sys.argv[1:])
