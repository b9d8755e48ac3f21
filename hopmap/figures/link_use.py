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
from hopmap.traces.safety.atomic_files import replacing
from hopmap.units import time_unit

from .style import (
    CYCLE,
    GREY,
    PALE,
    SMALL,
    colour_bar,
    new_figure,
    sequential,
    style,
    svg_text,
)

ROWS = 256  # of the picture; more links share rows
KINDS = 4  # that get a line of their own


def write_link_use_plot(
    path: Path, use: LinkUse, topology: Topology, *, makespan: float, title: str
) -> None:
    """Draw the use of links of a run into a file, see `link_use_plot`."""
    figure = link_use_plot(use, topology, makespan=makespan, title=title)
    with replacing(path) as partial:
        if path.suffix == ".svg":
            partial.write_text(svg_text(figure), encoding="utf-8")
        else:
            figure.savefig(partial)


@style()
def link_use_plot(use: LinkUse, topology: Topology, *, makespan: float, title: str) -> Figure:
    """Draw the share of time that links are busy, over time until the makespan.

    Above, lines: the busiest link at each time, and the mean of each kind. Below, a row per link
    that is used, the busiest on top; above `ROWS` links a row is the mean of neighbours in that
    order.
    """
    share = use.fraction
    order = np.argsort(-use.busy.sum(axis=1), kind="stable")
    used = int(np.count_nonzero(use.busy.any(axis=1)))
    scale, unit = time_unit(makespan)
    factor = 1 / scale
    until = max(makespan, use.width) * factor
    edge = use.busy.shape[1] * use.width * factor
    figure = new_figure(4.7, title)
    panels = figure.subplot_mosaic(
        [["lines"] * 3, ["links"] * 3, ["bar", "bar", "note"]], height_ratios=[0.8, 1.85, 0.1]
    )
    top, below = panels["lines"], panels["links"]
    _lines(top, share, topology, np.arange(use.busy.shape[1] + 1) * use.width * factor)
    norm, cmap = Normalize(0, 1), sequential()
    if used:
        _picture(below, share[order[:used]], edge, norm, cmap)
    else:
        below.set_yticks([])
    below.set_xlabel(f"time ({unit})", labelpad=2)
    below.set_ylabel(f"{used:,} used links, busiest first", labelpad=3)
    for axes in (top, below):
        axes.set_xlim(0, until)
        axes.xaxis.set_major_locator(MaxNLocator(5))
    top.tick_params(labelbottom=False)
    colour_bar(figure, panels["bar"], norm, cmap, _percent, "busy")
    unused = topology.links - used
    note = f"{unused:,} of {topology.links:,}\nlinks unused" if unused else "all links are used"
    note = note if topology.links else "there are no links"
    panels["note"].set_axis_off()
    panels["note"].text(0, 1, note, fontsize=SMALL, va="center")
    return figure


def _picture(
    axes: Axes,
    share: Floats,
    edge: float,
    norm: Normalize,
    cmap: Colormap,
) -> None:
    group = -(-len(share) // ROWS)
    starts = np.arange(0, len(share), group)
    sizes = np.diff(np.append(starts, len(share)))
    rows = np.add.reduceat(share, starts, axis=0) / sizes[:, None]
    axes.imshow(
        np.ma.masked_less_equal(rows, 0),
        norm=norm,
        cmap=cmap,
        aspect="auto",
        interpolation="nearest",
        extent=(0, edge, len(share), 0),
    )
    axes.set_facecolor("#f4f6f7")
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


def _lines(axes: Axes, share: Floats, topology: Topology, edges: Floats) -> None:
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.5, 1])
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
    return f"{100 * value:.0f} %"
