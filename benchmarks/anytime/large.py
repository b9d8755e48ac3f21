"""Graphs larger than the machine: ``python benchmarks/anytime/large.py --peers PYTHON``.

A Delaunay triangulation of 2^18 random points (`viem_graphs`) on 128 and 512 nodes, 3 % above
the mean at most: J, and processor seconds after compiling, by `integrated`, and in the same run by
SharedMap 1.1 and KaHIP's global_multisection, of the packages chszlablib and kahip of whichever
Python has them, and Scotch's gmap. No time includes reading the graph; ours includes all of
`map_ranks`.
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
from itertools import pairwise
from pathlib import Path

import numpy as np
from anytime_peers import csr, levels, target

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import Topology, topology_from_spec, with_room
from hopmap.traces import Traffic

sys.path.append(str(Path(__file__).parents[1] / "mapping"))
from viem_graphs import delaunay

SPECS = ("tree:4:8:4@1:10:100", "torus:8x4x4", "torus:8x8x8")
OURS = (
    "integrated(seconds=1,clock=cpu)",
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


def _run(words: list[object]) -> tuple[str, float, float]:
    """Return what a program printed, its processor seconds and its wall seconds."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return text, spent, end - begin


def scotch(traffic: Traffic, spec: str, folder: Path, strategy: str) -> tuple[np.ndarray, float]:
    """Map by gmap, 3 % above the mean."""
    program = shutil.which("scotch_gmap") or shutil.which("gmap")
    indptr, peer, weight = csr(traffic, traffic.ranks)
    graph, machine, made = (folder / name for name in ("a.grf", "a.tgt", "a.map"))
    if not graph.exists():
        lines = [f"0\n{traffic.ranks} {len(peer)}\n0 010\n"]
        for u in range(traffic.ranks):
            some = range(indptr[u], indptr[u + 1])
            lines.append(f"{len(some)} " + " ".join(f"{weight[i]} {peer[i]}" for i in some) + "\n")
        graph.write_text("".join(lines))
    machine.write_text(target(topology_from_spec(spec)))
    text, spent, _ = _run([program, graph, machine, made, "-b0.03", "-vt", strategy])
    parts = {line.split()[1]: float(line.split()[2]) for line in text.splitlines()}
    return np.loadtxt(made, skiprows=1, dtype=np.int64)[:, 1], (
        spent * parts["Mapping"] / parts["Total"]
    )


def multisection(
    program: Path, traffic: Traffic, spec: str, folder: Path, mode: str
) -> tuple[np.ndarray, float]:
    """Map by KaHIP's global_multisection."""
    indptr, peer, weight = csr(traffic, traffic.ranks)
    graph, made = folder / "a.graph", folder / "a.parts"
    if not graph.exists():
        lines = [f"{traffic.ranks} {len(peer) // 2} 1\n"]
        for begin, end in pairwise(indptr.tolist()):
            lines.append(" ".join(f"{peer[i] + 1} {weight[i]}" for i in range(begin, end)) + "\n")
        graph.write_text("".join(lines))
    sizes, costs = (":".join(map(str, each)) for each in levels(topology_from_spec(spec)))
    words = [program, graph, f"--preconfiguration={mode}", "--imbalance=3", "--online_distances"]
    words += [f"--hierarchy_parameter_string={sizes}", f"--distance_parameter_string={costs}"]
    words += [f"--output_filename={made}"]
    text, spent, wall = _run(words)
    share = float(text.split("multisectioning took")[1].split()[0]) / wall
    return np.loadtxt(made, dtype=np.int64), spent * share


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
            indptr, peer, weight = csr(traffic, traffic.ranks)
            sizes, costs = levels(topology_from_spec(spec))
            graph, made = folder / "a.npz", folder / "a.npy"
            np.savez(graph, indptr=indptr, peer=peer, weight=weight, sizes=sizes, costs=costs)
            for mode in options.modes:
                words = [options.peers, "-c", SHAREDMAP, graph, mode, made]
                done = subprocess.run(words, check=True, capture_output=True, text=True)
                node_of = np.load(made).astype(np.int64)
                show(f"SharedMap {mode}", traffic, network, node_of, float(done.stdout))
            (kahip,) = Path(options.peers).parents[1].glob("lib/*/site-packages/bin/global_multi*")
            for mode in options.modes:
                found = multisection(kahip, traffic, spec, folder, mode)
                show(f"KaHIP multisection {mode}", traffic, network, *found)


if __name__ == "__main__":
    main()
