"""Figures of networks that are no boxes: trees and clusters by levels, all others on a circle.

Nodes are dots, switches squares. Both directions of a link are drawn, each on its right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from hopmap.scenarios.quantities import compact, data
from hopmap.topologies import Topology

from .style import (
    GREY,
    INK,
    PALE,
    SMALL,
    WIDTH,
    colour_bar,
    headline,
    new_figure,
    sequential,
    sheet,
)
from .style import style as styled
from .tips import add_tips, squares

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
    place, (_, high) = _places(topology, level)
    height = high + 0.36 + 0.92
    place = place + np.array([0.2, 0.82])
    norm, cmap = Normalize(0, top), sequential()
    order = np.argsort(carried, kind="stable")
    start, end = place[topology.link_from], place[topology.link_to]
    along = end - start
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1])[:, None], 1e-9)
    lane = np.stack((along[:, 1], -along[:, 0]), axis=1) * _LANE
    used = (carried[order] > 0)[:, None]
    with styled():
        figure, axes = _titled(height, title)
        lines = LineCollection(
            list(np.stack((start + lane, end + lane), axis=1)[order]),
            colors=np.where(used, cmap(norm(carried[order])), np.array([0.85, 0.87, 0.89, 1.0])),
            linewidths=1.5 if topology.links <= 300 else 0.9,
        )
        lines.set_rasterized(topology.links > VECTORS)
        axes.add_collection(lines, autolim=False)
        text = data if unit == "bytes" else compact
        shapes = np.stack((start, end, end + 2 * lane, start + 2 * lane), axis=1)
        add_tips(axes, shapes, link_words(topology, carried, range(topology.links), text))
        for chosen, marker in ((level == 0, "o"), (level > 0, "s")):
            size = 22 if topology.vertices <= 80 else 7
            x, y = place[chosen].T
            axes.scatter(x, y, s=size, marker=marker, c="white", ec=GREY, lw=0.6, zorder=3)
        number_links(axes, start * 0.4 + end * 0.6, hot)
        bar = figure.add_axes((0.2 / WIDTH, 0.34 / height, 0.56, 0.12 / height))
        colour_bar(figure, bar, norm, cmap, text, f"{unit} on a link")
        figure.text(0.69, 0.36 / height, "■", color=PALE, fontsize=9)
        figure.text(0.73, 0.365 / height, "unused link", fontsize=SMALL)
    return figure


def rank_levels(
    topology: Topology,
    node_of: NDArray[np.int64],
    *,
    title: str,
    foot: float,
    norm: Normalize,
    cmap: Colormap,
) -> Figure:
    """Draw switches and nodes, and at every node its ranks, coloured by their numbers.

    Parameters
    ----------
    foot : float
        Inches to leave below.
    """
    level = _levels(topology)
    place, (side, high) = _places(topology, level)
    round_ = _is_round(topology, level)
    own = np.argsort(node_of, kind="stable")
    turn = np.empty(len(node_of), dtype=np.int64)  # first, second, ... rank of its node
    _, first = np.unique(node_of[own], return_index=True)
    turn[own] = np.arange(len(own)) - np.repeat(first, np.diff(np.append(first, len(own))))
    most = int(turn.max(initial=0)) + 1
    pitch = side / topology.nodes * (np.pi if round_ else 1)  # a circle, or a line
    size = min(0.2, 0.94 * pitch, 1.6 / most)
    reach = 0.1 + size * most
    middle = np.array([side, high]) / 2
    if round_:  # ranks outwards, so that the circle is smaller
        place = middle + (place - middle) * max(0.3, 1 - 2 * reach / side)
        away = place[: topology.nodes] - middle
        away /= np.maximum(np.hypot(*away.T)[:, None], 1e-9)
    else:
        place[:, 1] += reach
        high += reach
        away = np.tile([0.0, -1.0], (topology.nodes, 1))
    height = high + 0.36 + foot
    place = place + np.array([0.2, foot])
    at = place[node_of] + away[node_of] * (0.1 + size * (turn[:, None] + 0.4))
    with styled():
        figure, axes = _titled(height, title)
        ends = np.stack((place[topology.link_from], place[topology.link_to]), axis=1)
        once = topology.link_from < topology.link_to
        lines = LineCollection(list(ends[once]), colors=GREY, linewidths=0.7, alpha=0.7)
        lines.set_rasterized(topology.links > VECTORS)
        axes.add_collection(lines, autolim=False)
        for chosen, marker in ((level == 0, "o"), (level > 0, "s")):
            x, y = place[chosen].T
            dot = 30 if marker == "s" and topology.vertices <= 80 else 7
            axes.scatter(x, y, s=dot, marker=marker, c="white", ec=GREY, lw=0.7, zorder=3)
        x, y = at.T
        axes.scatter(x, y, s=(size * 72 * 0.92) ** 2, c=cmap(norm(np.arange(len(at)))), zorder=4)
        if size >= 0.17:
            for rank, (x, y) in enumerate(at):
                colour = "white" if norm(rank) < 0.62 else INK
                axes.text(
                    x, y, str(rank), color=colour, fontsize=SMALL if rank < 100 else SMALL - 2,
                    ha="center", va="center_baseline", zorder=5,
                )  # fmt: skip
        names = [topology.vertex_name(vertex) for vertex in range(topology.vertices)]
        said = [f"rank {rank} on {names[node]}" for rank, node in enumerate(node_of.tolist())]
        add_tips(axes, squares(at, size / 2), said)
        add_tips(axes, squares(place, 0.05), names)
    return figure


def link_words(
    topology: Topology, loads: ArrayLike, links: Iterable[int], text: Callable[[float], str]
) -> list[str]:
    """Say from where to where some links go, and what they carry."""
    carried = np.asarray(loads)
    ends = zip(topology.link_from.tolist(), topology.link_to.tolist(), strict=True)
    names = [" → ".join(map(topology.vertex_name, pair)) for pair in ends]
    return [f"{names[link]}: {text(float(carried[link]))}" for link in links]


def number_links(axes: Axes, middle: Points, hot: Sequence[int]) -> None:
    """Write 1, 2, ... on the links given, the first on top."""
    look = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    for place, link in reversed(list(enumerate(hot, 1))):
        x, y = middle[link]
        axes.text(
            x, y, str(place), ha="center", va="center_baseline", size=SMALL, bbox=look, zorder=6
        )


def _titled(height: float, title: str) -> tuple[Figure, Axes]:
    """Return a figure with its title, and axes in inches all over it."""
    figure = new_figure(height)
    headline(figure, title)
    return figure, sheet(figure)


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


def _is_round(topology: Topology, level: NDArray[np.int64]) -> bool:
    """Whether vertices of a level are joined, so that no levels can be drawn."""
    return bool((level[topology.link_from] == level[topology.link_to]).any())


def _places(topology: Topology, level: NDArray[np.int64]) -> tuple[Points, tuple[float, float]]:
    """Return where vertices are, in inches, and how wide and high that is."""
    side = WIDTH - 0.4
    if _is_round(topology, level):
        return _circle(topology, level) * side, (side, side)
    high = 0.35 + 0.85 * int(level.max())
    return _by_levels(topology, level) * np.array([side, high]), (side, high)


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
            share = (np.arange(len(nodes)) + 0.5) / len(nodes) - 0.5
            angle[nodes] = angle[switch] + share * 2 * np.pi / len(inner)
        radius[: topology.nodes] = 0.47
    return np.asarray(0.5 + radius[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1))
