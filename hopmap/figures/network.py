"""Figures of the network: how loaded each link is under a mapping.

Nodes are dots, switches squares. Both directions of a link are drawn, each on its right-hand side.
Networks too large for that are sheets of cells. The busiest links bear numbers, and are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Topology
from hopmap.units import compact, data

from .layout import (
    MARK,
    Layout,
    Points,
    arrows,
    drawable,
    is_box,
    is_haec,
    lanes,
    levels,
    link_steps,
    slices,
    stack,
)
from .link_cells import busiest, colours_of_loads, draw_link_cells, list_links, say_links
from .style import (
    GREY,
    INK,
    NAMED,
    PALE,
    SMALL,
    TEXT_LINE,
    WIDTH,
    colour_bar,
    new_figure,
    sequential,
    style,
    write,
)
from .tips import add_lines, add_tips

DRAWN = 512  # nodes of a box; above, planes are heat maps
LINE = 32  # of one dimension
STACKED = 256  # nodes of a HAEC Box that can be drawn with its wireless links
WIRELESS = 120  # of these links, the hottest are drawn
VECTORS = 1200  # links; more become an image
RADIUS = 0.15  # of a box' nodes


@style()
def link_loads(
    topology: Topology,
    loads: ArrayLike,
    *,
    title: str,
    unit: str = "bytes",
    limit: float | None = None,
    hot: Sequence[int] | None = None,
) -> Figure:
    """Draw the topology with every directed link coloured by its load, in bytes or messages.

    Boxes of up to three dimensions and 512 nodes are drawn link by link, small networks of switches
    by levels or on a circle, and all others as cells: links by the node that they leave, or by the
    level of their switches, and as rows and columns of groups. `limit` is the load of the darkest
    colour, to compare pictures; the highest when left out. Links that are `hot` are numbered and
    named; the busiest five when left out.
    """
    carried = np.asarray(loads, dtype=float)
    norm = Normalize(0, limit or float(carried.max(initial=0)) or 1.0)
    if hot is None:
        hot = busiest(carried)
    draw = _draw_links if is_drawn(topology) else draw_link_cells
    return draw(topology, carried, norm, title, unit, hot)


def is_drawn(topology: Topology) -> bool:
    """Whether a network is drawn link by link, not in cells."""
    most = STACKED if is_haec(topology) else LINE if len(topology.dims) == 1 else DRAWN
    return topology.nodes <= most if is_box(topology) else drawable(topology)


def view_box(axes: Axes, layout: Layout) -> None:
    """Make axes show what a layout has, in its units."""
    axes.set_axis_off()
    points = np.concatenate((layout.nodes, *layout.planes))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    half = np.array([WIDTH / layout.span - 0.3, layout.height]) / 2
    (left, bottom), (right, top) = middle - half, middle + half
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")


def draw_planes(axes: Axes, layout: Layout) -> None:
    """Draw pale planes, each with its name above the numbers that its links may bear."""
    axes.add_collection(
        PolyCollection(layout.planes, facecolors="#f4f6f7", edgecolors="none", zorder=0),
        autolim=False,
    )
    halo = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.8}
    for corners, name in zip(layout.planes, layout.names, strict=False):
        oblique = corners[0, 0] != corners[3, 0]
        x, y = corners[1] + (0.5, 0.06) if oblique else corners[3] + (0.05, 0.0)
        above = 0.0 if oblique else max(0.1, MARK / layout.span - 0.07)
        axes.text(
            x,
            y + above,
            name,
            fontsize=SMALL,
            va="bottom",
            zorder=5,
            bbox=halo if oblique else None,
        )


def draw_vertices(axes: Axes, topology: Topology, places: Points, size: float) -> None:
    """Draw white dots for nodes and squares for switches, `size` in square points."""
    for chosen, marker in (
        (slice(topology.nodes), "o"),
        (slice(topology.nodes, None), "s"),
    ):
        x, y = places[chosen].T
        axes.scatter(x, y, s=size, marker=marker, c="white", ec=GREY, lw=0.6, zorder=3)


def _draw_links(
    topology: Topology,
    loads: Floats,
    norm: Normalize,
    title: str,
    unit: str,
    hot: Sequence[int],
) -> Figure:
    """Draw links one by one, the hottest on top, and of wireless ones the hottest."""
    cmap, text = sequential(), data if unit == "bytes" else compact
    note, wireless = "", np.zeros(topology.links, np.bool_)
    if not is_box(topology):
        layout = levels(topology)
    elif is_haec(topology):
        layout = stack(topology, 1.3)
        wireless = link_steps(topology)[0][:, 2] != 0
    else:
        layout = slices(topology)
    order = np.argsort(loads, kind="stable")
    wired = order[~wireless[order]]
    start, end = layout.start[wired], layout.end[wired]
    if is_box(topology):
        shapes = arrows(start, end, node=RADIUS, width=0.075)
        dot = (2 * RADIUS * layout.span * 72) ** 2
    else:
        shapes = lanes(start, end, width=0.024 if topology.links <= 300 else 0.014)
        dot = 22 if topology.vertices <= 80 else 7
    high = layout.height * layout.span
    figure = new_figure(high + 1.5 + TEXT_LINE * NAMED, title)
    parts = figure.subplot_mosaic(
        [["view", "view"], ["bar", "key"], ["names", "names"]],
        height_ratios=[high, 0.12, TEXT_LINE * NAMED],
        width_ratios=[2, 1],
    )
    view = parts["view"]
    view_box(view, layout)
    draw_planes(view, layout)
    colours = colours_of_loads(norm, cmap, loads[wired])
    links = PolyCollection(shapes, facecolors=colours, edgecolors="none", zorder=2)
    links.set_rasterized(len(wired) > VECTORS)
    view.add_collection(links, autolim=False)
    say = partial(say_links, topology, loads, text)
    add_tips(view, shapes, [say(np.array([link])) for link in wired])
    if wireless.any():
        note = _draw_wireless(view, layout, loads, order[wireless[order]], norm, cmap, say)
    draw_vertices(view, topology, layout.nodes, dot)
    _number_links(view, layout, hot, np.where(wireless, 0.0, 0.06 * is_box(topology)))
    colour_bar(figure, parts["bar"], norm, cmap, text, f"{unit} on a link{note}")
    parts["key"].set_axis_off()
    unused = Patch(color=PALE, label="unused link")
    parts["key"].legend(handles=[unused], loc="center right", handlelength=0.8, borderpad=0)
    list_links(parts["names"], topology, loads, hot, text)
    return figure


def _draw_wireless(
    axes: Axes,
    layout: Layout,
    loads: Floats,
    order: Ints,
    norm: Normalize,
    cmap: Colormap,
    say: Callable[[Ints], str],
) -> str:
    """Draw the hottest of the wireless links that are used, and say how many these are."""
    used = order[loads[order] > 0]
    air = used[-WIRELESS:]
    lines = LineCollection(
        list(np.stack((layout.start[air], layout.end[air]), axis=1)),
        colors=cmap(norm(loads[air])),
        linewidths=1.1,
        zorder=1.5,
        alpha=0.9,
    )
    axes.add_collection(lines, autolim=False)
    said = [say(np.array([link])) for link in air[::-1]]
    add_lines(axes, np.stack((layout.start, layout.end), axis=1)[air[::-1]], said, 0.05)
    count = f"{len(air):,} hottest of " if len(air) < len(used) else ""
    return f", wireless: {count}{len(used):,} used"


def _number_links(axes: Axes, layout: Layout, hot: Sequence[int], aside: Floats) -> None:
    """Write 1, 2, ... on some links where no other number is, `aside` from the links' middle."""
    look = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    taken: list[Points] = []
    for place, link in enumerate(hot, 1):
        along = layout.end[link] - layout.start[link]
        lane = np.array([along[1], -along[0]]) * aside[link]
        spots = [layout.start[link] + share * along + lane for share in (0.65, 0.5, 0.35, 0.8, 0.2)]
        free = [s for s in spots if all(np.hypot(*(s - t)) * layout.span > 2 * MARK for t in taken)]
        taken.append((free or spots)[0])
        write(axes, taken[-1], str(place), bbox=look, zorder=6 + 1 / place)
