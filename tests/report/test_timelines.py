"""Timelines are one command away, and one click once they are made."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from hopmap.report.report import write_report
from hopmap.report.timelines import FOLDER, _with_unit
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support import DATA
from support.commands import invoke

from .studies import make_study, page_of

SCENARIO = """
name = "Timelines"
traces = ["data/mg.S.16", "lu.S.16"]
topologies = ["torus:4x2x2"]
mappers = ["sweep", "bokhari", "random"]
[replay]
engine = "compiled"
steps = 2
[parameters]
"link.bandwidth" = 1e8
"link.latency" = "3 us"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return results of a recording and a benchmark; the scenario lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(DATA)
    path = tmp_path / "study.toml"
    path.write_text(SCENARIO)
    run_scenario(path, load_scenario(path), tmp_path / "out")
    write_report(tmp_path / "out")
    return tmp_path / "out"


def commands(folder: Path) -> list[str]:
    text = (folder / "report.html").read_text(encoding="utf-8")
    return [unescape(found) for found in re.findall('<pre class="copy">(.*?)</pre>', text)]


def test_the_commands_replay_the_runs_of_the_results(folder: Path) -> None:
    study = load_study(folder)
    makespans = []
    for case in study.cases:
        makespans.append(case.best.value("makespan"))
        if case.default is not case.best:
            makespans.append(case.default.value("makespan"))
    found = []
    for line in commands(folder):
        program, *words = shlex.split(line)
        assert program == "hopmap"
        result = invoke([*words, "--json"])
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.stdout)["makespan"])
    # an archive has whole ticks
    assert found == pytest.approx(makespans, rel=1e-5)
    assert len(set(makespans)) >= 3  # of two traces, best and default order


def test_what_was_made_is_linked_when_the_report_is_written_again(folder: Path) -> None:
    before = page_of(folder).links
    words = shlex.split(commands(folder)[0])[1:]
    assert invoke(words).exit_code == 0
    write_report(folder)
    links = [link for link in page_of(folder).links if link not in before]  # which are there
    assert len(links) == 2
    assert all(link.startswith(FOLDER) for link in links)
    assert json.loads((folder / links[0]).read_text())["traceEvents"]
    assert "Perfetto" in page_of(folder).text


def test_numbers_get_the_unit_that_the_command_line_asks_for() -> None:
    assert _with_unit("link.bandwidth", 1e8) == "100000000.0 bytes/s"
    assert _with_unit("link.wireless.latency", 1e-6) == "1e-06 s"
    assert _with_unit("eager_limit", 4096) == "4096 bytes"
    assert _with_unit("compute.scale", 0) == "0"
    assert _with_unit("eager_limit", "64 kB") == "64 kB"


def test_runs_that_were_not_replayed_have_no_timelines(tmp_path: Path) -> None:
    make_study(tmp_path, topologies=["mesh:4x4x2"], replay=False, seeds=(0,))
    write_report(tmp_path)
    assert commands(tmp_path) == []
    assert "Timelines" not in page_of(tmp_path).text
