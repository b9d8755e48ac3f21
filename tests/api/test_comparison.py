"""Ctrl-C while mappings are compared: the best until then is kept, and what is missing is said."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

import hopmap as hm
from hopmap.api import advice, comparison
from hopmap.api.robust import robust
from hopmap.launchers.mapping_files import read_mapping
from hopmap.mappers.stop import Interrupted
from hopmap.simulator import ParameterError
from support.commands import invoke

# Partners are 4 apart on a ring of 8 nodes, so that there is something to gain.
BEST = "auto(moves=100)"
PAIRS = "src,dst,messages,bytes\n" + "".join(
    f"{a},{b},1,1000000\n" for k in range(4) for a, b in ((k, k + 4), (k + 4, k))
)
ADVISE = ["advise", "-m", "random", "-m", BEST, "-m", "rcm"]
ROBUST = ["robust", "-c", f"identity,random,{BEST}", "--samples", "4"]


@pytest.fixture
def asked(tmp_path, monkeypatch, one_core):
    """Ask a command about pairs on a ring; Ctrl-C comes as replay number `at` begins.

    Replay number `rejected` fails.
    """
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text(PAIRS)

    def ask(words, at, *more, rejected=0):
        numbers = count(1)

        def simulate(*given, **options):
            number = next(numbers)
            if number == rejected:
                raise ParameterError("no such machine")
            if number == at:
                raise KeyboardInterrupt
            return hm.simulator.simulate(*given, **options)

        for module in (advice, robust):
            monkeypatch.setattr(module, "simulate", simulate)
        where = ["pairs.csv", "-t", "torus:8", "--out", "best.csv", *more]
        return invoke([words[0], *where, *words[1:]])

    return ask


def mapping():
    return read_mapping(Path("best.csv"), hm.topology("torus:8"), 8).tolist()


def test_the_fastest_of_the_replayed_ones_is_written(asked):
    done = asked(ADVISE, 4)
    assert done.stdout == (
        f"pairs on torus:8: interrupted: {BEST} is the best mapping so far, by 3 replays; "
        "not replayed: rcm\nwritten: best.csv\n"
    )
    assert (done.exit_code, done.stderr) == (130, "")
    facts = json.loads(asked(ADVISE, 4, "--json", "--force").stdout)
    assert facts["best"]["node_of"] == mapping() != list(range(8))
    assert (facts["interrupted"], facts["not_replayed"]) == (True, ["rcm"])


def test_with_one_replay_hop_bytes_decide(asked):
    """The default order was replayed; the mapping that was to be next has never been."""
    done = asked(["advise", "-m", BEST], 2)
    assert f"{BEST} is the best mapping so far, by hop-bytes; not replayed: {BEST}" in done.stdout
    assert (done.exit_code, mapping() != list(range(8))) == (130, True)


def test_what_was_left_to_do_is_said_when_every_mapping_has_a_replay(asked):
    done = asked(["advise", "-m", BEST], 3)
    assert "by 2 replays; not all replays were made\n" in done.stdout
    assert done.exit_code == 130


def test_a_search_that_is_interrupted_counts(asked, monkeypatch):
    """Nothing but the default order is there yet, and what the search had."""

    def search(traffic, room, mapper, **options):
        if mapper == BEST:
            raise Interrupted([0, 2, 4, 6, 1, 3, 5, 7])
        return searched(traffic, room, mapper, **options)

    searched = comparison.time_mapping
    monkeypatch.setattr(comparison, "time_mapping", search)
    done = asked(["advise", "-m", BEST], 9)
    assert "by hop-bytes" in done.stdout
    assert (done.exit_code, mapping()) == (130, [0, 2, 4, 6, 1, 3, 5, 7])


def test_before_there_is_anything_to_compare_nothing_is_written(asked):
    done = asked(ADVISE, 1)
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "hopmap: interrupted\n")
    assert not Path("best.csv").exists()


@pytest.mark.parametrize(
    ("at", "basis"),
    [
        (1, f"by hop-bytes; not replayed: identity, random, {BEST}"),
        (3, f"by 2 replays; not replayed: {BEST}"),
        (6, "by 5 replays; not all replays were made"),
    ],
)
def test_robust_keeps_the_best_by_the_models_that_were_replayed(asked, at, basis):
    done = asked(ROBUST, at)
    assert done.stdout.splitlines()[0].endswith(f"is the best mapping so far, {basis}")
    assert (done.exit_code, done.stderr) == (130, "")
    assert mapping() != list(range(8)) or at == 3


def test_a_model_that_is_rejected_does_not_count(asked):
    """The default order and a random one were replayed under the first, the best was not."""
    done = asked(ROBUST, 7, rejected=3)
    assert f"{BEST} is the best mapping so far, by 3 replays; not all" in done.stdout
