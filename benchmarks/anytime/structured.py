"""Shuffled stencils, process grids and periodic meshes: ``benchmarks/anytime/structured.py``.

What `auto` makes of them in 2 processor seconds, over the better of the grid's own order and its
transpose; and in which time coordinates are found. ``--peers`` adds Scotch and, with
``--sharedmap PYTHON``, SharedMap, as in `anytime.py`.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations, permutations, product
from math import prod
from typing import NamedTuple

import numpy as np
from anytime_peers import scotch, sharedmap
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.cartesian.embedding import fill
from hopmap.mappers.cartesian.grid import find_structures
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic

Ints = NDArray[np.int64]
BOX3 = np.array([v for v in product((-1, 0, 1), repeat=3) if any(v)])
BOX2 = np.array([v for v in product((-1, 0, 1), repeat=2) if any(v)])


def _star(box: Ints) -> Ints:
    return box[np.abs(box).sum(axis=1) == 1]


STENCILS = {
    5: _star(BOX2),
    7: _star(BOX3),
    9: BOX2,
    15: BOX3[(BOX3 >= 0).all(axis=1) | (BOX3 <= 0).all(axis=1)],
    19: BOX3[np.abs(BOX3).sum(axis=1) < 3],
    27: BOX3,
}


class Case(NamedTuple):
    """Traffic of a box of ranks, in its own order."""

    name: str
    dims: tuple[int, ...]
    src: Ints
    dst: Ints
    weight: Ints


def stencil(
    points: int,
    dims: tuple[int, ...],
    periodic: str,
    *,
    lognormal: bool = False,
    faults: tuple[float, float] = (0, 0),
) -> Case:
    """Neighbours in a box; so large a part of the pairs is left out, or added anywhere."""
    rng = np.random.default_rng(5)
    cells = np.indices(dims).reshape(len(dims), -1).T
    moved = cells[:, None] + STENCILS[points]
    wraps = np.array(["xyz"[k] in periodic for k in range(len(dims))])
    inside = ((moved >= 0) & (moved < dims) | wraps).all(axis=2)
    to = np.ravel_multi_index(tuple(np.moveaxis(moved % dims, 2, 0)), dims)[inside]
    pairs = np.stack((np.argwhere(inside)[:, 0], to), axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    missing, added = faults
    if any(faults):
        others = np.sort(rng.integers(0, prod(dims), (int(added * len(pairs)), 2)), axis=1)
        pairs = np.concatenate((pairs[rng.random(len(pairs)) > missing], others))
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    weight = rng.lognormal(8, 1, len(pairs)) if lognormal else np.full(len(pairs), 100)
    name = f"{points} points, {'x'.join(map(str, dims))}, periodic {periodic or 'nowhere'}"
    name += ", lognormal" * lognormal
    name += f", {missing:.0%} missing, {added:.0%} added" * any(faults)
    return Case(name, dims, pairs[:, 0], pairs[:, 1], weight.astype(np.int64))


def honeycomb(rows: int, columns: int) -> Case:
    """Each row is a path, and every other rank has a neighbour in the next row."""
    number = np.arange(rows * columns).reshape(rows, columns)
    even = np.indices(number.shape).sum(axis=0) % 2 == 0
    src = np.concatenate((number[:, :-1].ravel(), number[:-1][even[:-1]]))
    dst = np.concatenate((number[:, 1:].ravel(), number[1:][even[:-1]]))
    return Case(f"honeycomb of {rows}x{columns}", number.shape, src, dst, np.full(len(src), 100))


def close_packed(dims: tuple[int, ...]) -> Case:
    """Hexagonal layers above each other in turn; it closes on itself in all dimensions."""
    cells = np.indices(dims).reshape(3, -1).T
    within = [(1, 0, 0), (0, 1, 0), (1, -1, 0), (0, 0, 1)]
    pairs = []
    for odd, sign in ((0, -1), (1, 1)):
        layers = cells[cells[:, 2] % 2 == odd]
        for step in (*within, (sign, 0, 1), (0, sign, 1)):
            ends = layers, (layers + step) % dims
            pairs.append(np.stack([np.ravel_multi_index(tuple(end.T), dims) for end in ends]))
    src, dst = np.concatenate(pairs, axis=1)
    return Case(f"close-packed, {'x'.join(map(str, dims))}", dims, src, dst, np.full(len(src), 100))


def mesh_of_points(dims: tuple[int, ...], periodic: str, near: int) -> Case:
    """As many points as cells, each with those nearest, numbered by halving their box."""
    place = np.random.default_rng(5).random((prod(dims), len(dims))) * dims
    closes = ["xyz"[k] in periodic for k in range(len(dims))]
    others = cKDTree(place, boxsize=np.where(closes, dims, 0)).query(place, near + 1)[1][:, 1:]
    number = np.ravel_multi_index(tuple(fill(place, np.ones(dims, dtype=np.int64)).T), dims)
    pairs = np.stack((np.repeat(number, near), number[others.ravel()]))
    src, dst = np.unique(np.sort(pairs, axis=0), axis=1)
    name = f"{near} nearest, {'x'.join(map(str, dims))}, periodic {periodic}"
    return Case(name, dims, src, dst, np.full(len(src), 100))


def process_grid(dims: tuple[int, ...], weights: tuple[int, ...]) -> Case:
    """All-to-all within every line of a process grid, as in a transposition of pencils."""
    number = np.arange(prod(dims)).reshape(dims)
    found = []
    for axis, weight in enumerate(weights):
        lines = np.moveaxis(number, axis, 0)
        for a, b in combinations(range(dims[axis]), 2):
            here = lines[a].ravel(), lines[b].ravel()
            found.append(np.stack((*here, np.full(here[0].size, weight)), axis=1))
    src, dst, weight = np.concatenate(found).T
    name = f"lines of {'x'.join(map(str, dims))}, weights {':'.join(map(str, weights))}"
    return Case(name, dims, src, dst, weight)


TREE, FAT, DRAGONFLY = "tree:8:16:4@1:10:100", "fattree:8x8x8", "dragonfly:4x8x4*4"


def cases() -> list[tuple[Case, list[str]]]:
    """All cases, each with its networks."""
    cube8, cube16 = ["torus:8x8x8", "mesh:8x8x8"], ["torus:16x16x16", "mesh:16x16x16"]
    found = [(stencil(7, (8,) * 3, "z"), cube8), (stencil(7, (16,) * 3, "z"), cube16)]
    found += [(stencil(7, (16,) * 3, "xy"), cube16[:1])]
    found += [(stencil(5, (32, 32), "y"), ["torus:32x32", "mesh:32x32"])]
    found += [(stencil(27, (8,) * 3, "z"), cube8), (stencil(27, (16,) * 3, "z"), cube16)]
    found += [(stencil(27, (8,) * 3, "xyz"), cube8[:1]), (stencil(19, (16,) * 3, "y"), cube16[:1])]
    for dims in (
        (4, 8, 8),
        (8, 8, 8),
        (8, 8, 16),
        (8, 16, 16),
        (16,) * 3,
        (16, 16, 32),
        (32, 32, 16),
    ):
        box = "x".join(map(str, dims))
        found.append((stencil(15, dims, "x", lognormal=True), [f"torus:{box}"]))
    for points in (7, 15, 27):
        found.append((stencil(points, (16,) * 3, "z", faults=(0.01, 0.01)), cube16[:1]))
    found.append(
        (stencil(9, (32, 32), "x", lognormal=True), ["torus:32x32", "tree:4:16:16@1:10:100"])
    )
    found.append((stencil(7, (16,) * 3, "x"), ["tree:4:16:64@1:10:100", "torus:32x16x8"]))
    for faults in ((0.03, 0), (0.08, 0), (0.15, 0), (0.08, 0.02)):
        found.append((stencil(5, (40, 40), "", faults=faults), ["mesh:40x40"]))
        found.append((stencil(5, (16, 16), "xy", faults=faults), ["torus:16x16"]))
        found.append((stencil(7, (8, 8, 8), "xyz", faults=faults), ["torus:8x8x8"]))
    found += [(honeycomb(20, 20), ["mesh:20x20"]), (honeycomb(40, 30), ["mesh:40x30"])]
    found.append((close_packed((8, 8, 8)), cube8[:1]))
    for dims, periodic, near in (
        ((32, 16), "xy", 8),
        ((32, 32), "xy", 8),
        ((32, 32), "x", 8),
        ((10, 10, 10), "xyz", 12),
        ((10, 10, 10), "xy", 12),
        ((16, 16, 16), "xyz", 12),
    ):
        found.append((mesh_of_points(dims, periodic, near), [f"torus:{'x'.join(map(str, dims))}"]))
    found.append((process_grid((16, 32), (10, 10)), ["mesh:8x8x8"]))
    for weights in ((10, 10), (10, 12), (10, 15), (10, 17), (10, 30)):
        found.append((process_grid((16, 32), weights), [TREE]))
    found.append((process_grid((16, 32), (10, 12)), [FAT, "dragonfly:4x8x4", "torus:8x8x8"]))
    found.append((process_grid((8, 8, 8), (40, 10, 20)), [TREE, "torus:8x8x8", FAT]))
    return found


def main() -> None:
    """Print a row for each case and network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--sharedmap", metavar="PYTHON")
    options = parser.parse_args()
    for case, specs in cases():
        for spec in specs:
            if options.only not in f"{case.name} {spec}":
                continue
            ranks = prod(case.dims)
            new = np.random.default_rng(3).permutation(ranks)
            ones = np.ones(len(case.src), dtype=np.int64)
            traffic = Traffic.from_pairs(ranks, new[case.src], new[case.dst], ones, case.weight)
            network = topology_from_spec(spec)
            begin = time.process_time()
            cells = next(find_structures(traffic)[1], None)
            found_in = time.process_time() - begin
            own = []
            for axes in permutations(range(len(case.dims))):
                node_of = np.empty(ranks, dtype=np.int64)
                node_of[new] = np.arange(ranks).reshape(case.dims).transpose(axes).ravel().argsort()
                own.append(objective_value(traffic, network, node_of, "hop_bytes"))
            mapper = f"auto(seconds={options.seconds},clock=cpu,objective=hop_bytes)"
            map_ranks(traffic, network, mapper, seconds=0.0)  # compile
            begin = time.process_time()
            node_of = map_ranks(traffic, network, mapper)
            spent = time.process_time() - begin
            ours = objective_value(traffic, network, node_of, "hop_bytes")
            row = f"| {case.name} | {spec} | {cells and cells.dims} {found_in:.2f} s "
            row += f"| {ours} ({spent:.2f} s) | {ours / own[0]:.3f} | {ours / min(own):.3f} |"
            if options.peers:
                shared = sharedmap(traffic, network, options.sharedmap)
                for peers in (scotch(traffic, network), shared):
                    for tool, places, seconds in peers:
                        value = objective_value(traffic, network, places, "hop_bytes")
                        row += f" {tool} {ours / value:.3f} ({seconds:.2f} s)"
            print(row, flush=True)


if __name__ == "__main__":
    main()
