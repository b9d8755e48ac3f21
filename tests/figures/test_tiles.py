"""Networks as cells: every node and link once, cells of one size, blocks next to each other."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.figures.layout import groups_of
from hopmap.figures.mapping import lowest_ranks, mapping_view
from hopmap.figures.network import link_loads
from hopmap.figures.node_colours import FREE
from hopmap.figures.style import WIDTH, svg_text
from hopmap.figures.tiles import PIXELS, SLIM, arrange, in_use, nest_nodes, panels
from hopmap.figures.tips import MOST, tips
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, stencil_traffic
from support.slow import slow

SMALL = ["mesh:8x8", "torus:4x4x4", "torus:64", "torus:4x2x2x2x2", "haec:4x4x4", "hypercube:6"]
SMALL += ["fattree:8x8", "fattree:4x4x4", "tree:4:4:4", "dragonfly:2x4x2x8", "cluster:60*2+4"]
SMALL += ["dragonfly+:2x4x4x8", "tofud:job=4x4x4", "names:n[0-63]@dragonfly:2x4x2x8"]
MIDDLE = ["mesh:32x16", "torus:8x8x8", "torus:512", "preset:bgq", "haec:8x8x8", "hypercube:9"]
MIDDLE += ["fattree:16x8x4", "tree:8:8:8", "dragonfly:4x8x4x16", "dragonfly+:8x8x8x8"]
MIDDLE += ["tofud:4x3x4", "cluster:512*2"]
LARGE = ["mesh:128x64", "torus:32x16x16", "torus:8192", "torus:8x8x8x8x2", "hypercube:13"]
LARGE += ["fattree:32x16x16", "tree:4:16:8:16", "dragonfly:8x32x8x32", "dragonfly+:16x16x16x32"]
LARGE += ["tofud:job=32x16x16", "cluster:8192*2"]
SLENDER = ["mesh:2x4096", "mesh:4096x2", "mesh:64x8x1", "torus:2", "mesh:1x1", "cluster:1*1"]


@pytest.mark.parametrize("spec", SMALL + MIDDLE + SLENDER + slow(*LARGE))
def test_every_node_has_a_cell_of_its_own(spec: str) -> None:
    topology = topology_from_spec(spec)
    made = arrange(nest_nodes(topology), WIDTH)
    assert made.at.min() >= 0
    assert ((made.at + made.side).max(axis=0) <= made.size).all()
    assert made.size[0] * made.inch <= WIDTH + 1e-9
    assert made.size[1] * made.inch <= SLIM * WIDTH + 1e-9
    if not made.merged:  # no two cells overlap
        order = made.at[np.lexsort(made.at.T)]
        gaps = np.abs(np.diff(order, axis=0))
        assert (gaps.max(axis=1) >= made.side).all()
        assert len(np.unique(made.at, axis=0)) == topology.nodes


@pytest.mark.parametrize("spec", [*SMALL, *MIDDLE])
def test_up_to_512_nodes_no_two_share_a_cell(spec: str) -> None:
    assert not arrange(nest_nodes(topology_from_spec(spec)), WIDTH - 0.3).merged


@pytest.mark.parametrize("spec", ["torus:32x16x16", "hypercube:13", "dragonfly:8x32x8x32"])
def test_nor_do_8192_nodes(spec: str) -> None:
    assert not arrange(nest_nodes(topology_from_spec(spec)), WIDTH - 0.3).merged


@pytest.mark.parametrize("spec", SMALL + MIDDLE + SLENDER)
def test_every_link_is_in_one_panel(spec: str) -> None:
    topology = topology_from_spec(spec)
    found = panels(topology)
    links = np.concatenate([panel.links for panel in found])
    assert sorted(links.tolist()) == list(range(topology.links))
    for panel in found:
        assert {len(place) for place in panel.nest.index} == {len(panel.links)}
        for place, count in zip(panel.nest.index, panel.nest.counts, strict=True):
            assert place.min(initial=0) >= 0
            assert place.max(initial=0) < count


def test_planes_of_a_torus_stand_side_by_side_y_upwards() -> None:
    topology = topology_from_spec("torus:4x2x4")
    made = arrange(nest_nodes(topology), 3.0)
    assert made.names == ("z = 0", "z = 1", "z = 2", "z = 3")
    x, y, z = topology.coords.T
    column = made.at[:, 0]
    assert (column[x == 0] <= column[x == 3]).all()
    assert (made.at[y == 1, 1] < made.at[y == 0, 1]).all() or len(set(z)) > 2
    first = z == 0
    assert (made.at[first & (y == 1), 1] < made.at[first & (y == 0), 1]).all()


def test_nodes_of_a_router_and_routers_of_a_group_stand_together() -> None:
    topology = topology_from_spec("dragonfly:4x8x4x16")
    made = arrange(nest_nodes(topology), 3.0)
    node = np.arange(topology.nodes)
    for size in (4, 32):  # nodes of a router, of a group
        for block in range(topology.nodes // size):
            own = made.at[node // size == block]
            (left, top), (right, bottom) = own.min(axis=0), own.max(axis=0)
            inside = ((made.at >= [left, top]) & (made.at <= [right, bottom])).all(axis=1)
            assert inside.sum() == size


def test_hypercubes_are_folded_so_that_halves_lie_next_to_each_other() -> None:
    made = arrange(nest_nodes(topology_from_spec("hypercube:6")), 3.0)
    columns, rows = (np.unique(axis) for axis in made.at.T)
    assert (len(columns), len(rows)) == (8, 8)
    for bit in range(6):  # each dimension goes along a row or along a column
        step = made.at[1 << bit] - made.at[0]
        assert np.count_nonzero(step) == 1


@pytest.mark.parametrize("spec", ["dragonfly:2x4x2x8", "dragonfly+:2x4x4x8"])
def test_links_between_groups_are_at_their_groups(spec: str) -> None:
    topology = topology_from_spec(spec)
    group = groups_of(topology)
    assert (group[:64] == np.arange(64) // 8).all()
    (panel,) = (panel for panel in panels(topology) if panel.name.startswith("between"))
    to, of = panel.nest.index
    assert (of == group[topology.link_from[panel.links]]).all()
    assert (to == group[topology.link_to[panel.links]]).all()
    assert (of != to).all()


def test_a_cell_of_many_links_has_the_colour_and_the_name_of_the_busiest() -> None:
    topology = topology_from_spec("fattree:32x16x16")
    loads = np.ones(topology.links)
    loads[100] = 5e6
    figure = link_loads(topology, loads, title="t")
    text = svg_text(figure)
    assert "100 → switch 3: 5 MB, busiest of 128 links" in text
    assert len(tips(figure)) <= MOST


@pytest.mark.parametrize("spec", SMALL + MIDDLE + slow(*LARGE))
def test_pictures_are_small_and_fit_a_screen(spec: str) -> None:
    topology = topology_from_spec(spec)
    node_of = np.random.default_rng(1).permutation(np.flatnonzero(topology.slots))
    traffic = stencil_traffic((len(node_of),), "star", size=1000)
    loads = topology.loads(node_of[traffic.src], node_of[traffic.dst], traffic.bytes)
    both = {"mine": node_of, "default order": np.flatnonzero(topology.slots)}
    for figure, wide in (
        (link_loads(topology, loads, title="t"), 1),
        (mapping_view(topology, both, traffic, title="t"), 2),
    ):
        assert len(svg_text(figure)) < 650_000
        assert figure.get_figwidth() == pytest.approx(wide * WIDTH)
        assert figure.get_figheight() < 9.6
        assert 0 < len(tips(figure)) <= MOST


def test_one_rank_among_thousands_of_nodes_is_seen() -> None:
    topology = topology_from_spec("dragonfly:8x32x8x32")
    one = Traffic.from_pairs(1, [], [], [], [])
    figure = mapping_view(topology, {"mine": [8000]}, one, title="t")
    (image,) = (
        image for axes in figure.axes for image in axes.images if image.get_array().ndim > 2
    )
    pixels = np.asarray(image.get_array())
    free = np.array([int(FREE[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    taken = (pixels[..., 3] > 0) & (np.abs(pixels[..., :3] - free).max(axis=-1) > 0.02)
    sides = np.ptp(np.argwhere(taken), axis=0) + 1
    assert sides[0] == sides[1] <= PIXELS  # one cell, of the one group that is drawn
    assert taken.sum() == sides.prod()
    assert lowest_ranks(topology, np.array([8000]))[8000] == 0


def test_default_and_mapping_stand_side_by_side_with_one_scale() -> None:
    topology = topology_from_spec("torus:8x8x8")
    traffic = Traffic.from_pairs(512, [0], [1], [1], [1000])
    order = np.arange(512)
    far = order.copy()
    far[[1, 292]] = 292, 1  # 12 hops away
    figure = mapping_view(topology, {"mine": far, "default order": order}, traffic, title="t")
    text = svg_text(figure)
    assert ">mine<" in text.replace("\n", "")
    assert "0 (0,0,0): rank 0; 12 kB × hops leave it" in text
    assert "0 (0,0,0): rank 0; 1 kB × hops leave it" in text
    left, right = figure.axes[0], figure.axes[1]
    assert left.get_position().x1 < right.get_position().x0
    assert (bar := figure.axes[2]).get_xlim() == (0, 12_000), bar.get_title(loc="left")


def test_ranks_of_a_grid_have_the_colours_of_its_blocks() -> None:
    topology = topology_from_spec("hypercube:6")
    traffic = stencil_traffic((8, 8), "5pt")
    text = svg_text(mapping_view(topology, {"mine": np.arange(64)}, traffic, title="t"))
    assert "block of the 8 × 8 grid of ranks" in text
    assert all(
        f">{rows}, {columns}<" in text for rows in ("0–1", "6–7") for columns in ("0–3", "4–7")
    )
    assert "rank on the node" not in text


def test_of_few_groups_in_use_only_these_are_drawn():
    topology = topology_from_spec("dragonfly:4x4x2")
    nest = nest_nodes(topology)
    few, kept, left_out = in_use(nest, np.array([17, 18, 60]))
    assert few.names == ("group 1", "group 3")
    assert kept.tolist() == [*range(16, 32), *range(48, 64)]
    assert left_out == topology.nodes // 16 - 2
    same, kept, left_out = in_use(nest, np.arange(topology.nodes))
    assert (same is nest, len(kept), left_out) == (True, topology.nodes, 0)


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        ("hypercube:6", "dimension 5 = 0"),
        ("fattree:8x4", "switch 0"),
        ("fattree:4x4x4", "pod 0"),
        ("tree:4:4:2", "part 0"),
        ("preset:lumi-g", "group 0"),  # a dragonfly that is not named so
    ],
)
def test_names_of_outermost_blocks(spec, first):
    assert nest_nodes(topology_from_spec(spec)).names[0] == first


def test_names_without_room_are_numbers():
    made = arrange(nest_nodes(topology_from_spec("torus:16x16x32")), 3.36)
    assert made.numbered == "z"
    assert made.names[31] == "31"
