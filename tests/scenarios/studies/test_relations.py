"""The report of a study in which something varies, and what it says of metrics and runtime."""

import pytest

from hopmap.report import figures as report_figures
from hopmap.report.report import write_report
from hopmap.scenarios.results.study import load_study
from hopmap.scenarios.studies.relations import case_findings, relation_section
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario

STUDY = """
name = "radios"
traces = ["lu.S.8"]
topologies = ["mesh:2x2x2", "haec:2x2x2"]
mappers = ["sweep", "gray", "hilbert", "random"]
seeds = [0, 1, 2]
[replay]
engine = "compiled"
steps = 1
[parameters]
"compute.scale" = 0
"energy.node.idle" = "10 W"
"energy.link.per_byte" = "10 pJ/bit"
[[vary]]
name = "radio"
labels = ["fast", "half", "slow"]
parameters."link.wireless.bandwidth" = ["10 GB/s", "5 GB/s", "100 MB/s"]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("relations")
    file = folder / "study.toml"
    file.write_text(STUDY)
    assert not run_scenario(file, load_scenario(file), folder / "out").failed
    return load_study(folder / "out")


def test_a_case_for_the_mesh_and_one_for_each_speed_of_the_radio(study):
    assert [case.where for case in study.cases] == [
        "mesh:2x2x2",
        *(f"haec:2x2x2, radio {speed}" for speed in ("fast", "half", "slow")),
    ]
    (varied,) = study.variations("lu.S.8")
    assert [case.variant for case in varied] == ["radio fast", "radio half", "radio slow"]
    assert [case.variant for case in study.ends_of("lu.S.8")] == ["", "radio fast", "radio slow"]
    assert dict(study.settings_of(varied[-1]))["link.wireless.bandwidth"] == "100 MB/s"


def test_the_section_has_medians_and_a_row_for_every_case(study):
    section = relation_section(study, study.cases)
    speeds = ["radio fast", "radio half", "radio slow"]
    medians, cases = section["rows"][:5], section["rows"][5:]
    assert [row[0].note for row in medians] == ["", "nothing varies", *speeds]
    assert [row[0].text for row in medians] == ["median of 4", *["median of 1"] * 4]
    assert [row[1].note for row in cases] == ["", *speeds]
    for k, row in enumerate(medians[1:]):  # of one case, its own figures
        assert [cell.text for cell in row[4:]] == [cell.text for cell in cases[k][4:]]
    assert {len(row) for row in section["rows"]} == {len(section["head"])}
    assert section["head"][-1][0] == "Energy: τ runtime"
    assert "4 cases" in section["overall"][0]
    assert [where for where, _ in case_findings(study, "lu.S.8")] == ["haec:2x2x2"]


def test_the_page_shows_them_and_pictures_the_ends_of_what_varies(study, monkeypatch):
    monkeypatch.setattr(report_figures, "PICTURED", 0)  # networks are tested elsewhere
    page = write_report(study.folder).read_text(encoding="utf-8")
    for sentence in relation_section(study, study.cases)["overall"]:
        assert sentence in page
    figures = {path.stem for path in (study.folder / "figures").iterdir()}
    assert "lu-S-8-tau" in figures
    assert "lu-S-8-haec-2x2x2-varied" in figures
    assert {name for name in figures if name.endswith("scatter")} == {
        "lu-S-8-mesh-2x2x2-scatter",
        "lu-S-8-haec-2x2x2-radio-fast-scatter",
        "lu-S-8-haec-2x2x2-radio-slow-scatter",
    }
    assert sum(name.endswith("ienpc") for name in figures) == 2
    assert page.count("0.1 GB/s") == 1  # the speed of each variant is in the table of links
