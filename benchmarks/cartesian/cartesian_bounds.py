"""Worst-case bounds of the k-d tree and of squarest strips, for stars of 2 n points.

``python benchmarks/cartesian/cartesian_bounds.py`` prints tables 6.1 to 6.3, published and ours,
and the worst ratio of the k-d tree on 2,000 random grids (``--grids N``).

A bound is a ratio of messages that leave a node. It divides the worst node's by 2 n p^((n-1)/n),
the number for a node whose p ranks fill a perfect hypercube. The bounds of the k-d tree are proven;
the bounds of strips are computed.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
sections 5.3 and 6.3. Tables 6.1 to 6.3 follow to their four digits, all 195 cells, from the text
read so: the ceiling is taken of what is under the root and the floor of the root (printed: the
ceiling of the root); the last extent is 2 p / (product) - 1, not rounded (printed: a ceiling + 1);
the first dimension is the stretched one; and the last is shortened only where 1 is left of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from hopmap.mappers.cartesian.halvings import kd_tree_all
from hopmap.mappers.cartesian.strips import root

# As printed. Rows: ranks of a node; columns: 2 to 6 dimensions.
TABLES = {
    "6.1": """
2 1.4142 1.4699 1.4865 1.4933 1.4966
3 1.7321 1.7627 1.7548 1.7440 1.7347
4 1.1667 1.2787 1.2964 1.2975 1.2949
5 1.1926 1.4060 1.4455 1.4533 1.4530
10 1.2649 1.1730 1.2152 1.2151 1.2069
12 1.2702 1.2083 1.3184 1.3424 1.3450
14 1.2829 1.2433 1.4047 1.4450 1.4539
16 1.3214 1.2774 1.4792 1.5307 1.5433
18 1.3132 1.3104 1.5448 1.6043 1.6189
20 1.3097 1.3421 1.6037 1.6689 1.6842
25 1.3556 1.3126 1.7292 1.8021 1.8164
30 1.3389 1.3465 1.1702 1.2241 1.2339
32 1.3356 1.3603 1.1892 1.2625 1.2807
""",
    "6.2": """
2 1.0607 1.4699 1.6352 1.7230 1.7772
3 1.4434 2.0832 2.3031 2.4084 2.4686
4 1.1667 1.4992 1.8856 2.0672 2.1699
5 0.9690 1.1020 1.3209 1.4165 1.4675
10 1.1068 1.4363 1.5412 1.7962 1.9244
12 1.1258 1.5263 1.7061 2.0273 2.1856
14 1.1492 1.0903 1.1168 1.2674 1.3368
16 1.1964 1.2074 1.5938 1.5162 1.6150
18 1.1953 1.3104 1.8023 1.7232 1.8437
20 1.1979 1.4024 1.9826 1.8995 2.0366
25 1.2556 1.1566 2.3479 2.2488 2.4130
30 1.2476 1.4155 1.5992 1.6585 1.8803
32 1.2473 1.4706 1.6475 2.0333 1.9674
""",
    "6.3": """
