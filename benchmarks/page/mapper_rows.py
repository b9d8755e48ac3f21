"""Compare mappers with the figures of peers.csv, for `page.py`: cost J and processor seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from mapping_peers import shuffled, spec_of

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec

FOLDER = Path(__file__).parents[3] / "shared" / "mapping"
KINDS = {"hier": "hierarchies", "torus": "tori", "mesh": "meshes"}
VIEM = "con=hierarchytopdown,pre=eco,ls=communication,d=10"
PIPELINE = "topdown | local_search(neighbourhood=10)"


def rows() -> Iterator[tuple[str, str, str, str, float]]:
    """Yield the rows of the page; none without the figures of the peers."""
    if not FOLDER.is_dir():
        return
    peers = pd.read_csv(FOLDER / "peers.csv")
    best = peers.loc[peers.groupby(["instance", "topology"])["best_J"].idxmin()]
    for kind, plural in KINDS.items():
        ratios = [
            row.best_J / _mapped(row, "auto(seconds=2,clock=cpu)")[0]
            for row in best.itertuples()
            if row.topology.startswith(kind) and not row.instance.startswith("lu_")
        ]
        mean = float(np.exp(np.mean(np.log(ratios))))
        yield (
            f"auto in 2 s, {len(ratios)} {plural}", f"J {1 / mean:.3f}",
            "best of all peers", "J 1", mean,
        )  # fmt: skip
    viem = peers[(peers.settings == VIEM) & peers.instance.str.endswith("_n1024")]
    for row in viem.itertuples():
        _mapped(row, PIPELINE)  # compiles
        cost, seconds = _mapped(row, PIPELINE)
        name = f"topdown and N_10, {row.instance}"
        yield f"{name}, J", f"{cost:,}", "VieM, eco", f"{row.mean_J:,.0f}", row.mean_J / cost
        yield (
            f"{name}, time", f"{seconds:.2f} s", "VieM, eco", f"{row.mean_cpu_s:.2f} s",
            row.mean_cpu_s / seconds,
        )  # fmt: skip


def _mapped(row: object, mapper: str) -> tuple[int, float]:
    """J and processor seconds of a mapper on a shuffled instance."""
    traffic = shuffled(FOLDER / "instances" / f"{row.instance}.graph")
    topology = topology_from_spec(spec_of(row.topology))
    map_ranks(traffic, topology, mapper, seconds=0.0)  # compile
    begin = time.process_time()
    node_of = map_ranks(traffic, topology, mapper)
    return objective_value(traffic, topology, node_of, "hop_bytes"), time.process_time() - begin
