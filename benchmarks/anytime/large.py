"""Graphs larger than the machine: ``python benchmarks/anytime/large.py --peers PYTHON``.

A Delaunay triangulation of 2^18 random points (`viem_graphs`) on networks of 128 nodes, 3 % above
the mean at most: J, and processor seconds after compiling, by `integrated`, and in the same run by
SharedMap 1.1 (chszlablib) and KaHIP's multisection, in whichever Python has them, and Scotch's
gmap. Reading counts for nobody; for us all of `map_ranks` does.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from anytime_peers import csr, levels, target

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import Topology, topology_from_spec, with_room
from hopmap.traces import Traffic

sys.path.append(str(Path(__file__).parents[1] / "mapping"))
from viem_graphs import delaunay

SPECS = ("tree:4:8:4@1:10:100", "torus:8x4x4")
OURS = (
    "integrated(cycles=0,starts=1)",
    "integrated(cycles=0)",
    "integrated",
    "integrated(seconds=45,clock=cpu)",
)
SHAREDMAP = """
import sys, time, numpy as np, chszlablib as c
g = np.load(sys.argv[1])
graph = c.Graph.from_csr(g["indptr"], g["peer"], edge_weights=g["weight"])
begin = time.process_time()
made = c.Decomposition.process_map(
    graph, g["sizes"].tolist(), g["costs"].tolist(), mode=sys.argv[2], imbalance=0.03, threads=1)
print(time.process_time() - begin)
np.save(sys.argv[3], made.assignment)
"""
KAHIP = """
import sys, time, numpy as np, kahip
from math import prod
g = np.load(sys.argv[1])
sizes, mode = g["sizes"].tolist(), ["fast", "eco", "strong"].index(sys.argv[2])
n, k = len(g["indptr"]) - 1, prod(sizes)
begin = time.process_time()
parts = [(np.arange(n), 0)]
src = np.repeat(np.arange(n), np.diff(g["indptr"]))
for level in reversed(range(len(sizes))):
    below, span = [], prod(sizes[:level])
    for part, first in parts:
        inside = np.full(n, -1); inside[part] = np.arange(len(part))
        keep = (inside[src] >= 0) & (inside[g["peer"]] >= 0)
        rows, peer, weight = inside[src[keep]], inside[g["peer"][keep]], g["weight"][keep]
        starts = np.searchsorted(rows, np.arange(len(part) + 1))
        below_k = sizes[level] * span
        slack = (1.03 * below_k * n / (k * len(part))) ** (1 / (level + 1)) - 1
        made = kahip.kaffpa([1] * len(part), starts.tolist(), weight.tolist(), peer.tolist(),
                            sizes[level], max(slack, 0.001), True, 1, mode)[1]
        below += [(part[np.array(made) == b], first + b * span) for b in range(sizes[level])]
    parts = below
node_of = np.empty(n, dtype=np.int64)
for part, node in parts:
    node_of[part] = node
print(time.process_time() - begin)
np.save(sys.argv[3], node_of)
"""


def scotch(traffic: Traffic, spec: str, folder: Path, strategy: str) -> tuple[np.ndarray, float]:
    """Map by gmap, 3 % above the mean."""
    program = shutil.which("scotch_gmap") or shutil.which("gmap")
    indptr, peer, weight = csr(traffic)
    graph, machine, made = (folder / name for name in ("a.grf", "a.tgt", "a.map"))
    if not graph.exists():
        lines = [f"0\n{traffic.ranks} {len(peer)}\n0 010\n"]
        for u in range(traffic.ranks):
            some = range(indptr[u], indptr[u + 1])
            lines.append(f"{len(some)} " + " ".join(f"{weight[i]} {peer[i]}" for i in some) + "\n")
        graph.write_text("".join(lines))
    machine.write_text(target(spec))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [program, graph, machine, made, "-b0.03", "-vt", strategy]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    parts = {line.split()[1]: float(line.split()[2]) for line in text.splitlines()}
    return np.loadtxt(made, skiprows=1, dtype=np.int64)[:, 1], (
        spent * parts["Mapping"] / parts["Total"]
    )


def show(
    who: str, traffic: Traffic, network: Topology, node_of: np.ndarray, seconds: float
) -> None:
    room = replace(network, slots=np.full(network.nodes, traffic.ranks))
    value = objective_value(traffic, room, node_of, "hop_bytes")
    above = np.bincount(node_of, minlength=network.nodes).max() / (traffic.ranks / network.nodes)
    print(f"{network.spec:<26}{who:<36}{value:>10,}{seconds:>8.1f} s{above - 1:>8.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="Python with chszlablib and kahip")
    parser.add_argument("--modes", nargs="*", default=["fast", "eco", "strong"])
    options = parser.parse_args()
    traffic = delaunay(2**18, 2)
    around = np.arange(2**14)
    ones = np.ones(2**14, dtype=np.int64)
    ring = Traffic.from_pairs(2**14, around, (around + 1) % 2**14, ones, ones)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for spec in SPECS:
            network = topology_from_spec(spec)
            map_ranks(ring, with_room(network, ring.ranks, 0.03), "integrated(cycles=1)")
            for mapper in OURS:
                begin = time.process_time()
                node_of = map_ranks(traffic, with_room(network, traffic.ranks, 0.03), mapper)
                show(mapper, traffic, network, node_of, time.process_time() - begin)
            for strategy in ("-cs", "-cq"):
                if shutil.which("scotch_gmap") or shutil.which("gmap"):
                    show(
                        f"Scotch {strategy}",
                        traffic,
                        network,
                        *scotch(traffic, spec, folder, strategy),
                    )
            if options.peers is None or not spec.startswith("tree"):
                continue
            indptr, peer, weight = csr(traffic)
            sizes, costs = levels(spec)
            graph, made = folder / "a.npz", folder / "a.npy"
            np.savez(graph, indptr=indptr, peer=peer, weight=weight, sizes=sizes, costs=costs)
            for tool, script in (("SharedMap", SHAREDMAP), ("KaHIP multisection", KAHIP)):
                for mode in options.modes:
                    words = [options.peers, "-c", script, graph, mode, made]
                    done = subprocess.run(words, check=True, capture_output=True, text=True)
                    seconds = float(done.stdout.split()[-1])
                    show(
                        f"{tool} {mode}", traffic, network, np.load(made).astype(np.int64), seconds
                    )


if __name__ == "__main__":
    main()
