"""One command compares single grids of Lehr's thesis with ours."""

import pytest
from lehr import FIGURE_7_16, PRINTED, blocks, ours, show


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: f"{row.grid}-{row.mapper}")
def test_what_is_printed_comes_out_but_for_the_case_that_is_wrong(row):
    wrong = row.where == "section 3.3, case 3"
    for published, found in zip((row.worst, row.total), ours(row), strict=True):
        assert published is None or found == (2 if wrong else published)
    assert bool(row.reason) == (wrong or row.worst is None)


@pytest.mark.parametrize("mapper", FIGURE_7_16)
def test_the_boxes_of_figure_7_16(mapper):
    assert blocks(mapper) == {FIGURE_7_16[mapper]}


def test_the_command_prints_published_ours_difference_and_reason(capsys):
    show()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:] for line in lines if line.split()[0] == "kd_tree"] == [
        ["71", "71", "0", "1928", "1928", "0"]
    ]
    assert [line.split()[:4] for line in lines if "no minimum" in line] == [
        ["exact_partition(measure=worst)", "4", "2", "-2"]
    ]
