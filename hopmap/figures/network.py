"""Figures of the network: how loaded each link is under a mapping.

Nodes are dots, switches squares. Both directions of a link are drawn, each on its right-hand side.
Networks too large for that are sheets of cells. The busiest links bear numbers, and are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

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
    name_link,
    slices,
    stack,
)
from .style import (
    BLUE,
    GREY,
    INK,
    NAMED,
    PALE,
    SMALL,
    TEXT_LINE,
    WIDTH,
    add_tips,
    colour_bar,
    halves,
    label,
    list_busiest,
    new_figure,
    sequential,
    sheet,
    style,
    value_axis,
    write,
)
from .tiles import SLIM, Panel, arrange, draw_cells, panels, say_cells

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
    most = STACKED if is_haec(topology) else LINE if len(topology.dims) == 1 else DRAWN
    few = topology.nodes <= most if is_box(topology) else drawable(topology)
    draw = _draw_links if few else _draw_cells
    return draw(topology, carried, norm, title, unit, hot)


def busiest(loads: Floats) -> list[int]:
    """Return the links that carry most, up to five of those that carry anything."""
    order = np.argsort(-loads, kind="stable")[:NAMED]
    return [int(link) for link in order if loads[link] > 0]


def _list_links(
    axes: Axes, topology: Topology, loads: Floats, hot: Sequence[int], text: Callable[[float], str]
) -> None:
    """Name the numbered links, and say how many others carry as much as the last of them."""
    if not hot:
        axes.set_axis_off()
        return
    said = [f"{name_link(topology, link)}: {text(loads[link])}" for link in hot]
    more = int(np.count_nonzero(loads >= loads[hot[-1]])) - len(hot)
    list_busiest(axes, said, f"; {more:,} more carry as much as the last" if more > 0 else "")


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
    colours = np.where((loads[wired] > 0)[:, None], cmap(norm(loads[wired])), np.array(UNUSED))
    links = PolyCollection(shapes, facecolors=colours, edgecolors="none", zorder=2)
    links.set_rasterized(len(wired) > VECTORS)
    view.add_collection(links, autolim=False)
    say = partial(_say_links, topology, loads, text)
    add_tips(view, shapes, [say(np.array([link])) for link in wired])
    if wireless.any():
        note = _draw_wireless(view, layout, loads, order[wireless[order]], norm, cmap)
    draw_vertices(view, topology, layout.nodes, dot)
    _number_links(view, layout, hot, np.where(wireless, 0.0, 0.06 * is_box(topology)))
    colour_bar(figure, parts["bar"], norm, cmap, text, f"{unit} on a link{note}")
    parts["key"].set_axis_off()
    unused = Patch(color=PALE, label="unused link")
    parts["key"].legend(handles=[unused], loc="center right", handlelength=0.8, borderpad=0)
    _list_links(parts["names"], topology, loads, hot, text)
    return figure


def _say_links(topology: Topology, loads: Floats, text: Callable[[float], str], links: Ints) -> str:
    """Say what a link carries, or what the busiest of several does."""
    top = int(links[np.argmax(loads[links])])
    rest = f", busiest of {len(links):,} links" if len(links) > 1 else ""
    return f"{name_link(topology, top)}: {text(loads[top])}{rest}"


def _say_panel(
    topology: Topology, loads: Floats, text: Callable[[float], str], links: Ints, each: Ints
) -> str:
    """Say what the busiest of some of these links carries."""
    return _say_links(topology, loads, text, links[each])


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


def _draw_cells(
    topology: Topology, loads: Floats, norm: Normalize, title: str, unit: str, hot: Sequence[int]
) -> Figure:
    """Draw links as cells, sorts of links side by side, and how much each sort carries."""
    cmap, text = sequential(), data if unit == "bytes" else compact
    found, gap, inner = panels(topology), 0.16, WIDTH - 0.26
    across = min(len(found), 2)
    width = (inner - gap * (across - 1)) / across
    made = [arrange(panel.nest, width, SLIM if across == 1 else 0.9) for panel in found]
    tall = [sheet.size[1] * sheet.inch + 0.3 for sheet in made]
    rows = [max(tall[k : k + across]) for k in range(0, len(made), across)]
    sorts = _sorts(topology, found)
    high, bars = sum(rows), 0.3 + 0.17 * len(sorts)
    names = TEXT_LINE * NAMED
    figure = new_figure(high + bars + names + 1.9, title)
    above, below = halves(figure, high + names + 1.0, bars + 0.6)
    parts = above.subplot_mosaic(
        [["view", "view"], ["bar", "key"], ["names", "names"]],
        height_ratios=[high, 0.12, names],
        width_ratios=[2, 1],
    )
    view, marked, boxes = parts["view"], [], []
    for k, (panel, cells) in enumerate(zip(found, made, strict=True)):
        left, top = k % across * (width + gap), high - sum(rows[: k // across])
        name = f"{panel.name}, busiest a cell" if cells.merged and across == 1 else panel.name
        view.text(left, top - 0.13, label(name, 28 if across > 1 else 50, 1), size=SMALL)
        load = loads[panel.links]
        place = draw_cells(view, cells, load, partial(_colours, norm, cmap), left, top - 0.18)
        say = partial(_say_panel, topology, loads, text, panel.links)
        say_cells(view, cells, place, say, len(found))
        boxes.append(place([[0, cells.size[1]], [cells.size[0], 0]]))
        own = {int(link): at for at, link in enumerate(panel.links) if link in hot}
        marked += [(link, place(cells.middles()[[at]])[0]) for link, at in own.items()]
    sheet(view, inner, high)
    _number_cells(view, hot, dict(marked), boxes)
    colour_bar(above, parts["bar"], norm, cmap, text, f"{unit} on a link")
    parts["key"].set_axis_off()
    unused = Patch(color=UNUSED, label="unused link")
    parts["key"].legend(handles=[unused], loc="center right", handlelength=0.8, borderpad=0)
    _list_links(parts["names"], topology, loads, hot, text)
    _draw_sorts(below.subplots(), loads, sorts, norm, unit)
    return figure


def _colours(norm: Normalize, cmap: Colormap, loads: Floats) -> Floats:
    """Return the colours of loads, shape (loads, 4); what carries nothing is grey."""
    return np.where((loads > 0)[:, None], cmap(norm(loads)), np.array(UNUSED))


def _number_cells(
    axes: Axes, hot: Sequence[int], places: dict[int, Points], boxes: Sequence[Points]
) -> None:
    """Write 1, 2, ... near the cells of links, inside boxes, where no other number is."""
    look = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": INK, "linewidth": 0.6}
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack((np.cos(turns), np.sin(turns)), axis=1)
    aside = np.concatenate([0.22 * ring, 0.4 * ring, 0.6 * ring])
    taken: list[Points] = []
    for number, link in enumerate(hot, 1):
        own, spots = places[link], places[link] + aside
        inside = np.zeros(len(spots), np.bool_)
        for low, high in boxes:
            inside |= ((spots > low + 0.8 * MARK) & (spots < high - 0.8 * MARK)).all(axis=1)
        others = [np.asarray(place) for other, place in places.items() if other != link]
        free = [
            spot
            for spot in spots[inside]
            if all(np.hypot(*(spot - other)) > 2.1 * MARK for other in (*taken, *others))
        ]
        taken.append((free or [*spots])[0])
        axes.plot(*zip(own, taken[-1], strict=True), color=INK, linewidth=0.7, zorder=5)
        axes.plot(*own, "o", color=INK, markersize=2, zorder=5)
        write(axes, taken[-1], str(number), bbox=look, zorder=6 + 1 / number)


def _sorts(topology: Topology, found: Sequence[Panel]) -> list[tuple[str, Ints]]:
    """Split links by sort: the panels of a network of switches, dimensions, or kinds."""
    router: Any = topology.router
    if len(found) > 1:
        return [(panel.name.partition(":")[0], panel.links) for panel in found]
    if hasattr(router, "coords"):
        steps = router.coords[topology.link_from] != router.coords[topology.link_to]
        steps = steps[:, ::-1] if is_haec(topology) else steps  # what goes up is wireless
        of, count = np.argmax(steps, axis=1), len(router.dims)
        names = [f"dimension {k}" for k in range(count)] if count > 3 else list("xyz"[:count])
        if is_haec(topology):
            names = ["wireless", "y", "x"]
    else:
        of, names = topology.link_kind, [kind.name for kind in topology.kinds]
    split = [(name, np.flatnonzero(of == k)) for k, name in enumerate(names)]
    return [(name, links) for name, links in split if len(links)]


def _draw_sorts(
    axes: Axes, loads: Floats, sorts: Sequence[tuple[str, Ints]], norm: Normalize, unit: str
) -> None:
    """Draw the highest and the mean load of each sort of links."""
    text, top = data if unit == "bytes" else compact, float(norm.vmax or 1)
    for y, (name, links) in enumerate(sorts):
        most, mean = float(loads[links].max()), float(loads[links].mean())
        for value, colour in ((most, PALE), (mean, BLUE)):
            axes.barh(y, value, color=colour, height=0.7)
        used = np.count_nonzero(loads[links])
        said = f"{name}: busiest {text(most)}, mean {text(mean)}, {used:,} of {len(links):,} used"
        add_tips(axes, [[(0, y - 0.5), (top, y + 0.5)]], [said])
    axes.set_yticks(range(len(sorts)), [name for name, _ in sorts])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(sorts) - 0.4, -0.6)
    value_axis(axes, text, top, 4)
    axes.set_title(
        "by sort: mean (dark), busiest (pale)", fontsize=8.5, weight="normal", loc="right"
    )
