"""Published numbers beside ours on the page of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopmap.report.report import write_report
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.results.tables import StoreError
from hopmap.scenarios.studies.published import list_published_tables

from ...report.studies import make_study, page_of


def test_published_numbers_are_marked_where_they_are_the_same(tmp_path: Path) -> None:
    rows = make_study(tmp_path, topologies=["mesh:4x4x2", "torus:4x4x2"])
    sweep = next(r for r in rows if r["mapper"] == "sweep" and r["topology"] == "mesh:4x4x2")
    numbers = [sweep[f"maplib_messages_ienpc_{part}"] for part in ("total", "avg", "min", "max")]
    lines = ["trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max"]
    lines.append("Grid.8X4,mesh,Sweep," + ",".join(map(str, numbers)))
    lines.append("GRID.8X4,torus,random,999,1,1,1")
    lines.append("GRID.8X4,haec,sweep,1,1,1,1")
    (tmp_path / "published.csv").write_text("\n".join(lines) + "\n")
    (table,) = list_published_tables(load_study(tmp_path))
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
    (table,) = list_published_tables(load_study(tmp_path))
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
