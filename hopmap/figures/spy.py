"""Figures of traffic: the spy plot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hopmap.arrays import Floats, Ints
from hopmap.traces import Traffic
from hopmap.units import compact, show_bytes

from .style import WIDTH, colour_bar, new_figure, plain_title, sequential, set_ticks, style
from .tips import add_tips

CELLS = 256  # across the picture; more ranks share cells
BLOCKS = 24  # across a picture of many cells, that say something at the mouse
SQUARES = 600  # cells that are drawn as squares; more become an image


@style()
def spy_plot(traffic: Traffic, *, title: str = "") -> Figure:
    """Draw who sends to whom: senders downwards, receivers to the right, colours logarithmic.

    Above `CELLS` ranks a cell sums neighbouring ranks; memory goes with the pairs that talk and
    the cells, never with ranks squared. Messages are taken where no bytes are sent.
    """
    what = "bytes" if traffic.bytes.any() else "messages"
    weight = traffic.bytes if what == "bytes" else traffic.messages
    text_of = show_bytes if what == "bytes" else compact
    group = -(-max(traffic.ranks, 1) // CELLS)
    cells = -(-max(traffic.ranks, 1) // group)
    key, inverse = np.unique(
        (traffic.src // group).astype(np.int64) * cells + traffic.dst // group,
        return_inverse=True,
    )
    total = np.bincount(inverse, weights=weight, minlength=len(key)).astype(np.float64)
    key, total = key[total > 0], total[total > 0]
    row, column = key // cells, key % cells

    figure = new_figure(WIDTH + 0.75, title)
    axes, bar = figure.subplots(2, 1, height_ratios=[WIDTH - 0.85, 0.13])
    axes.set_box_aspect(1)
    axes.spines[:].set_visible(True)
    # rank r is the square from r - 1/2 to r + 1/2
    axes.set_xlim(-0.5, traffic.ranks - 0.5)
    axes.set_ylim(traffic.ranks - 0.5, -0.5)
    for axis, name in ((axes.xaxis, "receiver"), (axes.yaxis, "sender")):
        set_ticks(axis, "{:,.0f}".format, MaxNLocator(5, integer=True, steps=[1, 2, 4, 5, 10]))
        axis.set_label_text(f"{name} (rank)")
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    if not len(total):
        bar.set_axis_off()
        axes.text(0.5, 0.5, "no point-to-point messages", ha="center", transform=axes.transAxes)
        return figure
    low, high = float(total.min()), float(total.max())
    norm, cmap = LogNorm(low if low < high else low / 2, high), sequential(0.1)
    if len(total) <= SQUARES:
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        places = np.stack((column, row), axis=1)[:, None, :] + corners[None]
        squares = PolyCollection(
            list(np.minimum(places * group, traffic.ranks) - 0.5),
            array=total,
            norm=norm,
            cmap=cmap,
            # a hairline in the cell's own colour closes the gaps between neighbours
            edgecolors="face",
            linewidths=0.3 if cells > 16 else 0,
        )
        axes.add_collection(squares, autolim=False)
        ends = zip(row.tolist(), column.tolist(), total.tolist(), strict=True)
        add_tips(
            axes,
            np.minimum(places * group, traffic.ranks) - 0.5,
            [f"{_ranks(a, group)} → {_ranks(b, group)}: {text_of(n)}" for a, b, n in ends],
        )
    else:
        image = np.full((cells, cells), np.nan)
        image[row, column] = total
        edges = np.minimum(np.arange(cells + 1) * group, traffic.ranks) - 0.5
        axes.pcolormesh(edges, edges, image, norm=norm, cmap=cmap, rasterized=True)
        _say_blocks(axes, traffic.ranks, group, row, column, total, text_of)
    share = f", {group} × {group} ranks a cell" if group > 1 else ""
    if low < high:
        if text_of(low) == text_of(high):
            text_of = ("{:,.0f} B" if what == "bytes" else "{:,.0f}").format
        colour_bar(figure, bar, norm, cmap, text_of, f"{what}{share}, log")
    else:
        bar.set_axis_off()
        text = f"{text_of(low)} each" if what == "bytes" else f"messages: {text_of(low)} each"
        plain_title(bar, text + share)
    return figure


def _say_blocks(
    axes: Axes,
    ranks: int,
    group: int,
    row: Ints,
    column: Ints,
    total: Floats,
    text_of: Callable[[float], str],
) -> None:
    """Say what blocks of cells carry in all, where cells are too many."""
    wide = group * -(-(int(max(row.max(), column.max())) + 1) // BLOCKS)  # ranks
    blocks = -(-ranks // wide)
    keys, inverse = np.unique(
        row * group // wide * blocks + column * group // wide, return_inverse=True
    )
    sums = np.bincount(inverse, weights=total)
    corners = np.stack((keys % blocks, keys // blocks), axis=1) * wide
    boxes = [(at - 0.5, np.minimum(at + wide, ranks) - 0.5) for at in corners]
    said = [
        f"{_ranks(y // wide, wide)} → {_ranks(x // wide, wide)}: {text_of(value)}"
        for (x, y), value in zip(corners.tolist(), sums.tolist(), strict=True)
    ]
    add_tips(axes, boxes, said)


def _ranks(cell: int, group: int) -> str:
    return str(cell) if group == 1 else f"{cell * group} to {(cell + 1) * group - 1}"
