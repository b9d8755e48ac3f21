"""Figures of mappings: which rank sits where, what it sends away, and how far its messages go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from hopmap.arrays import Floats, Ints, equals_before
from hopmap.topologies import Topology
from hopmap.traces import Traffic

from .hops import draw_hops, share_by_hops
from .layout import (
    NODE_RING,
    Layout,
    Points,
    coordinates,
    drawable,
    is_box,
    levels,
    name_link,
    name_vertex,
    slices,
    stack,
)
from .network import DRAWN, LINE, draw_planes, draw_vertices, view_box
from .node_colours import colours_of, draw_key, weight_of
from .style import (
    GREY,
    INK,
    ORANGE,
    RED,
    SKY,
    SMALL,
    WIDTH,
    halves,
    label,
    new_figure,
    plain_title,
    sheet,
    style,
    write,
)
from .tiles import arrange, draw_cells, in_use, nest_nodes, say_cells
from .tips import add_lines, add_tips, squares

LINED = 128  # nodes of a box with lines between ranks that talk
EDGES_A_NODE = 3  # of these lines, the costliest
NUMBERED = 64  # nodes of a box that have their rank written on them
TURNED = 400  # costliest pairs of ranks that are drawn where the mapping can be turned
_HOPS = ("#c3cad0", SKY, ORANGE, RED)  # one hop, two, three, more
_FAR = ("1 hop", "2 hops", "3 hops", "4 or more")
_BAR, _HISTOGRAM = 0.75, 1.7  # inches


@style()
def mapping_view(
    topology: Topology,
    mappings: Mapping[str, ArrayLike],
    traffic: Traffic,
    *,
    title: str,
    shown: Sequence[str] | None = None,
) -> Figure:
    """Draw mappings side by side: ranks on their nodes, and how far the bytes of each go.

    Mappings have by name the node of every rank, shape (ranks,). Those that are not `shown` are in
    the histogram of hops, and in the scale, only. Where ranks are a grid, nodes have the colour of
    the block of the grid that most of their ranks are in; else of the bytes that leave them, times
    hops. In boxes of few nodes, lines join ranks that talk, coloured by hops.
    """
    places = {name: np.asarray(node_of, dtype=np.int64) for name, node_of in mappings.items()}
    chosen = list(places) if shown is None else list(shown)
    pairs = traffic.without_self()
    hops = {k: topology.distance(own[pairs.src], own[pairs.dst]) for k, own in places.items()}
    colours = colours_of(topology, places, pairs, hops)
    taken = np.unique(np.concatenate([places[name] for name in chosen]))
    plans = [
        _plan(topology, places[name], pairs, hops[name], taken, len(chosen)) for name in chosen
    ]
    high = max(plan.high for plan in plans)
    legend = _BAR if colours.norm is not None else 0.45 + 0.16 * -(-len(colours.patches) // 2)
    below = _HISTOGRAM + (legend if len(chosen) == 1 else 0.0)
    name_room = 0.2 if len(chosen) > 1 else 0.0
    figure = new_figure(high + name_room + below + 0.45, title, WIDTH * len(chosen))
    above, under = halves(figure, high + name_room, below)
    for k, (name, axes) in enumerate(
        zip(chosen, above.subplots(1, len(chosen), squeeze=False)[0], strict=True)
    ):
        if name_room:
            plain_title(axes, label(name, 44, 1))
        place = list(places).index(name)
        plans[k].draw(axes, colours.of_nodes[place], colours.says[place])
    shape = (1, 2) if len(chosen) > 1 else (2, 1)
    ratios: dict[str, Any] = {} if len(chosen) > 1 else {"height_ratios": [legend, _HISTOGRAM]}
    key, histogram = under.subfigures(*shape, **ratios)
    draw_key(key, colours)
    series = [share_by_hops(hops[name], pairs) for name in places]
    draw_hops(histogram.subplots(), series, list(places))
    return figure


class _Plan(NamedTuple):
    """How high a mapping is drawn, in inches, and what draws it: axes, colours, what nodes say."""

    high: float
    draw: Callable[[Axes, Floats, list[str]], None]


def _plan(
    topology: Topology, node_of: Ints, pairs: Traffic, hops: Ints, taken: Ints, sheets: int
) -> _Plan:
    """Choose how a mapping is drawn: with lines, with switches, or in cells."""
    lined = LINE if len(topology.dims) == 1 else LINED
    if is_box(topology) and topology.nodes <= lined:
        return _on_box(topology, node_of, pairs, hops)
    if not is_box(topology) and drawable(topology):
        return _on_switches(topology, node_of)
    return _in_cells(topology, node_of, taken, sheets)


def _in_cells(topology: Topology, node_of: Ints, taken: Ints, sheets: int) -> _Plan:
    """Draw a cell a node, in blocks, with the lowest rank where there is room.

    Of few blocks that are `taken` by some mapping, only these are drawn.
    """
    nest, kept, free = in_use(nest_nodes(topology), taken)
    made = arrange(nest, WIDTH - 0.3)
    word = nest.names[0].rsplit(" ", 1)[0].removesuffix(" =") if nest.names else "block"
    left_out = f"{free:,} other {_plural(word)} without ranks not drawn" if free else ""
    said = [f"numbers: {made.numbered}"] * bool(made.numbered) + [left_out] * bool(free)
    foot = 0.2 if said else 0.0
    high = made.size[1] * made.inch + 0.05 + foot

    def draw(axes: Axes, colours: Floats, says: list[str]) -> None:
        every = np.arange(topology.nodes)
        # of nodes that share a cell, that with the most ranks, which is the last of these
        order = np.lexsort((every, np.bincount(node_of, minlength=topology.nodes)))
        turn = np.empty(topology.nodes)
        turn[order] = every

        def colour(top: Floats) -> Floats:
            return colours[order[top.astype(np.int64)]]

        place = draw_cells(axes, made, turn[kept], colour, 0.0, high)
        axes.text(0, 0.04, "; ".join(said), fontsize=SMALL)

        def say(nodes: Ints) -> str:
            more = f" … {says[int(kept[nodes[-1]])]}" if len(nodes) > 1 else ""
            return says[int(kept[nodes[0]])] + more

        say_cells(axes, made, place, say, sheets)
        sheet(axes, WIDTH - 0.3, high)
        lowest = lowest_ranks(topology, node_of)
        if made.side * made.inch >= 0.2 and not made.merged:
            own_of = zip(place(made.middles()), lowest[kept], colours[kept], strict=True)
            for at, rank, own in own_of:
                if rank >= 0:
                    small = 1 if rank > 99 and made.side * made.inch < 0.26 else 0
                    _write_rank(axes, at, int(rank), own, SMALL - small)

    return _Plan(high, draw)


def _plural(word: str) -> str:
    """Return the word for several blocks; the planes of a coordinate have no word of their own."""
    return {"group": "groups", "pod": "pods", "switch": "switches", "part": "parts"}.get(
        word, "planes" if word == "z" else "blocks"
    )


def _write_rank(
    axes: Axes, place: ArrayLike, rank: int, colour: ArrayLike, size: float = SMALL
) -> None:
    """Write a rank's number on its node, dark on light colours."""
    red, green, blue = np.asarray(colour)[:3]
    light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
    write(axes, place, str(rank), size, color=INK if light else "white", zorder=5)


