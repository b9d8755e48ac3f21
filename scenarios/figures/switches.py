"""Figures of networks that are no boxes: trees and clusters by levels, all others on a circle.

Nodes are dots, switches squares. Both directions of a link are drawn, each on its right-hand side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from hopmap.scenarios.quantities import compact, data
from hopmap.topologies import Topology

from .style import GREY, INK, PALE, SMALL, WIDTH, colour_bar, label, new_figure, sequential
from .style import style as styled

VERTICES, LINKS = 700, 4000  # that are drawn at most
VECTORS = 1200  # lines; more become an image
_LANE = 0.012  # inches from the middle of a link to each direction

Points = NDArray[np.float64]


def drawable(topology: Topology) -> bool:
    """Whether the vertices and links are few enough to draw."""
    return topology.vertices <= VERTICES and topology.links <= LINKS


def link_levels(
    topology: Topology,
    loads: ArrayLike,
    *,
    title: str,
    unit: str = "bytes",
    limit: float | None = None,
    hot: Sequence[int] = (),
) -> Figure:
    """Draw every directed link coloured by its load; parameters as for `link_loads`."""
    carried = np.asarray(loads, dtype=float)
    top = limit or float(carried.max(initial=0)) or 1.0
    level = _levels(topology)
    same = level[topology.link_from] == level[topology.link_to]
    side = WIDTH - 0.4
    high = side if same.any() else 0.35 + 0.85 * int(level.max())
    height = high + 0.36 + 0.92
    place = _circle(topology, level) if same.any() else _by_levels(topology, level)
    place = np.array([0.2, 0.82]) + place * np.array([side, high])
    norm, cmap = Normalize(0, top), sequential()
    order = np.argsort(carried, kind="stable")
    start, end = place[topology.link_from], place[topology.link_to]
    along = end - start
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1])[:, None], 1e-9)
    lane = np.stack((along[:, 1], -along[:, 0]), axis=1) * _LANE
    used = (carried[order] > 0)[:, None]
    with styled():
        figure = new_figure(height)
        figure.text(0.08 / WIDTH, 1 - 0.08 / height, label(title, 45), va="top", weight="bold")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(0, WIDTH), ylim=(0, height))
        lines = LineCollection(
            list(np.stack((start + lane, end + lane), axis=1)[order]),
            colors=np.where(used, cmap(norm(carried[order])), np.array([0.85, 0.87, 0.89, 1.0])),
            linewidths=1.5 if topology.links <= 300 else 0.9,
        )
        lines.set_rasterized(topology.links > VECTORS)
        axes.add_collection(lines, autolim=False)
        for chosen, marker in ((level == 0, "o"), (level > 0, "s")):
            size = 22 if topology.vertices <= 80 else 7
            x, y = place[chosen].T
            axes.scatter(x, y, s=size, marker=marker, c="white", ec=GREY, lw=0.6, zorder=3)
        number_links(axes, start * 0.4 + end * 0.6, hot)
        bar = figure.add_axes((0.2 / WIDTH, 0.34 / height, 0.56, 0.12 / height))
        text = data if unit == "bytes" else compact
        colour_bar(figure, bar, norm, cmap, text, f"{unit} on a link")
        figure.text(0.69, 0.36 / height, "■", color=PALE, fontsize=9)
        figure.text(0.73, 0.365 / height, "unused link", fontsize=SMALL)
    return figure


def number_links(axes: Axes, middle: Points, hot: Sequence[int]) -> None:
    """Write 1, 2, ... on the links given, the first on top."""
    look = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    for place, link in reversed(list(enumerate(hot, 1))):
        x, y = middle[link]
        axes.text(
            x, y, str(place), ha="center", va="center_baseline", size=SMALL, bbox=look, zorder=6
        )


def _levels(topology: Topology) -> NDArray[np.int64]:
    """Links from each vertex to the nearest node; nodes have 0."""
    level = np.full(topology.vertices, topology.vertices)
    level[: topology.nodes] = 0
    for _ in range(topology.vertices):
        nearer = level.copy()
        np.minimum.at(nearer, topology.link_from, level[topology.link_to] + 1)
        if (nearer == level).all():
            break
        level = nearer
    return level


def _centres(topology: Topology, level: NDArray[np.int64], of: int, x: Points) -> Points:
    """Mean abscissa of what the vertices of a level have below them."""
    down = (level[topology.link_from] == of) & (level[topology.link_to] == of - 1)
    total, number = np.zeros(topology.vertices), np.zeros(topology.vertices)
    np.add.at(total, topology.link_from[down], x[topology.link_to[down]])
    np.add.at(number, topology.link_from[down], 1)
    return np.asarray(total / np.maximum(number, 1))


def _by_levels(topology: Topology, level: NDArray[np.int64]) -> Points:
    """Nodes at the bottom, switches above what they join; shape (vertices, 2), from 0 to 1."""
    x = np.zeros(topology.vertices)
    x[: topology.nodes] = (np.arange(topology.nodes) + 0.5) / topology.nodes
    for each in range(1, int(level.max()) + 1):
        own = np.flatnonzero(level == each)
        centre = _centres(topology, level, each, x)[own]
        if len(np.unique(centre.round(9))) < len(own):  # several above the same: side by side
            order = own[np.argsort(centre, kind="stable")]
            x[order] = (np.arange(len(own)) + 0.5) / len(own)
        else:
            x[own] = centre
    return np.stack((x, 0.05 + 0.9 * level / max(int(level.max()), 1)), axis=1)


def _circle(topology: Topology, level: NDArray[np.int64]) -> Points:
    """Switches on a circle and their nodes outside it; without switches, the nodes on it."""
    inner = np.flatnonzero(level > 0) if topology.switches else np.arange(topology.nodes)
    angle = np.zeros(topology.vertices)
    angle[inner] = 2 * np.pi * np.arange(len(inner)) / len(inner)
    radius = np.full(topology.vertices, 0.36 if topology.switches else 0.47)
    if topology.switches:
        own = level[topology.link_from] == 0
        home = np.zeros(topology.nodes, dtype=np.int64)
        home[topology.link_from[own]] = topology.link_to[own]
        for switch in np.unique(home):
            nodes = np.flatnonzero(home == switch)
            spread = np.linspace(-0.5, 0.5, len(nodes) + 2)[1:-1] * 2 * np.pi / len(inner)
            angle[nodes] = angle[switch] + spread
        radius[: topology.nodes] = 0.47
    return np.asarray(0.5 + radius[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1))
