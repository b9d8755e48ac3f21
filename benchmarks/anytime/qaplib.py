"""Gap to known optima of QAPLIB: ``python benchmarks/anytime/qaplib.py FOLDER [--seconds 2]``.

FOLDER has QAPLIB's files as ``.qap``: n, optimum or less, best known, then two matrices. Taken are
those whose distances are a mesh's (nug, scr, sko), by `auto` and `tabu` within so many seconds and
by scipy's FAQ and 2-opt. A gap is (found - best known) / best known; the mean and the worst of
seeds.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np
from scipy.optimize import quadratic_assignment

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic

SEEDS = 3


def instance(path: Path) -> tuple[int, np.ndarray, np.ndarray]:
    """Best known value and the two matrices."""
    head, _, rest = path.read_text().partition("\n")
    n, _, best = map(int, head.split())
    return best, *np.array(rest.split(), dtype=np.int64)[: 2 * n * n].reshape(2, n, n)


def mesh_of(distance: np.ndarray) -> Topology | None:
    """Mesh with these distances, in either order of its numbers."""
    n = len(distance)
    for width in (w for w in range(1, n + 1) if n % w == 0):
        network = topology_from_spec(f"mesh:{width}x{n // width}")
        every = np.arange(n)
        if all((network.distance(u, every) == distance[u]).all() for u in every):
            return network
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="(nug|scr|sko).*")
    options = parser.parse_args()
    limit = f"seconds={options.seconds:g}"
    mappers = (f"auto({limit},clock=cpu)", f"tabu(steps=1000000000,{limit})")
    for path in sorted(options.folder.glob("*.qap"), key=lambda p: (len(instance(p)[1]), p.name)):
        if not re.fullmatch(options.only, path.stem):
            continue
        best, *pair = instance(path)
        found = [(mesh_of(a), b) for a, b in (pair, pair[::-1])]
        network, flow = next(((net, f) for net, f in found if net is not None), (None, pair[0]))
        if network is None:
            print(f"{path.stem:<10}distances are no mesh's", flush=True)
            continue
        src, dst = np.nonzero(flow)
        traffic = Traffic.from_pairs(len(flow), src, dst, src * 0 + 1, flow[src, dst])
        line = f"{path.stem:<10}{best:>8}"
        for mapper in mappers:
            map_ranks(traffic, network, mapper, seconds=0.05)  # compile
            gaps, begin = [], time.process_time()
            for seed in range(SEEDS):
                node_of = map_ranks(traffic, network, mapper, seed=seed)
                gaps.append(objective_value(traffic, network, node_of, "hop_bytes") / best - 1)
            spent = (time.process_time() - begin) / SEEDS
            line += f"{np.mean(gaps):>9.3%}{max(gaps):>8.3%}{spent:>6.1f} s"
        far = network.distance(*np.indices(flow.shape).reshape(2, -1)).reshape(flow.shape)
        for method in ("faq", "2opt"):
            begin = time.process_time()
            value = min(
                quadratic_assignment(flow, far, method=method, options={"rng": seed}).fun
                for seed in range(SEEDS)
            )
            line += f"{value / best - 1:>9.3%}{(time.process_time() - begin) / SEEDS:>6.2f} s"
        print(line, flush=True)


if __name__ == "__main__":
    main()
