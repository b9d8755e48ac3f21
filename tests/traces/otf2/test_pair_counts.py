"""The file of counts beside an archive: what is written is read, and what is not one is refused."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.traces import (
    PairCounts,
    TraceError,
    read_pair_counts,
    read_trace,
    write_pair_counts,
    write_trace,
)
from hopmap.traces.otf2.files import HEADER
from hopmap.traces.sources import open_source
from support import about
from support.collective_calls import collective, trace_of_calls


def counts_of(*rows, name="made"):
    return PairCounts(name, *np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def columns(counts):
    return np.stack(counts[1:], axis=1).tolist()


def test_what_is_written_is_read_sorted_and_without_pairs_of_no_bytes(tmp_path):
    file = tmp_path / "run.counts"
    write_pair_counts(file, counts_of((1, 0, 0, 7), (0, 1, 2, 2**60), (0, 0, 2, 0), (0, 0, 1, 5)))
    assert file.read_text() == f"{HEADER}\n0,0,1,5\n0,1,2,{2**60}\n1,0,0,7\n"
    counts = read_pair_counts(file)
    assert columns(counts) == [[0, 0, 1, 5], [0, 1, 2, 2**60], [1, 0, 0, 7]]
    assert counts.name == str(file)


def test_comments_spaces_and_any_order_are_read(tmp_path):
    file = tmp_path / "run.counts"
    file.write_text("# by hand\n\nrank, call, peer, bytes # so\n1,0, 0, 7\n# and\n0,0,1,5 # x\n")
    assert columns(read_pair_counts(file)) == [[0, 0, 1, 5], [1, 0, 0, 7]]
    file.write_text(HEADER)
    assert columns(read_pair_counts(file)) == []


def test_what_is_no_table_of_counts_is_one_line(tmp_path):
    for text, message in [
        ("", f"header '': expected {HEADER}"),
        (
            "src,dst,messages,bytes\n0,1,1,1\n",
            f"header 'src,dst,messages,bytes': expected {HEADER}",
        ),
        (f"{HEADER}\n0,0,1\n", f"3 columns: expected {HEADER}"),
        (f"{HEADER}\n0,0,1,8\n0,0", f"expected whole numbers {HEADER}"),
        (f"{HEADER}\n0,0,1,1.5\n", "could not convert string '1.5'"),
        (f"{HEADER}\n0,0,1,{2**70}\n", "could not convert string"),
        (f"{HEADER}\n0,0,1,8\n0,0,-1,8\n", "row 1: peer -1: expected at least 0"),
        (f"{HEADER}\n3,2,1,8\n3,2,1,8\n", "rank 3, call 2: peer 1 is listed twice"),
        ("\udcff", "cannot be read"),
    ]:
        with about(text, message):
            file = tmp_path / "run.counts"
            file.write_bytes(text.encode(errors="surrogateescape"))
            with pytest.raises(TraceError) as error:
                read_pair_counts(file)
            assert str(error.value).startswith(f"{file}: ")
            assert message in str(error.value)
            assert "\n" not in str(error.value)


def test_an_archive_keeps_its_counts_and_what_it_is_known_by_changes_with_them(tmp_path):
    archive = tmp_path / "made.otf2"
    trace = trace_of_calls([[collective("ALLTOALLV", 0, 1, sent=5, received=5)] for _ in range(2)])
    write_trace(trace, archive)
    before = open_source(archive).digest()
    assert read_trace(archive).counts is None
    write_pair_counts(archive / "traces.counts", counts_of((0, 0, 1, 5), (1, 0, 0, 5)))
    read = read_trace(archive)
    assert columns(read.counts) == [[0, 0, 1, 5], [1, 0, 0, 5]]
    assert open_source(archive).digest() != before
    # Written again, over itself, too.
    write_trace(read, archive)
    assert columns(read_trace(archive).counts) == columns(read.counts)
    write_trace(trace, archive)
    assert read_trace(archive).counts is None
