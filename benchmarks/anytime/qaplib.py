"""Gap to known optima of QAPLIB: ``python benchmarks/anytime/qaplib.py FOLDER [--seconds 2]``.

FOLDER has QAPLIB's files: ``NAME.dat``, n and two matrices, and ``NAME.sln``, n and the best known
value. The distances of nug, scr and sko are a mesh's; for other instances a table holds them.
`auto` maps within so many processor seconds. With ``--peers``, SciPy's FAQ and 2-opt map, too. A
gap is (found - best known) / best known: the mean and the worst of seeds, the peers' best.
"""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import quadratic_assignment

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.distances import table_router
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic


def instance(path: Path) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Best known value and the two matrices."""
    n, *numbers = map(int, path.read_text().split())
    if len(numbers) < 2 * n * n:
        raise SystemExit(f"{path}: {len(numbers)} numbers: expected two matrices of {n} x {n}")
    best = int(path.with_suffix(".sln").read_text().split()[1])
    return best, *np.array(numbers[: 2 * n * n], dtype=np.int64).reshape(2, n, n)


def mesh_of(distance: NDArray[np.int64]) -> Topology | None:
    """Mesh with these distances, in either order of its numbers."""
    n = len(distance)
    for width in (w for w in range(1, n + 1) if n % w == 0):
        network = topology_from_spec(f"mesh:{width}x{n // width}")
        every = np.arange(n)
        if all((network.distance(u, every) == distance[u]).all() for u in every):
            return network
    return None


def problem(a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[Topology, Traffic]:
    """Network and traffic: of the two matrices the distances are a mesh's, or else symmetric."""
    found = [(mesh_of(distance), flow) for distance, flow in ((a, b), (b, a))]
    network, flow = next(((net, flow) for net, flow in found if net is not None), (None, b))
    if network is None:
        even = (a == a.T).all() and not np.diag(a).any()
        distance, flow = (a, b) if even else (b, a)
        if (distance != distance.T).any() or np.diag(distance).any() or distance.max() > 32767:
            raise SystemExit("expected distances that are symmetric and at most 32,767")
        router = table_router(distance.astype(np.int16))
        network = replace(topology_from_spec(f"mesh:{len(a)}"), router=router)
    src, dst = np.nonzero(flow)
    return network, Traffic.from_pairs(len(flow), src, dst, src * 0 + 1, flow[src, dst])


def peers(network: Topology, traffic: Traffic, best: int, seeds: int) -> str:
    """Gaps and seconds of SciPy's FAQ and 2-opt."""
    flow = np.zeros((traffic.ranks, traffic.ranks), dtype=np.int64)
    flow[traffic.src, traffic.dst] = traffic.bytes
    far = network.distance(*np.indices(flow.shape).reshape(2, -1)).reshape(flow.shape)
    line = ""
    for method in ("faq", "2opt"):
        begin = time.process_time()
        value = min(
            quadratic_assignment(
                flow, far, method=method, options={"rng": np.random.default_rng(seed)}
            ).fun
            for seed in range(seeds)
        )
        line += f"{value / best - 1:>9.3%}{(time.process_time() - begin) / seeds:>6.2f} s"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.1, 0.3, 2.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="(nug|scr|sko).*|tai.*a")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    for path in sorted(options.folder.glob("*.dat")):
        if not re.fullmatch(options.only, path.stem):
            continue
        if not path.with_suffix(".sln").exists():
            print(f"{path.stem}: skipped, as it has no .sln")
            continue
        best, *pair = instance(path)
        network, traffic = problem(*pair)
        map_ranks(traffic, network, "auto(seconds=0.05,clock=cpu)")  # compile
        line = f"{path.stem:<10}{best:>10}"
        for seconds in options.seconds:
            gaps, begin = [], time.process_time()
            for seed in range(options.seeds):
                mapper = f"auto(seconds={seconds:g},clock=cpu)"
                node_of = map_ranks(traffic, network, mapper, seed=seed)
                gaps.append(objective_value(traffic, network, node_of, "hop_bytes") / best - 1)
            spent = (time.process_time() - begin) / options.seeds
            line += f"{np.mean(gaps):>9.3%}{max(gaps):>8.3%}{spent:>6.2f} s"
        if options.peers:
            line += peers(network, traffic, best, options.seeds)
        print(line, flush=True)


if __name__ == "__main__":
    main()
