"""What failures cost a mapping, on the command line and counted by hand."""

from __future__ import annotations

import pytest

import hopmap as hm
from hopmap.simulator.metrics.failure_impact import failure_impact
from support.commands import as_json, failed, hopmap

# Each of 6 nodes of a ring sends 100 bytes to the next: one hop each; without 0-1, that is five.
RING = hm.Traffic.from_pairs(6, range(6), [1, 2, 3, 4, 5, 0], [1] * 6, [100] * 6)


def test_the_loss_of_one_cable_of_a_ring():
    found = failure_impact(RING, hm.topology("torus:6"), range(6), "link=0-1")
    assert found.without.tolist() == [600, 100]
    assert found.failed.tolist() == [[500 + 5 * 100, 100]]
    assert found.loss.tolist() == [[pytest.approx(2 / 3), 0]]


def test_seeds_are_the_draws_one_by_one():
    network = hm.topology("torus:4x4")
    traffic = hm.open("cg.S.16").traffic()
    several = failure_impact(traffic, network, range(16), "links=2", draws=3)
    for seed in range(3):
        one = failure_impact(traffic, network, range(16), f"links=2,seed={seed}")
        assert one.failed.tolist() == [several.failed[seed].tolist()]
    facts = several.to_dict()["hop_bytes"]
    assert facts["worst_loss"] == max(facts["with"]) / facts["without"] - 1


def test_commands_take_failures(tmp_path):
    file = tmp_path / "m.csv"
    hm.write_mapping(file, hm.map_ranks("lu.S.4", "torus:2x4", "identity"))
    words = ("lu.S.4", file, "--failures", "link=0-1")
    spec = "failed:link=0-1@torus:2x4"
    facts = as_json("evaluate", *words)
    assert facts["bytes"] == hm.evaluate("lu.S.4", spec, file).to_dict()["bytes"]
    assert facts["losses"]["hop_bytes"]["without"] < facts["bytes"]["dilation"]["sum"]
    assert "what failures cost" in hopmap("evaluate", *words[:3], "links=1", "--seeds", 2)
    run = as_json("simulate", *words)
    assert run["makespan"] == hm.simulate("lu.S.4", spec, file).makespan
    placed = as_json("map", "lu.S.4", "-t", "torus:2x4", "-m", "rcm", *words[2:])
    assert placed["topology"] == spec


def test_draws_of_nothing_are_refused(tmp_path):
    file = tmp_path / "m.csv"
    hm.write_mapping(file, hm.map_ranks("lu.S.4", "mesh:4", "identity"))
    assert "--seeds requires --failures" in failed("evaluate", "lu.S.4", file, "--seeds", 2)
    assert "cut off" in failed("simulate", "lu.S.4", file, "--failures", "link=0-1")
    assert "node 1" in failed("evaluate", "lu.S.4", file, "--failures", "node=1")
