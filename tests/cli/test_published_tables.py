"""A command for each table of the HAEC thesis: published, ours, the difference, the reason."""

import json

import pytest

from hopmap import evaluate, map_ranks
from hopmap.scenarios.sweep import SHIPPED
from hopmap.scenarios.sweep.scenario_files import load_scenario, read_toml, scenario_path
from support.commands import hopmap
from support.slow import slow

OF_ITSELF = ["sweep(preset=thesis)", "minmd(preset=thesis)"]
SEARCHED = ["bokhari(preset=thesis)", "genetic(preset=thesis, generations=1)"]


@pytest.mark.parametrize("mappers", [OF_ITSELF, *slow(SEARCHED)])
def test_table_a1_is_one_command(tmp_path, mappers):
    """What is not random is the same in all four columns, on all three networks."""
    asked = f"mappers={json.dumps(mappers)}"
    text = hopmap("run", "thesis_a1", "--no-report", "--out", tmp_path / "out", "--set", asked)
    tables = text.split("published: lu.C.64 on ")[1:]
    assert [table.partition(":")[0] for table in tables] == ["mesh", "torus", "haec"]
    for table in tables:
        rows = {line.split()[0]: line.rstrip() for line in table.splitlines() if line.strip()}
        for mapper in mappers:
            row = rows[mapper.partition("(")[0]]
            assert row.endswith("random numbers") or ("4 of 4 the same" in row and "±0" in row)
        assert rows["random_sampling"].endswith("random numbers")  # not run, published all the same
    assert ("12,447,703  12,447,703" in text) == (mappers == SEARCHED)


@pytest.mark.parametrize("name", ["thesis_a1", "thesis_a2", "thesis_a3"])
def test_every_table_has_the_nine_mappers_on_three_networks(name):
    scenario = load_scenario(scenario_path(name))
    assert len(scenario.mappers) == 9
    written = read_toml(scenario_path(name))["mappers"]
    assert all(mapper.endswith("(preset=thesis)") for mapper in written)
    assert [spec.partition(":")[0] for spec in scenario.topologies] == ["mesh", "torus", "haec"]
    assert scenario.published is not None
    assert SHIPPED[name].parent.name == "tables"


KNOWN = [
    ("lu.D.512", "torus:8x8x8", "bokhari(preset=thesis)", 1_856),
    ("lu.D.4096", "torus:16x16x16", "scan", 19_200),
    ("lu.D.4096", "haec:16x16x16", "minmd(preset=thesis)", 14_524),
]


@pytest.mark.parametrize("known", [KNOWN[0], *slow(*KNOWN[1:])], ids=lambda known: known[2])
def test_the_figures_of_tables_a2_and_a3_that_are_known(known):
    """In hops of pairs of ranks: 245,021 messages each, one more on the borders of LU's grid."""
    trace, topology, mapper, pair_hops = known
    placed = map_ranks(trace, topology, mapper, seed=4)
    total = evaluate(trace, topology, placed, convention="maplib").messages.ienpc.total
    assert total // 245_021 == pair_hops
