"""Baselines and published numbers: ``python benchmarks/mapping/baselines.py FOLDER [PART ...]``.

PART is of maplib, hierarchies, scale; all by default. FOLDER has maplib/ (MapLib's matrices and
stored mappings) and mapping/ (peers.csv and instances/, see benchmarks/mapping/viem.py).

- maplib: hop-bytes of CG and AMG on 4x4x4, ours / stored. Ours begin where MapLib does.
- hierarchies: J of TreeMatch and RCM on the hierarchies of peers.csv, J of Open MPI's TreeMatch and
  of the best tool, and processor seconds without compilation.
- scale: processor seconds and peak memory with 4,096 ranks on a torus (LU's pattern).
"""

from __future__ import annotations

import csv
import resource
import sys
import time
from pathlib import Path

import numpy as np

from hopmap.launchers.mapping_files import read_mapping
from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic, load_traffic, nas_traffic

MAPLIB = {  # ours: theirs
    "topo_aware(estimate=first)": "topo_aware",
    "topo_aware": "topo_aware",
    "greedy(start=32)": "greedy",
    "fhgreedy(start=32)": "FHGreedy",
    "pacmap(start=21)": "pacmap",
    "udfs": "",
    "rcm": "",
}

NAMES = {  # ours: the settings of Open MPI's TreeMatch in peers.csv
    "treematch": "greedy=0,opt=0",
    "treematch(divide=true)": "greedy=0,opt=1",
    "rcm": "",
    "identity": "",
}


def maplib(folder: Path) -> None:
    """Hop-bytes in 10^9, ours / MapLib's."""
    families = ("mesh", "torus", "haec")
    print("\nHop-bytes [10^9], ours / stored by MapLib")
    for app in ("cg", "amg"):
        matrix = f"mapping-matters-commMatrices/{app}CMatrices/comm_matrix.p2p.size.csv"
        traffic = load_traffic(folder / "maplib" / matrix)
        print(f"{app.upper():<30}" + "".join(f"{family:>22}" for family in families))
        for pipeline, theirs in MAPLIB.items():
            cells = []
            for family in families:
                topology = topology_from_spec(f"{family}:4x4x4")
                node_of = map_ranks(traffic, topology, pipeline)
                text = f"{objective_value(traffic, topology, node_of, 'hop_bytes') / 1e9:.3f}"
                if theirs:
                    name = f"Mapping.p2p.size.csv.{theirs}.{family}.4x4x4.csv"
                    where = f"mapping-matters-Mappings/size/{app}MAP{family}/{name}"
                    stored = read_mapping(folder / "maplib" / where, topology, traffic.ranks)
                    value = objective_value(traffic, topology, stored, "hop_bytes") / 1e9
                    text += f" / {value:.3f}" + ("=" if np.array_equal(stored, node_of) else " ")
                cells.append(f"{text:>22}")
            print(f"{pipeline:<30}" + "".join(cells), flush=True)


def timed(traffic: Traffic, topology: Topology, pipeline: str) -> tuple[int, float]:
    """J, and processor seconds."""
    begin = time.process_time()
    node_of = map_ranks(traffic, topology, pipeline)
    seconds = time.process_time() - begin
    return objective_value(traffic, topology, node_of, "hop_bytes"), seconds


def hierarchies(folder: Path) -> None:
    """Print J, with the J of Open MPI's TreeMatch where it is published."""
    with (folder / "mapping" / "peers.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["topology"].startswith("hier:")]
    print(
        f"\n{'':<18}{'hierarchy':<25}" + "".join(f"{name:>26}" for name in NAMES) + f"{'best':>10}"
    )
    for instance, hierarchy in sorted({(row["instance"], row["topology"]) for row in rows}):
        traffic = load_traffic(folder / "mapping" / "instances" / f"{instance}.graph")
        topology = topology_from_spec(hierarchy.replace("hier:", "tree:").replace("/", "@"))
        here = [row for row in rows if (row["instance"], row["topology"]) == (instance, hierarchy)]
        peer = {r["settings"]: int(float(r["best_J"])) for r in here if r["tool"] == "treematch"}
        cells = []
        for name in NAMES:
            value, seconds = timed(traffic, topology, name)
            published = f"/{peer[NAMES[name]]}" if NAMES[name] in peer else ""
            cells.append(f"{f'{value}{published}':>19}{seconds:>7.3f}")
        best = min(int(float(row["best_J"])) for row in here)
        print(f"{instance:<18}{hierarchy:<25}" + "".join(cells) + f"{best:>10}", flush=True)


def scale(folder: Path) -> None:
    """Seconds and memory on 4,096 ranks."""
    del folder
    traffic = nas_traffic("lu.D.4096")
    print("\nLU.D.4096: pair-hops on torus:16x16x16, seconds, peak MiB of the process")
    topology = topology_from_spec("torus:16x16x16")
    pairs = traffic.undirected()
    for name in (*(n for n in MAPLIB if "start" not in n), "greedy", "fhgreedy", "pacmap"):
        begin = time.process_time()
        node_of = map_ranks(traffic, topology, name)
        seconds = time.process_time() - begin
        hops = int(topology.distance(node_of[pairs.src], node_of[pairs.dst]).sum())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name:<30}{hops:>9}{seconds:>9.2f}{peak:>7}", flush=True)


PARTS = {"maplib": maplib, "hierarchies": hierarchies, "scale": scale}


def main(words: list[str]) -> None:
    """Run the parts."""
    if not words:
        raise SystemExit("expected: python benchmarks/mapping/baselines.py FOLDER [PART ...]")
    for pipeline in MAPLIB:  # compile
        map_ranks(nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4"), pipeline)
    for pipeline in NAMES:
        map_ranks(nas_traffic("lu.C.512"), topology_from_spec("tree:4:16:8"), pipeline)
    for part in words[1:] or PARTS:
        PARTS[part](Path(words[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
