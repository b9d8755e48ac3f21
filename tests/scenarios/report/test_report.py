"""The report: one page that needs nothing else, whatever the study holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from hopmap.scenarios.quantities import (
    change,
    compact,
    count,
    data,
    duration,
    joules,
    runtime,
)
from hopmap.scenarios.report.published import published_tables
from hopmap.scenarios.report.report import write_report
from hopmap.scenarios.report.tables import headline, link_rows, main_table
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import save_plan
from hopmap.scenarios.results.tables import StoreError
from hopmap.scenarios.study.study import load_study
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.formats.files import save_traffic

VOID = {"wbr", "meta", "link", "img", "area", "br", "hr", "input"}


def grid_traffic(px: int, py: int, messages: int = 100, size: int = 1000) -> Traffic:
    """Traffic between the neighbours of a px x py grid of ranks."""
    rank = np.arange(px * py).reshape(py, px)
    src = np.concatenate((rank[:, 1:].ravel(), rank[:, :-1].ravel(), rank[1:].ravel()))
    dst = np.concatenate((rank[:, :-1].ravel(), rank[:, 1:].ravel(), rank[:-1].ravel()))
    number = np.full(len(src), messages)
    return Traffic.from_pairs(px * py, src, dst, number, number * size)


def row_of(
    traffic: Traffic, trace: str, spec: str, mapper: str, seed: int, *, replay: bool = True
) -> dict[str, Any]:
    """One run as the store keeps it, measured here by the definitions."""
    topology = topology_from_spec(spec)
    rng = np.random.default_rng(seed)
    node_of = np.arange(traffic.ranks)
    if mapper == "fold":  # a grid of 8 x 4 ranks, folded into 4 x 4 x 2 nodes
        column, line = node_of % 8, node_of // 8
        upper = column > 3
        node_of = np.where(upper, 7 - column, column) + 4 * line + 16 * upper
    elif mapper != "sweep":
        node_of = rng.permutation(topology.nodes)[: traffic.ranks]
    u, v = node_of[traffic.src], node_of[traffic.dst]
    hops = topology.distance(u, v)
    row: dict[str, Any] = {
        "run_id": f"{abs(hash((trace, spec, mapper, seed))):016x}",
        "trace": trace,
        "topology": spec,
        "mapper": mapper,
        "seed": seed,
        "ranks": traffic.ranks,
        "nodes": topology.nodes,
        "mapping_seconds": 0.001 * (1 + seed),
        "node_of": node_of.astype(np.int32),
    }
    for quantity, weight in (("messages", traffic.messages), ("bytes", traffic.bytes)):
        load = topology.loads(u, v, weight)
        used = load[load > 0]
        row |= {
            f"hop_{quantity}": int((hops * weight).sum()),
            f"{quantity}_ienpc_total": int(used.sum()),
            f"{quantity}_ienpc_avg": float(used.mean()),
            f"{quantity}_ienpc_min": int(used.min()),
            f"{quantity}_ienpc_max": int(used.max()),
            f"{quantity}_ieplc_total": int(weight.sum()),
            f"{quantity}_dilation_avg": float((hops * weight).sum() / weight.sum()),
            f"{quantity}_dilation_max": int(hops.max()),
            f"{quantity}_congestion_max": int(used.max()),
        }
        for part in ("total", "avg", "min", "max"):
            row[f"maplib_{quantity}_ienpc_{part}"] = int(row[f"{quantity}_ienpc_{part}"]) + 1
    if replay:
        busy = row["bytes_congestion_max"] / 1e8
        row |= {
            "engine": "simpy",
            "makespan": 0.01 + busy,
            "compute": 0.008,
            "communicate": 0.001,
            "wait": busy / 2,
            "replay_seconds": 1.0,
            "events": 1000,
        }
    return row


def make_study(
    folder: Path,
    *,
    traces: dict[str, Traffic] | None = None,
    topologies: Sequence[str] = ("mesh:4x4x2", "torus:4x4x2", "haec:4x4x2"),
    mappers: Sequence[str] = ("sweep", "fold", "random"),
    seeds: Sequence[int] = (0, 1),
    replay: bool = True,
    failed: Sequence[str] = (),
    name: str = "a small study",
    published: str | None = None,
    links: bool = True,
) -> list[dict[str, Any]]:
    """Fill a folder as `hopmap run` does; `failed` are errors of further runs."""
    for part in ("runs", "links", "traffic"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    rows = []
    for trace, traffic in (traces or {"grid.8x4": grid_traffic(8, 4)}).items():
        save_traffic(store.traffic_path(folder, trace), traffic)
        for spec in topologies:
            topology = topology_from_spec(spec)
            for mapper in mappers:
                for seed in seeds if mapper != "sweep" else seeds[:1]:
                    row = row_of(traffic, trace, spec, mapper, seed, replay=replay)
                    rows.append(row)
                    store.save_run(folder, row)
                    if not links:
                        continue
                    u, v = row["node_of"][traffic.src], row["node_of"][traffic.dst]
                    store.save_links(
                        folder,
                        row["run_id"],
                        topology,
                        topology.loads(u, v, traffic.messages),
                        topology.loads(u, v, traffic.bytes),
                    )
    for place, error in enumerate(failed):
        row = {"run_id": f"bad{place}", "trace": "grid.8x4", "topology": "mesh:4x4x2"}
        row |= {"mapper": "broken", "seed": 3, "error": error}
        rows.append(row)
        store.save_run(folder, row)
    save_plan(folder, [row["run_id"] for row in rows])
    text = f'name = "{name}"\ntraces = ["x"]\n[parameters]\n"link.latency" = "50 ns"\n'
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    if published is not None:
        (folder / "published.csv").write_text(published, encoding="utf-8")
    return rows


class Page(HTMLParser):
    """Tags that are open, ids, images and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.sources += [given["src"] or ""] if "src" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text += data


