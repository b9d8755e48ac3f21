"""Figure of the use of links over time: all of them on average, and each, the busiest on top."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hopmap.arrays import Floats
from hopmap.simulator import LinkUse
from hopmap.topologies import Topology
from hopmap.units import time_unit

from .layout import name_link
from .style import (
    CYCLE,
    GREY,
    NAMED,
    PALE,
    SMALL,
    TEXT_LINE,
    colour_bar,
    halves,
    list_busiest,
    new_figure,
    sequential,
    set_ticks,
    style,
    write_figure,
)
from .tips import add_tips

ROWS = 256  # of the picture; more links share rows
KINDS = 4  # that get a line of their own
WIDE, LETTERS = 6.4, 84  # inches of the figure, for long names of links; letters of a line


def write_link_use_plot(
    path: Path, use: LinkUse, topology: Topology, *, makespan: float, title: str
) -> None:
    """Draw the use of links of a run into a file, see `link_use_plot`."""
    write_figure(link_use_plot(use, topology, makespan=makespan, title=title), path)


@style()
def link_use_plot(use: LinkUse, topology: Topology, *, makespan: float, title: str) -> Figure:
    """Draw the share of time that links are busy, over time until the makespan.

    Above, lines: the busiest link at each time, and the mean of each kind. Below, a row per link
    that is used, the busiest on top; above `ROWS` links a row is the busiest of neighbours in that
    order. Colours end at the highest share there is. The busiest links are named.
    """
    share = use.fraction
    order = np.argsort(-use.busy.sum(axis=1), kind="stable")
    used = int(np.count_nonzero(use.busy.any(axis=1)))
    scale, unit = time_unit(makespan)
    factor = 1 / scale
    until = max(makespan, use.width) * factor
    edge = use.busy.shape[1] * use.width * factor
    most = float(share.max(initial=0)) or 1.0
    names = 0.35 + TEXT_LINE * NAMED
    figure = new_figure(4.75 + names, title, WIDE)
    above, foot = halves(figure, 4.4, names)
    panels = above.subplot_mosaic(
        [["lines"] * 3, ["links"] * 3, ["bar", "bar", "note"]], height_ratios=[0.8, 1.85, 0.1]
    )
    named = foot.subplots()
    top, below = panels["lines"], panels["links"]
    _lines(top, share, topology, np.arange(use.busy.shape[1] + 1) * use.width * factor)
    norm, cmap = Normalize(0, most), sequential()
    busy = use.busy.sum(axis=1) / max(makespan, use.width)
    if used:
        words = [f"{name_link(topology, link)}: {_percent(busy[link])}" for link in order[:used]]
        _picture(below, share[order[:used]], edge, norm, cmap, words)
        list_busiest(named, words[:NAMED], ", time busy in the whole run", LETTERS)
    else:
        below.set_yticks([])
        named.set_axis_off()
    below.set_xlabel(f"time ({unit})", labelpad=2)
    below.set_ylabel(f"{used:,} used links, busiest first", labelpad=3)
    for axes in (top, below):
        axes.set_xlim(0, until)
        axes.xaxis.set_major_locator(MaxNLocator(5))
    top.tick_params(labelbottom=False)
    colour_bar(above, panels["bar"], norm, cmap, _percent, "share of time busy")
    unused = topology.links - used
    note = f"{unused:,} of {topology.links:,}\nlinks unused" if unused else "all links are used"
    note = note if topology.links else "there are no links"
    panels["note"].set_axis_off()
    panels["note"].text(0, 1, note, fontsize=SMALL, va="center")
    return figure


def _picture(
    axes: Axes, share: Floats, edge: float, norm: Normalize, cmap: Colormap, words: list[str]
) -> None:
    group = -(-len(share) // ROWS)
    starts = np.arange(0, len(share), group)
    rows = np.maximum.reduceat(share, starts, axis=0)
    axes.imshow(
        np.ma.masked_less_equal(rows, 0),
        norm=norm,
        cmap=cmap,
        aspect="auto",
        interpolation="none",
        extent=(0, edge, len(share), 0),
    )
    axes.set_facecolor("#f4f6f7")
    set_ticks(axes.yaxis, "{:,.0f}".format, MaxNLocator(4, integer=True))
    rest = f", busiest of {group} links in this row" if group > 1 else ""
    places = [[(0, start), (edge, min(start + group, len(share)))] for start in starts.tolist()]
    add_tips(axes, places, [words[start] + rest for start in starts.tolist()])


def _lines(axes: Axes, share: Floats, topology: Topology, edges: Floats) -> None:
    most = float(share.max(initial=0)) or 1.0
    axes.set_ylim(0, 1.02 * most)
    axes.set_yticks([0, most / 2, most])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _percent(value)))
    axes.grid(axis="y")
    if not len(share):
        return
    axes.stairs(share.max(axis=0), edges, color=PALE, fill=True, label="busiest")
    axes.stairs(share.max(axis=0), edges, color=GREY, linewidth=0.6)
    for number, kind in enumerate(topology.kinds[:KINDS]):
        of_kind = share[topology.link_kind == number]
        if len(of_kind):
            name = f"mean, {kind.name}" if len(topology.kinds) > 1 else "mean of all"
            axes.stairs(of_kind.mean(axis=0), edges, color=CYCLE[number], linewidth=1.1, label=name)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.98),
        ncols=3 if len(topology.kinds) < 3 else 2,
        columnspacing=1,
        handlelength=1.2,
    )


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
