"""Figures of a mapping: which rank sits where, and how far its messages go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from hopmap.arrays import Ints, equals_before
from hopmap.topologies import Topology
from hopmap.traces import Traffic

from .layout import (
    NODE_RING,
    Layout,
    Points,
    coordinates,
    drawable,
    is_box,
    levels,
    slices,
    stack,
)
from .network import DRAWN, LINE, VECTORS, draw_planes, draw_vertices, view_box
from .style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    RED,
    SKY,
    SMALL,
    WIDTH,
    add_tips,
    colour_bar,
    halves,
    new_figure,
    pictures,
    plain_title,
    set_ticks,
    sheet,
    squares,
    style,
    write,
)

EDGES = 1000  # communicating pairs that are drawn at most, the costliest,
EDGES_A_NODE = 3  # and so many for each node
PAIR_VECTORS = 400  # of pairs as lines; more become an image
ROW = 512  # nodes of a network without coordinates side by side; each is a pixel wide or more
NUMBERED = 64  # nodes that have their rank written on them
TURNED = 400  # costliest pairs of ranks that are drawn where the mapping can be turned
_HOPS = ("#c3cad0", SKY, ORANGE, RED)  # one hop, two, three, more
_FAR = ("1 hop", "2 hops", "3 hops", "4 or more")
_BAR, _HISTOGRAM = 0.65, 1.7  # inches


class _Ranks(NamedTuple):
    """A mapping that is drawn: rank -> node, the lowest rank of each node or -1, and colours."""

    node_of: Ints
    at: Ints
    norm: Normalize
    cmap: Colormap

    def write(self, axes: Axes, place: ArrayLike, rank: int, size: float = SMALL) -> None:
        """Write a rank's number on its dot."""
        colour = "white" if self.norm(rank) < 0.62 else INK
        write(axes, place, str(rank), size, color=colour, zorder=5)


