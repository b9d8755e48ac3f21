"""Where nodes, switches and links of a network go on paper.

Boxes:

* Up to two dimensions: as they are.
* Three, "slices": the planes z = 0, 1, ... side by side; links to another plane are short diagonal
  stubs at the node they leave.
* Three, "stack": the planes drawn obliquely one above the other, links as lines between them.

Others: trees and clusters by levels, the rest on a circle.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from hopmap.arrays import Bools, Floats, Ints
from hopmap.topologies import Topology
from hopmap.topologies.box_kernels import HAEC, BoxRouter
from hopmap.topologies.families.hierarchy import hierarchy
from hopmap.topologies.switch_kernels import FatTreeRouter
from hopmap.topologies.tree_kernels import TreeRouter

from .style import WIDTH

Points = Floats

SHEAR, SQUASH = 0.37, 0.42  # oblique planes: y goes right and up by this much
STRETCH = 1.35  # and x is stretched by this
STUB = 0.56  # length of a stub
UPWARDS = np.array([0.64, 0.8])  # stubs in z: steep, between the lanes of x and y
MARGIN = 0.85  # between planes
MARK, NAME = 0.085, 0.13  # inches from the middle of a link's number to its rim, and of a name
SIDE = WIDTH - 0.2  # inches across a figure of a network
NODE_RING = 0.47  # of that: radius of a circle of nodes
VERTICES, LINKS = 60, 260  # of networks that are no boxes, that are drawn at most


def is_box(topology: Topology) -> bool:
    """Whether the topology is a mesh, torus or HAEC Box that can be drawn as one."""
    return 1 <= len(topology.dims) <= 3


def is_haec(topology: Topology) -> bool:
    """Whether the topology is a HAEC Box, by name or as a preset."""
    return isinstance(topology.router, BoxRouter) and topology.router.family == HAEC


def name_of_units(topology: Topology) -> str:
    """Return what a unit of several switches is called: a pod, a part of a tree, or a group."""
    names: dict[type, str] = {FatTreeRouter: "pod", TreeRouter: "part"}
    return names.get(type(topology.router), "group")


def coordinates(topology: Topology) -> Ints:
    """Coordinates of the nodes in three dimensions, missing ones 0, shape (nodes, 3)."""
    filled = np.zeros((topology.nodes, 3), dtype=np.int64)
    filled[:, : len(topology.dims)] = topology.coords
    return filled


def name_vertex(topology: Topology, vertex: int) -> str:
    """Return what a node or switch is called, a node of a grid with its coordinates."""
    if vertex >= topology.nodes:
        of = f" (group {groups_of(topology)[vertex]})" if "dragonfly" in topology.spec else ""
        return topology.vertex_name(vertex) + of
    name = topology.names[vertex] if topology.names else str(vertex)
    grid = topology.coords[vertex]
    between = "" if len(grid) > 3 and max(topology.dims) <= 10 else ","
    return f"{name} ({between.join(map(str, grid))})" if len(grid) > 1 else name


def name_link(topology: Topology, link: int) -> str:
    """Return the ends of a directed link."""
    ends = int(topology.link_from[link]), int(topology.link_to[link])
    return " → ".join(name_vertex(topology, end) for end in ends)


class Layout(NamedTuple):
    """Positions on paper: vertices, ends of the links, corners and names of the planes.

    `span` are the inches of a unit. Vertices that are `round` stand on a circle.
    """

    nodes: Points
    start: Points
    end: Points
    planes: list[Points]
    names: list[str]
    width: float
    height: float
    span: float
    round: bool = False


def drawable(topology: Topology) -> bool:
    """Whether the vertices and links of what is no box are few enough to draw."""
    few = topology.vertices <= VERTICES and topology.links <= LINKS
    return few and topology.switches > 0


def _span(width: float, height: float) -> float:
    """Inches of a unit, for a layout that fits the page."""
    return min(SIDE / max(width, height * 0.62), 0.62)


def link_steps(topology: Topology) -> tuple[Ints, Bools]:
    """Step of each link in x, y, z (-1, 0, +1), and whether it wraps around.

    Wireless links of the HAEC Box have a step in z only, wherever in (x, y) they go.
    """
    place = coordinates(topology)
    step = place[topology.link_to] - place[topology.link_from]
    if is_haec(topology):
        step[step[:, 2] != 0, :2] = 0
    wraps = (np.abs(step) > 1).any(axis=1)
    step = np.where(np.abs(step) > 1, -np.sign(step), step)
    return step, wraps


def slices(topology: Topology) -> Layout:
    """Planes side by side."""
    place = coordinates(topology)
    dx, dy, dz = (*topology.dims, 1, 1)[:3]
    # as many planes in a row as keep the picture about as wide as it is high
    pitch_x, pitch_y = dx + MARGIN, dy + MARGIN
    columns = min(dz, max(1, round(np.sqrt(1.25 * dz * pitch_y / pitch_x))))
    lines = -(-dz // columns)
    if dz > 1:  # what numbers on stubs and the name above a plane need
        span = _span(columns * pitch_x, lines * pitch_y)
        pitch_y = max(pitch_y, dy - 0.1 + (2 * MARK + NAME) / span)
    span = _span(columns * pitch_x, lines * pitch_y)
    plane = place[:, 2]
    origin = np.stack(
        (np.arange(dz) % columns * pitch_x, -(np.arange(dz) // columns) * pitch_y), axis=1
    ).astype(float)
    nodes = place[:, :2] + origin[plane]
    step, wraps = link_steps(topology)
    start, end = nodes[topology.link_from], nodes[topology.link_to].copy()
    stub = wraps | (step[:, 2] != 0)
    away = step[:, :2] * (STUB + 0.1) + step[:, 2:] * STUB * UPWARDS
    end[stub] = start[stub] + away[stub]
    return Layout(
        nodes,
        start,
        end,
        [_corners(dx, dy, 0.5) + each for each in origin],
        [f"z = {z}" for z in range(dz)] if dz > 1 else [],
        columns * pitch_x,
        lines * pitch_y,
        span,
    )


def stack(topology: Topology, gap: float = 1.15) -> Layout:
    """Planes drawn obliquely, one above the other."""
    place = coordinates(topology)
    dx, dy, dz = topology.dims
    pitch = SQUASH * (dy - 1) + gap

    def project(points: Points) -> Points:
        x, y, z = points[:, 0], points[:, 1], points[:, 2]
        return np.stack((STRETCH * x + SHEAR * y, SQUASH * y + pitch * z), axis=1)

    step, wraps = link_steps(topology)
    ends = place[topology.link_to].astype(float)
    ends[wraps] = (place[topology.link_from] + step * STUB)[wraps]
    corners = _corners(dx, dy, 0.4)
    width, height = STRETCH * dx + SHEAR * dy + 1.1, pitch * dz + 0.5
    return Layout(
        project(place.astype(float)),
        project(place[topology.link_from].astype(float)),
        project(ends),
        [project(np.insert(corners, 2, z, axis=1)) for z in range(dz)],
        [f"z = {z}" for z in range(dz)],
        width,
        height,
        _span(width, height),
    )


def _corners(dx: int, dy: int, aside: float) -> Points:
    """Return the corners of a plane of nodes, `aside` is what it has left and right of them."""
    right, top = dx - 1 + aside, dy - 0.5
    return np.array([[-aside, -0.5], [right, -0.5], [right, top], [-aside, top]])


def levels(topology: Topology) -> Layout:
    """Nodes and switches by levels, or on a circle where vertices of a level are joined.

    Units are inches. Switches of a circle have their nodes outside it; without switches the nodes
    are on it.
    """
    level = levels_above_nodes(topology)
    is_round = bool((level[topology.link_from] == level[topology.link_to]).any())
    height = SIDE if is_round else 0.35 + 0.85 * int(level.max())
    unit = _circle(topology, level) if is_round else _by_levels(topology, level)
    place = unit * np.array([SIDE, height])
    start, end = place[topology.link_from], place[topology.link_to]
    return Layout(place, start, end, [], [], SIDE, height, 1.0, is_round)


def arrows(start: Points, end: Points, *, node: float, width: float) -> list[Points]:
    """Half arrows from start to end, each on its right-hand lane, as polygons.

    The radius `node` is kept free at both ends; the barb is twice as wide as the shaft.
    """
    along, right, length = _directions(start, end)
    inner = right * width * 0.3
    tail = start + along * node + inner
    tip = end - along * np.where(length > 0.8, node, 0) + inner
    neck = tip - along * width * 2.6
    barb = neck + right * width * 2.0
    return list(np.stack((tail, tip, barb, neck + right * width, tail + right * width), axis=1))


def lanes(start: Points, end: Points, *, width: float) -> list[Points]:
    """Stripes on the right-hand side of the lines from start to end, as polygons."""
    right = _directions(start, end)[1] * width
    return list(np.stack((start, end, end + right, start + right), axis=1))


def _directions(start: Points, end: Points) -> tuple[Points, Points, Points]:
    """Vectors of length 1 along lines and to their right, and the lines' lengths."""
    along = end - start
    length = np.hypot(along[:, 0], along[:, 1])[:, None]
    along = along / np.maximum(length, 1e-9)
    return along, np.stack((along[:, 1], -along[:, 0]), axis=1), length


