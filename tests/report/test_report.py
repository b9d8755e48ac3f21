"""The report: one page that needs nothing else, whatever the study holds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest

from hopmap.report import tables as report_tables
from hopmap.report.report import write_report
from hopmap.report.tables import best_table, link_rows, main_table
from hopmap.scenarios.results import store
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.results.tables import StoreError
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.units import MISSING, change, compact, count, data, duration, joules, runtime
from support import about

from .studies import grid_traffic, make_study, page_of


@pytest.mark.usefixtures("drawn")
def test_everything_is_on_the_page(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["torus:4x4x2", "haec:4x4x2"])
    seen: list[tuple[int, int | None, str]] = []
    target = write_report(tmp_path, progress=lambda *words: seen.append(words))
    assert target == tmp_path / "report.html"
    page = page_of(tmp_path)
    for words in (
        "a small study",
        "Best mapping",
        "Hop-bytes against sweep",
        "What was run",
        "bandwidth DEFAULT, latency set by the user",
        "50 ns",
        "messages on links (IeNPC)",
        "Simulated runtime",
        "Link loads",
        "Ranks on nodes",
        f"hopmap export {tmp_path} --best -t torus:4x4x2 --to slurm",
        "Mapping time",
        "grid.8x4",
        "torus:4x4x2",
        "simpy",
    ):
        assert words in page.text, words
    # spy, time; IeNPC and runtime of two topologies; links of best and default; mappings
    assert len(page.pictures) >= 2 + 2 + 2 + 2 + 2
    figures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(figures) == len(page.pictures) == len(seen)
    assert [done for done, _, _ in seen] == list(range(1, len(seen) + 1))
    assert not list(tmp_path.glob(".partial*"))
    shown = " ".join(page.text.split())  # in the page are the figures of the folder
    for figure in figures:
        root = ElementTree.parse(figure).getroot()
        assert root.tag.endswith("svg")
        assert all(words in shown for words in words_of(root))


def words_of(root: ElementTree.Element) -> list[str]:
    style = "{http://www.w3.org/2000/svg}style"
    texts = [part.text or "" for part in root.iter() if part.tag != style]
    return [" ".join(text.split()) for text in texts if text.strip()]


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
        [("bandwidth", source), ("latency", "DEFAULT")]
        for source in ("set by the user", "from the graph")
    )
    assert rows == [
        ("haec:2x2x2, link.optical.bandwidth 31.25 GB/s", "31.25 GB/s", user),  # the default
        ("", "12.5 GB/s", [("", "DEFAULT")]),
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


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_written_again_it_is_the_same(tmp_path: Path) -> None:
    grid = {"grid.4x2": grid_traffic(4, 2)}
    make_study(tmp_path, traces=grid, topologies=["haec:2x2x2"], mappers=["random"], replay=False)
    first = write_report(tmp_path).read_bytes()
    (tmp_path / "cases.csv").unlink()  # else it is not drawn again
    assert write_report(tmp_path).read_bytes() == first


def test_without_replay(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], replay=False, seeds=(0,))
    write_report(tmp_path)
    page = page_of(tmp_path)
    assert "Simulated runtime" not in page.text
    assert "none: mappings were measured, not replayed" in page.text
    assert "Hop-bytes against sweep" in " ".join(page.text.split())
    assert "Runtime of" not in page.text


def test_identity_is_the_default_order_of_a_study_without_sweep(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], mappers=["random", "identity"])
    (case, *_) = load_study(tmp_path).cases
    assert case.default is not None
    assert ("against identity", "number") in main_table([case])["head"]
    write_report(tmp_path)
    assert "Runtime against identity" in " ".join(page_of(tmp_path).text.split())


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
    assert "no default order (sweep or identity) to compare with" in page.text
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


@pytest.mark.usefixtures("drawn")
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
    assert best_table([[case]])["rows"][0][4].text == MISSING


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())


def test_units() -> None:
    for given, text in [
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
    ]:
        with about(given, text):
            assert given == text


def test_of_very_many_failures_the_first_are_listed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(report_tables, "FAILED", 3)
    make_study(tmp_path, topologies=[], failed=[f"no {place}" for place in range(5)])
    write_report(tmp_path)
    text = page_of(tmp_path).text
    assert "The first 3 of 5." in text
    assert "no 2" in text
    assert "no 3" not in text