@style()
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
    their nodes. Below, the share of the bytes by hops, next to that of the `default` order.
    """
    places = np.asarray(node_of, dtype=np.int64)
    norm = Normalize(0, max(traffic.ranks - 1, 1))
    ranks = _Ranks(places, lowest_ranks(topology, places), norm, mpl.colormaps["viridis"])
    pairs = traffic.without_self()
    hops = topology.distance(places[pairs.src], places[pairs.dst])
    drawn = LINE if len(topology.dims) == 1 else DRAWN
    if is_box(topology) and topology.nodes <= drawn:
        frame = _on_box(topology, ranks, pairs, hops, title)
    elif not is_box(topology) and drawable(topology):
        frame = _on_switches(topology, ranks, title)
    else:
        frame = _on_planes(topology, ranks, title)
    name = "rank on the node"
    colour_bar(frame.figure, frame.bar, norm, ranks.cmap, lambda v: f"{v:,.0f}", name)
    series = [(_share(hops, pairs), BLUE, "this mapping")]
    if default is not None:
        other = np.asarray(default, dtype=np.int64)
        before = topology.distance(other[pairs.src], other[pairs.dst])
        series.append((_share(before, pairs), GREY, "default order"))
    _histogram(frame.hops, series)
    return frame.figure


def lowest_ranks(topology: Topology, node_of: Ints) -> Ints:
    """Return the lowest rank of every node, -1 where there is none."""
    at = np.full(topology.nodes, -1, dtype=np.int64)
    at[node_of[::-1]] = np.arange(len(node_of))[::-1]
    return at


class _Frame(NamedTuple):
    """A figure, and axes for the mapping, for a bar below, and for the hops below that."""

    figure: Figure
    view: Axes
    bar: Axes
    hops: Axes


def _frame(high: float, title: str) -> _Frame:
    """Make a figure for a mapping that is `high` inches high."""
    figure = new_figure(high + _BAR + _HISTOGRAM + 0.3, title)
    above, below = halves(figure, high + _BAR, _HISTOGRAM)
    view, bar = above.subplots(2, 1, height_ratios=[high, 0.12])
    return _Frame(figure, view, bar, below.subplots())


def _on_box(topology: Topology, ranks: _Ranks, pairs: Traffic, hops: Ints, title: str) -> _Frame:
    """Draw a box with lines between ranks that talk, both directions together."""
    layout = slices(topology) if len(topology.dims) < 3 else stack(topology)
    low, high = np.minimum(pairs.src, pairs.dst), np.maximum(pairs.src, pairs.dst)
    key = low * np.int64(pairs.ranks) + high
    key, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    cost = np.bincount(inverse, weights=_weight(pairs) * hops, minlength=len(key))
    far = hops[first]
    chosen = np.argsort(cost, kind="stable")[-min(EDGES, EDGES_A_NODE * topology.nodes) :]
    chosen = chosen[far[chosen] > 0]
    chosen = chosen[np.argsort(far[chosen], kind="stable")]
    joined = ranks.node_of[np.stack((pairs.src[first], pairs.dst[first]), axis=1)]
    ends = layout.nodes[joined]
    depth = coordinates(topology)[joined, 2]
    around = (depth[:, 0] == depth[:, 1]) & (np.hypot(*(ends[:, 1] - ends[:, 0]).T) > 1.6)
    bent = (far > 1) | around
    level = np.minimum(far[chosen], 4) - 1
    segments = [_line(*ends[i], bent=bool(bent[i])) for i in chosen]
    layout = _with_room(layout, segments)
    frame = _frame(layout.height * layout.span + 0.4, title)
    axes = frame.view
    view_box(axes, layout)
    draw_planes(axes, layout)
    lines = LineCollection(
        segments,
        colors=[_HOPS[i] for i in level],
        linewidths=np.array([1.3, 1.2, 1.3, 1.5])[level] * (0.8 if layout.span < 0.3 else 1),
        zorder=2,
    )
    lines.set_rasterized(len(chosen) > PAIR_VECTORS)
    axes.add_collection(lines, autolim=False)
    _nodes(axes, layout, ranks)
    add_tips(axes, squares(layout.nodes, 0.25), node_words(topology, ranks.node_of))
    if len(chosen) < (count := int((far > 0).sum())):
        plain_title(axes, f"{len(chosen):,} costliest of {count:,} pairs drawn", SMALL)
    of_level = np.bincount(np.minimum(far[far > 0], 4), minlength=5)[1:]
    handles = [
        Line2D([], [], color=colour, linewidth=1.8, label=f"{name}: {number:,} pairs")
        for colour, name, number in zip(_HOPS, _FAR, of_level.tolist(), strict=True)
        if number
    ]
    if handles:
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.03, 0),
            ncols=2,
            handlelength=1.2,
            columnspacing=1.6,
            handletextpad=0.5,
            borderpad=0,
            borderaxespad=0,
        )
    return frame


def _on_switches(topology: Topology, ranks: _Ranks, title: str) -> _Frame:
    """Draw switches and nodes, and at every node its ranks, coloured by their numbers."""
    layout, node_of = levels(topology), ranks.node_of
    place, side, high = layout.nodes.copy(), layout.width, layout.height
    turn = equals_before(node_of)
    most = int(turn.max(initial=0)) + 1
    pitch = side / topology.nodes  # along a line; on a circle, where the first ranks of nodes are
    if layout.round:
        pitch *= np.pi / (1 + 2 * np.pi * most / topology.nodes)
    size = min(0.2, 0.94 * pitch, 1.6 / most)
    reach = 0.1 + size * most
    middle = np.array([side, high]) / 2
    if layout.round:  # ranks outwards, so that the circle is smaller
        place = middle + (place - middle) * max(0.3, 0.5 - reach / side) / NODE_RING
        away = place[: topology.nodes] - middle
        away /= np.maximum(np.hypot(*away.T)[:, None], 1e-9)
    else:
        place[:, 1] += reach
        high += reach
        away = np.tile([0.0, -1.0], (topology.nodes, 1))
    at = place[node_of] + away[node_of] * (0.1 + size * (turn[:, None] + 0.4))
    frame = _frame(high, title)
    axes = frame.view
    sheet(axes, side, high)
    ends = np.stack((place[topology.link_from], place[topology.link_to]), axis=1)
    once = topology.link_from < topology.link_to
    lines = LineCollection(list(ends[once]), colors=GREY, linewidths=0.7, alpha=0.7)
    lines.set_rasterized(topology.links > VECTORS)
    axes.add_collection(lines, autolim=False)
    draw_vertices(axes, topology, place, 14 if topology.vertices <= 80 else 7)
    colours = ranks.cmap(ranks.norm(np.arange(len(at))))
    look: Any = {"facecolors": colours, "offset_transform": axes.transData, "zorder": 4}
    wide = np.full(len(at), 0.92 * size)  # in the sheet's unit, of which it may be drawn smaller
    axes.add_collection(EllipseCollection(wide, wide, 0 * wide, offsets=at, units="xy", **look))
    if size >= 0.17:
        for rank, middle in enumerate(at):
            ranks.write(axes, middle, rank, SMALL if rank < 100 else SMALL - 2)
    names = [topology.vertex_name(vertex) for vertex in range(topology.vertices)]
    said = [f"rank {rank} on {names[node]}" for rank, node in enumerate(node_of.tolist())]
    add_tips(axes, squares(at, size / 2), said)
    add_tips(axes, squares(place, 0.05), names)
    return frame


def _on_planes(topology: Topology, ranks: _Ranks, title: str) -> _Frame:
    """Planes z = 0, 1, ... as images coloured by rank; anything but a box in rows of nodes."""
    if is_box(topology):
        columns, rows, count = (*topology.dims, 1, 1)[:3]
    else:
        count, rows = 1, -(-topology.nodes // ROW)
        columns = -(-topology.nodes // rows)
    room = count * rows * columns - topology.nodes
    filled = np.pad(ranks.at, (0, room), constant_values=-1)
    planes = np.ma.masked_less(filled, 0).reshape(count, rows, columns)
    across = min(count, max(1, round(np.sqrt(count * rows / columns))))
    lines = -(-count // across)
    wide = (WIDTH - 0.3) / across - 0.08
    high = min(max(wide * rows / columns, 0.25), 3.5)
    frame = _frame(lines * (high + 0.2), title)
    name = "z = {}" if count > 1 else ""
    if not is_box(topology) and rows > 1:
        name = f"nodes in order, {columns} a row, from below"
    images = [(name.format(z), plane) for z, plane in enumerate(planes)]
    pictures(frame.view, images, across, (wide, high), (0.08, 0.2), ranks.norm, ranks.cmap)
    return frame


def node_words(topology: Topology, node_of: Ints) -> list[str]:
    """Say which ranks are on each node."""
    ranks: list[list[int]] = [[] for _ in range(topology.nodes)]
    for rank, node in enumerate(node_of.tolist()):
        ranks[node].append(rank)
    words = [
        f"rank{'s' * (len(each) > 1)} {', '.join(map(str, each))}" if each else "free"
        for each in ranks
    ]
    return [f"{topology.vertex_name(node)}: {text}" for node, text in enumerate(words)]


def _line(a: Points, b: Points, *, bent: bool) -> Points:
    """Line from a to b, bent where it would run through the nodes between."""
    if not bent:
        return np.stack((a, b))
    along = b - a
    bulge = np.array([-along[1], along[0]]) * 0.13
    t = np.linspace(0, 1, 9)[:, None]
    return np.asarray(a + along * t + bulge * 4 * t * (1 - t))


def _with_room(layout: Layout, lines: Sequence[Points]) -> Layout:
    """Make a layout as high as the bends of its lines need, which reach beyond its planes."""
    corners = np.concatenate((layout.nodes, *layout.planes))[:, 1]
    middle = (corners.min() + corners.max()) / 2
    reach = max((float(np.abs(line[:, 1] - middle).max()) for line in lines), default=0.0)
    return layout._replace(height=max(layout.height, 2 * reach + 0.1))


def _nodes(axes: Axes, layout: Layout, ranks: _Ranks) -> None:
    """Draw the nodes of a box in the colours of their ranks; few bear the ranks' numbers."""
    few = len(ranks.at) <= NUMBERED
    colours = np.where((ranks.at >= 0)[:, None], ranks.cmap(ranks.norm(ranks.at)), np.ones(4))
    x, y = layout.nodes.T
    axes.scatter(
        x,
        y,
        s=((0.46 if few else 0.5) * layout.span * 72) ** 2,
        c=colours,
        edgecolors=["white" if rank >= 0 else GREY for rank in ranks.at],
        linewidths=0.5,
        zorder=3,
    )
    if few and layout.span >= 0.3:
        for place, rank in zip(layout.nodes, ranks.at.tolist(), strict=True):
            if rank >= 0:
                ranks.write(axes, place, rank)


