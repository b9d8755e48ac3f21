"""One answer: which mapping, what it buys, whether it is worth it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hopmap as hm
from hopmap.scenarios import advice
from hopmap.scenarios.launchers.mapping_files import read_mapping
from support.commands import as_json, failed, hopmap

# Ranks 0 and 4, 1 and 5, 2 and 6 send 1 MB to each other; launched, all three share a link.
PAIRS = hm.Traffic.from_pairs(8, [0, 4, 1, 5, 2, 6], [4, 0, 5, 1, 6, 2], [1] * 6, [10**6] * 6)
RING = {"link.bandwidth": 1e9, "link.latency": 1e-6, "noise.start": 1e-9}


def test_partners_far_apart_are_brought_together():
    """On a ring of 8, partners 4 apart: one link instead of four, without sharing any."""
    found = hm.advise(PAIRS, "torus:8", ["auto"], settings=RING)
    assert found.worth_it
    assert found.best.placement.mapper == "auto"
    assert found.best.placement.metrics().bytes.dilation.max == 1
    direct = hm.simulate(PAIRS, "torus:8", found.best.placement, settings=RING)
    assert found.best.result.makespan == pytest.approx(direct.makespan, rel=1e-4)
    gain = found.gain
    assert 0 < gain.low <= gain.median <= gain.high < 1
    ratio = found.best.result.makespan / found.launched.result.makespan
    assert gain.median == pytest.approx(1 - ratio, abs=0.05)
    assert found.verdict.startswith("worth it: auto makes the run ")


def test_a_run_that_only_computes_needs_no_mapping():
    found = hm.advise("lu.S.4", "torus:2x2", ["random"], settings={"compute.scale": 1000})
    assert found.network_share < 0.01
    assert not found.worth_it
    assert "placement does not matter here: more than 99.9 % of the run" in found.verdict


def test_the_share_of_the_network_is_what_a_network_without_time_saves():
    """One message of 1 MB over one link: only overheads are left."""
    one = hm.Traffic.from_pairs(2, [0], [1], [1], [10**6])
    found = hm.advise(one, "mesh:2", ["random"], settings={"link.bandwidth": 1e9})
    parameters = hm.Parameters()
    least = parameters.overhead_send + parameters.overhead_recv
    assert found.free == pytest.approx(least, rel=1e-6)
    assert found.network_share == pytest.approx(1 - least / found.launched.result.makespan)


def test_the_share_is_that_of_the_order_as_launched(monkeypatch):
    seen = []
    monkeypatch.setattr(advice, "free_makespan", lambda *asked: seen.append(asked[2]) or 0.0)
    found = hm.advise(PAIRS, "torus:8", ["auto(moves=100)"], repeat=6, settings=RING)
    assert [node_of.tolist() for node_of in seen] == [list(range(8))]
    assert found.best is not found.launched


def test_neighbours_are_left_where_they_are():
    """Pairs side by side already have one link of their own."""
    good = hm.Traffic.from_pairs(8, [0, 1, 2, 3], [1, 0, 3, 2], [1] * 4, [10**6] * 4)
    found = hm.advise(good, "torus:8", ["auto", "random"], settings=RING)
    assert found.best is found.launched
    assert found.gain == (0, 0, 0)
    assert found.verdict == "keep the order as launched: no mapper found a faster one"


def test_what_noise_hides_is_not_advised():
    """Half of the seeds say the one, half the other."""
    found = hm.advise(PAIRS, "torus:8", ["auto"], settings=RING)
    ensemble = found.launched.result.ensemble
    mixed = ensemble.makespans * np.tile([0.8, 1.1], 10)
    result = replace(found.best.result, ensemble=replace(ensemble, makespans=mixed))
    doubtful = replace(found, best=replace(found.best, result=result))
    assert not doubtful.sure
    assert not doubtful.worth_it
    assert "cannot be told apart from it (-10.0 % to 20.0 % shorter)" in doubtful.verdict


def test_late_starts_that_outweigh_the_gain_are_not_worth_it():
    """Milliseconds of a run of seconds, the same seeds for both: sure, and hardly worth it."""
    found = hm.advise(PAIRS, "torus:8", ["auto"], settings=RING | {"noise.start": 1.0})
    assert found.sure
    assert not found.worth_it
    assert found.verdict.startswith("hardly worth it: 0.")


def test_mappers_see_what_collectives_send():
    """IS sends next to nothing but in collectives."""
    found = hm.advise("is.S.4", "mesh:4", ["random"], repeat=6)
    messages = hm.open("is.S.4").traffic()
    assert found.launched.placement.traffic.bytes.sum() > 100 * messages.bytes.sum()


def test_the_command_says_the_verdict_first_and_writes_the_file(tmp_path):
    out = tmp_path / "ranks.txt"
    words = ["stencil:2x8,5pt,bytes=100000", "-t", "torus:4x4", "-m", "auto"]
    said = hopmap("advise", *words, "--out", out, "--to", "slurm")
    first, second, *_ = said.splitlines()
    assert first.startswith("stencil:2x8,5pt,bytes=100000 on torus:4x4: ")
    assert "of the run as launched is the network's (assumed: " in second
    assert f"SLURM_HOSTFILE={out} srun --ntasks=16 --distribution=arbitrary" in said
    facts = as_json("advise", *words)
    assert read_mapping(out, hm.topology("torus:4x4"), 16).tolist() == facts["best"]["node_of"]
    assert facts["launched"]["node_of"] == np.arange(16).tolist()
    assert facts["gain"]["low"] <= facts["gain"]["median"] <= facts["gain"]["high"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lu.S.4", "-t", "torus:2x2", "--to", "slrum"], "did you mean slurm"),
        (["lu.S.4", "-t", "torus:2x2", "-m", "bokhary"], "did you mean bokhari"),
        (["lu.S.16", "-t", "torus:2x2"], "16 ranks"),
        (["lu.S.4", "-t", "torus:2x2", "--out", "no/such/f"], "there is no folder no/such"),
        (["lu.S.4", "-t", "torus:2x2", "--set", "gpa=1"], "did you mean gap"),
    ],
)
def test_what_cannot_be_is_one_line(words, message):
    assert message in failed("advise", *words)


def test_long_messages_are_replayed_as_flows(monkeypatch):
    """As soon as packets are many, of one message or of all; packets in turns need their engine."""
    found = hm.advise(PAIRS, "torus:8", ["random"], settings=RING)
    assert found.engine == found.best.result.engine == "compiled"
    monkeypatch.setattr(advice, "MANY", 1000)
    found = hm.advise(PAIRS, "torus:8", ["random"], settings=RING)
    assert found.engine == found.best.result.engine == found.to_dict()["engine"] == "flow"
    assert hm.advise(PAIRS, "torus:8", ["random"], engine="analytic").engine == "analytic"
    in_turns = {"nic": "round_robin"}
    assert hm.advise(PAIRS, "torus:8", ["random"], settings=in_turns).engine == "compiled"
    small = {"packet_size": 10**6}
    assert hm.advise(PAIRS, "torus:8", ["random"], settings=small).engine == "compiled"
    monkeypatch.setattr(advice, "MANY", 1)
    assert hm.advise(PAIRS, "torus:8", ["random"], settings=small).engine == "compiled"
