"""Networks on which a mapping means the same nodes."""

import pytest

from hopmap.scenarios.launchers.same_nodes import same_nodes
from hopmap.topologies import mesh, topology_from_spec
from support import about


def test_slots_options_and_spelling_do_not_renumber():
    for named, used in [
        ("torus:4x2x2", "torus:4x2x2*2"),
        ("torus:4x2x2*8,ties=parity", "torus:4x2x2"),
        ("torus:04x2x2", "torus:4x2x2"),
        ("cluster:4*2", "cluster:4*9"),
        ("fattree:4x4,routing=ecmp,seed=3", "fattree:4x4"),
        ("preset:bgq*16", "torus:4x4x4x4x2"),
        ("torus:4x4x4x4x2", "preset:bgq"),
        ("mesh:4x2x2", "haec:4x2x2*2"),
        ("torus:4x2x2", "nodes:node[0-7]@torus:4x2x2"),
        ("names:n[1-4]@torus:4", "nodes:n[2-3]@names:n[1-4]@torus:4*2"),
    ]:
        with about(named, used):
            assert same_nodes(named, topology_from_spec(used))


@pytest.mark.parametrize(
    "named", ["mesh:4x2x2", "torus:2x8", "torus:16", "preset:bgq", "file:net.graphml", "tours:4x4"]
)
def test_other_networks_are_other_nodes(named):
    assert not same_nodes(named, topology_from_spec("torus:4x4"))


def test_nodes_of_a_job_are_those_of_its_machine():
    job = topology_from_spec("nodes:node[0-3]@torus:4x4")
    assert not same_nodes("mesh:4x2x2", job)
    assert not same_nodes("nodes:node[0-3]@mesh:4x2x2", job)


def test_a_file_is_the_same_however_its_folder_is_said(tmp_path, monkeypatch):
    """Where the mapping's is not there, the name has to do."""
    conf = "SwitchName=s1 Nodes=n[1-2]\n"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "topology.conf").write_text(conf)
    monkeypatch.chdir(tmp_path / "a")
    here = topology_from_spec("file:topology.conf")
    assert same_nodes(f"file:{tmp_path}/a/topology.conf", here)
    assert not same_nodes("file:../b/topology.conf", here)
    assert same_nodes("file:elsewhere/topology.conf", here)
    assert same_nodes("nodes:n1@file:elsewhere/topology.conf", here)
    assert not same_nodes("file:elsewhere/net.graphml", here)
    assert not same_nodes("file:topology.conf#other", here)
    assert not same_nodes("file:topology.conf", mesh((2,)))