def _weight(traffic: Traffic) -> Ints:
    return traffic.bytes if traffic.bytes.any() else traffic.messages


def _share(hops: Ints, pairs: Traffic) -> Points:
    weight = np.bincount(hops, weights=_weight(pairs), minlength=2)
    return np.asarray(100 * weight / max(weight.sum(), 1))


def _histogram(axes: Axes, series: Sequence[tuple[Points, str, str]]) -> None:
    """Draw the shares of the bytes by hops, a colour for each of some mappings."""
    longest = max(len(share) for share, _, _ in series)
    first = 0 if any(share[0] > 0 for share, _, _ in series) else 1
    width = 0.8 / len(series)
    for i, (share, colour, name) in enumerate(series):
        x = np.arange(first, len(share)) + (i - (len(series) - 1) / 2) * width
        axes.bar(x, share[first:], width=width * 0.95, color=colour, label=name)
    axes.set_xlim(first - 0.6, max(longest - 1, first + 3) + 0.6)
    axes.set_ylim(0, max(float(share.max()) for share, _, _ in series) * 1.08 or 1)
    axes.xaxis.set_major_locator(
        MaxNLocator(14 if longest < 100 else 5, integer=True, min_n_ticks=1)
    )
    set_ticks(axes.yaxis, "{:.0f} %".format, MaxNLocator(3, integer=True))
    axes.grid(axis="y")
    axes.set_xlabel("hops", labelpad=1)
    plain_title(axes, "share of the bytes", pad=16)
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1.02),
        ncols=2,
        handlelength=1,
        borderpad=0,
        borderaxespad=0,
    )


