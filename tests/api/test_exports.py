"""Workloads that are written to files, and what is said of one."""

import numpy as np
import pytest

import hopmap as hm
from hopmap.traces import TraceError, load_traffic, nas_folded, nas_trace, nas_traffic
from support import DATA
from support.commands import as_json


@pytest.mark.parametrize("workload", ["lu.S.4", nas_folded("lu.S.4", steps=2)])
def test_what_has_calls_becomes_an_archive_with_its_loops_written_out(workload, tmp_path):
    out = tmp_path / "lu.otf2"
    workload = hm.Workload(workload, steps=2) if isinstance(workload, str) else workload
    written = hm.write_workload(workload, out)
    assert written.same_as(nas_traffic("lu.S.4", steps=2))
    read, whole = hm.read_trace(out), nas_trace("lu.S.4", steps=2)
    assert (read.kind == whole.kind).all()
    assert all(map(np.array_equal, read.records, whole.records))


def test_a_file_of_traffic_has_what_the_workload_counts(tmp_path):
    out = tmp_path / "ft.npz"
    for collectives in ("ignore", "expand"):
        workload = hm.Workload("ft.S.4", collectives=collectives)
        written = hm.write_workload(workload, out)
        assert written.same_as(workload.sent().traffic)
        assert load_traffic(out).same_as(written)
        assert (written.pairs > 0) == (collectives == "expand")


def test_traffic_is_no_archive(tmp_path):
    with pytest.raises(TraceError, match=r"expected a name ending in \.count\.csv"):
        hm.write_workload("stencil:2x2,5pt", tmp_path / "t.otf2")


@pytest.mark.parametrize("trace", [DATA / "lu.S.4", "lu.S.4", "stencil:2x2,5pt"])
def test_a_workload_says_what_info_prints(trace):
    said = as_json("info", trace)
    del said["omitted"], said["wall_seconds"]
    assert hm.Workload(trace).to_dict() == said
