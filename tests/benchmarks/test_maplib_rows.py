"""MapLib's stored statistics of its own mappings of CG and AMG."""

from maplib_rows import OTHER_RUN, Row, main, rows


def test_all_rows_come_out_in_all_four_columns_but_those_of_another_run(shared):
    """The five of Bokhari's mapper on AMG are not of the mappings that are stored."""
    found = list(rows(shared / "maplib"))
    assert {row.reason for row in found} == {"", OTHER_RUN}
    others = [row for row in found if row.reason]
    assert all((row.app, row.mapper) == ("amg", "bokhari") for row in others)
    assert (len(found) - len(others), len(others)) == (138, 5)


def test_the_command_prints_published_ours_difference_and_reason(shared, capsys):
    main(shared / "maplib")
    lines = capsys.readouterr().out.splitlines()
    (sweep,) = (line.split() for line in lines if line.startswith("CG count torus sweep "))
    assert sweep[4] == sweep[5]
    assert sweep[6:] == ["+0.0%", "4", "of", "4"]
    assert lines[-1].startswith("138 of 143 rows")


def test_a_difference_that_is_not_explained_is_said_to_be_unknown():
    row = Row("cg", "count", "torus", "sweep", [2, 1, 1, 1], [3, 1, 1, 1])
    assert row.reason == "unknown"
    assert row._replace(ours=row.published).reason == ""
    assert row._replace(app="amg", mapper="bokhari").reason == OTHER_RUN
