"""Links as cells of sheets, for networks too large for arrows, and what names links.

A sort of links is a sheet; the busiest links bear numbers and are named; bars compare the sorts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Topology
from hopmap.units import compact, data

from .layout import MARK, Points, is_haec, name_link
from .style import (
    BLUE,
    INK,
    NAMED,
    PALE,
    SMALL,
    TEXT_LINE,
    WIDTH,
    colour_bar,
    halves,
    label,
    list_busiest,
    new_figure,
    sequential,
    sheet,
    value_axis,
    write,
)
from .tiles import SLIM, Panel, arrange, draw_cells, panels, say_cells
from .tips import add_tips

UNUSED = (0.85, 0.87, 0.89, 1.0)


def busiest(loads: Floats) -> list[int]:
    """Return the links that carry most, up to five of those that carry anything."""
    order = np.argsort(-loads, kind="stable")[:NAMED]
    return [int(link) for link in order if loads[link] > 0]


def list_links(
    axes: Axes, topology: Topology, loads: Floats, hot: Sequence[int], text: Callable[[float], str]
) -> None:
    """Name the numbered links, and say how many others carry as much as the last of them."""
    if not hot:
        axes.set_axis_off()
        return
    said = [f"{name_link(topology, link)}: {text(loads[link])}" for link in hot]
    more = int(np.count_nonzero(loads >= loads[hot[-1]])) - len(hot)
    list_busiest(
        axes,
        said,
        f"; {more:,} more carr{'ies' if more == 1 else 'y'} as much as the last"
        if more > 0
        else "",
    )


def say_links(topology: Topology, loads: Floats, text: Callable[[float], str], links: Ints) -> str:
    """Say what a link carries, or what the busiest of several does."""
    top = int(links[np.argmax(loads[links])])
    rest = f", busiest of {len(links):,} links" if len(links) > 1 else ""
    return f"{name_link(topology, top)}: {text(loads[top])}{rest}"


def _say_panel(
    topology: Topology, loads: Floats, text: Callable[[float], str], links: Ints, each: Ints
) -> str:
    """Say what the busiest of some of these links carries."""
    return say_links(topology, loads, text, links[each])


def draw_link_cells(
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
        name = panel.name + f"; {cells.numbered} by number" * bool(cells.numbered)
        view.text(left, top - 0.13, label(name, 28 * (3 - across), 1), size=SMALL)
        load = loads[panel.links]
        place = draw_cells(
            view, cells, load, partial(colours_of_loads, norm, cmap), left, top - 0.18
        )
        say = partial(_say_panel, topology, loads, text, panel.links)
        say_cells(view, cells, place, say, len(found))
        boxes.append(place([[0, cells.size[1]], [cells.size[0], 0]]))
        own = {int(link): at for at, link in enumerate(panel.links) if link in hot}
        marked += [(link, place(cells.middles()[[at]])[0]) for link, at in own.items()]
    sheet(view, inner, high)
    _number_cells(view, hot, dict(marked), boxes)
    shared = ", the busiest of a cell" if any(cells.merged for cells in made) else ""
    colour_bar(above, parts["bar"], norm, cmap, text, f"{unit} on a link{shared}")
    parts["key"].set_axis_off()
    unused = Patch(color=UNUSED, label="unused link")
    parts["key"].legend(handles=[unused], loc="center right", handlelength=0.8, borderpad=0)
    list_links(parts["names"], topology, loads, hot, text)
    _draw_sorts(below.subplots(), loads, sorts, norm, unit)
    return figure


def colours_of_loads(norm: Normalize, cmap: Colormap, loads: Floats) -> Floats:
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
