"""Figures of a mapping: which rank sits where, and how far its messages go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from hopmap.topologies import Topology
from hopmap.traces import Traffic

from .layout import Layout, coordinates, is_box, slices, stack
from .network import DRAWN, LINE, canvas, draw_planes
from .style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    RED,
    SKY,
    SMALL,
    WIDTH,
    colour_bar,
    headline,
    new_figure,
    picture,
    sheet,
    style,
)
from .switches import drawable, rank_levels
from .tips import add_tips, squares

EDGES = 1000  # communicating pairs that are drawn at most, the costliest,
EDGES_A_NODE = 3  # and so many for each node
VECTORS = 400  # of these as lines; more become an image
ROW = 512  # nodes of a network without coordinates side by side; each is a pixel wide or more
NUMBERED = 64  # nodes that have their rank written on them
_HOPS = ("#c3cad0", SKY, ORANGE, RED)  # one hop, two, three, more
_HISTOGRAM = 1.7  # inches
_LEGEND = 0.52


def mapping_view(
    topology: Topology,
    node_of: ArrayLike,
    traffic: Traffic,
    *,
    title: str,
    default: ArrayLike | None = None,
) -> Figure:
    """Draw the ranks on their nodes, long messages standing out, and the hops of all bytes.

    Nodes are coloured by rank. Up to 512 nodes, lines join ranks that talk, coloured by hops;
    above, planes of the box are coloured only; networks of switches are drawn with the ranks at
    their nodes. Below, the share of the bytes by hops.

    Parameters
    ----------
    node_of : array_like of int, shape (ranks,)
        The mapping.
    default : array_like of int, optional
        Another mapping to compare the hops with, the default order.
    """
    places = np.asarray(node_of, dtype=np.int64)
    ranks = traffic.ranks
    rank_at = np.full(topology.nodes, -1, dtype=np.int64)
    rank_at[places[::-1]] = np.arange(ranks)[::-1]  # the lowest rank of a node
    norm, cmap = Normalize(0, max(ranks - 1, 1)), mpl.colormaps["viridis"]
    pairs = traffic.without_self()
    hops = topology.distance(places[pairs.src], places[pairs.dst])
    drawn = LINE if len(topology.dims) == 1 else DRAWN
    with style():
        if is_box(topology) and topology.nodes <= drawn:
            figure = _draw(topology, rank_at, places, pairs, hops, title, norm, cmap)
        elif not is_box(topology) and drawable(topology):
            foot = _HISTOGRAM + 0.74
            figure = rank_levels(topology, places, title=title, foot=foot, norm=norm, cmap=cmap)
        else:
            figure = _planes(topology, rank_at, title, norm, cmap)
        height = figure.get_figheight()
        bar = figure.add_axes((0.2 / WIDTH, (_HISTOGRAM + 0.22) / height, 0.62, 0.12 / height))
        colour_bar(figure, bar, norm, cmap, lambda value: f"{value:,.0f}", "rank on the node")
        series = [(_share(hops, pairs), BLUE, "this mapping")]
        if default is not None:
            other = np.asarray(default, dtype=np.int64)
            before = topology.distance(other[pairs.src], other[pairs.dst])
            series.append((_share(before, pairs), GREY, "default order"))
        _histogram(figure, series, height)
    return figure


def _draw(
    topology: Topology,
    rank_at: NDArray[np.int64],
    places: NDArray[np.int64],
    pairs: Traffic,
    hops: NDArray[np.int64],
    title: str,
    norm: Normalize,
    cmap: Any,
) -> Figure:
    flat = len(topology.dims) < 3
    layout = slices(topology) if flat else stack(topology)
    # each pair once, both directions together
    key = np.minimum(pairs.src, pairs.dst) * np.int64(pairs.ranks) + np.maximum(
        pairs.src, pairs.dst
    )
    key, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    cost = np.bincount(inverse, weights=_weight(pairs) * hops, minlength=len(key))
    far = hops[first]
    chosen = np.argsort(cost, kind="stable")[-min(EDGES, EDGES_A_NODE * topology.nodes) :]
    chosen = chosen[far[chosen] > 0]
    chosen = chosen[np.argsort(far[chosen], kind="stable")]
    ends = layout.nodes[np.stack((places[pairs.src[first]], places[pairs.dst[first]]), axis=1)]
    depth = coordinates(topology)[:, 2]
    flat_pair = depth[places[pairs.src[first]]] == depth[places[pairs.dst[first]]]
    around = flat_pair & (np.hypot(*(ends[:, 1] - ends[:, 0]).T) > 1.6)
    bend = (far > 1) | around
    level = np.minimum(far[chosen], 4) - 1
    segments = [_line(*ends[i], bent=bool(bend[i])) for i in chosen]
    figure, axes, span = canvas(_with_room(layout, segments), title, _HISTOGRAM + 0.6 + _LEGEND)
    draw_planes(axes, layout)
    lines = LineCollection(
        segments,
        colors=[_HOPS[i] for i in level],
        linewidths=np.array([1.3, 1.2, 1.3, 1.5])[level] * (0.8 if span < 0.3 else 1),
        zorder=2,
    )
    lines.set_rasterized(len(chosen) > VECTORS)
    axes.add_collection(lines, autolim=False)
    _nodes(axes, layout.nodes, rank_at, norm, cmap, span)
    add_tips(axes, squares(layout.nodes, 0.25), node_words(topology, places))
    handles = []
    for i, name in enumerate(("1 hop", "2 hops", "3 hops", "4 or more")):
        number = int(((far == i + 1) if i < 3 else (far > 3)).sum())
        if number:
            handles.append(
                Line2D([], [], color=_HOPS[i], linewidth=1.8, label=f"{name}: {number:,} pairs")
            )
    if len(chosen) < (far > 0).sum():
        height = figure.get_figheight()
        text = f"{len(chosen):,} costliest of {int((far > 0).sum()):,} pairs drawn"
        figure.text(0.08 / WIDTH, 1 - 0.25 / height, text, va="top", fontsize=SMALL)
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.055, (_HISTOGRAM + 0.68) / figure.get_figheight()),
        ncols=2,
        fontsize=SMALL,
        handlelength=1.2,
        columnspacing=1.6,
        handletextpad=0.5,
        borderpad=0,
        borderaxespad=0,
    )
    return figure


def node_words(topology: Topology, node_of: NDArray[np.int64]) -> list[str]:
    """Say which ranks are on each node."""
    ranks: list[list[int]] = [[] for _ in range(topology.nodes)]
    for rank, node in enumerate(node_of.tolist()):
        ranks[node].append(rank)
    words = [
        f"rank{'s' * (len(each) > 1)} {', '.join(map(str, each))}" if each else "free"
        for each in ranks
    ]
    return [f"{topology.vertex_name(node)}: {text}" for node, text in enumerate(words)]


def _line(a: NDArray[np.float64], b: NDArray[np.float64], *, bent: bool) -> NDArray[np.float64]:
    """Line from a to b, bent where it would run through the nodes between."""
    if not bent:
        return np.stack((a, b))
    along = b - a
    bulge = np.array([-along[1], along[0]]) * 0.13
    t = np.linspace(0, 1, 9)[:, None]
    return np.asarray(a + along * t + bulge * 4 * t * (1 - t))


def _with_room(layout: Layout, lines: Sequence[NDArray[np.float64]]) -> Layout:
    """Make a layout as high as the bends of its lines need, which reach beyond its planes."""
    corners = np.concatenate((layout.nodes, *layout.planes))[:, 1]
    middle = (corners.min() + corners.max()) / 2
    reach = max((float(np.abs(line[:, 1] - middle).max()) for line in lines), default=0.0)
    return layout._replace(height=max(layout.height, 2 * reach + 0.1))


def _nodes(
    axes: Axes,
    nodes: NDArray[np.float64],
    rank_at: NDArray[np.int64],
    norm: Normalize,
    cmap: Any,
    span: float,
) -> None:
    size = 0.46 if len(nodes) <= NUMBERED else 0.5
    colours = np.where((rank_at >= 0)[:, None], cmap(norm(rank_at)), np.ones(4))
    axes.scatter(
        nodes[:, 0],
        nodes[:, 1],
        s=(size * span * 72) ** 2,
        c=colours,
        edgecolors=["white" if rank >= 0 else GREY for rank in rank_at],
        linewidths=0.5,
        zorder=3,
    )
    if len(nodes) <= NUMBERED and span >= 0.3:
        for (x, y), rank in zip(nodes, rank_at, strict=True):
            if rank >= 0:
                axes.text(
                    x,
                    y,
                    str(rank),
                    color="white" if norm(rank) < 0.62 else INK,
                    fontsize=SMALL,
                    ha="center",
                    va="center_baseline",
                    zorder=4,
                )


def _planes(
    topology: Topology, rank_at: NDArray[np.int64], title: str, norm: Normalize, cmap: Any
) -> Figure:
    """Planes z = 0, 1, ... as images coloured by rank; anything but a box in rows of nodes."""
    if is_box(topology):
        place = coordinates(topology)
        shape = tuple(int(place[:, k].max()) + 1 for k in (2, 1, 0))
    else:
        rows = -(-topology.nodes // ROW)
        shape = (1, rows, -(-topology.nodes // rows))
    filled = np.pad(
        rank_at, (0, shape[0] * shape[1] * shape[2] - topology.nodes), constant_values=-1
    )
    planes = np.ma.masked_less(filled, 0).reshape(shape)
    count = shape[0]
    across = min(count, max(1, round(np.sqrt(count * shape[1] / shape[2]))))
    lines = -(-count // across)
    wide = (WIDTH - 0.4) / across - 0.08
    high = min(max(wide * shape[1] / shape[2], 0.25), 3.5)
    foot = _HISTOGRAM + 0.74
    height = 0.38 + lines * (high + 0.2) + foot
    figure = new_figure(height)
    headline(figure, title)
    axes = sheet(figure)
    for z in range(count):
        left = 0.2 + z % across * (wide + 0.08)
        bottom = height - 0.38 - (z // across + 1) * (high + 0.2)
        title = f"z = {z}" if count > 1 else ""
        if not is_box(topology):
            title = f"nodes in order, {shape[2]} a row, from below" if shape[1] > 1 else ""
        picture(axes, planes[z], (left, bottom, wide, high), norm, cmap, title)
    return figure


def _weight(traffic: Traffic) -> NDArray[np.int64]:
    return traffic.bytes if traffic.bytes.any() else traffic.messages


def _share(hops: NDArray[np.int64], pairs: Traffic) -> NDArray[np.float64]:
    weight = np.bincount(hops, weights=_weight(pairs), minlength=2)
    return np.asarray(100 * weight / max(weight.sum(), 1))


def _histogram(
    figure: Figure, series: Sequence[tuple[NDArray[np.float64], str, str]], height: float
) -> None:
    axes = figure.add_axes((0.62 / WIDTH, 0.42 / height, (WIDTH - 0.8) / WIDTH, 0.76 / height))
    longest = max(len(share) for share, _, _ in series)
    first = 0 if any(share[0] > 0 for share, _, _ in series) else 1
    width = 0.8 / len(series)
    for i, (share, colour, name) in enumerate(series):
        x = np.arange(first, len(share)) + (i - (len(series) - 1) / 2) * width
        axes.bar(x, share[first:], width=width * 0.95, color=colour, label=name)
    axes.set_xlim(first - 0.6, max(longest - 1, first + 3) + 0.6)
    axes.set_ylim(0, max(float(share.max()) for share, _, _ in series) * 1.08 or 1)
    axes.xaxis.set_major_locator(MaxNLocator(14, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    axes.grid(axis="y")
    axes.set_xlabel("hops", labelpad=1)
    axes.set_title("share of the bytes", fontsize=8.5, fontweight="normal", pad=4)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="upper right",
        bbox_to_anchor=(0.97, 1.52 / height),
        ncols=2,
        handlelength=1,
        borderpad=0,
        borderaxespad=0,
    )