def turnable(topology: Topology, node_of: ArrayLike, traffic: Traffic) -> dict[str, Any] | None:
    """Return what `page.js` needs to draw a mapping that can be turned; None where flat or huge.

    That is ``{"at": [[x, y, z], ...], "rank": [...], "ranks": n, "pairs": [[node, node, hops],
    ...], "says": [...]}``: nodes' coordinates, the lowest rank of each node, -1 where there is
    none, the costliest pairs that talk, and what a tooltip says of each node.
    """
    if len(topology.dims) != 3 or topology.nodes > DRAWN:
        return None
    places = np.asarray(node_of, dtype=np.int64)
    sent = traffic.without_self()
    u, v = places[sent.src], places[sent.dst]
    hops = topology.distance(u, v)
    chosen = np.argsort(-hops * _weight(sent), kind="stable")
    chosen = chosen[hops[chosen] > 0][: 2 * TURNED]
    pairs = {
        (min(a, b), max(a, b)): h
        for a, b, h in zip(*(x[chosen].tolist() for x in (u, v, hops)), strict=True)
    }
    return {
        "at": coordinates(topology).tolist(),
        "rank": lowest_ranks(topology, places).tolist(),
        "ranks": len(places),
        "pairs": [[*pair, h] for pair, h in list(pairs.items())[:TURNED]],
        "says": node_words(topology, places),
    }
