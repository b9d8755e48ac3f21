"""Networks of any size as sheets of cells: nodes in nested blocks, links in what they leave.

One arrangement serves all families. The first two dimensions of a grid are rows and columns; every
further one, and every level of a hierarchy, puts its blocks side by side, about as wide as high:
planes of a torus, a hypercube folded again and again, groups of routers of nodes. A cell is a node,
or a link; where cells would be too small to see, it is the busiest of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from hopmap.arrays import Floats, Ints, equals_before
from hopmap.topologies import Topology
from hopmap.topologies.families.hierarchy import hierarchy

from .layout import Points, groups_of, levels_above_nodes, name_of_units
from .style import SMALL
from .tips import add_tips

ACROSS = 48  # cells an inch at most: two pixels each
SLIM, LARGEST = 1.5, 0.34  # most height of a sheet, of its width; inches of a cell at most
PIXELS = 12  # of a cell at most, in its image
SAID = 1400  # cells of a figure that say something
HEAD, NARROW = 0.15, 2.0  # inches of a name above a block; across a sheet without names
LETTER = 0.085  # inches of a letter of a name
GAP = 0.13  # between two cells, of their side; between larger blocks with the root of their size


@dataclass(frozen=True)
class Nest:
    """Where each of some things is in nested blocks.

    `index` are arrays (things,), innermost level first: the place of a thing in its block, of that
    in the next one, ...; `counts` the places of each level. At the level `plane` and the next one
    these are column and row; of other levels the places go row by row.
    """

    index: tuple[Ints, ...]
    counts: tuple[int, ...]
    plane: int | None = None
    names: tuple[str, ...] = ()  # of the outermost blocks

    def without_inner(self) -> Nest:
        """Return the same without the innermost level, as if its things were one."""
        plane = None if not self.plane else self.plane - 1
        return Nest(self.index[1:], self.counts[1:], plane, self.names)


@dataclass(frozen=True)
class Sheet:
    """Cells on paper, in units of an image's pixels from its upper left corner.

    `at` is the corner of each thing's cell, shape (things, 2): column, row; `side` its side.
    `blocks` are left, top, width and height of the outermost blocks, shape (blocks, 4), and
    `names` what they are called, or their numbers alone, which are `numbered`. A pixel is `inch`
    inches wide. `merged` tells whether cells had to
    share their place.
    """

    at: Ints
    side: int
    size: tuple[int, int]
    blocks: Ints
    names: tuple[str, ...]
    inch: float
    merged: bool
    numbered: str = ""

    def middles(self) -> Points:
        """Return the middle of each thing's cell, in pixels."""
        return np.asarray(self.at + self.side / 2)