def levels_above_nodes(topology: Topology) -> Ints:
    """Links from each vertex to the nearest node; nodes have 0."""
    ends, size = (topology.link_to, topology.link_from), topology.vertices
    back = csr_array((np.ones(topology.links), ends), shape=(size, size))
    nodes = np.arange(topology.nodes)
    level = dijkstra(back, indices=nodes, unweighted=True, min_only=True)
    return np.minimum(level, size).astype(np.int64)


@lru_cache(maxsize=4)
def groups_of(topology: Topology) -> Ints:
    """Return the outermost block of the lowest node below each vertex; without blocks its own.

    Shape (vertices,).
    """
    sizes = hierarchy(topology)
    if sizes is None or len(sizes) < 2:
        return np.maximum(np.arange(topology.vertices) - topology.nodes, 0)
    level = levels_above_nodes(topology)
    lowest = np.arange(topology.vertices)
    lowest[topology.nodes :] = topology.nodes
    for each in range(1, int(level.max()) + 1):
        down = (level[topology.link_from] == each) & (level[topology.link_to] == each - 1)
        np.minimum.at(lowest, topology.link_from[down], lowest[topology.link_to[down]])
    return np.asarray(lowest // int(np.prod(sizes[:-1])))


def _by_levels(topology: Topology, level: Ints) -> Points:
    """Nodes at the bottom, switches above what they join; shape (vertices, 2), from 0 to 1."""
    x = np.zeros(topology.vertices)
    x[: topology.nodes] = (np.arange(topology.nodes) + 0.5) / topology.nodes
    for each in range(1, int(level.max()) + 1):
        own = np.flatnonzero(level == each)
        down = (level[topology.link_from] == each) & (level[topology.link_to] == each - 1)
        above, below = topology.link_from[down], topology.link_to[down]
        number = np.bincount(above, minlength=topology.vertices)
        total = np.bincount(above, x[below], topology.vertices)
        centre = (total / np.maximum(number, 1))[own]  # of what is below
        if len(np.unique(centre.round(9))) < len(own):  # several above the same: side by side
            order = own[np.argsort(centre, kind="stable")]
            x[order] = (np.arange(len(own)) + 0.5) / len(own)
        else:
            x[own] = centre
    return np.stack((x, 0.05 + 0.9 * level / max(int(level.max()), 1)), axis=1)


def _circle(topology: Topology, level: Ints) -> Points:
    """Nodes on a circle, their switches inside it, and inside these the switches without nodes.

    Each of the three goes all the way round, so that nodes have as much room as there is.
    """
    own = level[topology.link_from] == 0
    home = np.arange(topology.nodes)
    if topology.switches:
        home[topology.link_from[own]] = topology.link_to[own]
    angle, radius = np.zeros((2, topology.vertices))
    rings = np.unique(home), np.setdiff1d(np.flatnonzero(level), home)
    for ring, of in zip(rings, (0.36, 0.2), strict=True):
        angle[ring] = 2 * np.pi * (np.arange(len(ring)) + 0.5) / max(len(ring), 1)
        radius[ring] = of
    for switch in rings[0] if topology.switches else ():
        nodes = np.flatnonzero(home == switch)
        share = (np.arange(len(nodes)) + 0.5) / len(nodes) - 0.5
        angle[nodes] = angle[switch] + share * 2 * np.pi / len(rings[0])
    radius[: topology.nodes] = NODE_RING
    return np.asarray(0.5 + radius[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1))
