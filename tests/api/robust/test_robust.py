"""The mapping that holds: what is replayed, what is chosen, what is said."""

from __future__ import annotations

import numpy as np
import pytest

import hopmap as hm
from hopmap.launchers.mapping_files import read_mapping
from hopmap.simulator.uncertainty import regrets
from support.commands import as_json, failed, hopmap

# On a ring of 8 with a slow link kind of its own there is none; two pairs that share links when
# placed in order: far apart they need bandwidth, side by side they do not.
PAIRS = hm.Traffic.from_pairs(8, [0, 4, 1, 5], [4, 0, 5, 1], [1] * 4, [10**5] * 4)
APART, BESIDE = list(range(8)), [0, 2, 4, 6, 1, 3, 5, 7]
RANGES = {"link.bandwidth": {"factor": [0.1, 10]}, "network.buffer": [0, 4]}
SET = {"network.virtual_channels": 2}


def chosen(candidates=(APART, BESIDE), **options):
    given = {"samples": 6, "ranges": RANGES} | options
    machine = hm.Machine("torus:8", given.pop("settings", SET))
    seed = given.pop("seed", 0)
    sampling = hm.Sampling(**given)
    return hm.robust(PAIRS, machine, candidates, sampling=sampling, seed=seed, engine="simpy")


def test_every_time_is_that_of_a_replay_under_its_model():
    found = chosen(max_simulations=12)
    assert found.replays == 12
    for place, mapping in enumerate((APART, BESIDE)):
        for number, model in enumerate(found.models):
            run = hm.simulate(
                PAIRS, hm.Machine("torus:8", settings=SET | model), mapping, engine="simpy"
            )
            assert found.times[place, number] == run.makespan
    assert found.best.node_of.tolist() == BESIDE
    assert found.verdict == "mapping 2, under every model as fast as the best"


def test_another_seed_draws_other_models_and_factors_are_of_what_is_set():
    given = {
        "ranges": {"link.bandwidth": {"factor": [0.1, 10]}},
        "max_simulations": 12,
        "samples": 6,
    }
    slow = SET | {"link.bandwidth": 1e8}
    one, other = (chosen(**given, settings=slow, seed=seed) for seed in (0, 1))
    assert one.models != other.models
    for place, model in enumerate(one.models):
        assert 1e7 <= model["link.bandwidth"] <= 1e9
        run = hm.simulate(
            PAIRS, hm.Machine("torus:8", settings=slow | model), APART, engine="simpy"
        )
        assert one.times[0, place] == run.makespan
    assert len(set(one.times[0])) == 6


def test_what_is_reported_is_what_the_times_say():
    facts = chosen(("identity", "random", "random | kl"), max_simulations=18).to_dict()
    found = chosen(("identity", "random", "random | kl"), max_simulations=18)
    behind = regrets(found.times)
    assert len(facts["candidates"]) == 3
    for place, row in zip(found.order, facts["candidates"], strict=True):
        assert row["mean"] == pytest.approx(behind[place].mean())
        assert row["worst"] == behind[place].max() == behind[place][row["worst_model"]]
        assert row["best"] == (behind[place] <= 1e-9).mean()
    worst = [row["worst"] for row in facts["candidates"]]
    assert worst == sorted(worst)


def test_equal_mappings_are_replayed_once():
    found = chosen(("identity", "sweep", BESIDE), max_simulations=12)
    assert [each.mapper for each in found.placements] == ["identity = sweep", "mapping 3"]
    assert found.replays == 12


def test_algorithms_of_collectives_may_be_drawn():
    found = hm.robust(
        "is.S.4",
        "mesh:4",
        ["identity", "random"],
        sampling=hm.Sampling(samples=2, ranges={"collective.alltoallv": ["linear", "pairwise"]}),
    )
    for number, model in enumerate(found.models):
        run = hm.simulate("is.S.4", hm.Machine("mesh:4", settings=model), range(4))
        assert found.times[0, number] == run.makespan
    assert {model["collective.alltoallv"] for model in found.models} == {"linear", "pairwise"}


def test_models_that_cannot_be_replayed_are_left_out_and_said():
    """One virtual channel on a ring: packets could wait for each other."""
    around = [0, 3, 6, 1, 4, 7, 2, 5]
    ring = hm.Traffic.from_pairs(8, range(8), [*range(1, 8), 0], [1] * 8, [10**5] * 8)
    models, given = {"samples": 6}, {"engine": "simpy"}
    found = hm.robust(
        ring,
        "torus:8",
        [around, APART],
        **given,
        sampling=hm.Sampling(ranges={"network.buffer": [0, 4]}, max_simulations=12, **models),
    )
    buffered = [bool(model["network.buffer"]) for model in found.models]
    assert (np.isnan(found.times).all(axis=0) == buffered).all()
    assert len(found.rejected) == 3
    assert "network.virtual_channels 1: on torus:8 packets can wait" in found.rejected[0]
    with pytest.raises(hm.HopmapError, match="no model can be replayed: network"):
        hm.robust(
            ring,
            "torus:8",
            [around, APART],
            **given,
            sampling=hm.Sampling(ranges={"network.buffer": [4]}, **models),
        )


def test_the_command_says_the_sentence_first_and_writes_the_file(tmp_path):
    out, ranges = tmp_path / "ranks.txt", tmp_path / "ranges.toml"
    mapping = tmp_path / "today.csv"
    hm.write_mapping(mapping, hm.map_ranks("cg.S.8", "torus:2x4", "random"))
    ranges.write_text('[ranges]\n"link.bandwidth" = { factor = [0.5, 2] }\n', encoding="utf-8")
    words = ["cg.S.8", "-t", "torus:2x4", "-c", f"{mapping},auto(moves=50, seconds=1)"]
    words += ["-c", "rcm", "--samples", "4", "--ranges", ranges, "--set", "compute.scale=0"]
    said = hopmap("robust", *words, "--out", out, "--to", "slurm")
    facts = as_json("robust", *words)
    assert said.splitlines()[0] == f"cg.S.8 on torus:2x4: {facts['verdict']}"
    assert "SLURM_HOSTFILE=" in said
    best = facts["candidates"][0]
    assert read_mapping(out, hm.topology("torus:2x4"), 8).tolist() == best["node_of"]
    assert {row["mapper"] for row in facts["candidates"]} <= {
        f"file:{mapping}",
        "auto(moves=50, seconds=1.0)",
        "rcm",
    }
    assert len(facts["models"]) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "rcm"], "candidates: 1: expected two or more"),
        (["-c", "rcm,bokhary"], "did you mean"),
        (["--ranges", "no.toml"], "no.toml: cannot be read"),
        (
            ["--max-simulations", "2", "-c", "rcm,minmd,random"],
            "max_simulations 2: expected at least 3",
        ),
        (["--engine", "ns3"], "unknown engine"),
        (["--to", "slrum"], "did you mean slurm"),
    ],
)
def test_what_cannot_be_is_one_line(words, said):
    assert said in failed("robust", "cg.S.4", "-t", "torus:2x2", "--samples", "2", *words)
