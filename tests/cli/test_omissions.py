"""Commands tell what of a trace they leave out, and warn of what takes long."""

import json

import pytest

from hopmap.traces import write_trace
from support.archives import OMISSIONS, archive_with_omissions
from support.collective_calls import collective, trace_of_calls
from support.commands import invoke


@pytest.mark.parametrize("command", ["info", "matrix", "simulate", "explain"])
def test_they_say_so_in_lines_and_json(tmp_path, command):
    folder, mapping = archive_with_omissions(tmp_path / "made"), tmp_path / "mapping.csv"
    mapping.write_text("rank,node\n0,0\n1,1\n")
    rest = {"matrix": ["--out", tmp_path / "t.npz", "--force"]}
    rest |= {key: [mapping, "-t", "mesh:2"] for key in ("simulate", "explain")}
    words = [str(word) for word in (command, folder, *rest.get(command, []))]
    printed = invoke(words)
    for entry in OMISSIONS:
        assert f"{entry.kind}: {entry.what}: {entry.count}" in printed.stdout
    warning = "made: flushes of trace buffers: 1, 4 s (20.00% of the run)"
    assert [warning in line for line in printed.stderr.splitlines()].count(True) == 1
    assert "one-sided" not in printed.stderr  # 0.5 %
    told = json.loads(invoke([*words, "--json"]).stdout)["omitted"]
    assert [entry["what"] for entry in told] == [entry.what for entry in OMISSIONS]
    assert [entry["seconds"] for entry in told[:2]] == pytest.approx([4.0, 0.1])


@pytest.mark.parametrize("command", ["map", "evaluate"])
def test_traffic_of_collectives_that_is_made_up_is_a_warning(tmp_path, command):
    call = collective("ALLTOALLV", 0, 1, sent=800, received=800)
    write_trace(trace_of_calls([[call]] * 4), tmp_path / "made")
    mapping = tmp_path / "mapping.csv"
    mapping.write_text("rank,node\n0,0\n1,1\n2,2\n3,3\n")
    how = {"map": ["-m", "sweep"], "evaluate": [mapping]}[command]
    words = [command, tmp_path / "made", *how, "-t", "mesh:4", "--collectives", "expand"]
    printed = invoke(words)
    told = "hopmap: made: alltoallv calls recorded only as sums: 1; pairs assumed for these calls: "
    assert printed.exit_code == 0
    assert printed.stderr.startswith(told)


def test_a_sweep_and_its_page_say_so(tmp_path):
    archive_with_omissions(tmp_path / "made")
    (tmp_path / "s.toml").write_text(
        'name = "s"\ntraces = ["made"]\ntopologies = ["mesh:2"]\nmappers = ["sweep"]\n'
    )
    words = ["run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    printed = invoke(words)
    assert printed.exit_code == 0
    warning = "made: flushes of trace buffers: 1, 4 s (20.00% of the run)"
    assert warning in printed.stderr
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert f'<p class="warning">{warning}</p>' in page
    for entry in OMISSIONS:
        assert f"{entry.what}: {entry.count}" in page
