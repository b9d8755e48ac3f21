"""Tables of measured collectives: what is read, and what is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator.measured.files import (
    MeasuredError,
    is_measured,
    read_measured,
)
from support.measured_calls import measured_of

HEAD = "collective,algorithm,buffer_bytes,iterations,median_ns\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="times.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_rows_are_read_in_si_units_and_columns_that_are_missing_have_their_defaults(written):
    table = read_measured([written(HEAD + "bcast,binomial,32.0,10,1500\nreduce,chain,4,9,2.5e3\n")])
    assert table.collective == ("bcast", "reduce")
    assert table.algorithm == ("binomial", "chain")
    assert table.size.tolist() == [32, 4]
    assert table.time == pytest.approx([1.5e-6, 2.5e-6])
    assert table.nodes.tolist() == [0, 0]
    assert table.tasks.tolist() == [1, 1]
    assert not table.on_gpu.any()


def test_nodes_ranks_of_each_and_buffers_on_gpus_are_read_where_they_are_told(written):
    head = "collective,nodes,tasks_per_node,gpu_aware,algorithm,buffer_bytes,median_ns\n"
    table = read_measured([written(head + "Allgather,4,2,yes,ring_ompi,64,10\n")])
    assert (table.nodes.tolist(), table.tasks.tolist(), table.on_gpu.tolist()) == ([4], [2], [True])
    assert table.collective == ("allgather",)


def test_several_files_are_one_table_and_each_row_knows_its_file(written):
    one, two = (written(HEAD + "bcast,chain,8,1,5\n", f"{k}.csv") for k in "ab")
    table = read_measured([one, two])
    assert table.file.tolist() == [0, 1]
    assert table.files == (str(one), str(two))


def test_what_differs_in_algorithm_alone_is_one_cell():
    rows = [
        {"collective": c, "algorithm": a, "buffer_bytes": s, "median_ns": 1}
        for c, a, s in [("bcast", "x", 8), ("bcast", "y", 8), ("bcast", "x", 9), ("reduce", "x", 8)]
    ]
    assert measured_of(rows).cells().tolist() == [0, 0, 1, 2]


def test_a_part_keeps_the_rows_that_are_asked_for():
    rows = [
        {"collective": "bcast", "algorithm": a, "buffer_bytes": 8, "median_ns": 1} for a in "xyz"
    ]
    assert measured_of(rows).part(np.array([True, False, True])).algorithm == ("x", "z")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("collective,algorithm,median_ns\na,b,1\n", "no column 'buffer_bytes'"),
        (HEAD, "no rows"),
        (HEAD + "bcast,x,8,1,nan\n", r"line 2: median_ns 'nan': expected a number above 0"),
        (HEAD + "bcast,x,8,1,0\n", r"line 2: median_ns '0': expected a number above 0"),
        (HEAD + "bcast,x,-8,1,5\n", r"line 2: buffer_bytes '-8': expected a whole number"),
        (HEAD + "bcast,x,8.5,1,5\n", r"line 2: buffer_bytes '8.5': expected a whole number"),
        (HEAD + "bcast,x,8,1,5\nbcast,x,8\n", r"line 3: too few values"),
        (HEAD[:-1] + ",nodes\nbcast,x,8,1,5,0\n", r"line 2: nodes '0': expected a whole number"),
    ],
)
def test_what_cannot_be_meant_is_one_line_that_names_file_line_and_value(written, text, expected):
    with pytest.raises(MeasuredError, match=expected) as error:
        read_measured([written(text)])
    assert "times.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text_is_one_line(tmp_path):
    with pytest.raises(MeasuredError, match="cannot be read"):
        read_measured([tmp_path / "none.csv"])
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MeasuredError, match="cannot be read as CSV"):
        read_measured([tmp_path / "bytes.csv"])


def test_collectives_are_told_from_ping_pongs_by_the_head_of_the_file(written):
    assert is_measured(written(HEAD))
    assert not is_measured(written("size,time\n0,1\n"))
    assert not is_measured(written("", "empty.csv"))
    assert not is_measured("/no/such/file")
