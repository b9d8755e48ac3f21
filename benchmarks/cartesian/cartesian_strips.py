"""Strips that hang together, and what a snake costs: ``python ...cartesian_strips.py [--edge N]``.

On all grids up to 18 x 18 and 8 x 8 x 8 (N x N, and N // 2 of three sides) and nodes of every size
that divides them: in how many cases squarest strips have a node in pieces. Then the strips and the
snake on the suites of Lehr's thesis and on its largest grid.

Source: Lehr, Efficient process mapping for Cartesian topologies, TU Wien 2019, chapter 6, where
all partitions are connected.
"""

from __future__ import annotations

import sys
from itertools import product
from math import prod

import numpy as np
from cartesian import Case, measured, suites
from numpy.typing import NDArray
from scipy import sparse

from hopmap.mappers.cartesian.strips import squarest_strips_all
from hopmap.traces import stencil_traffic
from hopmap.traces.patterns.stencils import star

LARGE = Case("large", (12, 11, 8), star(3), 33)
SNAKES = ("squarest_strips", "squarest_strips(path=snake)")


def pieces(numbers: NDArray[np.int64], dims: tuple[int, ...], node: NDArray[np.int64]) -> int:
    """Return in how many pieces the nodes are altogether, joined by neighbours in the grid.

    Parameters
    ----------
    numbers : ndarray(int64, shape=(ranks, dimensions))
        Coordinates of every rank.
    node : ndarray(int64, shape=(ranks,))
        Its node.
    """
    at = np.empty(prod(dims), dtype=np.int64)
    at[np.ravel_multi_index(tuple(numbers.T), dims)] = node
    grid = stencil_traffic(dims, "star")
    same = at[grid.src] == at[grid.dst]
    ends = (grid.src[same], grid.dst[same])
    joined = sparse.csr_array((np.ones(int(same.sum())), ends), shape=(len(at), len(at)))
    return int(sparse.csgraph.connected_components(joined, directed=False)[0])


def apart(edge: int = 18) -> dict[str, int]:
    """Print and return in how many cases a node is in pieces, by the width that is carried on."""
    grids = [*product(range(1, edge + 1), repeat=2), *product(range(1, edge // 2), repeat=3)]
    cases = [(dims, p) for dims in grids for p in range(1, prod(dims) + 1) if prod(dims) % p == 0]
    found = {}
    for carry in ("wider", "narrower"):
        found[carry] = sum(
            pieces(squarest_strips_all(dims, p, carry), dims, np.arange(prod(dims)) // p)
            > prod(dims) // p
            for dims, p in cases
        )
        print(f"squarest_strips(carry={carry}): in pieces in {found[carry]} of {len(cases)} cases")
    return found


def snake() -> tuple[int, int]:
    """Print what a snake costs; return in how many cases its sum is less, and more."""
    cases = list(dict.fromkeys(map(str, suites())))
    found = {str(case): measured(case, list(SNAKES)) for case in suites()}
    pairs = np.array([[found[case][mapper][0] for mapper in SNAKES] for case in cases])
    counted = pairs[(pairs > 0).all(axis=(1, 2))]
    ratio = np.exp(np.log(counted[:, 1] / counted[:, 0]).mean(axis=0))
    less, more = ((pairs[:, 1, 0] < pairs[:, 0, 0]).sum(), (pairs[:, 1, 0] > pairs[:, 0, 0]).sum())
    print(f"a snake on {len(cases)} cases: sum {ratio[0]:.3f}, worst node {ratio[1]:.3f} of the "
          f"strips'; the sum less in {less}, more in {more}")  # fmt: skip
    for mapper in (*SNAKES, "squarest_strips(carry=narrower, path=snake)"):
        total, worst = measured(LARGE, [mapper])[mapper][0]
        print(f"12x11x8 on 33 nodes, {mapper}: {total:.0f}, worst node {worst:.0f}")
    return int(less), int(more)


if __name__ == "__main__":
    apart(int(sys.argv[sys.argv.index("--edge") + 1]) if "--edge" in sys.argv else 18)
    snake()
