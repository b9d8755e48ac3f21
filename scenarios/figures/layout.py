"""Where nodes and links of a box go on paper.

* Up to two dimensions: as they are.
* Three, "slices": the planes z = 0, 1, ... side by side; links to another plane are short diagonal
  stubs at the node they leave.
* Three, "stack": the planes drawn obliquely one above the other, links as lines between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import Topology
from hopmap.topologies.box_kernels import HAEC, BoxRouter

Points = NDArray[np.float64]

SHEAR, SQUASH = 0.37, 0.42  # oblique planes: y goes right and up by this much
STRETCH = 1.35  # and x is stretched by this
STUB = 0.56  # length of a stub
UPWARDS = np.array([0.64, 0.8])  # stubs in z: steep, between the lanes of x and y
MARGIN = 0.85  # between planes


def is_box(topology: Topology) -> bool:
    """Whether the topology is a mesh, torus or HAEC Box that can be drawn as one."""
    return 1 <= len(topology.dims) <= 3


def is_haec(topology: Topology) -> bool:
    """Whether the topology is a HAEC Box, by name or as a preset."""
    return isinstance(topology.router, BoxRouter) and topology.router.family == HAEC


def coordinates(topology: Topology) -> NDArray[np.int64]:
    """Coordinates of the nodes in three dimensions, missing ones 0, shape (nodes, 3)."""
    filled = np.zeros((topology.nodes, 3), dtype=np.int64)
    filled[:, : len(topology.dims)] = topology.coords
    return filled


class Layout(NamedTuple):
    """Positions on paper: nodes, ends of the links, corners and names of the planes."""

    nodes: Points
    start: Points
    end: Points
    planes: list[Points]
    names: list[str]
    width: float
    height: float


def link_steps(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
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
    dx, dy, dz = (int(place[:, k].max()) + 1 for k in range(3))
    # as many planes in a row as keep the picture about as wide as it is high
    pitch_x, pitch_y = dx + MARGIN, dy + MARGIN
    columns = min(dz, max(1, round(np.sqrt(1.25 * dz * pitch_y / pitch_x))))
    lines = -(-dz // columns)
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
    box = np.array([[-0.5, -0.5], [dx - 0.5, -0.5], [dx - 0.5, dy - 0.5], [-0.5, dy - 0.5]])
    return Layout(
        nodes,
        start,
        end,
        [box + o for o in origin],
        [f"z = {z}" for z in range(dz)] if dz > 1 else [],
        columns * pitch_x,
        lines * pitch_y,
    )


def stack(topology: Topology, gap: float = 1.15) -> Layout:
    """Planes drawn obliquely, one above the other."""
    place = coordinates(topology)
    dx, dy, dz = (int(place[:, k].max()) + 1 for k in range(3))
    pitch = SQUASH * (dy - 1) + gap

    def project(points: Points) -> Points:
        x, y, z = points[:, 0], points[:, 1], points[:, 2]
        return np.stack((STRETCH * x + SHEAR * y, SQUASH * y + pitch * z), axis=1)

    step, wraps = link_steps(topology)
    ends = place[topology.link_to].astype(float)
    ends[wraps] = (place[topology.link_from] + step * STUB)[wraps]
    planes = [
        project(
            np.array(
                [
                    [-0.4, -0.5, z],
                    [dx - 0.6, -0.5, z],
                    [dx - 0.6, dy - 0.5, z],
                    [-0.4, dy - 0.5, z],
                ]
            )
        )
        for z in range(dz)
    ]
    return Layout(
        project(place.astype(float)),
        project(place[topology.link_from].astype(float)),
        project(ends),
        planes,
        [f"z = {z}" for z in range(dz)],
        STRETCH * dx + SHEAR * dy + 1.1,
        pitch * dz + 0.5,
    )


def arrows(start: Points, end: Points, *, node: float, width: float) -> list[Points]:
    """Half arrows from start to end, each on its right-hand lane, as polygons.

    Parameters
    ----------
    node : float
        Radius that is kept free at both ends.
    width : float
        Of the shaft; the barb is twice as wide.
    """
    along = end - start
    length = np.hypot(along[:, 0], along[:, 1])[:, None]
    along = along / np.maximum(length, 1e-9)
    right = np.stack((along[:, 1], -along[:, 0]), axis=1)
    inner = right * width * 0.3
    tail = start + along * node + inner
    tip = end - along * np.where(length > 0.8, node, 0) + inner
    neck = tip - along * width * 2.6
    corners = (
        tail,
        tip,
        neck + right * width * 2.0,
        neck + right * width,
        tail + right * width,
    )
    return list(np.stack(corners, axis=1))
