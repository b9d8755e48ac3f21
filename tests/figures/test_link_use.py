"""How busy links are over time: colours end at the highest share, and the busiest are named."""

import numpy as np

from hopmap.figures.link_use import link_use_plot
from hopmap.figures.style import svg_text
from hopmap.figures.tips import tips
from hopmap.simulator import LinkUse
from hopmap.topologies import topology_from_spec


def test_a_lightly_loaded_run_has_the_whole_scale_and_five_names():
    topology = topology_from_spec("torus:4x4")
    busy = np.zeros((topology.links, 4))
    busy[:8] = np.arange(8, 0, -1)[:, None] * 1e-4  # of a second a bin
    figure = link_use_plot(LinkUse(1.0, busy), topology, makespan=4.0, title="t")
    (image,) = (image for axes in figure.axes for image in axes.images)
    assert image.norm.vmax == busy.max()
    text = svg_text(figure)
    assert text.count("0.08 %") >= 3  # the bar's end, the axis' end, the first link
    first = topology.link_from[0], topology.link_to[0]
    assert first == (0, 1)
    assert "0 (0,0) → 1 (1,0): 0.08 %" in text
    assert sum(" → " in words for words in text.split("<title>")[0].split("</text>")) == 5
    assert len(tips(figure)) == 8  # each used link says what it is
