"""The command that makes the tables of benchmarks/stencils/README.md."""

import pytest
from stencils import findings, show

from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario

SCENARIO = """
name = "small"
suites = ["stencil_skew,bytes=1000000"]
mappers = ["row_major", "gropp", "kd_tree", "squarest_strips", "hyperplane", "random"]
[replay]
engine = "flow"
[parameters]
"link.bandwidth" = "12.5 GB/s"
[[vary]]
name = "memory"
labels = ["slow", "fast"]
parameters."memory.bandwidth" = ["10 GB/s", "60 GB/s"]
"""


@pytest.mark.slow
def test_all_cases_are_counted_once_whatever_suites_and_folders_have_them(tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    assert not run_scenario(path, load_scenario(path), tmp_path / "out").failed
    found = findings([tmp_path / "out"])
    assert len(found) == 2 * 5
    show([*found, *found])
    slow, fast = capsys.readouterr().out.splitlines()[1:3]
    assert slow.startswith("memory slow, 1 MB: 5 | -")  # rows stay in slow memory, and win
    assert fast.startswith("memory fast, 1 MB: 5 | +")
    assert [int(line.split(" | ")[4]) for line in (slow, fast)] == [0, 5]
