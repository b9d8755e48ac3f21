"""Figure of allocations.py: bytes on global links and time against the order of the list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hopmap.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    WIDTH,
    new_figure,
    style,
)

COLOURS = {
    "random": ORANGE,
    "udfs": PURPLE,
    "recursive_bisection": GREEN,
    "auto(moves=1000)": BLUE,
}
PANELS = {"global_bytes": "bytes on global links", "time": "simulated time"}
LIMITS = (0.25, 4.0)
ROW, BAR = 1.0, 0.17


def draw(found: pd.DataFrame, path: Path, order: Callable[[str, str], tuple[int, int]]) -> None:
    """Write the figure: a row for every machine and pattern in order, a bar for every mapper."""
    cells = sorted(
        set(zip(found["machine"], found["pattern"], strict=True)), key=lambda cell: order(*cell)
    )
    with style():
        figure = new_figure(0.9 + 0.42 * len(cells), width=2 * WIDTH)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (quantity, title) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, found, cells, quantity)
            axes.set_title(title)
        names = [f"{machine}: {pattern}" for machine, pattern in cells]
        panels[0].set_yticks(range(len(cells)), names)
        handles = [
            Line2D([], [], color=c, marker="o", markersize=4, label=m) for m, c in COLOURS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.savefig(path)


def _panel(axes: Axes, found: pd.DataFrame, cells: list[tuple[str, str]], quantity: str) -> None:
    axes.axvline(1, color=GREY, linewidth=0.8, zorder=1)
    for row, (machine, pattern) in enumerate(cells):
        cell = found[(found["machine"] == machine) & (found["pattern"] == pattern)]
        for place, (mapper, colour) in enumerate(COLOURS.items()):
            values = cell.loc[cell["mapper"] == mapper, quantity].dropna()
            if values.empty:
                continue
            low, middle, high = values.quantile([0.1, 0.5, 0.9]).clip(*LIMITS)
            y = row + (place - 1.5) * BAR
            axes.plot((low, high), (y, y), color=colour, linewidth=1.6, solid_capstyle="butt")
            axes.plot(middle, y, "o", color=colour, markersize=3.6, markeredgecolor="white",
                      markeredgewidth=0.4)  # fmt: skip
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*LIMITS)
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
