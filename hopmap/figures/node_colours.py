"""What colours of nodes say: the block of the ranks' grid, or the bytes that leave, times hops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import Normalize, to_rgba
from matplotlib.patches import Patch

from hopmap.arrays import Floats, Ints
from hopmap.topologies import Topology
from hopmap.traces import Traffic
from hopmap.units import compact, data

from .layout import name_vertex
from .style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    colour_bar,
    plain_title,
    sequential,
)

FREE = "#eef1f3"  # nodes without ranks
BLOCKS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW, "#4d555c")


class Colours(NamedTuple):
    """What colours say: of each node of each mapping, and below, as a scale or as patches."""

    of_nodes: list[Floats]  # (nodes, 4) each
    says: list[list[str]]
    norm: Normalize | None
    text: Callable[[float], str]
    title: str
    patches: list[Patch]


def colours_of(
    topology: Topology, places: Mapping[str, Ints], pairs: Traffic, hops: Mapping[str, Ints]
) -> Colours:
    """Colour the nodes of mappings, by name, by what the traffic `pairs` knows of its ranks.

    `hops` are of each pair under each mapping.
    """
    return _by_grid(topology, places, pairs) or _by_bytes(topology, places, pairs, hops)


def _by_grid(topology: Topology, places: Mapping[str, Ints], traffic: Traffic) -> Colours | None:
    """Colour nodes by blocks of the ranks' logical grid; None where there is none."""
    dims = tuple(map(int, traffic.metadata.get("dims", ())))
    if traffic.ranks < 2 or int(np.prod(dims)) != traffic.ranks:
        return None
    cuts = [1] * len(dims)
    for _ in range(3):  # up to eight blocks: halve what is longest
        longest = int(np.argmax([d / cut for d, cut in zip(dims, cuts, strict=True)]))
        if dims[longest] > cuts[longest]:
            cuts[longest] *= 2
    coords = np.unravel_index(np.arange(traffic.ranks), dims)
    block = np.zeros(traffic.ranks, dtype=np.int64)
    for at, d, cut in zip(coords, dims, cuts, strict=True):
        block = block * cut + at * cut // d
    of_nodes, says = [], []
    for node_of in places.values():
        count = np.zeros((topology.nodes, len(BLOCKS)), dtype=np.int64)
        np.add.at(count, (node_of, block), 1)
        colours = np.array([to_rgba(colour) for colour in BLOCKS])[np.argmax(count, axis=1)]
        colours[count.sum(axis=1) == 0] = to_rgba(FREE)
        of_nodes.append(colours)
        says.append(node_words(topology, node_of))
    ranges = []
    for d, cut in zip(dims, cuts, strict=True):
        bounds = [-(-k * d // cut) for k in range(cut + 1)]
        pieces = pairwise(bounds)
        ranges.append([f"{a}" if b == a + 1 else f"{a}–{b - 1}" for a, b in pieces])
    patches = [
        Patch(color=colour, label=", ".join(piece))
        for colour, piece in zip(BLOCKS, product(*ranges), strict=False)
    ]
    if any((np.bincount(own, minlength=topology.nodes) == 0).any() for own in places.values()):
        patches.append(Patch(facecolor=FREE, edgecolor=GREY, linewidth=0.5, label="free node"))
    by = " × ".join(map(str, dims))
    return Colours(of_nodes, says, None, compact, f"block of the {by} grid of ranks", patches)


def _by_bytes(
    topology: Topology, places: Mapping[str, Ints], pairs: Traffic, hops: Mapping[str, Ints]
) -> Colours:
    """Colour nodes by the bytes that leave them, each as often as it has hops."""
    unit = "bytes" if pairs.bytes.any() else "messages"
    text, cmap = data if unit == "bytes" else compact, sequential(0.03)
    away = [
        np.bincount(own[pairs.src], weight_of(pairs) * hops[name], minlength=topology.nodes)
        for name, own in places.items()
    ]
    norm = Normalize(0, max(float(each.max(initial=0)) for each in away) or 1.0)
    of_nodes, says = [], []
    for own, each in zip(places.values(), away, strict=True):
        colours = cmap(norm(each))
        colours[np.bincount(own, minlength=topology.nodes) == 0] = to_rgba(FREE)
        of_nodes.append(colours)
        words = zip(node_words(topology, own), each.tolist(), strict=True)
        says.append([f"{word}; {text(value)} × hops leave it" for word, value in words])
    return Colours(of_nodes, says, norm, text, f"{unit} that leave a node, times hops", [])


def draw_key(figure: Any, colours: Colours) -> None:
    """Draw what colours say: a scale, or patches with the bounds of blocks."""
    axes = figure.subplots()
    if colours.norm is not None:
        axes.set_box_aspect(0.04)
        axes.set_anchor("N")
        colour_bar(figure, axes, colours.norm, sequential(0.03), colours.text, colours.title)
        return
    axes.set_axis_off()
    plain_title(axes, colours.title)
    axes.legend(
        handles=colours.patches,
        loc="upper left",
        ncols=2,
        handlelength=1,
        borderpad=0,
        borderaxespad=0.2,
        labelspacing=0.25,
    )


def node_words(topology: Topology, node_of: Ints) -> list[str]:
    """Say which ranks are on each node."""
    ranks: list[list[int]] = [[] for _ in range(topology.nodes)]
    for rank, node in enumerate(node_of.tolist()):
        ranks[node].append(rank)
    words = [
        f"rank{'s' * (len(each) > 1)} {', '.join(map(str, each))}" if each else "free"
        for each in ranks
    ]
    return [f"{name_vertex(topology, node)}: {text}" for node, text in enumerate(words)]


def weight_of(traffic: Traffic) -> Ints:
    """Return bytes, or messages where there are none."""
    return traffic.bytes if traffic.bytes.any() else traffic.messages
