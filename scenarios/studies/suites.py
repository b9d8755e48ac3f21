"""The test suites of Lehr's thesis: a stencil on a grid, on a cluster, one thing varied at a time.

A suite is named in a scenario, ``suites = ["partitions"]``, with the bytes that go to each
neighbour where they are not the thesis' 1 KB and 1 MB: ``"partitions,bytes=1000"``. A partition is
a node; where ranks do not divide evenly, the first nodes get one more. Stencils are stars (5pt,
in three dimensions 7pt) where nothing else is said.

What the text leaves open is chosen here: how far stencils, skews and dimensions go, how a grid of d
dimensions comes near a number of ranks (`near`, `oblong`), and the steps of `stencil_skew`, whose
figure shows the last one only. Grids with fewer ranks than nodes (4x4 on 30) are left out. The last
dimension varies fastest, as MPI has it, so that the thesis' 10 x 30 is 30x10: its blocks say so.
Its second dimension therefore is the first here; along that stencils grow, which gives the order of
figure 7.22, as longer sides last do that of figure 7.13.

Source: Lehr, Efficient process mapping for Cartesian topologies, Diplomarbeit TU Wien 2019,
sections 7.1.2, 7.2 and 7.3, listing 7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from hopmap.errors import expect_one_of
from hopmap.topologies import topology_from_spec
from hopmap.traces.patterns.stencils import parse_bytes, star

KB_AND_MB = (1_000, 1_000_000)
SWEEP = (10, 32, 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000)


class SuiteCase(NamedTuple):
    """A stencil on a cluster."""

    panel: str  # What is fixed; cases of one panel are a line in a figure.
    x: float  # The value of what varies.
    trace: str  # As a scenario has it.
    topology: str  # Its own spec.
    size: int  # Bytes to each neighbour.
    pictured: bool  # Whether the thesis draws the mappings.


class Cell(NamedTuple):
    """A case for any number of bytes; see `SuiteCase`."""

    panel: str
    x: float
    dims: Sequence[int]
    nodes: int
    vectors: Sequence[Sequence[int]] = ()
    pictured: bool = False


class Suite(NamedTuple):
    """What varies, the cases, and the default number of bytes."""

    varies: str
    cells: Callable[[], list[Cell]]
    sizes: tuple[int, ...] = KB_AND_MB


def partitions() -> list[Cell]:
    """2, 4, ..., 30 nodes share a grid (7.2.1; figures 7.1 to 7.8)."""
    drawn: dict[tuple[int, ...], tuple[int, ...]] = {(15, 15): (26, 28), (20, 10): (20,)}
    return [
        Cell(_by(dims), nodes, dims, nodes, pictured=nodes in drawn.get(dims, ()))
        for dims in ((15, 15), (20, 10), (6, 6, 6))
        for nodes in range(2, 31, 2)
    ]


def growing() -> list[Cell]:
    """Squares and cubes grow on 5, 10 and 30 nodes (7.2.1; figures 7.9, 7.10)."""
    return [
        Cell(
            f"{nodes} nodes, {d}-D",
            side,
            (side,) * d,
            nodes,
            pictured=(nodes, d, side) == (10, 2, 10),
        )
        for d in (2, 3)
        for nodes in (5, 10, 30)
        for side in range(4, 17, 2)
        if side**d >= nodes
    ]


def fixed_size() -> list[Cell]:
    """Squares grow with nodes of about 10 ranks (7.2.1; figure 7.11)."""
    return [
        Cell("nodes of 10, 2-D", side, (side, side), max(1, round(side**2 / 10)))
        for side in range(4, 17, 2)
    ]


def dimensions() -> list[Cell]:
    """Grids of two to five dimensions for 10 or 30 nodes of about 10 or 30 (7.2.2; 7.12, 7.13)."""
    return [
        Cell(f"{nodes} nodes of {size}", d, near(nodes * size, d), nodes)
        for nodes in (10, 30)
        for size in (10, 30)
        for d in (2, 3, 4, 5)
    ]


def skew() -> list[Cell]:
    """Grids ever longer in one dimension, for the same nodes (7.2.2; figures 7.14 to 7.16)."""
    return [
        Cell(f"{nodes} nodes of {size}, {d}-D", s, dims, nodes, pictured=dims == (30, 10))
        for d in (2, 3)
        for nodes in (10, 30)
        for size in (10, 30)
        for dims, s in _skews(nodes * size, d).items()
    ]


def stencil_size() -> list[Cell]:
    """Stencils of 2, 4, ... vectors (7.2.3; listing 7.3, figures 7.17 to 7.20)."""
    return [
        Cell(_by(dims), len(vectors), dims, nodes, vectors, (len(dims), index) in ((2, 0), (2, 2)))
        for dims, nodes, most in (((15, 15), 10, 10), ((8, 8, 8), 30, 12))
        for index in range(most)
        for vectors in [symmetric_stencil(index, len(dims))]
    ]


def stencil_skew() -> list[Cell]:
    """Stencils ever longer in the thesis' second dimension, our first (7.2.3; 7.21, 7.22)."""
    along, diagonal = [[1, 0], [-1, 0]], [[1, 1], [-1, -1]]

    def longer(reach: int) -> list[list[int]]:
        return [[sign * far, 0] for far in range(2, reach + 1) for sign in (1, -1)]

    steps = [
        star(2),
        star(2) + longer(2),
        along + diagonal + longer(2),
        along + diagonal + longer(3),
        along + diagonal + longer(4),
    ]
    return [Cell("15x15", step, (15, 15), 15, vectors) for step, vectors in enumerate(steps)]


