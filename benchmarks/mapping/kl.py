"""Tables 1 and 3 to 5 of the KL paper.

``python benchmarks/mapping/kl.py [MATRIX ...] [--largest RANKS]``

The paper uses matrices of the SuiteSparse collection. This script generates matrices of the same
kinds and prints each with the one that it resembles. Improvements of hop-bytes over the random
mapping that KL starts from, in percent, are means over SEEDS random mappings of one partition.
Where the matrix is symmetric the two models have the same hypergraph and the same partition, and
differ in the random mappings alone. Needs the extra `sparse`. Seconds are processor seconds,
compilers apart.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial import Delaunay

from hopmap.mappers import map_ranks, objective_value
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, hypergraph_of, partition_hypergraph, pattern_of, spmv_traffic

SEEDS = 3
DISTANCES = (1, 2, 4)
MODELS = ("row-net", "column-net")
MACHINES = {
    64: "mesh:4x4x4",
    128: "mesh:4x4x8",
    256: "mesh:4x8x8",
    512: "torus:8x8x8",
    1024: "torus:8x8x16",
    2048: "torus:8x8x32",
}


def delaunay(vertices: int, dimensions: int) -> sparse.coo_array:
    """Laplacian of a Delaunay mesh of random points in the unit square or cube."""
    points = np.random.default_rng(0).random((vertices, dimensions))
    starts, peers = Delaunay(points).vertex_neighbor_vertices
    row = np.repeat(np.arange(vertices), np.diff(starts))
    both = np.concatenate((row, np.arange(vertices)))
    column = np.concatenate((peers, np.arange(vertices)))
    return sparse.coo_array((np.ones(len(both)), (both, column)))


def grid(edge: int) -> sparse.coo_array:
    """Five-point stencil of a square."""
    side = np.ones(edge - 1)
    line = sparse.diags_array([side, np.ones(edge), side], offsets=(-1, 0, 1))
    one = sparse.eye_array(edge)
    return sparse.coo_array(sparse.kron(line, one) + sparse.kron(one, line))


def zipf(vertices: int, entries: int) -> sparse.coo_array:
    """Unsymmetric matrix without locality: columns drawn by Zipf's law, as words follow words."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, vertices + 1) ** 0.8
    column = rng.choice(vertices, entries * vertices, p=share / share.sum())
    row = np.repeat(rng.permutation(vertices), entries)
    return sparse.coo_array((np.ones(len(row)), (row, rng.permutation(vertices)[column])))


class Kind(NamedTuple):
    """A matrix of ours, the paper's of that kind, and its figures.

    Attributes
    ----------
    degree : tuple of float
        Table 1: 64 to 2,048 ranks, row-net and column-net each.
    gains : dict of int to tuple of float
        Tables 3 to 5 by t, likewise.
    """

    make: Callable[[], sparse.coo_array]
    like: str
    degree: tuple[float, ...]
    gains: dict[int, tuple[float, ...]]


KINDS = {
    "delaunay2": Kind(
        lambda: delaunay(30_000, 2),
        "tmt_sym",
        (5.31, 5.16, 5.48, 5.41, 5.65, 5.67, 5.77, 5.72, 5.84, 5.88, 5.91, 5.88),
        {
            1: (47.8, 40.2, 51.8, 57.4, 56.0, 56.9, 57.7, 56.7, 60.2, 60.3, 62.5, 62.9),
            2: (56.7, 56.7, 63.6, 59.3, 65.9, 63.0, 64.8, 62.8, 67.5, 67.6, 71.3, 71.7),
            4: (54.3, 57.6, 64.2, 64.0, 65.9, 67.0, 65.7, 64.9, 69.7, 69.7, 74.6, 75.0),
        },
    ),
    "grid2": Kind(
        lambda: grid(180),
        "G3_circuit",
        (5.06, 5.25, 5.25, 5.19, 5.66, 5.62, 5.94, 5.95, 6.62, 6.60, 6.62, 7.66),
        {
            1: (45.4, 41.4, 48.3, 51.7, 53.2, 56.9, 59.5, 58.2, 62.1, 62.0, 61.5, 62.5),
            2: (51.7, 56.9, 61.5, 66.5, 67.1, 66.7, 65.2, 64.3, 67.6, 69.2, 69.6, 71.2),
            4: (56.1, 55.4, 65.2, 66.7, 64.9, 67.3, 65.9, 66.0, 70.9, 70.9, 73.4, 73.8),
        },
    ),
    "delaunay3": Kind(
        lambda: delaunay(20_000, 3),
        "2cubes_sphere",
        (12.34, 12.281, 13.45, 13.28, 13.84, 13.84, 14.17, 13.98, 14.42, 14.63, 14.53, 14.59),
        {
            1: (37.5, 38.7, 48.1, 43.2, 51.6, 52.9, 51.8, 51.8, 55.3, 53.5, 59.1, 57.2),
            2: (48.9, 44.8, 52.0, 49.5, 59.4, 58.6, 54.6, 57.1, 62.5, 60.9, 66.2, 64.9),
            4: (46.4, 46.4, 52.5, 55.3, 58.9, 58.2, 57.5, 58.8, 64.2, 63.4, 69.0, 67.7),
        },
    ),
    "zipf": Kind(
        lambda: zipf(10_000, 3),
        "language",
        (63, 62.78, 123.42, 122.19, 201.68, 197.7, 224.73, 221.64, 176.57, 184.23, 115.32, 124.29),
        {
            1: (14.0, 16.2, 17.6, 18.9, 19.3, 23.0, 18.7, 20.2, 20.2, 23.8, 21.9, 25.6),
            2: (17.6, 20.5, 16.5, 23.6, 23.9, 26.0, 20.8, 23.3, 22.6, 25.6, 28.1, 28.3),
            4: (17.2, 21.5, 20.8, 24.0, 25.1, 30.0, 21.0, 24.1, 25.0, 27.4, 30.2, 31.7),
        },
    ),
}


