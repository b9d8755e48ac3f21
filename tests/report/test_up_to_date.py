"""A report is drawn when its results have changed, and not again before."""

from __future__ import annotations

import os
from pathlib import Path

from hopmap.report.report import digest_of_report, is_up_to_date, write_report
from hopmap.scenarios.results.gather import gather
from hopmap.scenarios.results.store import save_run
from hopmap.scenarios.results.stored_runs import loose_path, part_files

from .studies import make_study


def _drawn(folder: Path) -> dict[str, int]:
    files = [*(folder / "figures").iterdir(), folder / "report.html", folder / "cases.csv"]
    return {file.name: file.stat().st_mtime_ns for file in files}


def test_a_second_report_of_the_same_results_draws_nothing(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], mappers=["sweep"])
    page, told = write_report(tmp_path), []
    first = _drawn(tmp_path)
    assert write_report(tmp_path, progress=lambda *_: told.append(_)) == page
    assert _drawn(tmp_path) == first
    assert told == []
    (tmp_path / "figures" / "edited.svg").write_text("mine")
    page.unlink()
    write_report(tmp_path)
    assert (tmp_path / "figures" / "edited.svg").read_text() == "mine"


def test_it_is_out_of_date_when_results_or_what_was_drawn_have_changed(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"])
    digest = digest_of_report(tmp_path)
    (tmp_path / "figures").mkdir()
    (tmp_path / "cases.csv").write_text("")
    (tmp_path / "report.html").write_text(f'<meta name="hopmap" content="{digest}">')
    assert is_up_to_date(tmp_path, digest)
    for name in ("figures", "cases.csv", "report.html"):
        (tmp_path / name).rename(tmp_path / "moved")
        assert not is_up_to_date(tmp_path, digest)
        (tmp_path / "moved").rename(tmp_path / name)
    found = {digest}
    for name in ("plan.json", "scenario.toml"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
        found.add(digest_of_report(tmp_path))
    (tmp_path / "published.csv").write_text("trace,topology,mapper\n")
    found.add(digest_of_report(tmp_path))
    make_study(tmp_path, topologies=["mesh:4x4x2"], seeds=(0, 1, 2))
    found.add(digest_of_report(tmp_path))
    assert len(found) == 5


def test_a_run_that_is_not_gathered_yet_counts_and_so_does_when_it_was_tried_again(
    tmp_path: Path,
) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"])
    found = {digest_of_report(tmp_path)}
    save_run(tmp_path, {"run_id": "late", "error": "no memory"})
    found.add(digest_of_report(tmp_path))
    os.utime(loose_path(tmp_path, "runs", "late"), (0, 0))
    found.add(digest_of_report(tmp_path))
    gather(tmp_path)
    found.add(digest_of_report(tmp_path))
    (part,) = part_files(tmp_path, "runs")
    part.rename(part.with_name("part-00000-of-other-runs.parquet"))
    found.add(digest_of_report(tmp_path))
    assert len(found) == 5
