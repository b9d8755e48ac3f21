"""Pipelines: what is read, what is refused before anything runs."""

import numpy as np
import pytest

from hopmap.mappers import map_ranks, parse_pipeline
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.traces import Traffic, nas_traffic


def test_a_pipeline_is_written_as_it_is_read():
    for text in ("sweep", "bokhari(objective=hop_bytes, jumps=8)", "random | bokhari(ties=last)"):
        assert " | ".join(map(str, parse_pipeline(text))) == text


def test_stages_hand_their_mapping_on():
    traffic, topology = nas_traffic("lu.C.64"), topology_from_spec("torus:4x4x4")
    alone = map_ranks(traffic, topology, "hilbert")
    refined = map_ranks(traffic, topology, "hilbert | bokhari(rounds=1)")
    direct = map_ranks(traffic, topology, "bokhari(rounds=1)", initial=alone)
    assert refined.tolist() == direct.tolist() != alone.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "swep",
            r"unknown mapper 'swep' \(did you mean sweep\?\)$",
        ),
        ("", "expected a mapper like"),
        ("sweep |", "expected a mapper like"),
        ("bokhari(jmps=3)", r"unknown parameter 'jmps' \(did you mean jumps\?\); expected one of"),
        ("bokhari(jumps=many)", "jumps=many: expected side or int >= 0 or none$"),
        ("auto(seconds=one)", "seconds=one: expected float >= 0 or none$"),
        ("bokhari(jumps=-1)", "jumps=-1: expected side or int >= 0"),
        ("bokhari(jumps=2.5)", r"jumps=2\.5: expected side or int >= 0"),
        (
            "bokhari(objective=bytes)",
            r"objective=bytes \(did you mean hop_bytes\?\): expected cardinality\|hop_messages",
        ),
        (
            "auto(objective=hop_byte)",
            r"objective=hop_byte \(did you mean hop_bytes\?\): expected "
            r"cardinality\|hop_messages\|hop_bytes\|max_link_load or a function or none$",
        ),
        ("bokhari(jumps)", "expected parameter=value"),
        ("bokhari(jumps=1, jumps=2)", "set twice"),
        ("sweep(x=1)", "it has no parameters"),
        ("bokhari | sweep", "sweep ignores what bokhari made"),
        ("bokhari(jumps=1", "expected a mapper like"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(text, message):
    with pytest.raises(MappingError, match=message) as caught:
        parse_pipeline(text)
    assert "\n" not in str(caught.value)


def test_too_many_ranks_are_refused():
    with pytest.raises(MappingError, match="16 ranks do not fit on mesh:3x3"):
        map_ranks(nas_traffic("lu.S.16"), topology_from_spec("mesh:3x3"), "sweep")


def test_seeds_give_different_random_mappings():
    traffic, topology = Traffic.from_pairs(20, [], [], [], []), topology_from_spec("mesh:5x4")
    mappings = {tuple(map_ranks(traffic, topology, "random", seed=s).tolist()) for s in range(5)}
    assert len(mappings) == 5
    assert all(np.unique(m).size == 20 for m in mappings)