def page_of(folder: Path) -> Page:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    assert "http" not in re.sub(r'src="data:[^"]*"', "", text)
    page = Page(text)
    assert all(source.startswith("data:") for source in page.sources)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert {link[1:] for link in page.links if link[0] == "#"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    return page


def test_everything_is_on_the_page(tmp_path: Path) -> None:
    make_study(tmp_path)
    seen: list[tuple[int, int | None, str]] = []
    target = write_report(tmp_path, progress=lambda *words: seen.append(words))
    assert target == tmp_path / "report.html"
    page = page_of(tmp_path)
    for words in (
        "a small study",
        "Best mapping",
        "against sweep (the default order)",
        "What was run",
        "bandwidth assumed, latency set by the user",
        "50 ns",
        "Messages on links (IeNPC)",
        "Simulated runtime",
        "Link loads",
        "Ranks on nodes",
        f"hopmap export {tmp_path} --best --to slurm",
        "Mapping time",
        "grid.8x4",
        "torus:4x4x2",
        "simpy",
    ):
        assert words in page.text, words
    # spy, time; IeNPC and runtime of three topologies; links of best and default; mappings
    assert len(page.sources) >= 2 + 3 + 3 + 3 + 3
    figures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(figures) == len(page.sources) == len(seen)
    assert [done for done, _, _ in seen] == list(range(1, len(seen) + 1))
    for figure in figures:
        assert ElementTree.parse(figure).getroot().tag.endswith("svg")
        assert figure.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob(".partial*"))


def test_every_speed_says_where_it_comes_from(tmp_path: Path) -> None:
    pair = nx.path_graph(2)
    nx.set_edge_attributes(pair, {(0, 1): {"bandwidth": 2e9, "kind": "copper"}})
    nx.write_graphml(pair, tmp_path / "pair.graphml")
    (tmp_path / "study.toml").write_text(
        f"""
        name = "speeds"
        traces = ["stencil:2,star"]
        topologies = ["haec:2x2x2", "file:{(tmp_path / "pair.graphml").as_posix()}"]
        mappers = ["sweep"]
        [[vary]]
        parameters."link.optical.bandwidth" = ["31.25 GB/s", "20 GB/s"]
        """
    )
    path = tmp_path / "study.toml"
    run_scenario(path, load_scenario(path), tmp_path / "study")
    rows = [
        (row["topology"], row["bandwidth"], row["sources"])
        for row in link_rows(load_study(tmp_path / "study"))
    ]
    user, graph = (
        [("bandwidth", source), ("latency", "assumed")]
        for source in ("set by the user", "given by the graph")
    )
    assert rows == [
        ("haec:2x2x2, link.optical.bandwidth 31.25 GB/s", "31.25 GB/s", user),  # the default
        ("", "12.5 GB/s", [("", "assumed")]),
        ("haec:2x2x2, link.optical.bandwidth 20 GB/s", "20 GB/s", user),
        ("file:pair.graphml", "2 GB/s", graph),
    ]


