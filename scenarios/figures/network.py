"""Figures of the network: how loaded each link is under a mapping."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from hopmap.scenarios.quantities import compact, data
from hopmap.topologies import Topology

from .layout import Layout, arrows, is_box, is_haec, link_steps, slices, stack
from .planes import link_planes
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
    style,
)
from .switches import drawable, link_levels, link_words, number_links
from .tips import add_tips

DRAWN = 512  # nodes; above, planes are heat maps
LINE = 32  # of one dimension
STACKED = 256  # nodes of a HAEC Box that can be drawn with its wireless links
WIRELESS = 120  # of these links, the hottest are drawn
VECTORS = 1200  # arrows; more become an image


def link_loads(
    topology: Topology,
    loads: ArrayLike,
    *,
    title: str,
    unit: str = "bytes",
    limit: float | None = None,
    hot: Sequence[int] = (),
) -> Figure:
    """Draw the topology with every directed link coloured by its load.

    Boxes of up to 512 nodes are drawn link by link, larger ones as heat maps of their planes;
    other networks by levels or on a circle, or as a curve of the links' loads where they are large.

    Parameters
    ----------
    loads : array_like, shape (links,)
        What every link carried.
    unit : {"bytes", "messages"}
        What was counted.
    limit : float, optional
        Load of the darkest colour, to compare pictures; the highest load when left out.
    hot : sequence of int
        Links that get the numbers 1, 2, ..., where links are drawn.
    """
    carried = np.asarray(loads, dtype=float)
    top = limit or float(carried.max(initial=0)) or 1.0
    text = data if unit == "bytes" else compact
    haec = is_haec(topology)
    drawn = STACKED if haec else LINE if len(topology.dims) == 1 else DRAWN
    if not is_box(topology) and drawable(topology):
        return link_levels(topology, carried, title=title, unit=unit, limit=top, hot=hot)
    if not is_box(topology) or topology.nodes > drawn:
        return link_planes(topology, carried, title=title, unit=unit, limit=top)
    with style():
        if haec:
            return _draw(topology, carried, stack(topology, 1.3), title, unit, top, text, hot)
        return _draw(topology, carried, slices(topology), title, unit, top, text, hot)


def canvas(
    layout: Layout, title: str, foot: float, head: float = 0.36
) -> tuple[Figure, Axes, float]:
    """Figure with a panel that fits the layout, `foot` inches below it; inches per unit."""
    span = min((WIDTH - 0.2) / max(layout.width, layout.height * 0.62), 0.62)
    height = layout.height * span + head + foot
    figure = new_figure(height)
    headline(figure, title)
    axes = figure.add_axes((0, foot / height, 1, layout.height * span / height))
    axes.set_axis_off()
    points = np.concatenate((layout.nodes, *layout.planes))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    axes.set_xlim(middle[0] - WIDTH / span / 2, middle[0] + WIDTH / span / 2)
    axes.set_ylim(middle[1] - layout.height / 2, middle[1] + layout.height / 2)
    return figure, axes, span


def draw_planes(axes: Axes, layout: Layout) -> None:
    """Pale planes, each with its name."""
    axes.add_collection(
        PolyCollection(layout.planes, facecolors="#f4f6f7", edgecolors="none", zorder=0),
        autolim=False,
    )
    halo = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8}
    for corners, name in zip(layout.planes, layout.names, strict=False):
        oblique = corners[0, 0] != corners[3, 0]
        x, y = corners[1] if oblique else corners[3]
        axes.text(
            x + (0.5 if oblique else 0.05),
            y + (0.06 if oblique else 0.1),
            name,
            fontsize=SMALL,
            color=INK,
            va="bottom",
            zorder=5,
            bbox=halo if oblique else None,
        )


def _draw(
    topology: Topology,
    loads: NDArray[np.float64],
    layout: Layout,
    title: str,
    unit: str,
    top: float,
    text: Callable[[float], str],
    hot: Sequence[int],
) -> Figure:
    step, _ = link_steps(topology)
    haec = is_haec(topology)
    wireless = (step[:, 2] != 0) & haec
    wired = np.flatnonzero(~wireless)
    figure, axes, span = canvas(layout, title, 0.72)
    draw_planes(axes, layout)
    norm, cmap = Normalize(0, top), sequential()
    order = wired[np.argsort(loads[wired], kind="stable")]
    radius, width = 0.15, 0.075
    colours = np.where(
        (loads[order] > 0)[:, None], cmap(norm(loads[order])), np.array([0.85, 0.87, 0.89, 1.0])
    )
    shapes = arrows(layout.start[order], layout.end[order], node=radius, width=width)
    links = PolyCollection(
        shapes,
        facecolors=colours,
        edgecolors="none",
        zorder=2,
    )
    links.set_rasterized(len(order) > VECTORS)
    axes.add_collection(links, autolim=False)
    add_tips(axes, shapes, link_words(topology, loads, order, text))
    note = ""
    if haec:
        used = np.flatnonzero(wireless & (loads > 0))
        air = used[np.argsort(loads[used], kind="stable")][-WIRELESS:]
        ends = np.stack((layout.start[air], layout.end[air]), axis=1)
        axes.add_collection(
            LineCollection(
                list(ends), colors=cmap(norm(loads[air])), linewidths=1.1, zorder=1.5, alpha=0.9
            ),
            autolim=False,
        )
        count = f"{len(air):,} hottest of " if len(air) < len(used) else ""
        note = f", wireless: {count}{len(used):,} used"
    axes.scatter(
        layout.nodes[:, 0],
        layout.nodes[:, 1],
        s=(2 * radius * span * 72) ** 2,
        facecolors="white",
        edgecolors=GREY,
        linewidths=0.6,
        zorder=3,
    )
    along = layout.end - layout.start
    lane = np.stack((along[:, 1], -along[:, 0]), axis=1) * 0.06 * ~wireless[:, None]
    number_links(axes, layout.start + 0.68 * along + lane, hot)
    height = figure.get_figheight()
    bar = figure.add_axes((0.2 / WIDTH, 0.34 / height, 0.62, 0.12 / height))
    colour_bar(figure, bar, norm, cmap, text, f"{unit} on a link{note}")
    figure.text(0.74, 0.36 / height, "■", color=PALE, fontsize=9)
    figure.text(0.775, 0.365 / height, "unused link", fontsize=SMALL)
    return figure
