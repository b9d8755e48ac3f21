"""Compare mappers of Cartesian grids on the thesis' suites and with the optimum.

``python benchmarks/cartesian/cartesian.py suites [MAPPER ...]`` maps every case of the test suites
of Lehr's thesis (sections 7.2 and 7.3) by every mapper. It prints, suite by suite, what leaves the
nodes in sum and the worst node, as geometric means relative to `grid_portfolio`, and how often that
is beaten. ``python benchmarks/cartesian/cartesian.py optimum`` does so on all 2-D grids up to
6 x 6, 5 points, 2 to 6 nodes, relative to the exact optimum. Sizes of nodes differ by one where
they do not divide. Means are over a mapper's seeds; ours has one, and is beaten if any seed of
another does it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.off_node import outgoing, peers_of
from hopmap.topologies import MappingError, Topology, cluster
from hopmap.traces import stencil_traffic
from hopmap.traces.patterns.stencils import Vectors, star

Values: TypeAlias = NDArray[np.float64]

OURS = "grid_portfolio"
MAPPERS = [
    OURS,
    "grid_portfolio(first=worst)",
    "squarest_strips(carry=narrower)",
    "squarest_strips",
    "squarest_strips(path=snake)",
    "stencil_strips",
    "kd_tree",
    "skewed_kd_tree",
    "hyperplane",
    "gropp",
    "factorisation",
    "row_major",
]
# Mappers for any traffic, and the number of seeds: random mappings are cheap; for some others one
# seed says little.
GENERAL = {
    "auto(moves=2000000)": 3,
    "recursive_bisection": 3,
    "topdown": 3,
    "bottomup": 3,
    "topdown | local_search": 1,
    "multilevel": 1,
    "pacmap": 1,
    "topo_aware": 1,
    "treematch": 1,
    "greedy_all_c": 1,
    "random": 5,
}


class Case(NamedTuple):
    """A grid with a stencil on so many nodes."""

    suite: str
    dims: tuple[int, ...]
    stencil: Vectors
    nodes: int


def suites() -> Iterator[Case]:
    """Cases of the thesis, section by section; where it leaves sizes open, what is nearest."""
    for dims, nodes in product([(15, 15), (20, 10), (6, 6, 6)], range(2, 31, 2)):
        yield Case("partitions", dims, star(len(dims)), nodes)
    for d, nodes, side in product((2, 3), (5, 10, 30), range(4, 17, 2)):
        if side**d >= nodes:
            yield Case("growing partitions", (side,) * d, star(d), nodes)
    for d, size, side in product((2, 3), (10, 30), range(4, 17, 2)):
        if side**d >= 2 * size:
            yield Case("more partitions", (side,) * d, star(d), side**d // size)
    for nodes, size, d in product((10, 30), (10, 30), (1, 2, 3, 4, 5)):
        yield Case("number of dimensions", sides(nodes * size, [1.0] * d), star(d), nodes)
    for nodes, size, d, skew in product((10, 30), (10, 30), (2, 3), np.arange(1, 4.01, 0.25)):
        dims = sides(nodes * size, [1.0] * (d - 1) + [float(skew)])
        yield Case("skew of dimensions", dims, star(d), nodes)
    yield Case("skew of dimensions", (10, 31), star(2), 10)
    for dims, nodes, index in (
        *product([(15, 15)], [10], range(12)),
        *product([(8, 8, 8)], [30], range(12)),
    ):
        yield Case("size of the stencil", dims, symmetric_stencil(index, len(dims)), nodes)
    for stencil in skewed_stencils():
        yield Case("skew of the stencil", (15, 15), stencil, 15)
    yield Case("large", (44, 24), star(2), 33)
    yield Case("large", (12, 11, 8), star(3), 33)


def sides(ranks: int, skew: list[float]) -> tuple[int, ...]:
    """Sides of a grid with about so many ranks, in these proportions."""
    unit = (ranks / prod(skew)) ** (1 / len(skew))
    found = [max(round(unit * s), 1) for s in skew[:-1]]
    return (*found, max(round(ranks / prod(found)), 1))


def symmetric_stencil(index: int, dimensions: int) -> Vectors:
    """Vectors that grow dimension by dimension (listing 7.3)."""
    return [
        [sign * (i // dimensions + 1) if d == i % dimensions else 0 for d in range(dimensions)]
        for i in range(index + 1)
        for sign in (1, -1)
    ]


def skewed_stencils() -> Iterator[Vectors]:
    """From 5 points on: more along the second dimension, or diagonals in place of the first.

    The thesis shows the last one only (figure 7.21); these steps are ours.
    """
    for reach in (1, 2, 3, 4):
        along = [[0, sign * step] for step in range(1, reach + 1) for sign in (1, -1)]
        yield [[1, 0], [-1, 0], *along]
        yield [[1, 1], [-1, -1], *along]
        yield [[1, 1], [1, -1], [-1, 1], [-1, -1], *along]


def nodes_for(ranks: int, nodes: int) -> Topology:
    """So many nodes for all ranks, the first ones larger by one where that does not divide."""
    each, more = divmod(ranks, nodes)
    return cluster([each + 1] * more + [each] * (nodes - more))


def measured(case: Case, mappers: list[str]) -> dict[str, Values]:
    """Messages that leave all nodes and the worst, shape (seeds, 2), by mappers that take it."""
    traffic = stencil_traffic(case.dims, case.stencil)
    topology = nodes_for(traffic.ranks, case.nodes)
    peers = peers_of(traffic, "messages", traffic.ranks)
    found = {}
    for mapper in mappers:
        try:
            loads = [
                outgoing(peers, map_ranks(traffic, topology, mapper, seed=seed), topology.nodes)
                for seed in range(GENERAL.get(mapper, 1))
            ]
        except MappingError:
            continue
        found[mapper] = np.array([[load.sum(), load.max()] for load in loads], dtype=float)
    return found


def print_suites(mappers: list[str]) -> None:
    """Print the table of each suite and of all; first the cases in which ours is beaten in sum."""
    rows: dict[str, list[dict[str, Values]]] = {}
    cases: list[Case] = []
    begin, spent = time.process_time(), 0.0
    for case in suites():
        if case in cases:
            continue  # some skews round to one grid
        cases.append(case)
        ours = measured(case, [OURS])
        spent += time.process_time() - begin
        found = ours | measured(case, [mapper for mapper in mappers if mapper != OURS])
        begin = time.process_time()
        for suite in (case.suite, "all"):
            rows.setdefault(suite, []).append(found)
        for mapper, other in found.items():
            if other[:, 0].min() < ours[OURS][0, 0]:
                print("beaten in sum:", case, mapper, other.tolist(), ours[OURS], flush=True)
    rows["all"] = rows.pop("all")
    for suite, all_found in rows.items():
        print(f"\n{suite}, {len(all_found)} cases")
        print(f"{'':<34}{'sum':>8}{'worst':>8}{'cases':>7}{'fewer':>7}{'lower worst':>13}")
        for mapper in mappers:
            pairs = [(found[mapper], found[OURS][0]) for found in all_found if mapper in found]
            counted = [np.log(m / o).mean(axis=0) for m, o in pairs if m.min() > 0 and o.min() > 0]
            if not counted:
                continue
            means = np.exp(np.mean(counted, axis=0))
            fewer, lower = np.sum([m.min(axis=0) < o for m, o in pairs], axis=0)
            print(
                f"{mapper:<34}{means[0]:>8.3f}{means[1]:>8.3f}{len(pairs):>7}{fewer:>7}{lower:>13}"
            )
    print(f"{OURS}: {spent:.0f} processor seconds")


def print_optimum(mappers: list[str]) -> None:
    """Print how far every mapper is from the least sum and the least worst node."""
    ratios: dict[str, list[Values]] = {}
    begin = time.process_time()
    for a, b, nodes in product(range(1, 7), range(1, 7), range(2, 7)):
        if a * b < nodes:
            continue
        case = Case("", (a, b), star(2), nodes)
        exact = measured(case, ["exact_partition", "exact_partition(measure=worst)"])
        least = np.array(
            [exact["exact_partition"][0, 0], exact["exact_partition(measure=worst)"][0, 1]]
        )
        for mapper, values in measured(case, mappers).items():
            ratios.setdefault(mapper, []).append(values.mean(axis=0) / least)
    print(f"{'':<34}{'sum':>8}{'':>8}{'':>9}{'worst node':>10}")
    print(
        f"{'':<34}{'mean':>8}{'worst':>8}{'optimal':>9}{'mean':>10}{'worst':>8}{'optimal':>9}{'cases':>7}"
    )
    for mapper, found in ratios.items():
        r = np.array(found)
        means, most, equal = r.mean(axis=0), r.max(axis=0), (r == 1).sum(axis=0)
        print(
            f"{mapper:<34}{means[0]:>8.3f}{most[0]:>8.2f}{equal[0]:>9}"
            f"{means[1]:>10.3f}{most[1]:>8.2f}{equal[1]:>9}{len(r):>7}"
        )
    print(f"{time.process_time() - begin:.0f} processor seconds")


if __name__ == "__main__":
    what, *more = sys.argv[1:] or ["suites"]
    if what == "suites":
        print_suites([*MAPPERS, *GENERAL, *more])
    else:
        print_optimum([*MAPPERS, "random", *more])
