"""Figure of quality_time.py: J over processor seconds, a panel for every class of instances."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MultipleLocator, NullLocator

from hopmap.figures.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    RED,
    SMALL,
    WIDTH,
    legend,
    new_figure,
    plain_title,
    style,
)

FAMILIES = {"hier": "4:16:k hierarchy", "torus": "torus", "mesh": "mesh"}
GRAPHS = {"grid2d": "2-D grid", "grid3d": "3-D grid", "rgg17": "random geometric"}
LIMITS = {"hier": (0.97, 1.25), "torus": (0.80, 1.32), "mesh": (0.73, 1.25)}
COLUMN = 0.66  # of a panel's width: where the names of peers begin
SECONDS = (0.0014, 25.0)
COLOURS = {"fast starts": ORANGE, "topdown | N_10": GREEN, "multilevel": RED, "auto": BLUE}
NAMES = {
    "viem": "VieM",
    "sharedmap": "SharedMap",
    "scotch_gmap": "Scotch",
    "treematch": "TreeMatch",
    "mtkahypar_map": "Mt-KaHyPar",
    "scipy_qap": "SciPy",
}
MARKERS = {"viem": "s", "sharedmap": "D", "scotch_gmap": "^", "treematch": "P"}
TITLE = "Quality for time: J over the best peer's, mean of 256, 512 and 1,024 ranks"


def draw(ours: pd.DataFrame, peers: pd.DataFrame, unshuffled: pd.DataFrame) -> Figure:
    """Draw three rows of three panels.

    Parameters
    ----------
    ours, peers : DataFrame
        Columns family, graph, curve (a peer's: the tool), name, ratio, seconds.
    unshuffled : DataFrame
        Columns family, graph, ratio: of the unshuffled order.
    """
    with style():
        figure = new_figure(8.2, TITLE, 2 * WIDTH)
        panels = figure.subplots(3, 3)
        for row, (family, machine) in enumerate(FAMILIES.items()):
            for column, (graph, traffic) in enumerate(GRAPHS.items()):
                axes = panels[row, column]
                here = [
                    part[(part.family == family) & (part.graph == graph)]
                    for part in (ours, peers, unshuffled)
                ]
                plain_title(axes, f"{traffic}, {machine}", SMALL, 4)
                _panel(axes, *here, LIMITS[family])
                if column:
                    axes.tick_params(labelleft=False)
                if row == len(FAMILIES) - 1:
                    axes.set_xlabel("processor seconds", labelpad=2)
                else:
                    axes.tick_params(labelbottom=False)
        _legend(figure)
    return figure


def _panel(
    axes: Axes,
    ours: pd.DataFrame,
    peers: pd.DataFrame,
    unshuffled: pd.DataFrame,
    limits: tuple[float, float],
) -> None:
    axes.set_xscale("log")
    axes.set(xlim=SECONDS, ylim=limits)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(MultipleLocator(0.05 if limits[0] > 0.9 else 0.1))
    axes.grid(axis="y")
    axes.axhline(1, color=GREY, linewidth=0.8, zorder=1)
    for ratio in unshuffled.ratio:
        axes.axhline(ratio, color=GREY, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    for curve, points in ours.groupby("curve"):
        front = best_so_far(points) if curve == "fast starts" else points.sort_values("seconds")
        colour = COLOURS[str(curve)]
        axes.plot(
            front.seconds,
            front.ratio,
            color=colour,
            linewidth=1.4,
            marker="o",
            markersize=3,
            zorder=3,
        )
    for tool, points in peers.groupby("curve"):
        marker = MARKERS[str(tool)]
        axes.plot(
            points.seconds, points.ratio, marker, color=INK, markersize=4, zorder=4,
            markeredgecolor="white", markeredgewidth=0.5,
        )  # fmt: skip
    shown = best_so_far(peers[peers.ratio < limits[1]], 0.005)
    for place, point in enumerate(shown.itertuples()):
        height = 0.93 - 0.085 * place
        axes.annotate(
            "",
            (point.seconds, point.ratio),
            xytext=(COLUMN, height),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkB": 3},
            zorder=2,
        )
        axes.text(
            COLUMN + 0.01,
            height,
            str(point.name),
            transform=axes.transAxes,
            va="center",
            fontsize=6.8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.6},
            zorder=5,
        )


def best_so_far(points: pd.DataFrame, least: float = 0.0) -> pd.DataFrame:
    """Points that none is faster than and better, or nearly as good; fastest first."""
    rows = points.sort_values(["seconds", "ratio"])
    return rows[rows.ratio < rows.ratio.cummin().shift(fill_value=float("inf")) - least]


def _legend(figure: Figure) -> None:
    handles = [
        Line2D([], [], color=colour, marker="o", markersize=3.4, label=curve)
        for curve, colour in COLOURS.items()
    ]
    for tool, marker in MARKERS.items():
        name = NAMES[tool]
        handles.append(
            Line2D([], [], color=INK, marker=marker, markersize=4.4, linestyle="", label=name)
        )
    handles.append(Line2D([], [], color=GREY, linewidth=0.9, linestyle=(0, (4, 2))))
    handles[-1].set_label("unshuffled order")
    legend(figure, handles, 5)
