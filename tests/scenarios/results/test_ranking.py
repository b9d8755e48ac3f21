"""The verdict of a case and of several networks: no gain where none is, seconds where one is."""

from dataclasses import replace

import numpy as np
import pytest

from hopmap.report.tables import best_table
from hopmap.scenarios.results.ranking import (
    matters,
    network_share,
    networks,
    verdict,
)
from hopmap.scenarios.results.study import Case, Entry
from hopmap.topologies import parts_of, topology_from_spec

FREE = 0.5


@pytest.fixture
def case(runs_of):
    """Make a case of mappers and their makespans in seconds, with noise of 0.1 % or without."""

    def make(topology="mesh:2x2", *, noise=0, free=FREE, nodes=4, **times):
        columns = {
            "nodes": [nodes] * len(times),
            "mapper": list(times),
            "makespan_ideal_network": [free] * len(times),
        }
        if noise:
            seeds = np.random.default_rng(len(topology)).normal(1, noise, (len(times), 20))
            columns["makespans"] = list(seeds * np.array(list(times.values()))[:, None])
        runs = runs_of(list(times.values()), list(range(1, len(times) + 1)), **columns)
        entries = [Entry(str(m), own.iloc[0], own) for m, own in runs.groupby("mapper", sort=False)]
        best = min(entries, key=lambda entry: entry.value("makespan"))
        default = next((entry for entry in entries if entry.mapper == "sweep"), None)
        return Case("trace", topology, "", runs, entries, best, default)

    return make


def test_a_gain_is_said_in_seconds_with_the_share_of_the_network(case):
    found = case(sweep=2.0, scan=1.5, random=3.0)
    assert network_share(found) == 0.75
    assert matters(found)
    assert verdict(found) == "placing ranks saves 500 ms of 2 s"


@pytest.mark.parametrize("noise", [0, 0.02])
def test_what_cannot_be_told_apart_is_no_gain(case, noise):
    found = case(sweep=2.0, scan=1.999, random=3.0, noise=noise)
    assert not matters(found)
    assert {entry.mapper for entry in found.leaders} == {"sweep", "scan"}
    assert verdict(found) in ("no practical difference", "keep the default order")


def test_relevance_is_the_least_gain_that_matters(case):
    found = case(sweep=2.0, scan=1.998, noise=1e-5)
    assert not matters(found)
    assert verdict(found) == "no practical difference"
    finer = replace(found, relevance=1e-4)
    assert finer.significant
    assert matters(finer)
    assert verdict(finer).startswith("placing ranks saves")


def test_a_default_order_that_is_the_fastest_is_kept(case):
    assert verdict(case(sweep=1.5, scan=2.0)) == "keep the default order"


def test_a_run_that_only_computes_is_not_placed(case):
    found = case(sweep=2.0, scan=1.999, free=1.995)
    assert verdict(found) == "no practical difference"


def test_networks_are_compared_by_their_best_mappings(case):
    tree = case("fattree:4x4", sweep=2.0, scan=1.5)
    fly = case("dragonfly:2x4x2", sweep=1.2, scan=1.8)
    found = networks([tree, fly])
    assert [each.case.topology for each in found] == ["dragonfly:2x4x2", "fattree:4x4"]
    assert [each.behind for each in found] == ["", "+25.0\u00a0%"]
    assert networks([tree]) == []
    table = best_table([[tree, fly]])
    assert table["head"][-1] == ("Against fastest network", "number")
    assert [(row[1].text, row[-1].text) for row in table["rows"]] == [
        ("dragonfly:2x4x2", "fastest"),
        ("fattree:4x4", "+25.0\u00a0%"),
    ]
    assert {len(row) for row in table["rows"]} == {len(table["head"])}


def test_networks_of_other_sizes_are_not_compared_unless_they_cost_as_much(case):
    """A torus of 16 nodes and a fat tree of 36, faster by far: two sizes, no comparison."""
    small, large = case("torus:4x4", sweep=1.2, nodes=16), case("fattree:6x6", sweep=1.0, nodes=36)
    apart = networks([small, large])
    assert [(each.case, each.behind, each.first) for each in apart] == [
        (large, "", None),
        (small, "", None),
    ]
    table = best_table([[small, large]])
    assert {row[-1].text for row in table["rows"]} == {"not compared"}
    for prices, behind in (
        ({0: 100.0, 1: 104.0}, "+20.0\u00a0%"),
        ({0: 104.0, 1: 100.0}, "+20.0\u00a0%"),
        ({0: 100.0, 1: 110.0}, ""),
        ({0: 100.0}, ""),
    ):
        assert networks([small, large], prices)[1].behind == behind, prices
    same = case("mesh:4x4", sweep=1.5, nodes=16)
    assert [each.behind for each in networks([small, large, same])] == ["", "", "+25.0\u00a0%"]
    varied = replace(same, variant="fast")
    assert [each.behind for each in networks([small, varied])] == ["", ""]


def test_what_networks_are_made_of_stands_next_to_the_runtime(case):
    cases = [case(spec, sweep=1.0, nodes=16) for spec in ("torus:4x4", "fattree:4x4")]
    prices = {"switch": 100.0, "link": 3.0}
    table = best_table([cases], lambda c: parts_of(topology_from_spec(c.topology)), prices)
    head = [name for name, _ in table["head"]]
    assert head[-5:-1] == ["Switches", "Links", "Bisection", "Price"]
    rows = {row[1].text: [cell.text for cell in row[-5:-1]] for row in table["rows"]}
    assert rows == {
        "torus:4x4": ["0", "32", "80 GB/s", "96"],
        "fattree:4x4": ["8", "32", "80 GB/s", "896"],
    }
    assert table["head"][-1][0] == "Against fastest network"


@pytest.mark.parametrize("noise", [0, 0.02])
def test_networks_within_noise_or_a_per_cent_are_tied(case, noise):
    tree, fly = (case(t, sweep=s, noise=noise) for t, s in (("fattree:2", 1.0), ("mesh:2", 1.001)))
    assert networks([tree, fly])[1].likeness == "no practical difference"
    sure = [case("fattree:2", sweep=1.0, noise=1e-5), case("mesh:2", sweep=1.1, noise=1e-5)]
    assert networks(sure)[1].likeness == ""