def message_size() -> list[Cell]:
    """Bytes to each neighbour, on 33 nodes of 32 (7.3.2; figures 7.25, 7.26)."""
    return [Cell(_by(dims), 0, dims, 33, pictured=True) for dims in ((44, 24), (12, 11, 8))]


SUITES = {
    "partitions": Suite("nodes", partitions),
    "growing": Suite("side of the grid", growing),
    "fixed_size": Suite("side of the grid", fixed_size),
    "dimensions": Suite("dimensions", dimensions),
    "skew": Suite("longest side / others", skew),
    "stencil_size": Suite("vectors of the stencil", stencil_size),
    "stencil_skew": Suite("step of the stencil", stencil_skew),
    "message_size": Suite("bytes to each neighbour", message_size, SWEEP),
}


def suite_cases(text: str) -> list[SuiteCase]:
    """Return the cases of a suite, written like "partitions" or "partitions,bytes=1000:1000000".

    Examples
    --------
    >>> suite_cases("partitions,bytes=1000")[12][2:4]
    ('stencil:15x15,star,bytes=1000', 'cluster:17*9+9*8')
    """
    name, comma, rest = text.partition(",")
    expect_one_of(ValueError, "suite", name, SUITES)
    key, _, value = rest.partition("=")
    if comma and key != "bytes":
        raise ValueError(f"suite {text!r}: expected {name} or {name},bytes=1000:1000000")
    suite = SUITES[name]
    return [
        SuiteCase(
            cell.panel,
            size if suite.cells is message_size else cell.x,
            f"stencil:{_by(cell.dims)},{_format_vectors(cell.vectors)},bytes={size}",
            topology_from_spec(nodes_of(prod(cell.dims), cell.nodes)).spec,
            size,
            cell.pictured,
        )
        for cell in suite.cells()
        for size in (parse_bytes(value) if comma else suite.sizes)
    ]


def nodes_of(ranks: int, nodes: int) -> str:
    """Return the cluster whose nodes share the ranks as evenly as they can, larger ones first."""
    size, more = divmod(ranks, nodes)
    return (
        f"cluster:{nodes}*{size}"
        if not more
        else f"cluster:{more}*{size + 1}+{nodes - more}*{size}"
    )


def near(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the grid of sides s and s + 1 whose ranks are nearest, longer sides last."""
    side = 1
    while (side + 1) ** dimensions <= ranks:
        side += 1
    grids = [(side,) * (dimensions - k) + (side + 1,) * k for k in range(dimensions + 1)]
    return min(grids, key=lambda dims: abs(prod(dims) - ranks))


def oblong(ranks: int, dimensions: int, ratio: float) -> tuple[int, ...]:
    """Return the grid of sides a * ratio, a, ..., a, rounded, with about so many ranks."""
    side = round((ranks / ratio) ** (1 / dimensions))
    return (round(side * ratio), *(side,) * (dimensions - 1))


def _skews(ranks: int, dimensions: int) -> dict[tuple[int, ...], float]:
    """Return the grids of ratios 1.0, 1.1, ..., 4.0, each with the ratio nearest to its own."""
    found: dict[tuple[int, ...], float] = {}
    for tenths in range(10, 41):
        dims = oblong(ranks, dimensions, tenths / 10)
        off = abs(tenths / 10 - dims[0] / dims[-1])
        if dims not in found or off < abs(found[dims] - dims[0] / dims[-1]):
            found[dims] = tenths / 10
    return found


def symmetric_stencil(index: int, dimensions: int) -> list[list[int]]:
    """Return listing 7.3: one more pair of opposite vectors for every index from 0."""
    vectors = []
    for i in range(index + 1):
        for sign in (1, -1):
            vector = [0] * dimensions
            vector[i % dimensions] = sign * (i // dimensions + 1)
            vectors.append(vector)
    return vectors


def _by(dims: Sequence[int]) -> str:
    return "x".join(map(str, dims))


def _format_vectors(vectors: Sequence[Sequence[int]]) -> str:
    return "/".join(":".join(map(str, vector)) for vector in vectors) or "star"
