"""What a mouse finds on figures: cells, links and nodes, where they are drawn."""

import numpy as np
import pytest

from hopmap.figures.layout import name_link
from hopmap.figures.mapping import mapping_view
from hopmap.figures.network import link_loads
from hopmap.figures.node_colours import node_words
from hopmap.figures.spy import spy_plot
from hopmap.figures.style import new_figure, svg_text
from hopmap.figures.tips import MOST, add_tips, panel, squares, tips
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.units import data


def drawn(figure):
    svg_text(figure)
    return tips(figure)


RING = Traffic.from_pairs(4, [0, 1, 2, 3], [1, 2, 3, 0], [1] * 4, [1000] * 4)


def test_a_square_is_where_it_is_drawn():
    figure = new_figure(2, width=4)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 4), ylim=(0, 2))
    add_tips(axes, squares([[1, 0.5]], 0.25), ["here"])
    ((coords, text),) = tips(figure)
    assert text == "here"
    assert coords == "72,168,120,168,120,120,72,120"  # 96 pixels an inch, from the upper left
    assert panel(axes) == [0, 0, 384, 192]
    assert panel(figure.add_axes((0.25, 0.5, 0.5, 0.375))) == [96, 24, 192, 72]


def test_of_too_many_areas_there_are_none():
    figure = new_figure(1)
    axes = figure.add_axes((0, 0, 1, 1))
    add_tips(axes, squares(np.zeros((MOST + 1, 2)), 1), [""] * (MOST + 1))
    assert tips(figure) == []
    assert tips(new_figure(1)) == []


def test_cells_say_who_sends_how_much():
    assert {tip.text for tip in drawn(spy_plot(RING))} == {
        *("0 → 1: 1 kB", "1 → 2: 1 kB", "2 → 3: 1 kB", "3 → 0: 1 kB")
    }


@pytest.mark.parametrize("spec", ["mesh:2x2", "torus:2x2x2", "fattree:2x2", "dragonfly:2x2x2"])
def test_links_say_what_they_carry(spec):
    topology = topology_from_spec(spec)
    loads = np.arange(topology.links) * 1000.0
    said = [tip.text for tip in drawn(link_loads(topology, loads, title="t"))]
    assert len(said) == topology.links
    assert f"{name_link(topology, 1)}: 1 kB" in said


def test_nodes_say_which_ranks_are_on_them():
    topology = topology_from_spec("mesh:3*2")
    assert [text.partition(": ")[2] for text in node_words(topology, np.array([2, 0, 2]))] == [
        *("rank 1", "free", "ranks 0, 2")
    ]


@pytest.mark.parametrize("spec", ["fattree:2x2", "dragonfly:2x2x2", "tree:2:2*2"])
def test_networks_of_switches_are_drawn_with_their_ranks(spec):
    topology = topology_from_spec(spec)
    node_of = np.array([3, 0, 1, 0 if spec.endswith("*2") else 2])
    figure = mapping_view(topology, {"mine": node_of}, RING, title="t")
    said = [tip.text for tip in drawn(figure)]
    assert said[:4] == [
        f"rank {rank} on {topology.vertex_name(node)}" for rank, node in enumerate(node_of)
    ]
    cells = [words for words in said if "%" not in words and "→" not in words]
    assert len(cells) == 4 + topology.vertices  # the others are bars of hops, and links
    text = svg_text(figure)
    assert all(f">{rank}</text>" in text for rank in range(4))
    centres = [
        np.mean(np.reshape([*map(int, tip.coords.split(","))], (-1, 2)), axis=0)
        for tip in tips(figure)[:4]
    ]
    gaps = [np.hypot(*(a - b)) for k, a in enumerate(centres) for b in centres[k + 1 :]]
    assert min(gaps) > 10  # no rank hides another


def test_lines_between_ranks_say_which_and_how_far():
    figure = mapping_view(
        topology_from_spec("mesh:4"), {"mine": np.array([0, 1, 2, 3])}, RING, title="t"
    )
    said = {tip.text for tip in drawn(figure)}
    assert {"ranks 0 and 1: 1 hop", "ranks 3 and 0: 3 hops"} <= said


def test_wireless_links_say_what_they_carry():
    topology = topology_from_spec("haec:2x2x2")
    loads = np.arange(topology.links) * 1000.0
    wireless = np.flatnonzero(topology.link_kind == 1)
    loads[wireless[0]] = 0  # not drawn
    said = [tip.text for tip in drawn(link_loads(topology, loads, title="t"))]
    assert len(said) == topology.links - 1
    assert f"{name_link(topology, wireless[1])}: {data(loads[wireless[1]])}" in said
