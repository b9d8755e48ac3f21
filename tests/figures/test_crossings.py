"""Where networks change their order over a parameter."""

import numpy as np
import pytest

from hopmap.figures.crossings import crossings, runtime_over
from hopmap.figures.style import svg_text
from hopmap.figures.tips import tips


def test_power_laws_cross_where_they_are_equal():
    """8 / x and sqrt(x) are equal at x = 4, and are straight lines in logarithms."""
    x = np.array([1.0, 3.0, 10.0, 100.0])
    (found,) = crossings(x, {"falls": 8 / x, "rises": np.sqrt(x), "above": 100 + x})
    assert found.at == pytest.approx(4)
    assert (found.faster_below, found.faster_above) == ("rises", "falls")


def test_differences_without_practical_meaning_do_not_cross():
    values, level = [1.0, 2.0], np.ones(2)
    near = {"a": level, "b": np.array([1.005, 0.995])}
    assert len(list(crossings(values, near))) == 1
    assert not list(crossings(values, near, 0.01))
    assert not list(crossings(values, {"a": level, "b": level}))


def test_a_figure_has_a_line_a_network_and_a_mark_a_crossing():
    x, rows = [1.0, 10.0], {"torus:4x4": [8e-3, 1e-3], "mesh:4x4": [4e-3, 2e-3]}
    marked = list(crossings(x, rows))
    figure = runtime_over(x, rows, marked, title="t", name="link.bandwidth", text="{:.1f}".format)
    (axes,) = figure.axes
    assert len(axes.lines) == len(rows) + len(marked) == 3
    assert [text.get_text().strip() for text in axes.texts] == [f"{marked[0].at:.1f}"]
    assert axes.get_ylabel() == "simulated runtime (ms)"


def test_a_line_below_another_shows_on_both_sides_of_it():
    near = np.array([8.0, 4.0, 2.0])
    x, rows = [1.0, 2.0, 4.0], {"torus": near, "fattree": 1.5 * near, "hypercube": 1.001 * near}
    figure = runtime_over(x, rows, [], title="t", name="n", text=str)
    torus, fattree, hypercube = figure.axes[0].lines
    assert torus.get_linewidth() > 2 * hypercube.get_linewidth() == 2 * fattree.get_linewidth()
    assert torus.get_zorder() <= hypercube.get_zorder()  # drawn first
    assert {tip.text for tip in tips(drawn(figure))} >= {"torus, 1.0: 8 s", "fattree, 4.0: 3 s"}


def drawn(figure):
    svg_text(figure)
    return figure
