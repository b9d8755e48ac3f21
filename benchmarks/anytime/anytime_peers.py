"""Scotch and SharedMap on the instances of `anytime`: a mapping and its processor seconds.

Scotch is found as ``scotch_gmap`` or ``gmap``; SharedMap in the package chszlablib of whichever
Python is named, for it needs not be that of hopmap.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology, hierarchy
from hopmap.traces import Traffic

STRATEGIES = ("-cq", "-cs")
MODES = ("fast", "eco", "strong")
MOST = 120  # seconds of a mode
LARGE = {"eco": 2048, "strong": 1024}  # SharedMap's modes that take minutes beyond
SHAREDMAP = """
import sys, time, numpy as np, chszlablib as c
g = np.load(sys.argv[1])
graph = c.Graph.from_csr(g["indptr"], g["peer"], edge_weights=g["weight"])
begin = time.process_time()
made = c.Decomposition.process_map(
    graph, g["sizes"].tolist(), g["costs"].tolist(), mode=sys.argv[2], imbalance=0.0, threads=1)
print(time.process_time() - begin)
np.save(sys.argv[3], made.assignment)
"""

Found = tuple[str, NDArray[np.int64], float]


def csr(
    traffic: Traffic, nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row pointers, peers and bytes, every pair from both ends, and idle ranks on spare nodes."""
    pairs = traffic.without_self().undirected()
    src = np.concatenate((pairs.src, pairs.dst)).astype(np.int64)
    dst = np.concatenate((pairs.dst, pairs.src)).astype(np.int64)
    order = np.lexsort((dst, src))
    indptr = np.searchsorted(src[order], np.arange(nodes + 1))
    return indptr, dst[order], np.concatenate((pairs.bytes, pairs.bytes))[order]


def target(topology: Topology) -> str:
    """Scotch's words for a torus, a mesh, a hierarchy, whose levels' costs add up, or distances."""
    family, _, rest = topology.spec.partition(":")
    if family in ("torus", "mesh"):
        return f"{family}{len(topology.dims)}D {rest.replace('x', ' ')}\n"
    if family == "dragonfly":
        return _by_distances(topology)
    sizes, costs = levels(topology)
    apart = np.diff(costs, prepend=0)
    pairs = [f"{s} {c}" for s, c in zip(sizes[::-1], apart[::-1], strict=True) if s > 1]
    return f"tleaf {len(pairs)} {' '.join(pairs)}\n"


def _by_distances(topology: Topology) -> str:
    """Domains that halve the nodes in their order, and all distances."""
    domain = {(0, topology.nodes): 1}
    leaf = {}
    while domain:
        (lo, hi), number = domain.popitem()
        if hi - lo == 1:
            leaf[lo] = number
            continue
        middle = (lo + hi) // 2
        domain |= {(lo, middle): 2 * number, (middle, hi): 2 * number + 1}
    lines = [f"deco 0\n{topology.nodes} {max(leaf.values())}\n"]
    lines += [f"{node} 1 {leaf[node]}\n" for node in range(topology.nodes)]
    for node in range(1, topology.nodes):
        apart = topology.distance(np.full(node, node), np.arange(node))
        lines.append(" ".join(map(str, apart.tolist())) + "\n")
    return "".join(lines)


def levels(topology: Topology) -> tuple[list[int], list[int]]:
    """Sizes of the levels, innermost first, and mean distances across each."""
    sizes = [size for size in hierarchy(topology) or () if size > 1]
    apart = topology.distance(np.zeros(topology.nodes, dtype=np.int64), np.arange(topology.nodes))
    spans = np.cumprod([1, *sizes])
    return sizes, [round(float(apart[lo:hi].mean())) for lo, hi in pairwise(spans)]


def scotch(traffic: Traffic, topology: Topology) -> Iterator[Found]:
    """Every strategy that gives each rank a node of its own."""
    program = shutil.which("scotch_gmap") or shutil.which("gmap")
    if program is None:
        return
    indptr, peer, weight = csr(traffic, topology.nodes)
    lines = [f"0\n{topology.nodes} {len(peer)}\n0 010\n"]
    for u in range(topology.nodes):
        some = range(indptr[u], indptr[u + 1])
        lines.append(f"{len(some)} " + " ".join(f"{weight[i]} {peer[i]}" for i in some) + "\n")
    with tempfile.TemporaryDirectory() as name:
        graph, machine, made = (Path(name, part) for part in ("a.grf", "a.tgt", "a.map"))
        graph.write_text("".join(lines))
        machine.write_text(target(topology))
        for strategy in STRATEGIES:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            words = [program, graph, machine, made, "-b0", "-vt", strategy]
            text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            parts = {line.split()[1]: float(line.split()[2]) for line in text.splitlines()}
            node_of = np.loadtxt(made, skiprows=1, dtype=np.int64)[:, 1]
            if len(np.unique(node_of)) == topology.nodes:
                seconds = spent * parts["Mapping"] / parts["Total"]  # reading apart
                yield f"scotch {strategy}", node_of[: traffic.ranks], seconds


def sharedmap(traffic: Traffic, topology: Topology, python: str | None) -> Iterator[Found]:
    """Every mode, on what is a hierarchy, or nearly one, as dragonflies are."""
    if python is None or hierarchy(topology) is None:
        return
    sizes, costs = levels(topology)
    indptr, peer, weight = csr(traffic, topology.nodes)
    with tempfile.TemporaryDirectory() as name:
        graph, made = Path(name, "a.npz"), Path(name, "a.npy")
        np.savez(graph, indptr=indptr, peer=peer, weight=weight, sizes=sizes, costs=costs)
        for mode in MODES:
            if traffic.ranks > LARGE.get(mode, traffic.ranks):
                continue
            words = [python, "-c", SHAREDMAP, graph, mode, made]
            try:
                done = subprocess.run(
                    words, check=False, capture_output=True, text=True, timeout=MOST
                )
            except subprocess.TimeoutExpired:  # traffic of few ranks with most
                continue
            node_of = np.load(made) if done.returncode == 0 else np.zeros(2, dtype=np.int64)
            if len(np.unique(node_of)) == topology.nodes:
                places = node_of[: traffic.ranks].astype(np.int64)
                yield f"sharedmap {mode}", places, float(done.stdout.split()[-1])
