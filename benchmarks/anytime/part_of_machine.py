"""Jobs that do not fill a box of nodes: ``python benchmarks/anytime/part_of_machine.py``.

Grids and points in space, with hidden numbers, on nodes of a torus or mesh: on some drawn at
random, on runs of 8 or 32 nodes in their order, and on all nodes of a network that the grid does
not fit. J of `auto` in 2 processor seconds, over the least of the grid's own order and of three
mappers that know no coordinates, with as many seconds each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from every_mapper import AUTO, Case, measured, natural_order, renumbered, stages
from generated import neighbours

from hopmap.mappers import objective_value
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.patterns.stencils import stencil_traffic

PARTS = {
    "mesh:32x16": (20, 20),
    "torus:8x8x8": (8, 8, 6),
    "torus:10x10x10": (10, 9, 8),
    "torus:16x16x8": (32, 24),
    "torus:16x16x16": (16, 16, 12),
}
NEARLY = (
    ("mesh:32x16", (20, 25)),
    ("mesh:32x32", (31, 33)),
    ("torus:8x8x16", (10, 10, 10)),
    ("torus:10x10x11", (7, 11, 13)),
    ("torus:8x8x8", (20, 25)),
    ("torus:8x8x8", (20, 5, 5)),
    ("torus:8x8x8", (10, 10, 5)),
    ("mesh:8x8x8", (10, 10, 5)),
    ("torus:16x16", (23, 11)),
    ("torus:32x32", (50, 20)),
)
OTHERS = ("annealing", "multilevel", "recursive_bisection | annealing")


class Job(NamedTuple):
    """Traffic on some nodes of a network."""

    nodes: str
    case: Case
    topology: Topology


def jobs() -> Iterator[Job]:
    """Yield grids, and points where nodes are drawn."""
    for spec, dims in PARTS.items():
        for run in (1, 8, 32):
            whole, ranks = topology_from_spec(spec), prod(dims)
            rng = np.random.default_rng(run)
            first = rng.permutation(whole.nodes // run)[: -(-ranks // run)] * run
            nodes = np.sort((first[:, None] + np.arange(run)).ravel()[:ranks])
            for name, traffic in (("grid", _grid(dims)), ("points", _points(ranks))):
                yield Job(f"runs of {run}", _case(name, dims, spec, traffic), whole.only(nodes))
    for spec, dims in NEARLY:
        yield Job("all", _case("grid", dims, spec, _grid(dims)), topology_from_spec(spec))


def _grid(dims: tuple[int, ...]) -> Traffic:
    return stencil_traffic(dims, f"{2 * len(dims) + 1}pt")


def _points(ranks: int) -> Traffic:
    src, dst, weight = neighbours(ranks, np.random.default_rng(1))
    return Traffic.from_pairs(ranks, src, dst, np.ones(len(src), dtype=np.int64), weight)


def _case(name: str, dims: tuple[int, ...], spec: str, traffic: Traffic) -> Case:
    """The same traffic with hidden numbers."""
    new = np.random.default_rng(3).permutation(traffic.ranks)
    label = f"{name} {'x'.join(map(str, dims))}"
    return Case(label, renumbered(traffic, new), new, spec)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help='a part of "traffic nodes network"')
    options = parser.parse_args()
    known, ratios = {"auto": AUTO, **stages()}, []
    for nodes, case, topology in jobs():
        name = f"{case.name}, {nodes}, {case.spec}"
        if options.only not in name:
            continue
        natural = natural_order(case, topology)
        found = {"own order": objective_value(case.traffic, topology, natural, "hop_bytes")}
        for mapper in ("auto", *OTHERS):
            runs = [
                measured(case, topology, known[mapper], options.seconds, seed)
                for seed in range(options.seeds)
            ]
            found[mapper] = float(np.mean([run[0] for run in runs if run]))
        auto = found.pop("auto")
        best = min(found, key=found.__getitem__)
        ratios.append(auto / found[best])
        hops = auto / case.traffic.undirected().bytes.sum()
        print(f"{name}: {ratios[-1]:.3f} of {best}, {hops:.3f} hops a byte", flush=True)
    print(f"{len(ratios)} cases: {np.exp(np.log(ratios).mean()):.3f}, worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
