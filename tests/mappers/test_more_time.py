"""What more time would gain: said where the time of a search for hop-bytes was spent."""

from itertools import pairwise

import numpy as np
import pytest

from hopmap.mappers.more_time import GAINS, gain_by_more_time
from hopmap.mappers.pipeline import map_ranks
from hopmap.mappers.stop import Ending
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic


def said(mapper: str, spec: str = "mesh:24") -> Ending:
    """Return what random traffic ends with, where no bound is reached."""
    src, dst = np.random.default_rng(0).integers(0, 24, (2, 200))
    ones = np.ones(200, dtype=np.int64)
    endings: list[Ending] = []
    map_ranks(
        Traffic.from_pairs(24, src, dst, ones, ones), topology_from_spec(spec), mapper,
        stopped=endings.append,
    )  # fmt: skip
    return endings[-1]


@pytest.mark.parametrize(("levels", "column"), [(True, 1), (False, 2)])
def test_the_table_is_read_by_proposals_a_rank(levels, column):
    assert gain_by_more_time(0.99 * GAINS[0][0], levels) is None
    assert gain_by_more_time(GAINS[0][0], levels) == GAINS[0][column]
    assert gain_by_more_time(1e12, levels) == GAINS[-1][column]
    for before, row in pairwise(GAINS):
        assert gain_by_more_time(row[0], levels) == row[column]
        assert gain_by_more_time(0.99 * row[0], levels) == before[column]


def test_the_table_is_in_order():
    assert list(GAINS) == sorted(GAINS)
    assert all(0 <= gain < 1 for _, *gains in GAINS for gain in gains)


@pytest.mark.parametrize(("spec", "column"), [("tree:2:4:3", 1), ("mesh:24", 2)])
def test_auto_says_it_where_its_time_is_spent(spec, column):
    said("auto(moves=10000)", spec)  # compiles
    ending = said("auto(seconds=0.3, clock=cpu)", spec)
    assert ending.reason == "budget"
    assert ending.gain in {row[column] for row in GAINS}


@pytest.mark.parametrize(
    "mapper", ["auto(moves=1000)", "auto(seconds=0)",
               "auto(seconds=0.1, clock=cpu, objective=max_link_load)"]
)  # fmt: skip
def test_nothing_is_said_of_what_was_not_measured(mapper):
    ending = said(mapper)
    assert (ending.reason, ending.gain) == ("budget", None)


def test_nothing_is_said_where_a_search_ended_by_itself():
    ending = said("auto")
    assert (ending.reason, ending.gain) == ("stagnated", None)
