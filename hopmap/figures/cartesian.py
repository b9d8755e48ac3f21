"""Figures of mappings of Cartesian grids: cells coloured by node, as the thesis of Lehr draws them.

Neighbouring nodes have different tints, borders separate them, and each bears its number and, where
there is room, how many ranks it has. Where a node falls apart, its lesser parts bear the number
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import ArrayLike
from scipy.ndimage import find_objects
from scipy.ndimage import label as components

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces import Traffic

from .style import CYCLE, INK, SMALL, WIDTH, label, new_figure, sheet, style, write
from .tips import add_tips

CELLS = 20_000  # ranks of a grid that is drawn
_TINTS = [tuple(1 - 0.42 * (1 - c) for c in to_rgb(colour)) for colour in CYCLE] + [(0.88,) * 3]
_LETTER = 0.085  # inches of a letter at 10 points
SAID = 300  # cells of a plane that say something at the mouse
NUMBERED = 300  # parts in a plane that bear numbers; more are colours only


class Part(NamedTuple):
    """A connected part of a node in a plane: what is written on it, where, in how much room."""

    text: str
    row: float
    column: float
    width: int
    height: int


def drawable_dims(traffic: Traffic) -> tuple[int, ...] | None:
    """Return the grid of a stencil's traffic if it can be drawn: up to 3-D, not too many ranks."""
    if not {"dims", "stencil"} <= traffic.metadata.keys():
        return None
    dims = tuple(map(int, traffic.metadata["dims"]))
    return dims if 1 <= len(dims) <= 3 and prod(dims) <= CELLS else None


def off_node(total: int, max: int) -> str:  # noqa: A002 - as metrics call it
    """Say what a mapping costs: messages off the worst node, and off all nodes."""
    return f"off node {max:,}, sum {total:,}"


