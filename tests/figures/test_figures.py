"""Figures come out for every size and kind of network, small enough and well-formed."""

from __future__ import annotations

import json
import tracemalloc
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from hopmap.figures.bars import (
    SeedSpread,
    excess_strips,
    factor_out,
    ienpc_bars,
    mapping_time,
    runtime_bars,
)
from hopmap.figures.layout import link_steps, name_link, slices, stack
from hopmap.figures.mapping import mapping_view, turnable
from hopmap.figures.network import link_loads
from hopmap.figures.spy import spy_plot
from hopmap.figures.style import label, svg_text
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.units import data
from support.slow import slow


def ring(ranks: int, size: int = 1000) -> Traffic:
    """Every rank sends to the next one, the last to the first; sizes differ."""
    rank = np.arange(ranks)
    return Traffic.from_pairs(
        ranks, rank, (rank + 1) % ranks, rank % 7 + 1, (rank % 7 + 1) * size * (rank % 3)
    )


def checked(figure: Figure, most: int = 900_000) -> str:
    """Return the SVG text of a figure, having looked at its size and form."""
    text = svg_text(figure)
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert len(text) < most
    return text


def words(text: str) -> str:
    return " ".join(t for e in ElementTree.fromstring(text).iter() if (t := e.text))


@pytest.mark.parametrize("ranks", [1, 2, 3, 64, 255, 257, 4096])
def test_spy_plot(ranks: int) -> None:
    text = words(checked(spy_plot(ring(ranks), title=f"ring.{ranks}")))
    assert "sender (rank)" in text
    assert "receiver (rank)" in text
    assert f"ring.{ranks}" in text


def test_spy_plot_of_messages_of_equal_weight_and_of_none() -> None:
    same = Traffic.from_pairs(8, range(8), [1, 2, 3, 4, 5, 6, 7, 0], [3] * 8, [0] * 8)
    assert "messages: 3 each" in words(checked(spy_plot(same)))
    assert "no point-to-point messages" in words(
        checked(spy_plot(Traffic.from_pairs(4, [], [], [], [])))
    )


def test_spy_plot_never_takes_ranks_squared() -> None:
    traffic = ring(30_000)
    tracemalloc.start()
    checked(spy_plot(traffic))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


def test_the_same_figure_gives_the_same_svg() -> None:
    assert svg_text(spy_plot(ring(64))) == svg_text(spy_plot(ring(64)))


SPECS = [
    "mesh:2x2",
    "torus:16",
    "torus:40",
    "mesh:1x1",
    "torus:8x8*2",
    "mesh:4x3x2",
    "torus:4x4x4",
    "haec:4x4x4",
    "haec:1x1x2",
    "torus:8x8x8",
    "haec:8x8x8",
    "mesh:10x10x10",
    "torus:3x3x3x2",
    "hypercube:3",
    "fattree:4x4",
    "dragonfly:2x4x2",
    "cluster:4*2+1",
    "preset:haec-box-4x4x4",
    "preset:bgq",
]


LIKE_OTHERS = {"torus:16", "mesh:4x3x2", "torus:4x4x4", "haec:1x1x2", "torus:8x8x8"}
LIKE_OTHERS |= {"mesh:10x10x10", "preset:haec-box-4x4x4", "preset:bgq"}


@pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if spec not in LIKE_OTHERS] + slow(*sorted(LIKE_OTHERS))
)
def test_network_and_mapping(spec: str) -> None:
    topology = topology_from_spec(spec)
    traffic = ring(topology.nodes)
    node_of = np.random.default_rng(1).permutation(topology.nodes)
    loads = topology.loads(node_of[traffic.src], node_of[traffic.dst], traffic.bytes)
    assert spec in words(checked(link_loads(topology, loads, title=spec)))
    default = np.arange(topology.nodes)
    both = {"mine": node_of, "default order": default}
    figure = mapping_view(topology, both, traffic, title=spec)
    text = words(checked(figure))
    assert "hops" in text
    assert "default order" in text


def test_idle_network_and_empty_nodes() -> None:
    topology = topology_from_spec("torus:4x4")
    checked(link_loads(topology, np.zeros(topology.links), title="idle", unit="messages"))
    silent = Traffic.from_pairs(2, [], [], [], [])
    checked(mapping_view(topology, {"mine": [5, 5]}, silent, title="two"))


def test_links_step_once_and_stubs_wrap() -> None:
    topology = topology_from_spec("torus:4x3x2")
    step, wraps = link_steps(topology)
    assert (np.abs(step).sum(axis=1) == 1).all()
    assert wraps.sum() == 2 * (3 * 2) + 2 * (4 * 2)  # rings of x and y; a ring of two has none
    for layout in (slices(topology), stack(topology)):
        assert len(np.unique(layout.nodes.round(6), axis=0)) == topology.nodes
        assert len(layout.planes) == 2