def test_parameters_are_those_that_runs_had_with_all_values_of_what_varies(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        """
        name = "speeds"
        traces = ["stencil:2,star"]
        topologies = ["mesh:2"]
        mappers = ["sweep"]
        parameters = {"link.bandwidth" = "5 GB/s", "eager_limit" = "4 kB"}
        [[vary]]
        parameters."link.bandwidth" = ["1 GB/s", "4 GB/s"]
        """
    )
    run_scenario(path, load_scenario(path), tmp_path / "study")
    write_report(tmp_path / "study")
    said = "eager_limit = 4 kB; link.bandwidth = 1 GB/s, 4 GB/s"
    text = " ".join(page_of(tmp_path / "study").text.split())
    assert said in text


def test_figures_in_the_page_are_those_in_the_folder(tmp_path: Path) -> None:
    make_study(tmp_path, name='it\'s "quoted" & 100 %', topologies=["mesh:4x4x2"])
    write_report(tmp_path)
    shown = []
    for source in page_of(tmp_path).sources:
        kind, text = source.split(",", 1)
        assert kind == "data:image/svg+xml"
        shown.append(words_of(ElementTree.fromstring(unquote(text))))
    files = [ElementTree.parse(path).getroot() for path in (tmp_path / "figures").glob("*.svg")]
    assert sorted(shown) == sorted(words_of(root) for root in files)


def words_of(root: ElementTree.Element) -> str:
    return " ".join(text for part in root.iter() if (text := (part.text or "").strip()))


def test_written_again_it_is_the_same(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["haec:4x4x2"])
    first = write_report(tmp_path).read_bytes()
    (tmp_path / "cases.csv").unlink()  # else it is not drawn again
    assert write_report(tmp_path).read_bytes() == first


def test_without_replay(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], replay=False, seeds=(0,))
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert "Simulated runtime" not in page.text
    assert "none: mappings were measured, not replayed" in page.text
    assert "hop-bytes against sweep" in " ".join(page.text.split())


def test_identity_is_the_default_order_of_a_study_without_sweep(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], mappers=["random", "identity"])
    (case, *_) = load_study(tmp_path).cases
    assert case.default is not None
    assert ("against identity", "number") in main_table([case])["head"]
    write_report(tmp_path)
    assert "against identity (the default order)" in " ".join(page_of(tmp_path).text.split())


def test_energy_has_a_column_where_it_was_computed(tmp_path: Path) -> None:
    rows = make_study(tmp_path)
    cases = load_study(tmp_path).cases
    assert ("Energy", "number") not in main_table(cases)["head"]
    for row in rows:
        store.save_run(tmp_path, row | {"energy": 0.0123})
    table = main_table(load_study(tmp_path).cases)
    place = table["head"].index(("Energy", "number"))
    assert {row[place].text for row in table["rows"]} == {"12.3 mJ"}
    assert {len(row) for row in table["rows"]} == {len(table["head"])}


def test_one_run_and_stored_links_missing(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["torus:32"], mappers=["random"], seeds=(4,), links=False)
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert "no sweep or identity, the default order, in this study" in page.text
    assert list((tmp_path / "figures").glob("*links-best.svg"))