def lowest_ranks(topology: Topology, node_of: Ints) -> Ints:
    """Return the lowest rank of every node, -1 where there is none."""
    at = np.full(topology.nodes, -1, dtype=np.int64)
    at[node_of[::-1]] = np.arange(len(node_of))[::-1]
    return at


def _on_box(topology: Topology, node_of: Ints, pairs: Traffic, hops: Ints) -> _Plan:
    """Draw a box with lines between ranks that talk, both directions together."""
    layout = slices(topology) if len(topology.dims) < 3 else stack(topology)
    low, high = np.minimum(pairs.src, pairs.dst), np.maximum(pairs.src, pairs.dst)
    key = low * np.int64(pairs.ranks) + high
    key, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    cost = np.bincount(inverse, weights=weight_of(pairs) * hops, minlength=len(key))
    far = hops[first]
    chosen = np.argsort(cost, kind="stable")[-EDGES_A_NODE * topology.nodes :]
    chosen = chosen[far[chosen] > 0]
    chosen = chosen[np.argsort(far[chosen], kind="stable")]
    joined = node_of[np.stack((pairs.src[first], pairs.dst[first]), axis=1)]
    ends = layout.nodes[joined]
    depth = coordinates(topology)[joined, 2]
    around = (depth[:, 0] == depth[:, 1]) & (np.hypot(*(ends[:, 1] - ends[:, 0]).T) > 1.6)
    bent = (far > 1) | around
    level = np.minimum(far[chosen], 4) - 1
    segments = [_line(*ends[i], bent=bool(bent[i])) for i in chosen]
    layout = _with_room(layout, segments)
    ends_of = np.stack((pairs.src[first], pairs.dst[first]), axis=1)[chosen].tolist()
    said = [
        f"ranks {a} and {b}: {hop} hop{'s' * (hop != 1)}"
        for (a, b), hop in zip(ends_of, far[chosen].tolist(), strict=True)
    ]

    def draw(axes: Axes, colours: Floats, says: list[str]) -> None:
        view_box(axes, layout)
        draw_planes(axes, layout)
        thin = 0.8 if layout.span < 0.3 else 1
        lines = LineCollection(
            segments,
            colors=[_HOPS[i] for i in level],
            linewidths=np.array([1.3, 1.2, 1.3, 1.5])[level] * thin,
            zorder=2,
        )
        axes.add_collection(lines, autolim=False)
        _draw_nodes(axes, layout, lowest_ranks(topology, node_of), colours)
        add_tips(axes, squares(layout.nodes, 0.25), says)
        add_lines(axes, segments[::-1], said[::-1], 0.05)
        if len(chosen) < (count := int((far > 0).sum())):
            words = f"{len(chosen):,} costliest of {count:,} pairs drawn"
            axes.text(0.02, 0.995, words, size=SMALL, va="top", transform=axes.transAxes)
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

    return _Plan(layout.height * layout.span + 0.4, draw)