class Case(NamedTuple):
    """Average degree of a task graph, improvement in percent and seconds by t."""

    degree: float
    gains: dict[int, float]
    seconds: dict[int, float]


def improvements(traffic: Traffic, spec: str, first: int = 0) -> Case:
    """What KL takes off random mappings, of seeds from the first."""
    topology = topology_from_spec(spec)
    gains = dict.fromkeys(DISTANCES, 0.0)
    seconds = dict.fromkeys(DISTANCES, 0.0)
    for seed in range(first, first + SEEDS):
        start = map_ranks(traffic, topology, "random", seed=seed)
        before = objective_value(traffic, topology, start, "hop_bytes")
        for t in DISTANCES:
            begin = time.process_time()
            end = map_ranks(traffic, topology, f"kl(t={t})", initial=start)
            seconds[t] += (time.process_time() - begin) / SEEDS
            after = objective_value(traffic, topology, end, "hop_bytes")
            gains[t] += 100 * (1 - after / before) / SEEDS
    degree = 2 * traffic.without_self().undirected().pairs / traffic.ranks
    return Case(degree, gains, seconds)


def table(title: str, names: list[str], rows: list[tuple[int, list[tuple[float, float]]]]) -> None:
    """Print ours / the paper's, a row for each number of ranks."""
    print(f"\n{title}: ours / the paper's, row-net and column-net")
    print("      " + "".join(f"{name + ' / ' + KINDS[name].like:>28}" for name in names))
    for ranks, cells in rows:
        texts = [f"{ours:>7.1f} /{paper:>5.1f}" for ours, paper in cells]
        print(f"{ranks:>6}" + "".join(texts))


def main(words: list[str]) -> None:
    """Run the matrices named, or all."""
    largest = int(words[words.index("--largest") + 1]) if "--largest" in words else max(MACHINES)
    names = [word for word in words if word in KINDS] or list(KINDS)
    machines = {ranks: spec for ranks, spec in MACHINES.items() if ranks <= largest}
    improvements(spmv_traffic(pattern_of(grid(9)), 27, "row-net"), "torus:3x3x3")  # compile
    cases: dict[tuple[str, int, str], Case] = {}
    for name in names:
        pattern = pattern_of(KINDS[name].make())
        print(f"{name}: {pattern.size} rows, {len(pattern.row)} nonzeros", flush=True)
        for ranks, spec in machines.items():
            known, took = None, 0.0
            for number, model in enumerate(MODELS):
                hypergraph = hypergraph_of(pattern, model)
                if known is None or not all(map(np.array_equal, hypergraph, known)):
                    begin = time.process_time()
                    block = partition_hypergraph(hypergraph, ranks)
                    known, took = hypergraph, time.process_time() - begin
                traffic = spmv_traffic(pattern, ranks, model, block=block)
                case = cases[name, ranks, model] = improvements(traffic, spec, number * SEEDS)
                print(
                    f"  {spec:<14}{model:<12}{traffic.bytes.sum() // 8:>8} words"
                    f"{case.degree:>8.2f} peers, t ="
                    + ", ".join(f" {t}: {case.gains[t]:.1f} %" for t in DISTANCES)
                    + f", seconds: partition {took:.1f}, kl "
                    + ", ".join(f"{case.seconds[t]:.2f}" for t in DISTANCES),
                    flush=True,
                )

    def rows(ours: Callable[[Case], float], paper: Callable[[Kind], tuple[float, ...]]):
        return [
            (
                ranks,
                [
                    (ours(cases[name, ranks, model]), paper(KINDS[name])[2 * i + j])
                    for name in names
                    for j, model in enumerate(MODELS)
                ],
            )
            for i, ranks in enumerate(machines)
        ]

    table("Table 1, average degree", names, rows(lambda c: c.degree, lambda k: k.degree))
    for number, t in enumerate(DISTANCES, 3):
        title = f"Table {number}, improvement over random [%], t = {t}"
        table(title, names, rows(lambda c, t=t: c.gains[t], lambda k, t=t: k.gains[t]))


if __name__ == "__main__":
    main(sys.argv[1:])
