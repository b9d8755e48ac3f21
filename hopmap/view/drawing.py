"""Where a page draws the links of a network: as lines on a plan, or as cells of a matrix.

Grids of up to three dimensions, and small networks of switches, have the same plan as in figures.
All others are a matrix: a row for the switch (or node) that a link leaves, a column for the one
that it leads to. Links between a switch and its nodes are on the diagonal. While cells are small,
all links from a group to another are one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopmap.arrays import Ints
from hopmap.figures.layout import Points, coordinates, is_box, slices
from hopmap.figures.layout import levels as by_levels
from hopmap.topologies import Topology

from .units import Level, home_of

GAP, WIDE = 1.3, 1.7  # between planes, in steps of the grid; width of all planes by their height
LINES = 400  # links of a network of switches that are drawn as lines
FEWEST = 4  # switches of which a matrix tells apart


def drawing_of(topology: Topology, levels: Sequence[Level], shown: Ints) -> dict[str, Any]:
    """Return a plan or a matrix of the links that are shown, see above, for `pack`."""
    if is_box(topology):
        return _planes(topology, shown)
    if topology.switches and topology.links <= LINES:
        layout = by_levels(topology)
        radius = 0.45 * _nearest(layout.nodes[: topology.nodes])
        return _plan(layout.nodes, layout.start[shown], layout.end[shown], radius)
    unit = np.arange(topology.vertices)
    if topology.switches:
        home = home_of(topology)
        if len(np.unique(home)) >= FEWEST:
            unit[: topology.nodes] = home
            unit -= topology.nodes
    size = int(unit.max(initial=-1)) + 1
    block, names = _blocks(topology, levels, unit, size)
    return {"kind": "matrix", "unit": unit, "size": size, "block": block, "names": names}


def _plan(nodes: Points, start: Points, end: Points, radius: float, **more: Any) -> dict[str, Any]:
    lines = np.hstack((start, end)).ravel()
    return {"kind": "plan", "nodes": nodes.ravel(), "lines": lines, "radius": radius} | more


def _planes(topology: Topology, shown: Ints) -> dict[str, Any]:
    """Place the planes of a grid next to each other, so that they fill a wide page."""
    layout = slices(topology)
    dx, dy, dz = (*topology.dims, 1, 1)[:3]
    plane = coordinates(topology)[:, 2]
    high, wide = dy + GAP + (dz > 1), dx + GAP
    columns = min(dz, max(1, round(np.sqrt(WIDE * dz * high / wide))))
    number = np.arange(dz)
    origin = np.stack((number % columns * wide, -(number // columns) * high), axis=1)
    shift = origin[plane] - (layout.nodes - coordinates(topology)[:, :2])
    moved = shift[topology.link_from[shown]]
    corners = np.array([[-0.5, -0.5], [dx - 0.5, -0.5], [dx - 0.5, dy - 0.5], [-0.5, dy - 0.5]])
    planes = [(corners + each).ravel().tolist() for each in origin]
    start, end = layout.start[shown] + moved, layout.end[shown] + moved
    return _plan(layout.nodes + shift, start, end, 0.2, planes=planes, names=layout.names)


def _blocks(
    topology: Topology, levels: Sequence[Level], unit: Ints, size: int
) -> tuple[Ints, list[str]]:
    """Return the block of rows that each row of a matrix is drawn in while it is small, and names.

    Rows of the switches of a group or pod are a block; of switches above all of these, and where
    there is no such level, so many rows as the square root of their number.
    """
    block = np.full(size, -1)
    names: list[str] = []
    if levels[-1].name not in ("node", "switch"):
        level = levels[-1]
        nodes = np.flatnonzero(topology.link_from < topology.nodes)
        block[unit[topology.link_from[nodes]]] = level.of_node[topology.link_from[nodes]]
        names = [f"{level.name} {number}" for number in range(level.units)]
        below = _parts(topology, unit, block)
        block = np.where(block < 0, below, block)
    rest = np.flatnonzero(block < 0)
    step = max(1, round(np.sqrt(len(rest))))
    what = "switches" if topology.switches else "nodes"
    for first in range(0, len(rest), step):
        own = rest[first : first + step]
        block[own] = len(names)
        names.append(f"{what} {own[0]} to {own[-1]}")
    return block, names


def _parts(topology: Topology, unit: Ints, block: Ints) -> Ints:
    """Return the only block that rows without one have links with, -1 where there are several."""
    low, high = np.full(len(block), len(block)), np.full(len(block), -1)
    start, end = unit[topology.link_from], unit[topology.link_to]
    joins = (block[start] >= 0) & (block[end] < 0)
    np.minimum.at(low, end[joins], block[start[joins]])
    np.maximum.at(high, end[joins], block[start[joins]])
    return np.where(low == high, low, -1)


def _nearest(points: np.ndarray[Any, Any]) -> float:
    """Least distance of neighbours in a list of points."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    return float(steps[steps > 0].min(initial=1.0))
