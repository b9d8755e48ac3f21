"""What varies: keys of one table go together, tables are crossed, what is not there is left out."""

import pytest

from hopmap.scenarios.sweep.scenario import Scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from hopmap.scenarios.sweep.scenario_tables import Vary
from hopmap.topologies import topology_from_spec

HAEC, MESH = topology_from_spec("haec:2x2x2"), topology_from_spec("mesh:2x2")
SPEED, DELAY = "link.wireless.bandwidth", "link.wireless.latency"


def table(parameters, name=None, labels=None):
    return Vary(name=name, labels=labels, parameters=parameters)


def variants(tables, fixed, network):
    return Scenario(name="s", mappers=["sweep"], parameters=fixed, vary=tables).variants(network)


def test_keys_of_a_table_go_together():
    both = table({SPEED: [2e9, 1e9], DELAY: [1e-7, 2e-7]}, "radio", ["fast", "slow"])
    assert variants([both], {}, HAEC) == [
        ("radio fast", ((SPEED, 2e9), (DELAY, 1e-7))),
        ("radio slow", ((SPEED, 1e9), (DELAY, 2e-7))),
    ]


def test_tables_are_crossed_the_first_slowest():
    tables = [table({SPEED: [2, 1]}, "a"), table({"eager_limit": [0, 8]}, "b")]
    labels = [label for label, _ in variants(tables, {}, HAEC)]
    assert labels == ["a 2, b 0", "a 2, b 8", "a 1, b 0", "a 1, b 8"]


def test_what_varies_wins_over_what_does_not():
    ((label, slow),) = variants([table({SPEED: [1]})], {SPEED: 5, "gap": 0}, HAEC)
    assert slow == (("gap", 0), (SPEED, 1))
    assert label == f"{SPEED} 1"


def test_links_that_a_network_lacks_do_not_vary_on_it():
    radio = table({SPEED: [2, 1], "energy.link.wireless.per_byte": [1, 2]})
    assert variants([radio], {"gap": 0}, MESH) == [("", (("gap", 0),))]
    mixed = table({SPEED: [2, 1], "gap": [0, 1]}, "x")
    assert [point for _, point in variants([mixed], {}, MESH)] == [
        (("gap", 0),),
        (("gap", 1),),
    ]


def test_points_that_are_one_where_some_keys_are_lacking_are_refused():
    both = table({"link.bandwidth": [1e9, 1e9], SPEED: [1e9, 2e9]}, "speed")
    assert len(both.points(HAEC)) == 2
    with pytest.raises(ValueError, match=f"two of its points are one on mesh:2x2, .* no {SPEED}"):
        both.points(MESH)


def test_without_tables_there_is_one_variant_without_a_label():
    assert variants([], {"gap": 1}, HAEC) == [("", (("gap", 1),))]


@pytest.mark.parametrize(
    ("labels", "parameters", "message"),
    [
        (None, {SPEED: [1, 2], DELAY: [1]}, f"{DELAY}: 1 values: expected 2"),
        (["a"], {SPEED: [1, 2]}, "labels: 1 of them: expected 2"),
        (["a", "a"], {SPEED: [1, 2]}, "radio: 'a' is listed twice"),
        (["a", "b"], {SPEED: [1, 1]}, "listed twice"),
    ],
)
def test_a_table_that_does_not_fit_together(labels, parameters, message):
    with pytest.raises(ValueError, match=message):
        table(parameters, "radio", labels)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([{"gap": [0, -1]}], "gap -1: expected at least 0"),
        ([{"gpa": [0]}], "unknown parameter 'gpa'"),
        ([{"link.copper.latency": [0]}], "unknown parameter"),
        ([{"gap": [0]}, {"gap": [1]}], "gap: varied twice"),
    ],
)
def test_every_value_is_checked_before_anything_runs(tables, message, tmp_path):
    text = "name = 's'\ntraces = ['lu.S.4']\ntopologies = ['haec:2x2x2']\nmappers = ['sweep']\n"
    for parameters in tables:
        rows = "\n".join(f"'{key}' = {values}" for key, values in parameters.items())
        text += f"[[vary]]\n[vary.parameters]\n{rows}\n"
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        load_scenario(tmp_path / "study.toml")
