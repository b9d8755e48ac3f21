"""Use of links over time: by hand, against `link_busy`, and against a list of all services."""

from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hopmap.figures.link_use import link_use_plot
from hopmap.figures.style import svg_text
from hopmap.simulator import LinkUse, ParameterError, Parameters, Record, program_of, simulate
from hopmap.simulator.link_use import FINEST, Bins, write_link_use
from hopmap.topologies import mesh, topology_from_spec, torus
from support.free_ends import FREE_ENDS
from support.slow import examples

ENDS = Parameters(**FREE_ENDS, packet_size=10**6, eager_limit=10**6)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_two_messages_with_a_pause_between_them(engine):
    # 3 bytes from 0 s, 1 byte from 6 s, at a byte a second: 3, 0, 1 s in bins of 4, 2, 2 s.
    lists = [[("isend", 1, 3), ("compute", 6.0), ("isend", 1, 1)], [("recv", 0, 3), ("recv", 0, 1)]]
    result = simulate(
        program_of("pause", lists),
        mesh((2,)).with_links(bandwidth=1.0, latency=0.0),
        [0, 1],
        parameters=ENDS,
        engine=engine,
        record=Record(bins=7),
    )
    width, busy = result.link_use
    assert width == 1.0
    link = int(np.argmax(result.link_busy))
    assert busy[link].tolist() == [1, 1, 1, 0, 0, 0, 1]
    assert busy[1 - link].tolist() == [0] * 7
    assert np.array_equal(result.link_use.fraction, busy)


@pytest.mark.parametrize("bins", [1, 2, 5, 100])
def test_bins_add_up_to_what_the_links_counted(bins):
    n, rng = 9, np.random.default_rng(3)
    lists = [[] for _ in range(n)]
    for source, target in rng.integers(0, n, (200, 2)).tolist():
        size = int(rng.integers(1, 30_000))
        lists[source] += [("compute", float(rng.integers(0, 9)) * 1e-6), ("isend", target, size)]
        lists[target].append(("irecv", source, size))
    result = simulate(
        program_of("random", lists),
        torus((3, 3)),
        range(n),
        engine="compiled",
        parameters=Parameters(eager_limit=10**9),
        record=Record(bins=bins),
    )
    use = result.link_use
    assert use.busy.sum(axis=1) == pytest.approx(result.link_busy, rel=1e-12)
    assert use.fraction.max() <= 1 + 1e-9
    assert bins / 2 < use.busy.shape[1] <= bins
    assert use.busy[:, -1].any() or use.busy.shape[1] * use.width >= result.makespan


services = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1e-6), st.floats(0, 1e-5)))


@examples(100)
@given(services, st.integers(1, 9))
@example([(0, 2.0**-24, 0.0)], 1)  # takes no time, where the last bin ends
def test_bins_hold_the_overlap_with_every_service(services, bins):
    use = Bins(3, bins)
    for link, start, seconds in services:
        use.add(link, start, start + seconds)
    assert np.log2(use.width / FINEST) % 1 == 0
    for link in range(3):
        for k in range(bins):
            low, high = k * Fraction(use.width), (k + 1) * Fraction(use.width)
            overlap = sum(
                max(Fraction(0), min(high, Fraction(start + seconds)) - max(low, Fraction(start)))
                for one, start, seconds in services
                if one == link
            )
            assert use.busy[link][k] == pytest.approx(float(overlap), rel=1e-9, abs=1e-20)


def test_nothing_is_kept_unless_asked_for_and_engines_without_packets_refuse():
    program = program_of("idle", [[("compute", 1.0)]])
    assert simulate(program, mesh((1,)), [0]).link_use is None
    width, busy = simulate(program, mesh((2,)), [0], record=Record(bins=3)).link_use
    assert (width, busy.tolist()) == (0.5, [[0, 0], [0, 0]])  # the whole run, up to its end
    for engine in ("flow", "analytic"):
        with pytest.raises(ParameterError, match=f"{engine} does not .*: expected simpy or comp"):
            simulate(program, mesh((1,)), [0], engine=engine, record=Record(bins=3))
    with pytest.raises(ParameterError, match=r"record: -1 bins: expected at least 0"):
        simulate(program, mesh((1,)), [0], record=Record(bins=-1))


def used(spec, bins=16):
    topology = topology_from_spec(spec)
    n = min(topology.nodes, 60)
    lists = [[("isend", (r + 3) % n, 10**5), ("irecv", (r - 3) % n, 10**5)] for r in range(n)]
    lists = [[*some, ("wait", 0), ("wait", 1), ("compute", 1e-4)] for some in lists]
    return topology, simulate(
        program_of("shift", lists), topology, range(n), engine="compiled", record=Record(bins=bins)
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
