"""Algorithms are named alone or with options, which are checked."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.algorithms import choose
from hopmap.simulator.collectives.naming import OPTIONS, named, options_of
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import parameters_from
from hopmap.traces import Collective

BCAST = ALGORITHMS["bcast"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("chain", {}),
        ("chain()", {}),
        ("chain(fanout=4)", {"fanout": 4}),
        (" chain ( fanout = 4 , segment = 64 KiB )", {"fanout": 4, "segment": 65536}),
        ("chain(segment=1000)", {"segment": 1000}),
    ],
)
def test_options_are_arguments(text, options):
    name, function = named(text, BCAST)
    ours, theirs = (
        function(9, 2, np.array([10**6])),
        BCAST[name](9, 2, np.array([10**6]), **options),
    )
    assert name == "chain"
    for here, there in zip(ours[:6], theirs[:6], strict=True):
        assert np.array_equal(here, there)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chains", "'chains': expected one of binomial, "),
        ("chain(fanout=4", "expected one of"),
        ("chain(fan=4)", "option 'fan': did you mean fanout? expected one of segment, fanout"),
        ("chain(4)", "option '4': expected one of segment, fanout"),
        ("linear(segment=1)", "option 'segment': expected none: linear has no options"),
        ("chain(fanout=0)", "option fanout 0: expected a whole number of at least 1"),
        ("chain(fanout=1.5)", "option fanout 1.5: expected a whole number of at least 1"),
        ("chain(segment=-1)", "option segment -1: expected a whole number of at least 0"),
        ("chain(segment=1 us)", "option segment: '1 us': unknown unit 'us'"),
        ("chain(fanout=2,fanout=3)", "option fanout is set twice"),
        ("bine(dims=4x0)", "option dims 4x0: expected lengths like 4x4x4"),
    ],
)
def test_what_means_nothing_is_an_error(text, words):
    with pytest.raises(AlgorithmError) as error:
        named(text, BCAST)
    assert words in str(error.value)
    with pytest.raises(ParameterError, match=r"collective\.bcast '"):
        parameters_from({"collective.bcast": text})


def test_every_option_is_known_and_has_a_default():
    for table in ALGORITHMS.values():
        for function in table.values():
            for name, default in options_of(function).items():
                assert name in OPTIONS
                assert default == "" if name == "dims" else default >= 0


def test_a_call_remembers_how_its_algorithm_was_named():
    sent = np.full(8, 800)
    chosen = choose(Collective.BCAST, 0, sent, sent, {"bcast": "chain(fanout=4)"})
    assert chosen.algorithm == "chain(fanout=4)"
    assert (chosen.schedule.src == 0).sum() == 4
    assert parameters_from({"collective.bcast": "chain(fanout=4)"}).algorithms == {
        "bcast": "chain(fanout=4)"
    }
