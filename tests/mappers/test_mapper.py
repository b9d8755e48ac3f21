"""Mappers of one's own: what a function has to say of itself, and what it may leave out."""

import importlib
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hopmap.mappers import MAPPERS, map_ranks, mapper, mapper_source, parse_pipeline
from hopmap.mappers.mapper import DEFINED_IN
from hopmap.plugins import is_installed
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic
from support import ROOT

if TYPE_CHECKING:
    from nowhere import Unknown

pytestmark = pytest.mark.usefixtures("forgetting")

RING = Traffic.from_pairs(4, range(4), [1, 2, 3, 0], [1] * 4, [8] * 4)
SQUARE = topology_from_spec("mesh:2x2")


def test_the_table_of_modules_names_every_mapper_that_they_enter():
    listed = {
        name: module
        for module, names in DEFINED_IN.items()
        if is_installed("hopmap.mappers", module)
        for name in names.split()
    }
    entered = {
        name: info.function.__module__.removeprefix("hopmap.mappers.")
        for name, info in MAPPERS.items()
        if name in listed
    }
    assert entered == listed
    entering = {
        ".".join(file.relative_to(ROOT / "mappers").with_suffix("").parts)
        for file in (ROOT / "mappers").rglob("*.py")
        if "\n@mapper(" in file.read_text(encoding="utf-8")
    }
    assert entering == set(listed.values())


def test_a_mapper_may_ask_for_traffic_and_topology_alone():
    @mapper("mine")
    def mine(traffic, topology):
        return np.arange(traffic.ranks)

    assert map_ranks(RING, SQUARE, "mine", seed=3, seconds=1.0).tolist() == [0, 1, 2, 3]
    assert (MAPPERS["mine"].initial, MAPPERS["mine"].parameters) == ("ignored", ())


def test_a_mapper_gets_what_it_asks_for_with_or_without_defaults():
    got = []

    @mapper("asks")
    def asks(traffic, topology, rng, initial, objective, seconds, progress):
        got.append((initial.tolist(), objective, seconds, progress))
        return rng.permutation(traffic.ranks)

    @mapper("offers")
    def offers(traffic, topology, *, initial=None, objective="hop_bytes", seconds=None):
        got.append((initial, objective, seconds))
        return np.arange(traffic.ranks)

    assert (MAPPERS["asks"].initial, MAPPERS["offers"].initial) == ("needed", "optional")
    first, second = (map_ranks(RING, SQUARE, "offers | asks", seed=1).tolist() for _ in range(2))
    assert first == second
    assert got[:2] == [(None, "hop_bytes", None), ([0, 1, 2, 3], None, None, None)]
    told = print  # any function
    map_ranks(RING, SQUARE, "offers | asks", seconds=9, objective="hop_messages", progress=told)
    assert got[-2][1] == "hop_messages"
    assert got[-1][1:] == ("hop_messages", pytest.approx(9, abs=1), told)
    with pytest.raises(MappingError, match="asks improves a mapping"):
        map_ranks(RING, SQUARE, "asks")


def test_types_of_parameters_without_annotations_are_those_of_their_defaults():
    got = []

    @mapper("mine")
    def mine(traffic, topology, rounds=3, share=0.5, upward=True, *, rule="near"):
        got.append((rounds, share, upward, rule))
        return np.arange(traffic.ranks)

    map_ranks(RING, SQUARE, "mine")
    map_ranks(RING, SQUARE, "mine(rounds=7, share=1, upward=false, rule=far)")
    assert got == [(3, 0.5, True, "near"), (7, 1.0, False, "far")]
    with pytest.raises(MappingError, match="mapper mine: rounds=many: expected int"):
        parse_pipeline("mine(rounds=many)")


def test_a_parameter_whose_type_nothing_says_is_named():
    with pytest.raises(MappingError, match=r"^mapper mine: parameter tables: .*expected"):

        @mapper("mine")
        def mine(traffic, topology, tables=()):
            return tables

    with pytest.raises(MappingError, match=r"^mapper mine: parameter rounds: .*expected a default"):

        @mapper("mine")
        def other(traffic, topology, *, rounds: int):
            return rounds

    with pytest.raises(MappingError, match=r"^mapper mine: expected a function of traffic"):

        @mapper("mine")
        def no_mapper():
            return []

    assert "mine" not in MAPPERS


def test_annotations_that_cannot_be_resolved_count_only_where_they_are_needed():
    @mapper("mine")
    def mine(traffic: "Unknown", topology: "Unknown", *, rounds: "Unknown" = 3) -> "Unknown":
        return np.arange(traffic.ranks)

    assert str(parse_pipeline("mine(rounds=4)")[0]) == "mine(rounds=4)"
    with pytest.raises(MappingError, match=r"^mapper other: parameter limit: .*'Unknown'"):

        @mapper("other")
        def other(traffic, topology, *, limit: "Unknown" = None):
            return limit


def test_what_is_defined_again_replaces(tmp_path, monkeypatch):
    """As by a cell of a notebook that is run again, or a module that is loaded again."""

    def cell(last):
        @mapper("mine")
        def mine(traffic, topology):
            return np.arange(4)[::last]

    cell(1)
    cell(-1)
    assert map_ranks(RING, SQUARE, "mine").tolist() == [3, 2, 1, 0]
    for cell_number in (1, 2):  # each is a file of its own
        text = "@mapper('told')\ndef told(traffic, topology): return [0, 1, 2, 3]"
        names = {"mapper": mapper, "__name__": "__main__"}
        exec(compile(text, f"cell {cell_number}", "exec"), names)
    text = "from hopmap.mappers import mapper\n@mapper('lies')\ndef lies(traffic, topology):\n"
    (tmp_path / "lies_here.py").write_text(f"{text}    return [0, 1, 2, 3]\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lies_here")
    (tmp_path / "lies_here.py").write_text(f"{text}    return [0, 1, 3, 2] \n")
    importlib.reload(module)
    assert map_ranks(RING, SQUARE, "lies").tolist() == [0, 1, 3, 2]
    assert mapper_source("lies") == str(tmp_path / "lies_here.py")
    again = importlib.util.spec_from_file_location("__another__", tmp_path / "lies_here.py")
    again.loader.exec_module(importlib.util.module_from_spec(again))
    sys.modules.pop("lies_here")


def test_another_function_under_a_taken_name_is_refused_in_one_line():
    with pytest.raises(MappingError, match=r"^two mappers are called 'sweep': .*expected") as told:

        @mapper("sweep")
        def mine(traffic, topology):
            return []

    assert "\n" not in str(told.value)
    assert MAPPERS["sweep"].function.__name__ == "sweep"
