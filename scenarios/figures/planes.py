"""Figures of networks too large to draw link by link: heat maps of planes, curves of loads."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from hopmap.scenarios.quantities import compact, data
from hopmap.topologies import Topology

from .layout import coordinates, is_box, is_haec, link_steps
from .style import (
    BLUE,
    WIDTH,
    colour_bar,
    headline,
    new_figure,
    picture,
    sequential,
    sheet,
    style,
    value_axis,
)


def link_planes(
    topology: Topology,
    loads: ArrayLike,
    *,
    title: str,
    unit: str = "bytes",
    limit: float | None = None,
) -> Figure:
    """Draw a heat map over (x, y) for every direction, and how many links carry how much.

    A cell is the highest load of the links that leave (x, y, any z) in that direction. What is no
    box of up to three dimensions gets the curve only. Parameters as for `link_loads`.
    """
    carried = np.asarray(loads, dtype=float)
    top = limit or float(carried.max(initial=0)) or 1.0
    text = data if unit == "bytes" else compact
    maps = _maps(topology, carried) if is_box(topology) else {}
    across = 3 if len(maps) > 4 else 2
    shape = next(iter(maps.values())).shape if maps else (1, 1)
    wide = (WIDTH - 0.3) / across - 0.12
    high = min(max(wide * shape[0] / shape[1], 0.3), 2.2)
    # names go in a column each direction: + above, - below
    lines = -(-len(maps) // across)
    block = lines * (high + 0.27) + (0.55 if maps else 0)
    height = 0.42 + block + 1.75
    norm, cmap = Normalize(0, top), sequential()
    with style():
        figure = new_figure(height)
        headline(figure, title)
        axes = sheet(figure)
        for place, (name, values) in enumerate(maps.items()):
            left = 0.2 + place % across * (wide + 0.12)
            bottom = height - 0.42 - (place // across + 1) * (high + 0.27) + 0.02
            cells = np.ma.masked_equal(values, 0)
            picture(axes, cells, (left, bottom, wide, high), norm, cmap, name)
        if maps:
            bottom = height - 0.42 - block + 0.17
            bar = figure.add_axes((0.2 / WIDTH, bottom / height, 0.9, 0.12 / height))
            colour_bar(figure, bar, norm, cmap, text, f"highest {unit} on a link of the cell")
        _curve(figure, carried, top, unit, height)
    return figure


def _maps(topology: Topology, loads: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Highest load over z of the links that leave (x, y), for each direction that has links."""
    place = coordinates(topology)
    dx, dy = int(place[:, 0].max()) + 1, int(place[:, 1].max()) + 1
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


def _curve(
    figure: Figure, loads: NDArray[np.float64], top: float, unit: str, height: float
) -> None:
    """Draw how many links carry at least so much."""
    axes = figure.add_axes((0.62 / WIDTH, 0.5 / height, (WIDTH - 0.85) / WIDTH, 0.98 / height))
    used = np.sort(loads[loads > 0])[::-1]
    rank = np.arange(1, len(used) + 1)
    keep = np.unique(np.geomspace(1, max(len(used), 1), 400).astype(int)) - 1
    if len(used):
        axes.step(used[keep], rank[keep], where="post", color=BLUE, linewidth=1.5)
        axes.fill_between(used[keep], 0, rank[keep], step="post", color=BLUE, alpha=0.15, lw=0)
    value_axis(axes, data if unit == "bytes" else compact, top, 5)
    axes.set_ylim(0, max(len(used), 1) * 1.06)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: compact(value))
    axes.set_xlabel(f"{unit} on a link, at least")
    axes.set_title(
        f"links ({len(used):,} used of {len(loads):,})", fontsize=8.5, fontweight="normal", pad=4
    )