2 1.4142 1.6799 1.7838 1.8379 1.8708
3 1.7321 2.2435 2.4128 2.4915 2.5353
4 1.9167 1.8961 2.1508 2.2652 2.3274
5 1.6398 1.4440 1.5452 1.5821 1.5983
10 1.8974 2.0826 1.9413 2.0815 2.1446
12 1.8475 2.0986 2.0551 2.2739 2.3747
14 1.8174 1.6068 1.4277 1.4853 1.5032
16 2.0714 1.6799 1.8750 1.7121 1.7638
18 2.0203 1.7472 2.0598 1.9014 1.9786
20 1.9805 1.8096 2.2205 2.0633 2.1601
25 2.1556 1.7414 2.5491 2.3859 2.5156
30 2.0692 1.9334 2.1258 2.0138 2.1447
32 2.0428 1.9666 2.1492 2.3708 2.2180
""",
}


def cube_edges(size: float, dimensions: int) -> float:
    """Messages that leave a hypercube of so many ranks: 2 n p^((n-1)/n)."""
    return 2 * dimensions * float(size ** ((dimensions - 1) / dimensions))


def surface(sides: Sequence[float]) -> float:
    """Messages that leave a box: twice the sum of the products of all sides but one."""
    return 2 * sum(prod(sides[:i]) * prod(sides[i + 1 :]) for i in range(len(sides)))


def kd_tree_bound(dimensions: int) -> float:
    """Bound of the k-d tree where nodes' boxes are limited by no dimension of the grid.

    (4 n - 2) / (n 2^((n-1)/n)), section 5.3.3: 2.12 in two dimensions, 2.09 in three, towards 2.
    """
    n = dimensions
    return (4 * n - 2) / (n * 2 ** ((n - 1) / n))


def kd_tree_bound_of(sides: Sequence[float]) -> float:
    """Bound of the k-d tree for a node in two halves that each span a box of these sides.

    Section 5.3.2; it grows with the skew of the sides.
    """
    return 2 * surface(sides) / cube_edges(prod(sides), len(sides))


def strip_extents(size: int, dimensions: int) -> list[float]:
    """Sides s' of the box that a node's ranks span in the worst case (section 6.3)."""
    sides: list[float] = []
    taken = 1
    for left in range(dimensions, 1, -1):
        width = 2 * root(-(-size // taken), left) - 1
        sides.append(width)
        taken *= width
    return [*sides, 2 * size / taken - 1]


def strips_bound(size: int, dimensions: int) -> float:
    """Ratio of squarest strips for a node within one column (table 6.1)."""
    return surface(strip_extents(size, dimensions)) / cube_edges(size, dimensions)


def stretched_strips_bound(size: int, dimensions: int, *, periodic: bool) -> float:
    """Ratio of squarest strips for a node that lies in two columns (tables 6.2 and 6.3).

    Parameters
    ----------
    size : int
        Ranks of the node.
    dimensions : int
        At least 2.
    periodic : bool
        Whether there are messages across the border at which the columns meet (table 6.3).
    """
    first, *middle, last = strip_extents(size, dimensions)
    sides = [2 * first, *middle, last - 1 if last >= 2 else last]
    at_border = 0 if periodic else prod(sides[:-1])
    return (surface(sides) - at_border) / cube_edges(size, dimensions)


def tables() -> dict[str, tuple[list[list[str]], list[list[str]]]]:
    """Rows of tables 6.1 to 6.3, as printed and as computed: ranks, then a cell a dimension."""
    bounds = {
        "6.1": strips_bound,
        "6.2": partial(stretched_strips_bound, periodic=False),
        "6.3": partial(stretched_strips_bound, periodic=True),
    }
    published = {
        name: [row.split() for row in text.split("\n")[1:-1]] for name, text in TABLES.items()
    }
    return {
        name: (
            rows,
            [[p, *(f"{bounds[name](int(p), n):.4f}" for n in range(2, 7))] for p, *_ in rows],
        )
        for name, rows in published.items()
    }


def met_by_kd_tree(grids: int = 2000, seed: int = 0) -> float:
    """Largest ratio that the k-d tree has on random grids.

    Of 2 to 4 dimensions, sides within a factor of two of each other, nodes of one size.
    """
    rng = np.random.default_rng(seed)
    most = 0.0
    for _ in range(grids):
        n = int(rng.integers(2, 5))
        shortest = int(rng.integers(2, (21, 9, 6)[n - 2]))
        dims = tuple(rng.integers(shortest, 2 * shortest + 1, n).tolist())
        ranks = prod(dims)
        size = int(rng.choice([p for p in range(2, ranks) if ranks % p == 0]))
        node_at = np.empty(dims, dtype=np.int64)
        node_at[tuple(kd_tree_all(dims).T)] = np.arange(ranks) // size
        left = np.zeros(ranks // size, dtype=np.int64)
        for axis in range(n):
            line = np.moveaxis(node_at, axis, 0)
            cut = line[1:] != line[:-1]
            for side in (line[1:], line[:-1]):
                left += np.bincount(side[cut], minlength=len(left))
        most = max(most, left.max() / cube_edges(size, n))
    return most


def show(grids: int = 2000) -> None:
    """Print the tables; where they differ, both the printed value and ours."""
    for name, (published, ours) in tables().items():
        cells = [
            pair for rows in zip(published, ours, strict=True) for pair in zip(*rows, strict=True)
        ]
        same = sum(theirs == mine for theirs, mine in cells) - len(ours)
        print(f"\nTable {name}, {same} of {len(cells) - len(ours)} cells the same")
        print("ranks" + "".join(f"{n:>10} D" for n in range(2, 7)))
        for theirs, mine in zip(published, ours, strict=True):
            words = [m if m == t else f"{m} ({t})" for t, m in zip(theirs, mine, strict=True)]
            print(f"{words[0]:>5}" + "".join(f"{word:>12}" for word in words[1:]))
    print(f"\nk-d tree: proven {kd_tree_bound(2):.2f} in two dimensions, less in more; "
          f"met on {grids:,} random grids {met_by_kd_tree(grids):.2f}")  # fmt: skip


if __name__ == "__main__":
    show(int(sys.argv[sys.argv.index("--grids") + 1]) if "--grids" in sys.argv else 2000)
