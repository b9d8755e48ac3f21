"""Mappings of grids are drawn so that every node can be told, counted and found."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.figures.cartesian import _tints, drawable_dims, grid_mappings, parts
from hopmap.figures.style import svg_text
from hopmap.traces import Traffic, stencil_traffic
from support.commands import invoke


def words(dims: tuple[int, ...], node_of: list[int]) -> list[str]:
    figure = grid_mappings(dims, {"mine": (node_of, "below")}, title="title")
    return [t.strip() for e in ElementTree.fromstring(svg_text(figure)).iter() if (t := e.text)]


def test_each_node_is_there_once_with_its_ranks() -> None:
    node_of = np.arange(6 * 8).reshape(6, 8) // 8  # a node a row
    node_of[:, 6:] = 6
    shown = words((6, 8), node_of.ravel().tolist())
    counted = sorted(t for t in shown if re.fullmatch(r"\d+: \d+", t))
    assert counted == [*(f"{n}: 6" for n in range(6)), "6: 12"]


def test_a_node_that_falls_apart_has_its_ranks_on_the_larger_part() -> None:
    grid = np.array([[[0, 0, 1, 0]]])
    assert [(p.text, p.column, p.width) for p in parts(grid, 0)] == [
        ("0: 3", 0.5, 2),
        ("0", 3.0, 1),
        ("1: 1", 2.0, 1),
    ]


def test_three_dimensions_are_slices() -> None:
    node_of = np.repeat([0, 1], 12).tolist()
    shown = words((4, 2, 3), node_of)
    assert [t for t in shown if t.startswith("x =")] == ["x = 0", "x = 1", "x = 2", "x = 3"]
    assert shown.count("0: 12") == shown.count("1: 12") == shown.count("0") == shown.count("1") == 1


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.data())
def test_in_all_slices_every_node_is_counted_once(x: int, y: int, z: int, data: st.DataObject):
    nodes = data.draw(st.lists(st.integers(0, 4), min_size=x * y * z, max_size=x * y * z))
    grid = np.array(nodes).reshape(x, y, z)
    texts = [part.text for k in range(x) for part in parts(grid, k)]
    counted = sorted(text for text in texts if ":" in text)
    assert counted == sorted(f"{node}: {nodes.count(node)}" for node in set(nodes))


def test_neighbours_have_different_tints() -> None:
    rows, columns = np.indices((9, 9)) // 3
    grid = (rows * 3 + columns)[None]
    tints = _tints(grid)
    for axis in (1, 2):
        one, other = np.delete(grid, -1, axis), np.delete(grid, 0, axis)
        assert (tints[one] != tints[other]).any(axis=-1)[one != other].all()


def test_what_cannot_be_drawn_is_known() -> None:
    assert drawable_dims(stencil_traffic((5,), "star")) == (5,)
    assert drawable_dims(stencil_traffic((12, 11, 8), "7pt")) == (12, 11, 8)
    assert drawable_dims(stencil_traffic((2, 2, 2, 2), "star")) is None
    assert drawable_dims(stencil_traffic((200, 200), "5pt")) is None
    assert drawable_dims(Traffic.from_pairs(2, [0], [1], [1], [1])) is None


@pytest.mark.parametrize("traffic", ["stencil:6x4,5pt", "lu.S.16"])
@pytest.mark.usefixtures("drawn")
def test_map_draws_the_mapping(tmp_path: Path, traffic: str) -> None:
    out = tmp_path / "grid.svg"
    given_ = ["map", traffic, "-t", "cluster:4*6", "-m", "random", "--plot", str(out)]
    result = invoke(given_)
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert ("off node " in text) == traffic.startswith("stencil")


def test_a_figure_of_unknown_kind_is_refused_before_mapping(tmp_path: Path) -> None:
    out = str(tmp_path / "grid.txt")
    given_ = ["map", "stencil:6x4,5pt", "-t", "cluster:4*6", "-m", "random", "--plot", out]
    result = invoke(given_)
    assert result.exit_code == 2
    assert "expected a name ending in .svg .png .pdf" in result.output


@pytest.mark.parametrize("traffic", ["stencil:6x4,5pt", "lu.S.16"])
@pytest.mark.usefixtures("drawn")
def test_map_draws_the_default_order_next_to_the_mapping(tmp_path: Path, traffic: str) -> None:
    out = tmp_path / "grid.svg"
    words = ["map", traffic, "-t", "cluster:4*6", "-m", "random", "--plot", str(out)]
    assert invoke(words).exit_code == 0
    text = out.read_text()
    assert ">random<" in text
    assert ">default order<" in text
    if traffic == "lu.S.16":
        assert "<title>0: ranks 0, " in text