def test_failed_runs_are_listed(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:8x4"], failed=["64 ranks do not fit\non <mesh:4x4x2>"])
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert "Failed runs" in page.text
    assert "64 ranks do not fit on <mesh:4x4x2>" in page.text
    assert "1 failed" in page.text


def test_nothing_but_failures(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=[], failed=["no"])
    write_report(tmp_path)
    assert "nothing to compare" in page_of(tmp_path).text


def test_odd_names_are_escaped(tmp_path: Path) -> None:
    odd = 'a<b>&"c" $x_1$ | \N{GREEK SMALL LETTER LAMDA}漢'
    make_study(
        tmp_path,
        traces={odd: grid_traffic(4, 4)},
        topologies=["mesh:4x4"],
        mappers=["sweep", "<script>alert(1)</script>", "minmd | bokhari(rounds=10) | x" * 3],
        name="<i>t & u</i>",
    )
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert odd in page.text
    assert "<i>t & u</i>" in page.text
    assert "<script>alert(1)</script>" in page.text
    for figure in (tmp_path / "figures").glob("*.svg"):
        assert re.fullmatch(r"[A-Za-z0-9.-]+", figure.name)
        ElementTree.parse(figure)


def test_published_numbers_are_marked_where_they_are_the_same(tmp_path: Path) -> None:
    rows = make_study(tmp_path, topologies=["mesh:4x4x2", "torus:4x4x2"])
    sweep = next(r for r in rows if r["mapper"] == "sweep" and r["topology"] == "mesh:4x4x2")
    numbers = [sweep[f"maplib_messages_ienpc_{part}"] for part in ("total", "avg", "min", "max")]
    lines = ["trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max"]
    lines.append("Grid.8X4,mesh,Sweep," + ",".join(map(str, numbers)))
    lines.append("GRID.8X4,torus,random,999,1,1,1")
    lines.append("GRID.8X4,haec,sweep,1,1,1,1")
    (tmp_path / "published.csv").write_text("\n".join(lines) + "\n")
    (table,) = published_tables(load_study(tmp_path))
    assert (table["same"], table["numbers"], len(table["groups"])) == (4, 8, 2)
    assert [cell.look for cell in table["groups"][0]["rows"][0]].count("same") == 4
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert f"✓ {numbers[0]:,}" in page.text
    assert "The published mesh figures are wrong" in page.text
    assert "4 of 8 numbers are the same" in page.text


def test_published_numbers_that_differ_may_have_a_reason_and_some_may_be_unknown(
    tmp_path: Path,
) -> None:
    rows = make_study(tmp_path, topologies=["torus:4x4x2"])
    sweep = next(r for r in rows if r["mapper"] == "sweep")
    numbers = [sweep[f"maplib_messages_ienpc_{part}"] for part in ("total", "avg", "min", "max")]
    lines = ["trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max,reason"]
    lines.append("grid.8x4,torus,sweep," + ",".join(map(str, numbers)) + ",not said as it is equal")
    lines.append("grid.8x4,torus,random,7,,,,other random numbers")
    (tmp_path / "published.csv").write_text("\n".join(lines) + "\n")
    (table,) = published_tables(load_study(tmp_path))
    assert (table["same"], table["numbers"]) == (4, 5)
    assert [row[-1].text for row in table["groups"][0]["rows"]] == ["", "other random numbers"]
    write_report(tmp_path)
    text = page_of(tmp_path).text
    assert "Why they differ" in text
    assert "other random numbers" in text
    assert "not said as it is equal" not in text


def test_published_numbers_without_a_column(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:8x4"], published="trace,topology\na,b\n")
    with pytest.raises(StoreError, match="no column 'mapper'"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "figures").exists()


def test_the_best_seed_is_the_fastest(tmp_path: Path) -> None:
    rows = make_study(
        tmp_path, topologies=["torus:8x4"], mappers=["sweep", "random"], seeds=(0, 1, 2, 3)
    )
    study = load_study(tmp_path)
    (case,) = study.cases
    random = [row for row in rows if row["mapper"] == "random"]
    assert case.entries[1].value("makespan") == min(row["makespan"] for row in random)
    assert len(main_table([case])["rows"]) == 2
    assert case.best.mapper == "sweep"
    assert "no mapper here beats it" in headline(case)["rest"]


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (count(9052876), "9,052,876"),
        (count(None), "–"),
        (count(2.5), "2.50"),
        (compact(9052876), "9.05 M"),
        (compact(999_999_999), "1 G"),
        (compact(0), "0"),
        (data(1.5e9), "1.5 GB"),
        (duration(2.5e-6), "2.5 µs"),
        (duration(0), "0 s"),
        (change(90, 100), "−10.0\u00a0%"),
        (change(100, 100), "±0\u00a0%"),
        (change(99.5, 100), "−0.50\u00a0%"),
        (change(1, None), "–"),
        (runtime(0.38712), "387.1 ms"),
        (runtime(12345.6), "12,346 s"),
        (joules(0.0123), "12.3 mJ"),
        (joules(2e-13), "0.2 pJ"),
        (joules(12.3), "12.3 J"),
        (joules(45_600.0), "45.6 kJ"),
        (joules(0.0), "0 J"),
        (joules(None), "–"),
    ],
)
def test_units(given: str, text: str) -> None:
    assert given == text


def test_of_very_many_failures_the_first_are_listed(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=[], failed=[f"no {place}" for place in range(205)])
    write_report(tmp_path)
    text = page_of(tmp_path).text
    assert "The first 200 of 205." in text
    assert "no 199" in text
    assert "no 200" not in text
