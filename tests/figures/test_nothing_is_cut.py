"""What a figure says is inside it, beside what else it says, and tells values apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from hopmap.figures.bars import mapping_time
from hopmap.figures.link_use import link_use_plot
from hopmap.figures.mapping import mapping_view
from hopmap.figures.network import link_loads
from hopmap.figures.spy import spy_plot
from hopmap.figures.style import style
from hopmap.simulator import LinkUse
from hopmap.simulator.parameters.calibration import calibrate
from hopmap.simulator.parameters.closed_form import PingPong
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, nas_traffic
from hopmap.validation.figures import calibration_figure


def drawn(figure: Figure) -> list[Text]:
    """Words of a figure but for those at ticks, which are drawn only where an axis is."""
    texts = [*figure.texts, *(t for legend in figure.legends for t in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
        texts += axes.get_legend().get_texts() if axes.get_legend() else []
    return [text for text in texts if text.get_text().strip()]


def check(figure: Figure) -> None:
    with style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        boxes = [
            (text.get_text(), text.get_window_extent(canvas.get_renderer()))
            for text in drawn(figure)
        ]
    assert boxes
    for words, box in boxes:
        inside = box.x0 >= 0 and box.y0 >= 0
        assert inside and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, words
    for (words, one), (others, other) in combinations(boxes, 2):
        assert not one.overlaps(other), (words, others)


@pytest.mark.parametrize("slope", [1, 3])
def test_a_calibration_with_a_break_and_without(slope):
    size = 2 ** np.arange(16)
    time = 1e-6 + size * 1e-9 + (size > 4096) * slope * 2e-6
    data = PingPong(size, time, np.ones(16, dtype=np.int64))
    check(calibration_figure(data, calibrate(data), title="a long name of a file.csv"))


@pytest.mark.parametrize(
    "spec", ["haec:4x4x4", "tofud:2x2x2", "dragonfly:10x18x18x22", "hypercube:13"]
)
def test_the_use_of_many_links_of_many_kinds(spec):
    topology = topology_from_spec(spec)
    busy = np.zeros((topology.links, 4))
    busy[:: topology.links // 40] = 0.25
    title = f"lu.C.4096 by a_mapping_with_a_name.csv on {spec}, engine compiled"
    check(link_use_plot(LinkUse(1.0, busy), topology, makespan=4.0, title=title))


@pytest.mark.parametrize("spec", ["torus:4x4x4", "torus:8x8x8", "haec:4x4x4"])
def test_numbers_of_links_and_names_of_planes(spec):
    """A link that wraps around upwards bears its number between its plane and the next."""
    topology = topology_from_spec(spec)
    last = topology.dims[1] - 1
    up = (topology.coords[topology.link_from] == [0, last, 1]).all(axis=1)
    around = (topology.coords[topology.link_to] == [0, 0, 1]).all(axis=1)
    down = (topology.coords[topology.link_from] == [0, 0, 1]).all(axis=1)
    back = (topology.coords[topology.link_to] == [0, last, 1]).all(axis=1)
    hot = np.flatnonzero((up & around) | (down & back))
    check(link_loads(topology, np.ones(topology.links), title=spec, hot=hot.tolist()))


@pytest.mark.parametrize(
    ("spec", "ranks"), [("torus:8x4x4", 128), ("haec:4x4x4", 64), ("torus:8x8", 64)]
)
def test_lines_between_ranks_are_not_cut_at_the_last_plane(spec, ranks):
    topology = topology_from_spec(spec)
    traffic = nas_traffic(f"lu.A.{ranks}")
    figure = mapping_view(topology, {"mine": np.arange(ranks)}, traffic, title=spec)
    axes = figure.axes[0]
    lines = next(c for c in axes.collections if type(c).__name__ == "LineCollection")
    y = np.concatenate([segment[:, 1] for segment in lines.get_segments()])
    low, high = axes.get_ylim()
    assert low <= y.min()
    assert y.max() <= high


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (1000, 10**5, ["1 kB", "10 kB", "100 kB"]),
        (413_000, 413_040, ["413,000 B", "413,020 B", "413,040 B"]),
        (10**12, 10**12 + 4, ["1,000,000,000,000 B", "1,000,000,000,004 B"]),
        (5_820_000, 5_834_000, ["5.82 MB", "5.83 MB"]),
    ],
)
def test_ends_of_a_colour_bar_differ(least, most, said):
    figure = spy_plot(Traffic.from_pairs(4, [0, 1, 2], [1, 2, 3], [1] * 3, [least, most, most]))
    FigureCanvasAgg(figure).draw()
    assert [text.get_text() for text in figure.axes[-1].get_xticklabels()] == said


def test_long_names_of_networks_below_mapping_times():
    """A column of them ends before the next one, the last at the figure's edge."""
    wide = [f"nodes:node[0-15]@{name}" for name in ("fattree:4x8", "dragonfly:2x4x2x2", "wwwww:4")]
    spreads = [[(1e-3, 1e-4, 1e-2)]] * 3
    check(mapping_time(["sweep"], wide, spreads, title="t"))
