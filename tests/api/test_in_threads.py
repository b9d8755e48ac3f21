"""Replays in threads: the same answers in the same order on any number of cores."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import hopmap as hm
from hopmap.api.robust.robust import Sampling
from hopmap.simulator import in_threads

PAIRS = "stencil:4x4,5pt,bytes=100kB"


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch):
    monkeypatch.setattr(in_threads, "cores", lambda: request.param)
    return request.param


def test_answers_come_in_the_order_of_the_items(cores):
    def work(item, _check):
        time.sleep(0.001 * (5 - item))
        return item, threading.get_ident()

    found = list(in_threads.in_threads(work, range(5)))
    assert [item for item, _ in found] == [0, 1, 2, 3, 4]
    assert (len({thread for _, thread in found}) > 1) == (cores > 1)


def test_an_error_ends_the_others_and_is_raised(cores):
    """The other replays would last for ever if `check` did not end them."""
    begun = []

    def work(item, check):
        begun.append(item)
        if item == 0:
            raise ValueError("no such machine")
        while True:
            check(0, None)

    with pytest.raises(ValueError, match="no such machine"):
        list(in_threads.in_threads(work, range(6)))
    assert len(begun) <= cores + 1


def test_ensembles_advice_and_robust_choices_do_not_depend_on_the_cores(monkeypatch):
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(in_threads, "cores", lambda cores=cores: cores)
        noisy = hm.simulate(PAIRS, "torus:4x4", np.arange(16), repeat=12)
        advice = hm.advise(PAIRS, "torus:4x4", ["rcm", "random"], sampling=Sampling(9))
        choice = hm.robust(PAIRS, "torus:4x4", ["rcm", "random"], sampling=Sampling(9))
        found.append(
            (
                noisy.ensemble.makespans.tolist(),
                advice.gain,
                advice.best.placement.mapper,
                choice.times.tolist(),
                (choice.replays, choice.rejected),
            )
        )
    assert found[0] == found[1]
