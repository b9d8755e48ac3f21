"""NVIDIA topograph's graph in JSON; its files for Slurm are Slurm's."""

import json
import random

import pytest

from hopmap.topologies import TopologyError, hierarchy, topology_from_spec
from hopmap.topologies.readers.topograph import from_topograph

SPEC = "file:graph.json"
PLACES = {f"I{k}": [f"leaf-{k // 4}", f"spine-{k // 8}", "core"] for k in range(16)}
CONF = """# switch.3.1=core
SwitchName=switch.3.1 Switches=switch.2.[1-2]
# switch.2.1=spine-1
SwitchName=switch.2.1 Switches=switch.1.[1-2]
SwitchName=switch.2.2 Switches=switch.1.[3-4]
SwitchName=switch.1.1 Nodes=srv[1101-1104]
SwitchName=switch.1.2 Nodes=srv[1201-1204]
SwitchName=switch.1.3 Nodes=srv[2101-2104]
SwitchName=switch.1.4 Nodes=srv[2201-2204]
"""


def graph(places=PLACES):
    instances = [
        {"id": name, "network_layers": layers, "labels": {"gpu": "H100"}}
        for name, layers in places.items()
    ]
    return json.dumps({"instances": instances}, indent=2)


def test_layers_of_switches_are_a_tree():
    topology = from_topograph(graph(), SPEC)
    assert hierarchy(topology) == (4, 2, 2)
    assert topology.names == tuple(PLACES)
    assert topology.distance(0, [3, 4, 8]).tolist() == [2, 4, 6]


def test_it_is_recognised_as_a_file_and_so_is_its_topology_conf(tmp_path):
    for name, text in (("graph.json", graph()), ("topology.conf", CONF)):
        (tmp_path / name).write_text(text)
        topology = topology_from_spec(f"file:{tmp_path}/{name}*8")
        assert hierarchy(topology) == (4, 2, 2)
        assert topology.slots.tolist() == [8] * 16
    with pytest.raises(TopologyError, match="#ring requires a file of Slurm's"):
        topology_from_spec(f"file:{tmp_path}/graph.json#ring")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (graph()[:-9], "line 1.*: expected topograph's graph in JSON"),
        ('{"instances": []}', "instances: expected a list like"),
        ('{"instances": [{"id": "a"}]}', "instance 0 is {'id': 'a'}: expected"),
        ('{"instances": [{"id": "a", "network_layers": ["x,y"]}]}', "instance 0 is .*: expected"),
        (graph({"a": ["x", "y"], "b": ["x", "z"]}), "b: switch x is below y and z: expected one"),
        (graph({"a": ["x", "x"]}), "a switch is below itself"),
        (graph({"a": ["x"], "b": ["y"]}), "nothing joins"),
    ],
)
def test_what_is_no_such_graph_is_refused(text, message):
    with pytest.raises(TopologyError, match=message):
        from_topograph(text, SPEC)


def test_damaged_graphs_are_a_network_or_one_line():
    text, draw = graph(dict(list(PLACES.items())[:6])), random.Random(0)
    for _ in range(300):
        at = draw.randrange(len(text))
        for damaged in (text[:at], text[:at] + draw.choice('{}[]":,0a\0') + text[at + 1 :]):
            try:
                from_topograph(damaged, SPEC)
            except TopologyError as error:
                assert "\n" not in str(error)


def test_blocks_without_nodes_keep_their_place(tmp_path):
    """As topograph fills groups up: blocks 1 and 2 are a pair, 3 is in one with an empty block."""
    text = (
        "# block1=nvl-1\nBlockName=block1 Nodes=n[11-12]\nBlockName=block2 Nodes=n[21-22]\n"
        "# block3=nvl-3\nBlockName=block3 Nodes=n[31-32]\nBlockName=block4\nBlockSizes=2,4\n"
    )
    (tmp_path / "topology.conf").write_text(text)
    topology = topology_from_spec(f"file:{tmp_path}/topology.conf")
    assert topology.names == ("n11", "n12", "n21", "n22", "n31", "n32")
    assert topology.distance(0, [1, 2, 4]).tolist() == [2, 4, 6]
    (tmp_path / "topology.conf").write_text("BlockName=block1\nBlockSizes=2\n")
    with pytest.raises(TopologyError, match="no block has nodes: expected at least one"):
        topology_from_spec(f"file:{tmp_path}/topology.conf")


def test_topographs_topology_yaml_is_slurms(tmp_path):
    pytest.importorskip("yaml", reason="needs the extra slurm")
    text = (
        "- topology: topo1\n  cluster_default: false\n  block:\n    block_sizes:\n        - 2\n"
        "    blocks:\n        - block: block1\n          nodes: Node[301-302]\n"
        "        - block: block2\n          nodes: Node303\n"
        "- topology: topo2\n  cluster_default: true\n  tree:\n    switches:\n"
        "        - switch: IB2\n          children: S[2-3]\n        - switch: S2\n"
        "          nodes: Node[104-105]\n        - switch: S3\n          nodes: Node[201,205]\n"
    )
    (tmp_path / "topology.yaml").write_text(text)
    topology = topology_from_spec(f"file:{tmp_path}/topology.yaml")
    assert topology.names == ("Node104", "Node105", "Node201", "Node205")
    assert topology_from_spec(f"file:{tmp_path}/topology.yaml#topo1").nodes == 3
