"""Figures of the network: how loaded each link is under a mapping.

Nodes are dots, switches squares. Both directions of a link are drawn, each on its right-hand side.
Networks too large for that have heat maps of planes, and a curve of the links' loads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Topology
from hopmap.units import compact, data

from .layout import (
    MARK,
    Layout,
    Points,
    arrows,
    coordinates,
    drawable,
    is_box,
    is_haec,
    lanes,
    levels,
    link_steps,
    slices,
    stack,
)
from .style import (
    BLUE,
    GREY,
    INK,
    PALE,
    SMALL,
    WIDTH,
    add_tips,
    colour_bar,
    halves,
    new_figure,
    pictures,
    plain_title,
    sequential,
    set_ticks,
    style,
    value_axis,
    write,
)

DRAWN = 512  # nodes of a box; above, planes are heat maps
LINE = 32  # of one dimension
STACKED = 256  # nodes of a HAEC Box that can be drawn with its wireless links
WIRELESS = 120  # of these links, the hottest are drawn
VECTORS = 1200  # links; more become an image
UNUSED = (0.85, 0.87, 0.89, 1.0)
RADIUS = 0.15  # of a box' nodes


@style()
def link_loads(
    topology: Topology,
    loads: ArrayLike,
    *,
    title: str,
    unit: str = "bytes",
    limit: float | None = None,
    hot: Sequence[int] = (),
) -> Figure:
    """Draw the topology with every directed link coloured by its load, in bytes or messages.

    Boxes of up to 512 nodes are drawn link by link, larger ones as heat maps of their planes;
    other networks by levels or on a circle, or as a curve of the links' loads where they are large.
    `limit` is the load of the darkest colour, to compare pictures; the highest when left out.
    Links that are `hot` get the numbers 1, 2, ..., where links are drawn.
    """
    carried = np.asarray(loads, dtype=float)
    norm = Normalize(0, limit or float(carried.max(initial=0)) or 1.0)
    most = STACKED if is_haec(topology) else LINE if len(topology.dims) == 1 else DRAWN
    if topology.nodes <= most if is_box(topology) else drawable(topology):
        return _draw_links(topology, carried, norm, title, unit, hot)
    return _heat_maps(topology, carried, norm, title, unit)


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
    figure = new_figure(high + 1.1, title)
    panels = figure.subplot_mosaic(
        [["view", "view"], ["bar", "key"]], height_ratios=[high, 0.12], width_ratios=[2, 1]
    )
    view = panels["view"]
    view_box(view, layout)
    draw_planes(view, layout)
    colours = np.where((loads[wired] > 0)[:, None], cmap(norm(loads[wired])), np.array(UNUSED))
    links = PolyCollection(shapes, facecolors=colours, edgecolors="none", zorder=2)
    links.set_rasterized(len(wired) > VECTORS)
    view.add_collection(links, autolim=False)
    ends = zip(topology.link_from[wired].tolist(), topology.link_to[wired].tolist(), strict=True)
    names = [" → ".join(map(topology.vertex_name, pair)) for pair in ends]
    carried = [f"{name}: {text(load)}" for name, load in zip(names, loads[wired], strict=True)]
    add_tips(view, shapes, carried)
    if wireless.any():
        note = _draw_wireless(view, layout, loads, order[wireless[order]], norm, cmap)
    draw_vertices(view, topology, layout.nodes, dot)
    _number_links(view, layout, hot, np.where(wireless, 0.0, 0.06 * is_box(topology)))
    colour_bar(figure, panels["bar"], norm, cmap, text, f"{unit} on a link{note}")
    panels["key"].set_axis_off()
    unused = Patch(color=PALE, label="unused link")
    panels["key"].legend(handles=[unused], loc="center right", handlelength=0.8, borderpad=0)
    return figure


def _draw_wireless(
    axes: Axes,
    layout: Layout,
    loads: Floats,
    order: Ints,
    norm: Normalize,
    cmap: Colormap,
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


def _heat_maps(topology: Topology, loads: Floats, norm: Normalize, title: str, unit: str) -> Figure:
    """Draw a heat map over (x, y) for every direction, and how many links carry how much.

    A cell is the highest load of the links that leave (x, y, any z) in that direction. What is no
    box of up to three dimensions gets the curve only.
    """
    maps = _maps(topology, loads) if is_box(topology) else {}
    if not maps:
        figure = new_figure(2.2, title)
        _curve(figure, loads, norm, unit)
        return figure
    cmap, text = sequential(), data if unit == "bytes" else compact
    across = 3 if len(maps) > 4 else 2
    shape = next(iter(maps.values())).shape
    wide = (WIDTH - 0.3) / across - 0.12
    high = min(max(wide * shape[0] / shape[1], 0.3), 2.2)
    # names go in a column each direction: + above, - below
    block = -(-len(maps) // across) * (high + 0.27)
    figure = new_figure(block + 2.6, title)
    above, below = halves(figure, block + 0.5, 1.8)
    view, bar = above.subplots(2, 1, height_ratios=[block, 0.12])
    images = [(name, np.ma.masked_equal(values, 0)) for name, values in maps.items()]
    pictures(view, images, across, (wide, high), (0.12, 0.27), norm, cmap)
    colour_bar(above, bar, norm, cmap, text, f"highest {unit} on a link of the cell")
    _curve(below, loads, norm, unit)
    return figure


def _maps(topology: Topology, loads: Floats) -> dict[str, Floats]:
    """Highest load over z of the links that leave (x, y), for each direction that has links."""
    place = coordinates(topology)
    dx, dy = (*topology.dims, 1)[:2]
    step, _ = link_steps(topology)
    cell = place[topology.link_from, 1] * dx + place[topology.link_from, 0]
    haec = is_haec(topology)
    maps = {}
    for sign, mark in ((1, "+"), (-1, "−")):
        for k, axis in enumerate("xyz"):
            chosen = step[:, k] == sign
            if chosen.any():
                grid = np.zeros(dx * dy)
                np.maximum.at(grid, cell[chosen], loads[chosen])
                name = "wireless " + ("up" if sign > 0 else "down") if haec and k == 2 else ""
                maps[name or f"towards {mark}{axis}"] = grid.reshape(dy, dx)
    return maps


def _curve(figure: FigureBase, loads: Floats, norm: Normalize, unit: str) -> None:
    """Draw how many links carry at least so much."""
    axes = figure.subplots()
    used = np.sort(loads[loads > 0])[::-1]
    rank = np.arange(1, len(used) + 1)
    keep = np.unique(np.geomspace(1, max(len(used), 1), 400).astype(int)) - 1
    if len(used):
        axes.step(used[keep], rank[keep], where="post", color=BLUE, linewidth=1.5)
        axes.fill_between(used[keep], 0, rank[keep], step="post", color=BLUE, alpha=0.15, lw=0)
    value_axis(axes, data if unit == "bytes" else compact, float(norm.vmax or 1), 5)
    axes.set_ylim(0, max(len(used), 1) * 1.06)
    set_ticks(axes.yaxis, compact, MaxNLocator(3, integer=True))
    axes.set_xlabel(f"{unit} on a link, at least")
    plain_title(axes, f"links ({len(used):,} used of {len(loads):,})", pad=4)
