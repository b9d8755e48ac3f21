"""One answer: which mapping, what it buys, whether it is worth it."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hopmap as hm
from hopmap.api import advice
from hopmap.api.comparison import InterruptedComparison
from hopmap.api.robust.robust import Sampling
from hopmap.launchers.mapping_files import read_mapping
from hopmap.simulator import ParameterError
from hopmap.traces import write_trace
from hopmap.traces.nas.benchmarks import nas_trace
from hopmap.traces.trace import SharedCores
from hopmap.units import show_seconds
from support.commands import as_json, failed, hopmap, invoke, sets

# Ranks 0 and 4, 1 and 5, 2 and 6 send 1 MB to each other; launched, all three share a link.
PAIRS = hm.Traffic.from_pairs(8, [0, 4, 1, 5, 2, 6], [4, 0, 5, 1, 6, 2], [1] * 6, [10**6] * 6)
RING = {"link.bandwidth": 1e9, "link.latency": 1e-6, "noise.start": 1e-9}
FEW = Sampling(6)


def test_partners_far_apart_are_brought_together():
    """On a ring of 8, partners 4 apart: one link instead of four, without sharing any."""
    found = hm.advise(PAIRS, hm.Machine("torus:8", settings=RING), ["auto"])
    assert found.worth_it
    assert found.best.placement.mapper == "auto"
    assert found.best.placement.metrics().bytes.dilation.max == 1
    direct = hm.simulate(PAIRS, hm.Machine("torus:8", settings=RING), found.best.placement)
    assert found.best.result.makespan == pytest.approx(direct.makespan, rel=1e-4)
    gain = found.gain
    assert 0 < gain.low <= gain.median <= gain.high < 1
    ratio = found.best.result.makespan / found.baseline.result.makespan
    assert gain.low < 1 - ratio < gain.high
    assert re.fullmatch(
        r"worth it: auto saves \S+ %, between \S+ and \S+ % over 40 models of this network",
        found.verdict,
    )


def test_a_run_that_only_computes_needs_no_mapping():
    found = hm.advise(
        "lu.S.4", hm.Machine("torus:2x2", settings={"compute.scale": 1000}), ["random"]
    )
    assert found.network_share < 0.01
    assert not found.worth_it
    assert "no practical difference: more than 99.9 % of the run" in found.verdict


def test_the_share_of_the_network_is_what_a_network_without_time_saves():
    """One message of 1 MB over one link: only overheads are left."""
    one = hm.Traffic.from_pairs(2, [0], [1], [1], [10**6])
    found = hm.advise(one, hm.Machine("mesh:2", settings={"link.bandwidth": 1e9}), ["random"])
    parameters = hm.Parameters()
    least = parameters.overhead_send + parameters.overhead_recv
    assert found.free == pytest.approx(least, rel=1e-6)
    assert found.network_share == pytest.approx(1 - least / found.baseline.result.makespan)


def test_the_share_is_that_of_the_order_as_launched(monkeypatch):
    seen = []
    monkeypatch.setattr(advice, "free_makespan", lambda *asked: seen.append(asked[2]) or 0.0)
    found = hm.advise(
        PAIRS, hm.Machine("torus:8", settings=RING), ["auto(moves=100)"], sampling=FEW
    )
    assert [node_of.tolist() for node_of in seen] == [list(range(8))]
    assert found.best is not found.baseline


def test_neighbours_are_left_where_they_are():
    """Pairs side by side already have one link of their own."""
    good = hm.Traffic.from_pairs(8, [0, 1, 2, 3], [1, 0, 3, 2], [1] * 4, [10**6] * 4)
    found = hm.advise(good, hm.Machine("torus:8", settings=RING), ["auto", "random"])
    assert found.best is found.baseline
    assert found.gain == (0, 0, 0)
    assert not found.gains.any()
    assert found.verdict == "keep the default order: no mapper found a faster one"


def test_the_verdict_is_about_the_gain_that_holds_over_the_models():
    """The whole interval above the threshold, below it, or neither: three verdicts."""
    found = hm.advise(PAIRS, hm.Machine("torus:8", settings=RING), ["auto"], sampling=FEW)
    verdicts = (
        (
            "worth it: auto saves 3.0 %, between 2.0 and 4.0 % over 6 models",
            np.tile([0.02, 0.04], 3),
        ),
        ("no practical difference: auto saves 0.5 %", np.tile([0.001, 0.009], 3)),
        ("uncertain: auto saves 2.0 %, between 0.5 and 3.5 %", np.tile([0.005, 0.035], 3)),
        ("uncertain: auto saves 5.0 %, between -10.0 and 20.0 %", np.tile([-0.1, 0.2], 3)),
    )
    for verdict, gains in verdicts:
        changed = replace(found, gains=gains)
        assert changed.verdict.startswith(verdict)
        assert changed.worth_it == verdict.startswith("worth")
    assert replace(found, gains=np.tile([0.02, 0.04], 3), relevance=0.05).worth_it is False
    kept = replace(found, best=found.baseline, candidates=(found.best,))
    assert kept.verdict == "keep the default order: no other is faster over 6 models"


def test_the_default_order_and_the_best_have_the_same_models():
    """A gain is that of two replays of one model, with its speeds, buffers, routes and noise."""
    machine = hm.Machine("torus:8", settings=RING)
    found = hm.advise(PAIRS, machine, ["auto(moves=100)"], sampling=FEW)
    assert len(found.gains) == len(found.models) == 6
    for gain, model in zip(found.gains, found.models, strict=True):
        here = hm.Machine("torus:8", settings=RING | model)
        one, other = (
            hm.simulate(PAIRS, here, each.placement).makespan
            for each in (found.baseline, found.best)
        )
        assert gain == pytest.approx(1 - other / one, abs=1e-6)
    drawn = {key for model in found.models for key in model}
    assert {"link.bandwidth", "link.latency", "overhead.send", "network.buffer"} <= drawn
    assert {"network.routing", "noise.seed"} <= drawn
    assert "noise.start" not in drawn  # which is set


def test_a_model_sets_algorithms_of_collectives_too():
    """As under `robust`: the program is lowered by what the model says."""
    sampling = Sampling(6, ranges={"collective.alltoallv": ["linear", "pairwise"]})
    found = hm.advise("is.S.4", "mesh:4", ["random"], sampling=sampling)
    for gain, model in zip(found.gains, found.models, strict=True):
        here = hm.Machine("mesh:4", settings=model)
        one, other = (
            hm.simulate("is.S.4", here, each.placement.node_of).makespan
            for each in (found.baseline, found.best)
        )
        assert gain == pytest.approx(1 - other / one, abs=1e-9)


def test_engines_without_packets_have_models_without_buffers_and_routes():
    found = hm.advise(
        PAIRS, hm.Machine("torus:8", settings=RING), ["auto"], sampling=FEW, engine="flow"
    )
    drawn = {key for model in found.models for key in model}
    assert "link.bandwidth" in drawn
    assert not [key for key in drawn if key.startswith("network.")]


def test_what_less_computing_than_was_recorded_on_shared_cores_means_is_said(tmp_path):
    """At the scale where the gain crosses 1 %, replays of both mappings differ by that."""
    trace = replace(nas_trace("mg.S.16", flops=1e9), shared_cores=SharedCores(16, 2))
    torus, best = "torus:4x2x2", hm.map_ranks(trace, "torus:4x2x2", "auto")
    found = hm.advise(trace, torus, ["auto"], sampling=FEW)
    assert not found.worth_it
    _, least, gain, _, turns = found.rescaled
    assert least == 1 / 8
    assert gain > 0.01
    for scale, expected in ((least, gain), (turns, 0.01)):
        machine = hm.Machine(torus, {"compute.scale": scale})
        times = [hm.simulate(trace, machine, each).makespan for each in (np.arange(16), best)]
        assert 1 - times[1] / times[0] == pytest.approx(expected, rel=0.1)
    first, second = str(found).splitlines()[:2]
    assert first.startswith("recorded on shared cores: 16 ranks shared 2 cores of a host, so that ")
    assert first.endswith(f"crosses 1.0 % at compute.scale={turns:.2g}")
    assert second.endswith(found.verdict)
    assert found.to_dict()["rescaled"]["shared"] == {"ranks": 16, "cores": 2}
    assert (
        hm.advise(trace, hm.Machine(torus, {"compute.scale": 1}), ["auto"], sampling=FEW).rescaled
        is None
    )
    write_trace(trace, tmp_path / "t", node_of=np.zeros(16, dtype=int), cores=np.array([2]))
    for words in (["info", tmp_path / "t"], ["simulate", tmp_path / "t", tmp_path / "m.csv"]):
        hm.write_mapping(tmp_path / "m.csv", best)
        result = invoke([*map(str, words)])
        assert "16 ranks shared 2 cores of a host" in result.stderr
        assert "in doubt: 16 ranks shared 2 cores of a host" in result.stdout


def test_late_starts_that_outweigh_the_gain_are_not_worth_it():
    """Milliseconds of a run of seconds."""
    found = hm.advise(PAIRS, hm.Machine("torus:8", settings=RING | {"noise.start": 1.0}), ["auto"])
    assert not found.worth_it
    assert found.gain.high < 0.01
    assert not found.verdict.startswith("uncertain")


def test_a_mapper_that_falls_behind_is_dropped(monkeypatch):
    """Of three mappers one is left after eight models; equal mappings are replayed once."""
    made = []
    replay = advice.replay_under

    def count(placement, model, engine, check):
        made.append(placement.mapper)
        return replay(placement, model, engine, check)

    monkeypatch.setattr(advice, "replay_under", count)
    machine = hm.Machine("torus:8", settings=RING)
    names = ["auto(moves=100)", "random", "udfs", "identity"]
    found = hm.advise(PAIRS, machine, names, sampling=Sampling(12))
    assert found.best.placement.mapper == "auto(moves=100)"
    assert made.count("identity") == made.count("auto(moves=100)") == 12
    assert sorted((made.count("random"), made.count("udfs"))) == [4, 8]


def test_models_that_cannot_be_replayed_are_left_out_and_said():
    """On a ring that wraps, packets in buffers with one virtual channel can wait for each other."""
    ring = hm.Traffic.from_pairs(8, range(8), [3, 4, 5, 6, 7, 0, 1, 2], [1] * 8, [10**5] * 8)
    machine = hm.Machine("torus:8", {"network.virtual_channels": 1})
    for buffers, left in (([0, 4], 6), ([4], 0)):
        sampling = Sampling(12, ranges={"network.buffer": buffers})
        if not left:
            with (
                warnings.catch_warnings(action="error", category=RuntimeWarning),
                pytest.raises(hm.HopmapError, match=r"no model can be replayed: network\.virtual"),
            ):
                hm.advise(ring, machine, ["random", "rcm"], sampling=sampling)
            continue
        found = hm.advise(ring, machine, ["random"], sampling=sampling)
        assert (len(found.models), len(found.gains), len(found.rejected)) == (left, left, 6)
        assert "network.virtual_channels 1: on torus:8 packets can wait" in found.rejected[0]


def test_ctrl_c_after_a_rejected_model_keeps_the_best(monkeypatch, one_core):
    """A model that only the default order was replayed under does not count for it."""
    made = []

    def fail(*asked):
        made.append(asked)
        if len(made) == 2:
            raise ParameterError("no")
        if len(made) == 3:
            raise KeyboardInterrupt
        return SimpleNamespace(makespan=1.0)

    monkeypatch.setattr(advice, "replay_under", fail)
    with pytest.raises(InterruptedComparison) as end:
        hm.advise(PAIRS, hm.Machine("torus:8", settings=RING), ["auto"])
    assert end.value.best.mapper == "auto"


def test_mappers_see_what_collectives_send():
    """IS sends next to nothing but in collectives."""
    found = hm.advise("is.S.4", "mesh:4", ["random"], sampling=FEW)
    messages = hm.open("is.S.4").traffic()
    assert found.baseline.placement.traffic.bytes.sum() > 100 * messages.bytes.sum()


def test_the_command_says_the_verdict_first_and_writes_the_file(tmp_path):
    out = tmp_path / "ranks.txt"
    words = ["stencil:2x8,5pt,bytes=100000", "-t", "torus:4x4", "-m", "auto"]
    said = hopmap("advise", *words, "--out", out, "--to", "slurm")
    first, second, *_ = said.splitlines()
    assert first.startswith("stencil:2x8,5pt,bytes=100000 on torus:4x4: ")
    assert "of the run in default order depends on the network (DEFAULT: " in second
    assert f"SLURM_HOSTFILE={out} srun --ntasks=16 --distribution=arbitrary" in said
    facts = as_json("advise", *words)
    assert read_mapping(out, hm.topology("torus:4x4"), 16).tolist() == facts["best"]["node_of"]
    assert facts["baseline"]["node_of"] == np.arange(16).tolist()
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


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """Words of a command in a folder of its own, where placing ranks pays."""
    monkeypatch.chdir(tmp_path)
    rows = zip(PAIRS.src, PAIRS.dst, PAIRS.messages, PAIRS.bytes, strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    Path("pairs of 7.csv").write_text("\n".join(["src,dst,messages,bytes", *lines]))
    words = ["advise", "pairs of 7.csv", "-t", "torus:8", "-m", "auto(moves=100)"]
    return [*words, "--samples", "6", *sets(RING)]


@pytest.mark.parametrize(
    ("to", "file"), [("slurm", "pairs-of-7.csv.slurm"), ("cray", "MPICH_RANK_ORDER.pairs-of-7.csv")]
)
def test_a_launcher_has_its_file_without_a_name_for_it(pairs, to, file):
    """Its name is that of the trace, as far as a file may be called so, and what Cray asks for."""
    said = hopmap(*pairs, "--to", to)
    assert Path(file).is_file()
    *_, written, use, made_up = (line for line in said.splitlines() if line[:5] != "note:")
    assert written == f"written: {file}"
    assert use.startswith("use it:  ")
    assert f"={file} " in use
    assert made_up == (
        "nodes:   node0 to node7 are placeholders: give yours with --nodelist, --hosts or --names"
    )
    facts = as_json(*pairs, "--to", to, "--nodelist", "n[0-7]", "--out", "mine")
    assert (facts["out"], Path("mine").exists()) == ("mine", True)
    for told in ("n[0-7]", "node[0-7]"):
        assert "made up" not in hopmap(*pairs, "--to", to, "--nodelist", told, "--force")


def test_without_a_launcher_nothing_is_written(pairs):
    before = sorted(Path().iterdir())
    said = hopmap(*pairs)
    assert sorted(Path().iterdir()) == before
    assert "written" not in said


def test_the_file_alone_goes_to_stdout(pairs):
    """What comes out is what an exported file is; the sentence is on stderr."""
    result = invoke([*pairs, "--to", "openmpi", "--out", "-"])
    Path("rankfile").write_text(result.stdout)
    best = as_json(*pairs)["best"]["node_of"]
    assert read_mapping(Path("rankfile"), hm.topology("torus:8"), 7).tolist() == best
    assert result.stderr.splitlines()[-1].startswith("hopmap: pairs of 7 on torus:8: ")
    assert not Path("-").exists()


def test_the_gain_is_said_in_time_and_in_per_cent_with_its_interval(pairs):
    """Below what they are of, and where there is a gain only."""
    said, facts = hopmap(*pairs), as_json(*pairs)
    launched, best = facts["baseline"]["makespan"], facts["best"]["makespan"]
    assert facts["seconds_saved"] == pytest.approx(launched - best)
    shorter = next(line for line in said.splitlines() if line.startswith("shorter by"))
    assert shorter.split() == ["shorter", "by", "-", *show_seconds(facts["seconds_saved"]).split()]
    median, low, high = (f"{100 * facts['gain'][end]:.1f}" for end in ("median", "low", "high"))
    assert "\n  over 6 models  " in said
    assert f"- {median} % ({low} to {high} %)" in re.sub(" +", " ", said)
    assert "shorter by" not in hopmap(*pairs[:4], "-m", "identity", *pairs[6:])


def test_long_messages_are_replayed_as_flows(monkeypatch):
    """As soon as packets are many, of one message or of all; packets in turns need their engine."""
    found = hm.advise(PAIRS, hm.Machine("torus:8", settings=RING), ["random"])
    assert found.engine == found.best.result.engine == "compiled"
    monkeypatch.setattr(advice, "MANY", 1000)
    found = hm.advise(PAIRS, hm.Machine("torus:8", settings=RING), ["random"])
    assert found.engine == found.best.result.engine == found.to_dict()["engine"] == "flow"
    assert hm.advise(PAIRS, "torus:8", ["random"], engine="analytic").engine == "analytic"
    replayed = advice._replay

    def by_simpy(placement, _, model=None):  # what the engine has for turns compiles for long
        return replayed(placement, "simpy")

    monkeypatch.setattr(advice, "_replay", by_simpy)
    for most, settings in (
        (1000, {"nic": "round_robin"}),
        (1000, {"packet_size": 10**6}),
        (1, {"packet_size": 10**6}),
    ):
        monkeypatch.setattr(advice, "MANY", most)
        found = hm.advise(PAIRS, hm.Machine("torus:8", settings=settings), ["random"])
        assert found.engine == "compiled", settings