def arrange(nest: Nest, width: float, slim: float = SLIM) -> Sheet:
    """Put nested blocks on paper so many inches wide, without the levels that it has no room for.

    All cells are squares of one size. The sheet is at most `slim` times as high as wide.
    """
    most, merged = max(int(ACROSS * width), 1), False
    while len(nest.counts) > 1 + (nest.plane == 0) and _longest(nest, slim) > most:
        nest, merged = nest.without_inner(), True
    if (longest := _longest(nest, slim)) > most:  # neighbours share cells
        share = -(-longest // most)
        deep = 2 if nest.plane == 0 else 1
        index = (*(i // share for i in nest.index[:deep]), *nest.index[deep:])
        counts = (*(-(-n // share) for n in nest.counts[:deep]), *nest.counts[deep:])
        nest, merged = Nest(index, counts, nest.plane, nest.names), True
    unit = int(np.clip(most // _longest(nest, slim), 1, PIXELS))
    wide, high, at, blocks = _extent(nest, unit, slim, names=width)
    named = nest.names if blocks[0, 1] > 0 else ()
    inch = min(width / max(wide, high / slim), LARGEST / unit)
    numbered = ""
    if named and blocks[0, 2] * inch < LETTER * max(map(len, named)):
        words, named = zip(*(name.rsplit(" ", 1) for name in named), strict=True)
        numbered = words[0].removesuffix(" =")
    return Sheet(at, unit, (wide, high), blocks, named, inch, merged, numbered)


def _longest(nest: Nest, slim: float) -> int:
    """Cells across, or, of what is slim, what makes it no higher than it may be."""
    wide, high, _, _ = _extent(nest, 1)
    return max(wide, int(high / slim))


def _extent(
    nest: Nest, unit: int, slim: float = SLIM, names: float = 0.0
) -> tuple[int, int, Ints, Ints]:
    """Return width and height, corners of cells, and outermost blocks; with room for names."""
    at = np.zeros((len(nest.index[0]), 2), dtype=np.int64)
    wide = high = unit
    gap = 0
    for level, (place, count) in enumerate(zip(nest.index, nest.counts, strict=True)):
        if level == 0 or nest.plane != level - 1:  # rows of a plane are as far apart as its columns
            gap = round(unit * GAP * np.sqrt(max(wide, high) / unit))
            if 0 < level == len(nest.counts) - 1:  # outermost blocks are apart, however small
                gap = max(gap, 1)
        if nest.plane in (level, level - 1):
            columns = count if nest.plane == level else 1
        else:
            columns = _columns(count, wide + gap, high + gap)
        rows, across = -(-count // columns), columns * (wide + gap) - gap
        head = 0
        if names > NARROW and level == len(nest.counts) - 1 and nest.names:
            inch = names / max(across, rows * (high + gap) / slim)
            if wide * inch >= LETTER * max(len(name.rsplit(" ", 1)[-1]) for name in nest.names):
                head = int(np.ceil(HEAD / inch))
        step = np.array([wide + gap, high + gap + head])
        at += np.stack((place % columns, place // columns), axis=1) * step + [0, head]
        every = np.arange(count)
        corners = np.stack((every % columns, every // columns), axis=1) * step + [0, head]
        blocks = np.column_stack((corners, np.broadcast_to([wide, high], corners.shape)))
        wide, high = across, rows * (high + gap + head) - gap
    return wide, high, at, blocks


def _columns(count: int, wide: int, high: int) -> int:
    """Columns of so many equal blocks that make a sheet about as wide as high, few places free."""
    columns = np.arange(1, count + 1)
    rows = -(-count // columns)
    slim = np.abs(np.log(columns * wide / (rows * high) / 1.15))
    free = columns * rows / count - 1
    return int(columns[np.argmin(slim + 5 * free)])


def nest_nodes(topology: Topology) -> Nest:
    """Return where nodes are: on a grid, in the blocks of a hierarchy, or in their order."""
    node = np.arange(topology.nodes)
    sizes = _sizes(topology)
    router: Any = topology.router
    if sizes is None and hasattr(router, "coords") and len(router.dims) > 1:
        coords, dims = router.coords.astype(np.int64), [int(d) for d in router.dims]
        places = list(coords.T)
        places[1] = dims[1] - 1 - places[1]  # y upwards
        # the planes of three dimensions have names, and so have the halves of a hypercube
        word = "z" if len(dims) == 3 else f"dimension {len(dims) - 1}"
        names = [f"{word} = {k}" for k in range(dims[-1])] if len(dims) > 2 else []
        return Nest(tuple(places), tuple(dims), 0, tuple(names))
    if sizes is None:
        return Nest((node,), (topology.nodes,))
    return _nest_levels(node, sizes, topology)


def _sizes(topology: Topology) -> tuple[int, ...] | None:
    """Return sizes of nested blocks of nodes, innermost first, leaving out blocks of one."""
    sizes = hierarchy(topology)
    return sizes and (tuple(size for size in sizes if size > 1) or (1,))


def _nest_levels(place: Ints, sizes: Sequence[int], topology: Topology) -> Nest:
    index = []
    for size in sizes:
        index.append(place % size)
        place = place // size
    word = name_of_units(topology)
    if word == "pod" and len(sizes) < 3:
        word = "switch"
    named = len(sizes) > 1
    names = tuple(f"{word} {k}" for k in range(sizes[-1])) if named else ()
    return Nest(tuple(index), tuple(sizes), None, names)


@dataclass(frozen=True)
class Panel:
    """Links of one sort: what they are called, their numbers, and where they are drawn."""

    name: str
    links: Ints
    nest: Nest


def panels(topology: Topology) -> list[Panel]:
    """Return all links, each once: at the node it leaves; of switches by the level of their ends.

    Links up and down are at the lower end; links of switches of a level are rows and columns, of
    the switches in each group and of the groups.
    """
    tail, head = topology.link_from.astype(np.int64), topology.link_to.astype(np.int64)
    nodes = nest_nodes(topology)
    if not topology.switches:
        turn = equals_before(tail)
        index = (turn, *(place[tail] for place in nodes.index))
        plane = None if nodes.plane is None else nodes.plane + 1
        counts = (int(turn.max(initial=0)) + 1, *nodes.counts)
        nest = Nest(index, counts, plane, nodes.names)
        return [Panel("links by the node they leave", np.arange(topology.links), nest)]
    level = levels_above_nodes(topology)
    found = []
    for low in range(int(level.max()) + 1):
        what = "nodes" if low == 0 else f"level {low} switches"
        for word, start, end in (("up from", tail, head), ("down to", head, tail)):
            links = np.flatnonzero((level[start] == low) & (level[end] > low))
            if len(links):
                nest = _at_lower(topology, level, low, start[links], nodes)
                found.append(Panel(f"{word} {what}", links, nest))
        links = np.flatnonzero((level[tail] == low) & (level[head] == low))
        if len(links):
            found += _between(topology, links)
    return found


def _at_lower(topology: Topology, level: Ints, low: int, lower: Ints, nodes: Nest) -> Nest:
    """Return where links are at their lower ends."""
    every = np.flatnonzero(level == low)
    place = np.searchsorted(every, lower)
    sizes = _sizes(topology)
    if low == 0:
        around = Nest(tuple(i[lower] for i in nodes.index), nodes.counts, nodes.plane, nodes.names)
    elif sizes is not None and len(every) == np.prod(sizes[low:]) and len(sizes) > low:
        around = _nest_levels(place, sizes[low:], topology)
    else:
        around = Nest((place,), (len(every),))
    turn = equals_before(lower)
    if not turn.any():
        return around
    plane = None if around.plane is None else around.plane + 1
    counts = (int(turn.max()) + 1, *around.counts)
    return Nest((turn, *around.index), counts, plane, around.names)


def _between(topology: Topology, links: Ints) -> list[Panel]:
    """Return links between switches of one level: within groups, and between groups."""
    group = groups_of(topology)
    tail, head = (end[links].astype(np.int64) for end in (topology.link_from, topology.link_to))
    own = group[tail] == group[head]
    found = []
    if own.any():
        every = np.unique(np.concatenate((tail, head)))
        turn = np.zeros(topology.vertices, dtype=np.int64)
        turn[every] = equals_before(group[every])
        size, count = int(turn.max()) + 1, int(group.max()) + 1
        names = tuple(f"group {k}" for k in range(count)) if count > 1 else ()
        index = (turn[head[own]], turn[tail[own]], group[tail[own]])
        nest = Nest(index, (size, size, count), 0, names)
        if size * np.sqrt(count) > ACROSS * 1.7:
            nest = Nest(index[1:], (size, count), None, names)
            found.append(Panel("within groups (switches)", links[own], nest))
        else:
            found.append(Panel("within groups (↓ to →)", links[own], nest))
    if not own.all():
        count = int(group.max()) + 1
        nest = Nest((group[head[~own]], group[tail[~own]]), (count, count), 0)
        found.append(Panel("between groups (↓ to →)", links[~own], nest))
    return found


def in_use(nest: Nest, taken: Ints) -> tuple[Nest, Ints, int]:
    """Return the outermost blocks that some things are in, their things, how many are left out.

    All blocks stay where most are in use, and of a plane.
    """
    outer = nest.index[-1]
    used = np.unique(outer[taken])
    if nest.plane == len(nest.counts) - 2 or 2 * len(used) > nest.counts[-1] or not len(used):
        return nest, np.arange(len(outer)), 0
    kept = np.flatnonzero(np.isin(outer, used))
    index = (*(i[kept] for i in nest.index[:-1]), np.searchsorted(used, outer[kept]))
    names = tuple(nest.names[k] for k in used) if nest.names else ()
    few = Nest(index, (*nest.counts[:-1], len(used)), nest.plane, names)
    return few, kept, nest.counts[-1] - len(used)


def draw_cells(
    axes: Axes,
    made: Sheet,
    values: Floats,
    colours: Callable[[Floats], NDArray[Any]],
    left: float,
    top: float,
) -> Callable[[ArrayLike], Points]:
    """Draw cells in the colour of their highest value, from an upper left corner, all in inches.

    Returns what turns pixels into inches of the axes.
    """
    wide, high = made.size
    cells, inverse = np.unique(made.at[:, 1] * wide + made.at[:, 0], return_inverse=True)
    most = np.full(len(cells), -np.inf)
    np.maximum.at(most, inverse, values)
    image = np.zeros((high, wide, 4))
    shown = colours(most)
    for down, right in np.ndindex(made.side, made.side):
        image[cells // wide + down, cells % wide + right] = shown
    box = (left, left + wide * made.inch, top - high * made.inch, top)
    axes.imshow(image, extent=box, interpolation="none", origin="upper", aspect="auto")

    def place(pixels: ArrayLike) -> Points:
        x, y = np.asarray(pixels, dtype=float).T
        return np.stack((left + x * made.inch, top - y * made.inch), axis=1)

    for name, (x, y) in zip(made.names, place(made.blocks[:, :2]), strict=False):
        axes.text(x, y + 0.02, name, fontsize=SMALL, va="bottom", clip_on=True)
    return place


def say_cells(
    axes: Axes,
    made: Sheet,
    place: Callable[[ArrayLike], Points],
    say: Callable[[Ints], str],
    sheets: int,
) -> None:
    """Say something of every cell, or of squares of many; `say` takes the things in one.

    Of a figure with so many `sheets`, each gets its share of what can be said.
    """
    side = 1
    while True:
        key = made.at // side
        cells, inverse = np.unique(key[:, 1] * 2**32 + key[:, 0], return_inverse=True)
        if len(cells) <= SAID // sheets:
            break
        side = max(2 * made.side, side + side // 2)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(cells) + 1))
    things = [order[a:b] for a, b in pairwise(bounds)]
    boxes = [
        place([made.at[each].min(axis=0), made.at[each].max(axis=0) + made.side]) for each in things
    ]
    add_tips(axes, boxes, [say(each) for each in things])
