"""Other readings of TiMEr's print: each is the mapper but for what its name says."""

import numpy as np
import pytest
from timer_readings import READINGS, enhanced, kernels_with, table
from timer_starts import graphs

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.exchanges.timer import timer
from hopmap.mappers.stop import Stop
from hopmap.topologies import topology_from_spec
from support.slow import slow

BOX = topology_from_spec("mesh:4x4*64")  # room for the ranks of nodes that grow
LETTER = "to the letter: labels may be shared"
COMPILED = [name for name, reading in READINGS.items() if reading.lines]
OTHERS = [name for name in READINGS if name not in COMPILED]


@pytest.fixture(scope="module")
def case():
    traffic = graphs(256)["attachment"]
    return traffic, map_ranks(traffic, topology_from_spec("mesh:4x4*16"), "random", seed=3)


def read(case, name: str, hierarchies: int = 9):
    traffic, first = case
    rng = np.random.default_rng(5)
    return enhanced(traffic, BOX, first, READINGS[name], rng, hierarchies)


def test_ours_is_the_mapper(compiled, case):
    traffic, first = case
    rng = np.random.default_rng(5)
    ours = timer(traffic, BOX, rng=rng, initial=first, hierarchies=9, stop=Stop())
    assert read(case, "as we read it").tolist() == ours.tolist() != first.tolist()


@pytest.mark.parametrize("name", [*OTHERS, *slow(*COMPILED)])
def test_no_reading_loses_and_most_end_elsewhere(compiled, case, name):
    """Coco decides as Coco+ does here; only shared labels may change how many ranks a node has."""
    traffic, first = case
    found = read(case, name)
    before, after = (objective_value(traffic, BOX, m, "hop_bytes") for m in (first, found))
    assert after < before
    if name in OTHERS:
        same = found.tolist() == read(case, "as we read it").tolist()
        assert same == (name in ("as we read it", "Coco decides"))
    if name != LETTER:
        assert np.bincount(found, minlength=16).tolist() == np.bincount(first).tolist()


def test_the_lines_that_are_replaced_are_there():
    for reading in READINGS.values():
        kernels_with(reading.lines)


def test_a_line_that_is_not_there_is_refused():
    with pytest.raises(AssertionError, match="expected it once in timer_kernels"):
        kernels_with((("no such line", ""),))


@pytest.mark.slow
def test_the_command_prints_a_row_a_reading(compiled, case, capsys):
    off = table({"attachment": case[0]}, ("identity",), ("mesh:4x4",), 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:38].strip() for line in lines[1:]] == list(off) == list(READINGS)
