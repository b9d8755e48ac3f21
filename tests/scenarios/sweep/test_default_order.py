"""A sweep says which mappers end above the default order, whether or not that was run."""

import pytest

from hopmap.errors import HopmapWarning
from hopmap.scenarios.sweep.default_order import SHOWN, shorten
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario

SCENARIO = """
name = "above"
traces = ["lu.S.16"]
topologies = ["torus:4x4"]
mappers = ["random", "rcm", "congestion(moves=0)", "auto(moves=100)"]
seeds = [0, 1]
[replay]
engine = false
"""


def test_a_mapper_that_ends_above_is_named_with_its_best_seed(tmp_path):
    path, results = tmp_path / "above.toml", tmp_path / "results"
    path.write_text(SCENARIO)
    for _ in range(2):  # also where nothing is left to run
        with pytest.warns(HopmapWarning) as said:
            outcome = run_scenario(path, load_scenario(path, []), results)
        table = outcome.to_frame()
        least = table[table["mapper"] == "congestion(moves=0)"]["bytes_congestion_max"].min()
        rcm = int(table[table["mapper"] == "rcm"]["hop_bytes"].iloc[0])
        where = "on lu.S.16, torus:4x4"
        assert [line.partition(" are ")[0] for line in outcome.warnings] == [
            f"mapper rcm {where}: {rcm:,} hop-bytes",
            f"mapper congestion(moves=0) {where}: {least:,} bytes on the busiest link",
        ]
        texts = [str(each.message) for each in said]
        assert [text for text in texts if "above" in text] == outcome.warnings
    assert outcome.to_dict()["warnings"] == outcome.warnings


def test_of_many_mappers_the_first_are_named():
    lines = [f"mapper {k}" for k in range(SHOWN + 3)]
    assert shorten(lines[:SHOWN]) == lines[:SHOWN]
    assert shorten(lines) == [*lines[:SHOWN], "3 more mappings are above the default order"]
