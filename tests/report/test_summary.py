"""The report's summary: mappers over all cases, cases chosen for the page, the table of all."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hopmap.report import summary as report_summary
from hopmap.report.summary import choose_cases, excess, summarise_unmoved, summary, write_cases
from hopmap.report.tables import best_table
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan
from hopmap.scenarios.results.study import Study, cases_of, load_study
from hopmap.units import MISSING

from .studies import make_study


@pytest.fixture
def study_of():
    """Make a study of the runs of several cases."""

    def make(tmp_path, *tables):
        named = [table.assign(trace="t", topology="mesh:2x2", variant="") for table in tables]
        cases, runs = [case for table in named for case in cases_of(table)], pd.concat(named)
        return Study(tmp_path, "s", "", "", {}, (), Plan(runs=[]), runs, runs[:0], cases)

    return make


@pytest.fixture
def table(runs_of):
    """Runs of two mappers with two seeds each: times as given, in the order a, a, b, b."""

    def make(*times):
        return runs_of(
            times,
            [10, 20, 30, 40],
            mapper=["a", "a", "b", "b"],
            hop_messages=1,
            mapping_seconds=1.0,
        )

    return make


def test_mappers_are_measured_from_the_best_run_of_each_case(study_of, table, tmp_path) -> None:
    study = study_of(tmp_path, table(1.0, 2.0, 1.5, 1.5), table(30.0, 30.0, 20.0, 40.0))
    found = {mapper: [list(each) for each in cases] for mapper, cases in excess(study).items()}
    assert found == {"a": [[0, 1], [0.5, 0.5]], "b": [[0.5, 0.5], [0, 1]]}
    text = {row[0].text: [cell.text for cell in row[1:6]] for row in summary(study)["rows"]}
    # geometric mean of 1 and 2, of 1.5 and 1.5: (1 x 2)^1/4 x 1.5^1/2 = 1.456
    assert text["a"] == ["2", "1", "+46\u00a0%", "+100\u00a0%", "100\u00a0%"]
    assert text["a"] == text["b"]


def test_where_nothing_was_replayed_hop_bytes_are_compared(study_of, table, tmp_path) -> None:
    none = [float("nan")] * 4
    study = study_of(tmp_path, table(*none), table(*none))
    assert [list(each) for each in excess(study)["b"]] == [[2, 3], [2, 3]]
    assert not summary(study)["replayed"]


def test_one_case_needs_no_summary(study_of, table, tmp_path) -> None:
    assert summary(study_of(tmp_path, table(1, 2, 3, 4))) is None


def test_of_many_cases_those_are_shown_in_which_the_choice_matters_most_and_least(
    study_of, table, tmp_path, monkeypatch
) -> None:
    # in the last the mapper with the fewest hop-bytes, a, is far behind b
    tables = [table(1, 1, 1, 1 + k / 10) for k in range(9)] + [table(1.7, 1.7, 1, 1)]
    study = study_of(tmp_path, *tables)
    assert choose_cases(study) is study.cases
    monkeypatch.setattr(report_summary, "ROWS", 5)
    monkeypatch.setattr(report_summary, "CHOSEN", 3)
    assert [study.cases.index(case) for case in choose_cases(study)] == [0, 8, 9]


def test_all_cases_are_in_a_table(study_of, table, tmp_path) -> None:
    runs = table(1.0, 2.0, 1.5, 1.5)
    write_cases(study_of(tmp_path, runs), tmp_path / "cases.csv")
    written = pd.read_csv(tmp_path / "cases.csv", index_col="mapper")
    assert written.loc[
        "a", ["seeds", "makespan_min", "makespan_mean", "makespan_max"]
    ].tolist() == [2, 1, 1.5, 2]
    assert "energy_mean" not in written


def test_one_sentence_has_all_cases_in_which_placement_does_not_matter(tmp_path: Path) -> None:
    rows = make_study(tmp_path, topologies=["mesh:4x4x2", "torus:4x4x2", "haec:4x4x2"])
    same = {"mesh:4x4x2", "torus:4x4x2"}
    for row in rows:  # there the mappers are within 1 %, elsewhere a mapper halves the runtime
        fast = row["topology"] not in same and row["mapper"] == "fold"
        store.save_run(tmp_path, row | {"makespan": 0.5 if fast else 1.0})
    said = summarise_unmoved(load_study(tmp_path))
    assert said.startswith("In 2 of 3 cases placement does not matter: ")
    assert said.endswith(": grid.8x4 on mesh:4x4x2 and torus:4x4x2.")
    cases = load_study(tmp_path).cases
    cells = [row[4].text for row in best_table([cases])["rows"]]
    assert cells.count(MISSING) == 2
    assert sum("saves" in text for text in cells) == 1
