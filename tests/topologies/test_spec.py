"""Topology specs: what is read, and what is refused in one line."""

import pytest

from hopmap.topologies import TopologyError, topology_from_spec


@pytest.mark.parametrize(
    "spec",
    ["mesh:4x4x4", "torus:8x8", "haec:4x4x4", "torus:4x4*2", "torus:6,ties=parity", "mesh:1"],
)
def test_a_topology_knows_its_own_spec(spec):
    assert topology_from_spec(spec).spec == spec


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("torus:0x4", ["torus:0x4", "at least 1"]),
        ("torus:4y4", ["4y4", "joined by x"]),
        ("torus:", ["torus:", "4x4x4"]),
        ("torus", ["torus:4x4x4"]),
        ("tours:4x4", ["did you mean torus?", "mesh, torus, haec"]),
        ("haec:4x4", ["expected three"]),
        ("mesh:4x4*0", ["slots", "at least 1"]),
        ("torus:4x4,ties=odd", ["ties=direct|parity"]),
        ("mesh:4x4,ties=parity", ["no options"]),
        ("torus:-4x4", ["joined by x"]),
        ("torus:99999x99999x99999", ["too many links"]),
        ("", ["unknown family"]),
    ],
)
def test_what_is_refused_is_refused_in_one_line_that_says_what_was_expected(spec, words):
    with pytest.raises(TopologyError) as caught:
        topology_from_spec(spec)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