@style()
def grid_mappings(
    dims: Sequence[int], mappings: Mapping[str, tuple[ArrayLike, str]], *, title: str
) -> Figure:
    """Draw mappings of a grid side by side; planes of three dimensions are slices x = 0, 1, ...

    The first dimension (of a plane) goes downwards, the last to the right; ranks are row-major.
    Mappings have by name the node of every rank, shape (ranks,), and what is written below it.
    """
    shape = (1,) * (3 - len(dims)) + tuple(dims)
    planes, rows, columns = shape
    page = WIDTH
    sliced = min(planes, max(1, round(np.sqrt(planes * rows / columns * 1.2))))
    lines = -(-planes // sliced)
    across = 1 if len(mappings) == 1 or planes > 1 or columns > 30 else 2
    across = min(across, len(mappings))
    width = (page - 0.16 - 0.14 * (across - 1)) / across
    gap, name = (0.07, 0.16) if planes > 1 else (0.0, 0.0)
    cell = min((width - gap * (sliced - 1)) / (sliced * columns), 6.0 / (lines * rows), 0.45)
    block = 0.4 + lines * (rows * cell + gap + name)
    height = -(-len(mappings) // across) * (block + 0.08)
    figure = new_figure(height + 0.25, title)
    axes = figure.subplots()
    sheet(axes, page, height)
    for place, (mapper, (node_of, words)) in enumerate(mappings.items()):
        left = 0.08 + place % across * (width + 0.14)
        top = height - place // across * (block + 0.08)
        letters = int(width / 0.078)
        axes.text(left, top, label(mapper, letters, 1), va="top", weight="bold", size=SMALL)
        axes.text(left, top - 0.16, label(words, letters + 2, 1), va="top", size=SMALL)
        grid = np.asarray(node_of, dtype=np.int64).reshape(shape)
        tints = _tints(grid)
        for x, plane in enumerate(grid):
            corner = (
                left + x % sliced * (columns * cell + gap),
                top - 0.36 - x // sliced * (rows * cell + gap + name) - name,
            )
            if planes > 1:
                axes.text(corner[0], corner[1] + 0.02, f"x = {x}", size=SMALL, va="bottom")
            _plane(axes, plane, tints[plane], parts(grid, x), corner, cell)
    return figure


def parts(grid: Ints, x: int) -> list[Part]:
    """Return the connected parts of all nodes in a plane of a grid.

    The largest part of a node over all planes, the first of equal ones, has "node: ranks".
    """
    found = []
    for node in np.unique(grid[x]):
        biggest = max(
            (_components(plane == node)[1].max(initial=0), -k) for k, plane in enumerate(grid)
        )
        first = -biggest[1] == x
        numbered, sizes = _components(grid[x] == node)
        for part, (box, size) in enumerate(zip(find_objects(numbered), sizes, strict=True), 1):
            whole = first and size == biggest[0]
            first = first and not whole
            inside = numbered[box] == part
            # where a row is widest in one piece, and the rows that are so too below it
            runs = [_longest_run(line) for line in inside]
            row = max(range(len(runs)), key=lambda r: runs[r][1])
            start, length = runs[row]
            last = row
            while last + 1 < len(runs) and runs[last + 1] == runs[row]:
                last += 1
            found.append(
                Part(
                    f"{node}: {(grid == node).sum()}" if whole else f"{node}",
                    box[0].start + (row + last) / 2,
                    box[1].start + start + (length - 1) / 2,
                    length,
                    last - row + 1,
                )
            )
    return found


def _components(cells: Bools) -> tuple[Ints, Ints]:
    """Give the connected parts of cells numbers from 1, and return their sizes."""
    numbered = np.asarray(components(cells)[0], dtype=np.int64)
    return numbered, np.bincount(numbered.ravel())[1:]


def _longest_run(line: Bools) -> tuple[int, int]:
    """Start and length of the longest run of cells."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], line.astype(np.int8), [0]))))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    longest = int(lengths.argmax())
    return int(starts[longest]), int(lengths[longest])


def _tints(grid: Ints) -> Floats:
    """Tint of every node, other than its neighbours' where the tints suffice; shape (nodes, 3)."""
    nodes = int(grid.max()) + 1
    around: list[set[int]] = [set() for _ in range(nodes)]
    for axis in range(grid.ndim):
        one, other = np.delete(grid, -1, axis).ravel(), np.delete(grid, 0, axis).ravel()
        for a, b in {(int(a), int(b)) for a, b in zip(one, other, strict=True) if a != b}:
            around[a].add(b)
            around[b].add(a)
    chosen = np.full(nodes, -1)
    for node in range(nodes):
        taken = [chosen[other] for other in around[node]]
        # the next in turn, so that all are used; of those least used around
        turn = [(node + k) % len(_TINTS) for k in range(len(_TINTS))]
        chosen[node] = min(turn, key=taken.count)
    tints: Floats = np.array(_TINTS)[chosen]
    return tints


def _plane(
    axes: Axes,
    plane: Ints,
    colours: Floats,
    written: Sequence[Part],
    corner: tuple[float, float],
    cell: float,
) -> None:
    """Draw a plane; `corner` is its upper left, in inches."""
    left, top = corner
    rows, columns = plane.shape
    limits = axes.get_xlim(), axes.get_ylim()
    extent = (left, left + columns * cell, top - rows * cell, top)
    axes.imshow(colours, extent=extent, interpolation="nearest", aspect="auto", origin="upper")
    axes.set(xlim=limits[0], ylim=limits[1])
    x, y = left + np.arange(columns + 1) * cell, top - np.arange(rows + 1) * cell
    across = np.pad(plane, ((1, 1), (0, 0)), constant_values=-1)
    down = np.pad(plane, ((0, 0), (1, 1)), constant_values=-1)
    segments = [
        *([(x[c], y[r]), (x[c + 1], y[r])] for r, c in np.argwhere(across[1:] != across[:-1])),
        *([(x[c], y[r]), (x[c], y[r + 1])] for r, c in np.argwhere(down[:, 1:] != down[:, :-1])),
    ]
    # one path of all of them: ten times shorter than a line each
    borders = Path(np.reshape(segments, (-1, 2)), [Path.MOVETO, Path.LINETO] * len(segments))
    axes.add_patch(PathPatch(borders, edgecolor=INK, linewidth=0.7, fill=False))
    if plane.size <= SAID:
        corners = [(left + c * cell, top - r * cell) for r, c in np.ndindex(plane.shape)]
        boxes = [((a, b), (a + cell, b - cell)) for a, b in corners]
        add_tips(axes, boxes, [f"node {n}: {(plane == n).sum()} ranks" for n in plane.ravel()])
    for part in written:
        room = part.width * cell * 0.96 / (_LETTER * SMALL / 10)
        text = part.text if len(part.text) <= room else part.text.partition(":")[0]
        high = part.height * cell >= (0.013 if ":" in text else 0.016) * SMALL
        if high and len(text) <= room and len(written) <= NUMBERED:
            middle = left + (part.column + 0.5) * cell, top - (part.row + 0.5) * cell
            write(axes, middle, text, weight="bold" if ":" in part.text else "normal")
