"""Figures of anytime.py: J over processor seconds, and which member of `auto` found what when."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from hopmap.figures.style import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    SMALL,
    WIDTH,
    legend,
    new_figure,
    plain_title,
    style,
)

KINDS = ("delaunay3d", "rgg2d", "knn3d", "communities", "rmat", "small_world")
CASES = (("delaunay3d", 1024), ("rgg2d", 1024), ("knn3d", 4096), ("communities", 4096))
MARKERS = {"scotch": "^", "sharedmap": "D"}
LONG = 10.0  # seconds of the run whose members are drawn
COLUMN, LINE = 0.5, 0.085  # where names of members begin, and their distance, in panels


def draw_curves(shown: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """Draw a panel for each size: a curve for each kind, relative to the best peer of any time."""
    sizes = sorted(shown["ranks"].unique())
    with style():
        title = "J of auto over the best peer's, after processor seconds"
        figure = new_figure(3.6, title, 2 * WIDTH)
        panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for axes, ranks in zip(panels, sizes, strict=True):
            plain_title(axes, f"{ranks:,} ranks", SMALL, 4)
            _seconds(axes)
            axes.grid(axis="y")
            axes.axhline(1, color=GREY, linewidth=0.8, zorder=1)
            for kind, colour in zip(KINDS, CYCLE, strict=True):
                here = shown[(shown["kind"] == kind) & (shown["ranks"] == ranks)]
                here = here.sort_values("budget")
                axes.plot(here["cpu_s"], here["any"], "o-", color=colour, markersize=3, zorder=3)
                of = (rows["kind"] == kind) & (rows["ranks"] == ranks) & (rows["budget"] == 0)
                for peer in rows[of].itertuples():
                    axes.plot(
                        peer.cpu_s, peer.J / rows.loc[of, "J"].min(), color=colour, markersize=4,
                        marker=MARKERS[peer.tool.split()[0]], markeredgecolor=INK,
                        markeredgewidth=0.5, zorder=4,
                    )  # fmt: skip
            axes.set_ylim(0.55, 1.45)
        lines = [
            Line2D([], [], color=colour, marker="o", markersize=3, label=kind)
            for kind, colour in zip(KINDS, CYCLE, strict=True)
        ]
        points = [
            Line2D([], [], color=GREY, marker=marker, linestyle="", markersize=4, label=label)
            for label, marker in zip(("Scotch", "SharedMap"), MARKERS.values(), strict=True)
        ]
        legend(figure, [*lines, *points], 4)
    return figure


def draw_members(rows: pd.DataFrame) -> Figure:
    """Draw the best J so far in one run a case, with every member that lowered it."""
    with style():
        title = f"Members of auto that set a new best in {LONG:g} processor seconds"
        figure = new_figure(5.4, title, 2 * WIDTH)
        panels = figure.subplots(2, 2).ravel()
        for axes, (kind, ranks) in zip(panels, CASES, strict=True):
            of = (rows["kind"] == kind) & (rows["ranks"] == ranks) & (rows["budget"] == LONG)
            here = rows[of]
            plain_title(axes, f"{kind}, {ranks:,} ranks, {here['spec'].iloc[0]}", SMALL, 4)
            _members(axes, here)
        for axes in panels[2:]:
            axes.set_xlabel("processor seconds", labelpad=2)
        for axes in panels[::2]:
            axes.set_ylabel("J over the last J", labelpad=2)
    return figure


def _members(axes: Axes, here: pd.DataFrame) -> None:
    """Draw one run as steps, and name those that lowered J; of equal names in a row the last."""
    lowest = here["J"].iloc[-1]
    _seconds(axes)
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticks([1, 1.2, 1.5, 2, 3, 4, 6, 8])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="y")
    axes.step(here["cpu_s"], here["J"] / lowest, where="post", color=BLUE, linewidth=1.2)
    new = here[here["J"] < here["J"].shift(fill_value=float("inf"))]
    axes.plot(new["cpu_s"], new["J"] / lowest, "o", color=BLUE, markersize=3.5)
    axes.set_ylim(0.97, 1.1 * here["J"].max() / lowest)
    axes.set_xlim(here["cpu_s"].min() / 1.5, 1e3 * LONG)
    axes.set_xticks([t for t in (0.01, 0.1, 1, 10) if t > here["cpu_s"].min() / 1.5])
    named = new[new["tool"] != new["tool"].shift(-1)]
    for place, step in enumerate(named.itertuples()):
        axes.annotate(
            f"{step.J / lowest:.3f}  {step.tool}",
            (step.cpu_s, step.J / lowest),
            xytext=(COLUMN, 0.97 - LINE * place),
            textcoords="axes fraction",
            va="center",
            fontsize=6.8,
            arrowprops={
                "arrowstyle": "-",
                "color": GREY,
                "linewidth": 0.5,
                "patchA": None,  # begins at the name, and is not clipped below it
                "shrinkA": 2,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
        )


def _seconds(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
