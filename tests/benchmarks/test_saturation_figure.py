"""The figure of saturation shows every network, and what is accepted in one panel."""

from xml.etree import ElementTree

from open_loop import Load
from saturation_figure import latency_throughput

from hopmap.figures.style import svg_text


def test_latency_throughput_has_a_panel_a_network_and_one_for_what_is_accepted() -> None:
    loads = [Load(offered, min(offered, 0.5), offered, 2 + offered, 9) for offered in (0.1, 0.9)]
    patterns = ("uniform", "bit_reversal")
    curves = {spec: dict.fromkeys(patterns, loads) for spec in ("torus:8x8", "mesh:8x8")}
    limits = {spec: dict.fromkeys(patterns, 0.5) for spec in curves}
    figure = latency_throughput(curves, limits, curves, title="Two networks")
    text = " ".join(t for e in ElementTree.fromstring(svg_text(figure)).iter() if (t := e.text))
    for word in ("Two networks", "torus:8x8", "mesh:8x8", "bit reversal", "worst flow, all 4"):
        assert word in text
    *panels, last = figure.axes
    assert len(panels) == 2
    # Two curves and one asymptote each; in the last all curves, flat where nothing more gets in.
    assert [len(axes.lines) for axes in panels] == [3, 3]
    assert last.lines[0].get_ydata().tolist() == [0.2, 1.0]
