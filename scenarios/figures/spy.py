"""Figures of traffic: the spy plot."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from hopmap.scenarios.quantities import compact
from hopmap.traces import Traffic
from hopmap.units import show_bytes

from .style import WIDTH, colour_bar, new_figure, sequential, style
from .tips import add_tips

CELLS = 256  # across the picture; more ranks share cells
SQUARES = 600  # cells that are drawn as squares; more become an image


def spy_plot(
    traffic: Traffic,
    *,
    values: Literal["bytes", "messages"] = "bytes",
    title: str | None = None,
) -> Figure:
    """Draw who sends to whom: senders downwards, receivers to the right, colours logarithmic.

    Above `CELLS` ranks a cell sums neighbouring ranks; memory goes with the pairs that talk and
    the cells, never with ranks squared.

    Parameters
    ----------
    values : {"bytes", "messages"}
        What colours mean; messages are taken where no bytes are sent.
    title : str, optional
        Above the picture; the name of the trace.
    """
    what = "bytes" if values == "bytes" and traffic.bytes.any() else "messages"
    weight = traffic.bytes if what == "bytes" else traffic.messages
    text_of = show_bytes if what == "bytes" else compact
    group = -(-max(traffic.ranks, 1) // CELLS)
    cells = -(-max(traffic.ranks, 1) // group)
    key, inverse = np.unique(
        (traffic.src // group).astype(np.int64) * cells + traffic.dst // group,
        return_inverse=True,
    )
    total = np.bincount(inverse, weights=weight, minlength=len(key))
    key, total = key[total > 0], total[total > 0]
    row, column = key // cells, key % cells

    with style():
        figure = new_figure(WIDTH + 0.75)
        side = WIDTH - 0.85
        axes = figure.add_axes(
            (0.7 / WIDTH, 0.95 / (WIDTH + 0.75), side / WIDTH, side / (WIDTH + 0.75))
        )
        axes.spines[:].set_visible(True)
        # rank r is the square from r - 1/2 to r + 1/2
        axes.set_xlim(-0.5, traffic.ranks - 0.5)
        axes.set_ylim(traffic.ranks - 0.5, -0.5)
        for axis, name in ((axes.xaxis, "receiver"), (axes.yaxis, "sender")):
            axis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 4, 5, 10]))
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axis.set_label_text(f"{name} (rank)")
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        if title:
            figure.text(0.1 / WIDTH, 0.985, title, va="top", weight="bold", fontsize=9)
        if not len(total):
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
        share = f", {group} × {group} ranks a cell" if group > 1 else ""
        bar = figure.add_axes(
            (0.7 / WIDTH, 0.4 / (WIDTH + 0.75), side / WIDTH, 0.13 / (WIDTH + 0.75))
        )
        if low < high:
            if text_of(low) == text_of(high):
                text_of = _exact if what == "bytes" else "{:,.0f}".format
            colour_bar(figure, bar, norm, cmap, text_of, f"{what}{share}, log")
        else:
            bar.set_axis_off()
            text = f"{text_of(low)} each" if what == "bytes" else f"messages: {text_of(low)} each"
            bar.set_title(text + share, fontsize=8.5, fontweight="normal", loc="left")
    return figure


def _ranks(cell: int, group: int) -> str:
    return str(cell) if group == 1 else f"{cell * group} to {(cell + 1) * group - 1}"


def _exact(count: float) -> str:
    return f"{count:,.0f} B"
