"""Topology specs: what is read, and what is refused in one line."""

import re

import numpy as np
import pytest

from hopmap.topologies import (
    TopologyError,
    cluster,
    dragonfly,
    fat_tree,
    hypercube,
    mesh,
    topology_from_spec,
    torus,
    tree,
)


@pytest.mark.parametrize(
    "spec",
    [
        *("mesh:4x4x4", "torus:8x8", "haec:4x4x4", "torus:4x4*2", "torus:6,ties=parity", "mesh:1"),
        *(
            "hypercube:8",
            "hypercube:3*2",
            "fattree:4x4x4",
            "fattree:4x4:1x2",
            "fattree:4x4:1x2:1x2",
        ),
        *("fattree:4x4*3,routing=ecmp", "fattree:4x4:1x4:1x2,routing=ecmp,seed=3", "fattree:5"),
        *("dragonfly:2x4x2", "dragonfly:2x4x2x5*2", "cluster:33*32", "cluster:17*9+9*8"),
        *("tree:4:16:8@1:10:100", "tree:4@3*2", "tree:2:2@0:0"),
        *("cluster:5", "cluster:2+3*4+1", "preset:bgq", "preset:bgq*16"),
    ],
)
def test_a_topology_knows_its_own_spec(spec):
    assert topology_from_spec(spec).spec == spec


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("fattree:4x4:1x4", "fattree:4x4"),
        ("fattree:4x4:1x4:1x1,routing=dmodk", "fattree:4x4"),
        ("fattree:4x4,seed=0,routing=ecmp", "fattree:4x4,routing=ecmp"),
        ("dragonfly:2x4x2x9", "dragonfly:2x4x2"),
        ("tree:4:16:2", "tree:4:16:2@1:10:100"),
        ("cluster:3*1+2*1+1*4", "cluster:5+1*4"),
        (" torus:4x4*1", "torus:4x4"),
        ("hypercube:3*1", "hypercube:3"),
    ],
)
def test_a_topology_has_one_canonical_spec(spec, canonical):
    assert topology_from_spec(spec).spec == canonical


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("torus:0x4", ["torus:0x4", "at least 1"]),
        ("torus:4y4", ["4y4", "joined by x"]),
        ("torus:", ["torus:", "4x4x4"]),
        ("torus:4,2,2", ["did you mean torus:4x2x2?", "joined by x"]),
        ("torus:4 2 2*3", ["did you mean torus:4x2x2*3?"]),
        ("dragonfly:2,4,2", ["did you mean dragonfly:2x4x2?"]),
        ("tree:2,4*2", ["did you mean tree:2:4*2?"]),
        ("torus", ["torus:4x4x4"]),
        ("tours:4x4", ["did you mean torus?", "mesh, torus, haec"]),
        ("haec:4x4", ["expected three"]),
        ("mesh:4x4*0", ["slots", "at least 1"]),
        ("torus:4x4,ties=odd", ["ties=direct|parity"]),
        ("mesh:4x4,ties=parity", ["no options"]),
        ("torus:-4x4", ["joined by x"]),
        ("torus:99999x99999x99999", ["nodes: expected at most 16,777,216"]),
        ("", ["unknown family"]),
        ("fatree:4x4", ["did you mean fattree?"]),
        ("fattree:4,3", ["did you mean fattree:4x3?"]),
        ("fattree:4,rout", ["'rout'", "routing=dmodk|ecmp"]),
        ("fattree:4x4:1", ["parents 1", "each of the 2 levels"]),
        ("fattree:4x4:1x0", ["at least 1"]),
        ("fattree:4x4:1x2:1x1:1", ["expected children", "like fattree:4x4x4"]),
        ("fattree:4x4,rooting=ecmp", ["did you mean routing?"]),
        ("fattree:4x4,routing=ecmpp", ["routing=dmodk|ecmp"]),
        ("fattree:4x4,routing=ecmp,routing=ecmp", ["each once"]),
        ("fattree:4x4,routing=ecmp,seed=x", ["seed=NUMBER"]),
        ("fattree:4x4,seed=3", ["with routing=ecmp"]),
        ("fattree:4x4*0", ["at least 1"]),
        ("fattree:99999x99999", ["nodes: expected at most"]),
        ("dragonfly:2x4", ["nodes a router, routers a group"]),
        ("dragonfly:2x4x2x10", ["10 groups", "at most 9"]),
        ("dragonfly:0x4x2", ["at least 1"]),
        ("tree:4x4@1:10", ["joined by colons", "like tree:4:16:8@1:10:100"]),
        ("tree:4:4@1", ["distances 1:", "each of the 2 levels"]),
        ("tree:4:4@10:1", ["distances 10:1", "none below the one before"]),
        ("tree:4:4@1:1000001", ["distances 1:1000001", "up to 1000000"]),
        ("tree:0:4@1:10", ["sizes 0:4", "at least 1"]),
        ("tree:4:4@1:10*0", ["slots", "at least 1"]),
        ("tree:99999:99999@1:10", ["nodes: expected at most"]),
        ("cluster:33*", ["nodes*slots joined by +"]),
        ("cluster:4*0", ["at least 1 slot"]),
        ("cluster:4,ties=parity", ["no options"]),
        ("hypercube:3x3", ["number of dimensions"]),
        ("hypercube:0", ["1 to 20"]),
        ("hypercube:3*0", ["hypercube", "at least 1"]),
        ("preset:bgg", ["unknown preset (did you mean bgq?)"]),
        ("preset:bgq*0", ["at least 1"]),
        ("file:", ["expected a path"]),
        ("file:nowhere.graphml", ["cannot be read (No such file or directory)"]),
    ],
)
def test_what_is_refused_is_refused_in_one_line_that_says_what_was_expected(spec, words):
    with pytest.raises(TopologyError) as caught:
        topology_from_spec(spec)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_a_network_of_the_same_spec_is_built_once_but_a_file_is_read_again(tmp_path):
    assert topology_from_spec("torus:5x4") is topology_from_spec("torus:5x4")
    file = tmp_path / "topology.conf"
    file.write_text("SwitchName=s Nodes=n[1-4]\n")
    assert topology_from_spec(f"file:{file}").nodes == 4
    file.write_text("SwitchName=s Nodes=n[1-5]\n")
    assert topology_from_spec(f"file:{file}").nodes == 5


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: torus((8 / 2, 4)), "torus: sizes 4.0, 4"),
        (lambda: mesh((4, 4), slots=1.5), "mesh: slots 1.5"),
        (lambda: hypercube(2.5), "hypercube: dimensions 2.5"),
        (lambda: fat_tree((4.5, 4)), "fattree: children 4.5, 4"),
        (lambda: fat_tree((4, 4), (1, 0.5)), "fattree: parents 1, 0.5"),
        (lambda: fat_tree((4, 4), slots=1.5), "fattree:4x4: slots 1.5"),
        (lambda: dragonfly(2.5, 4, 2), "dragonfly: sizes 2.5, 4, 2, 9"),
        (lambda: cluster([2.5, 3]), "cluster: slots 2.5, 3"),
        (lambda: tree([4.5, 3]), "tree: sizes 4.5, 3"),
        (lambda: tree([4, 3], [1, 2.5]), "tree: distances 1, 2.5"),
    ],
)
def test_sizes_that_are_no_whole_numbers_are_refused_not_cut(build, what):
    with pytest.raises(TopologyError, match=rf"^{re.escape(what)}: expected whole numbers$"):
        build()


def test_sizes_may_be_numpys():
    assert torus(np.array([4, 2])).spec == "torus:4x2"