def _on_switches(topology: Topology, node_of: Ints) -> _Plan:
    """Draw switches and nodes, and at every node its ranks."""
    layout = levels(topology)
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

    def draw(axes: Axes, colours: Floats, says: list[str]) -> None:
        sheet(axes, side, high)
        ends = np.stack((place[topology.link_from], place[topology.link_to]), axis=1)
        once = topology.link_from < topology.link_to
        lines = LineCollection(list(ends[once]), colors=GREY, linewidths=0.7, alpha=0.7)
        axes.add_collection(lines, autolim=False)
        draw_vertices(axes, topology, place, 14)
        own = colours[node_of]
        look: Any = {"facecolors": own, "offset_transform": axes.transData, "zorder": 4}
        wide = np.full(len(at), 0.92 * size)  # in the sheet's unit, of which it may be smaller
        dots = EllipseCollection(wide, wide, 0 * wide, offsets=at, units="xy", **look)
        axes.add_collection(dots)
        if size >= 0.17:
            for rank, middle in enumerate(at):
                _write_rank(axes, middle, rank, own[rank], SMALL if rank < 100 else SMALL - 2)
        names = [name_vertex(topology, vertex) for vertex in range(topology.vertices)]
        said = [f"rank {rank} on {names[node]}" for rank, node in enumerate(node_of.tolist())]
        add_tips(axes, squares(at, size / 2), said)
        add_tips(axes, squares(place, 0.05), [*says, *names[topology.nodes :]])
        links = [name_link(topology, link) for link in np.flatnonzero(once).tolist()]
        add_lines(axes, ends[once], links, 0.03)

    return _Plan(high, draw)


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


def _draw_nodes(axes: Axes, layout: Layout, ranks: Ints, colours: Floats) -> None:
    """Draw the nodes of a box in their colours; few bear their lowest rank's number."""
    few = len(ranks) <= NUMBERED
    x, y = layout.nodes.T
    axes.scatter(
        x,
        y,
        s=((0.46 if few else 0.5) * layout.span * 72) ** 2,
        c=colours,
        edgecolors=["white" if rank >= 0 else GREY for rank in ranks],
        linewidths=0.5,
        zorder=3,
    )
    if few and layout.span >= 0.3:
        for place, rank, colour in zip(layout.nodes, ranks.tolist(), colours, strict=True):
            if rank >= 0:
                _write_rank(axes, place, rank, colour)


def turnable(topology: Topology, node_of: ArrayLike, traffic: Traffic) -> dict[str, Any] | None:
    """Return what `page.js` needs to draw a mapping that can be turned; None where flat or huge.

    That is ``{"at": [[x, y, z], ...], "rank": [...], "colour": [...], "pairs": [[node, node,
    hops], ...], "says": [...]}``: nodes' coordinates, the lowest rank of each node, -1 where there
    is none, colours, the costliest pairs that talk, and what a tooltip says of each node.
    """
    if len(topology.dims) != 3 or topology.nodes > DRAWN:
        return None
    places = np.asarray(node_of, dtype=np.int64)
    sent = traffic.without_self()
    u, v = places[sent.src], places[sent.dst]
    hops = topology.distance(u, v)
    chosen = np.argsort(-hops * weight_of(sent), kind="stable")
    chosen = chosen[hops[chosen] > 0][: 2 * TURNED]
    pairs = {
        (min(a, b), max(a, b)): h
        for a, b, h in zip(*(x[chosen].tolist() for x in (u, v, hops)), strict=True)
    }
    colours = colours_of(topology, {"": places}, sent, {"": hops})
    return {
        "at": coordinates(topology).tolist(),
        "rank": lowest_ranks(topology, places).tolist(),
        "colour": [to_hex(colour) for colour in colours.of_nodes[0]],
        "pairs": [[*pair, h] for pair, h in list(pairs.items())[:TURNED]],
        "says": colours.says[0],
    }