def test_bars() -> None:
    mappers = ["sweep", "minmd | local_search(neighbourhood=10, rounds=200)", "b$x$ & <c>"]
    rows = [{"total": 10.0, "avg": 2.0, "min": 1.0, "max": 4.0}] * 3
    text = words(checked(ienpc_bars(mappers, rows, title="t", ieplc=8, worst=[10, 12, 11])))
    assert "IePLC 8" in text
    assert "to the worst seed" in text
    assert "b$x$ & <c>" in text
    spans = [SeedSpread(1.2, 1.1, 1.3)] * 3
    text = words(checked(runtime_bars(mappers, [[1, 0.1, 0.1]] * 3, spans, title="t")))
    assert "simulated time (s)" in text
    checked(runtime_bars(["a"], [[0, 0, 0]], [SeedSpread(0, 0, 0)], title="nothing"))
    times = [[SeedSpread(0, 0, 0), None, SeedSpread(10, 1, 100)]] * 2
    assert "torus:4" in words(
        checked(mapping_time(mappers, ["mesh:4", "torus:4"], times, title="t"))
    )


def test_what_all_variants_have_in_common_is_said_once() -> None:
    points = ["link.bandwidth 10 GB/s, eager_limit 1 kB", "link.bandwidth 1 GB/s, eager_limit 1 MB"]
    assert factor_out(points) == ("link.bandwidth, eager_limit", ["10 GB/s, 1 kB", "1 GB/s, 1 MB"])
    together = ["a, b 1 us, 2 us", "a, b 3 us, 2 us"]
    assert factor_out(together) == ("a, b, 2 us", ["1 us", "3 us"])
    assert factor_out(["latency 1", "latency 1 us"]) == ("latency", ["1", "1 us"])
    assert factor_out(["net low", "net low loss"]) == ("net", ["low", "low loss"])
    assert factor_out(["latency 1 us"]) == ("", ["latency 1 us"])
    assert factor_out(["", "latency 1 us, gap 2 us"]) == ("", ["", "latency 1 us, gap 2 us"])


def test_labels_fit() -> None:
    assert label("topdown | local_search", 12) == "topdown\n| loca…earch"
    title = "runtime on cluster:4*4, link.bandwidth 10 GB/s, eager_limit 64 kB"
    assert label(title, 45) == "runtime on cluster:4*4,\nlink.bandwidth 10 GB/s, eager_limit 64 kB"
    assert label("a\x00b\nc") == "a b c"


def test_a_mapping_on_a_box_can_be_turned_where_it_has_three_dimensions() -> None:
    topology = topology_from_spec("mesh:2x2x2")
    traffic = Traffic.from_pairs(2, [0, 1], [1, 0], [1, 1], [1, 1])
    view = json.loads(json.dumps(turnable(topology, [7, 0], traffic)))
    assert view["at"][7] == [1, 1, 1]
    assert view["rank"] == [1, -1, -1, -1, -1, -1, -1, 0]
    assert view["pairs"] == [[0, 7, 3]]
    assert turnable(topology_from_spec("mesh:4x2"), [7, 0], ring(2)) is None


@pytest.mark.parametrize(
    "spec", ["torus:4x4x4", "haec:2x2x2", "fattree:4x4", "dragonfly:4x8x4", "hypercube:6"]
)
def test_the_five_busiest_links_are_numbered_and_named(spec: str) -> None:
    topology = topology_from_spec(spec)
    loads = np.arange(topology.links) * 1000
    figure = link_loads(topology, loads, title="t")
    numbers = [text.get_text() for text in figure.axes[0].texts if text.get_text().isdigit()]
    assert sorted(numbers) == list("12345")
    text = words(checked(figure))
    for link in range(topology.links - 5, topology.links):
        assert f"{name_link(topology, link)}: {data(loads[link])}" in text


def test_a_network_that_carries_nothing_numbers_nothing() -> None:
    topology = topology_from_spec("hypercube:6")
    text = words(checked(link_loads(topology, np.zeros(topology.links), title="t")))
    assert "busiest links" not in text


def test_the_scale_ends_at_the_highest_load() -> None:
    for spec in ("torus:4x4x4", "fattree:4x4x4", "torus:8x8x8x2"):
        topology = topology_from_spec(spec)
        loads = np.linspace(0, 12_340_000, topology.links)
        figure = link_loads(topology, loads, title="t")
        svg_text(figure)
        (bar,) = (axes for axes in figure.axes if axes.get_title(loc="left") == "bytes on a link")
        assert bar.get_xlim() == (0, loads.max())
        assert bar.get_xticklabels()[-1].get_text() == "12.3 MB"


def test_mappers_compared_have_a_dot_a_run_and_the_median() -> None:
    figure = excess_strips({"a": [np.array([0.0, 0.5]), np.array([0.1])]}, title="t", what="more")
    dots, middle = figure.axes[0].lines
    assert np.expm1(dots.get_xdata()).tolist() == pytest.approx([0, 0.5, 0.1])
    assert np.expm1(middle.get_xdata()).tolist() == pytest.approx([0.1, 0.1])


def test_svg_keeps_its_words_when_it_is_made_short() -> None:
    text = words(checked(spy_plot(ring(64), title="a 1.23456 & <b>")))
    assert "a 1.23456 & <b>" in text
