"""Use of links over time as a table and as a figure."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from hopmap.scenarios.figures.link_use import link_use_plot
from hopmap.scenarios.figures.style import svg_text
from hopmap.simulator import LinkUse, program_of, simulate
from hopmap.simulator.export.link_use_table import write_link_use
from hopmap.topologies import topology_from_spec


def used(spec, bins=16):
    topology = topology_from_spec(spec)
    n = min(topology.nodes, 60)
    lists = [[("isend", (r + 3) % n, 10**5), ("irecv", (r - 3) % n, 10**5)] for r in range(n)]
    lists = [[*some, ("wait", 0), ("wait", 1), ("compute", 1e-4)] for some in lists]
    return topology, simulate(
        program_of("shift", lists), topology, range(n), engine="compiled", record_links=bins
    )


def test_the_table_adds_up(tmp_path):
    topology, result = used("haec:2x2x2")
    write_link_use(tmp_path / "use.parquet", result.link_use, topology)
    table = pd.read_parquet(tmp_path / "use.parquet")
    assert list(table.columns) == [
        *("link", "from", "to", "kind", "time_begin", "time_end", "busy", "utilisation")
    ]
    assert len(table) == result.link_use.busy.size
    per_link = table.groupby("link")
    assert per_link["busy"].sum().to_numpy() == pytest.approx(result.link_busy)
    assert np.array_equal(per_link["from"].first(), topology.link_from)
    assert np.array_equal(per_link["to"].first(), topology.link_to)
    assert set(table["kind"]) == {"optical", "wireless"}
    length = table["time_end"] - table["time_begin"]
    assert (length == result.link_use.width).all()
    assert np.allclose(table["utilisation"] * length, table["busy"])
    assert table["time_end"].max() >= result.makespan


@pytest.mark.parametrize("spec", ["mesh:1", "mesh:4", "haec:2x2x2", "torus:8x8x8", "fattree:4x4"])
def test_figures_come_out_for_every_network(spec):
    topology, result = used(spec)
    figure = link_use_plot(result.link_use, topology, makespan=result.makespan, title=spec)
    text = svg_text(figure)
    words = " ".join(t for e in ElementTree.fromstring(text).iter() if (t := e.text))
    assert spec in words
    links = np.count_nonzero(result.link_use.busy.any(axis=1))
    assert f"{links} used links, busiest first" in words
    assert len(text) < 400_000


@pytest.mark.parametrize(
    ("spec", "said"), [("mesh:3", "4 of 4 links unused"), ("mesh:1", "there are no links")]
)
def test_a_run_without_any_use_is_drawn(spec, said):
    topology = topology_from_spec(spec)
    use = LinkUse(0.5, np.zeros((topology.links, 4)))
    figure = link_use_plot(use, topology, makespan=2.0, title="idle")
    words = " ".join(t for e in ElementTree.fromstring(svg_text(figure)).iter() if (t := e.text))
    assert said in " ".join(words.split())
    assert [len(axes.get_yticks()) for axes in figure.axes[:2]] == [3, 0]
