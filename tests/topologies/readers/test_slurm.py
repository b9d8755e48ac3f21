"""Slurm's topology.conf and topology.yaml as networks; the examples are its manuals'."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hopmap.topologies import TopologyError, hierarchy, topology_from_spec
from hopmap.topologies.readers.slurm import from_slurm_conf, from_slurm_yaml

TREE = """
# Slurm's network topology
SwitchName=s0 Nodes=dev[0-5]   # a leaf
SwitchName=s1 Nodes=dev[6-11] LinkSpeed=100
switchname=s2 nodes=dev[12-17]
SwitchName=s3 \\
  Switches=s[0-2]
"""
BLOCK = """
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockName=block3 Nodes=node[65-96]
BlockName=block4 Nodes=node[97-128]
"""
RING = "RingName=ring0 Nodes=node[01-08]\nRingName=ring1 Nodes=node[09-16]\n"


def conf(text, wanted=""):
    return from_slurm_conf(text, "file:topology.conf", wanted)


def test_a_tree_of_like_switches_is_a_hierarchy():
    topology = conf(TREE)
    assert hierarchy(topology) == (6, 3)
    assert topology.names == tuple(f"dev{n}" for n in range(18))
    assert topology.distance(0, [1, 5, 6, 17]).tolist() == [2, 2, 4, 4]


def test_a_tree_of_unlike_switches_is_a_graph():
    topology = conf(TREE.replace("dev[12-17]", "dev[12-16]"))
    assert (topology.nodes, topology.switches) == (17, 4)
    assert topology.distance(0, [1, 6, 16]).tolist() == [2, 4, 4]
    assert hierarchy(topology) is None


def test_leaves_below_several_spines_have_a_way_over_one_of_them():
    topology = conf(
        "SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n[2-3]\n"
        "SwitchName=x Switches=a,b\nSwitchName=y Switches=a,b\n"
    )
    assert (topology.nodes, topology.switches, topology.links) == (4, 4, 16)
    assert topology.distance(0, [1, 2]).tolist() == [2, 4]


def test_a_host_of_two_leaves_is_refused_since_hosts_pass_nothing_on():
    with pytest.raises(TopologyError, match="'n' is below switches 'a' and 'b': expected one"):
        conf("SwitchName=a Nodes=x,n\nSwitchName=b Nodes=y,n\nSwitchName=r Switches=a,b\n")


def test_one_switch_is_a_cluster():
    assert hierarchy(conf("SwitchName=s Nodes=a,b,c")) == (3,)


@pytest.mark.parametrize(
    ("sizes", "levels"),
    [("", (32, 4)), ("30", (32, 4)), ("30,60", (32, 2, 2)), ("30,120", (32, 4))],
)
def test_blocks_are_paired_as_their_sizes_say(sizes, levels):
    topology = conf(BLOCK + (f"BlockSizes={sizes}" if sizes else ""))
    assert hierarchy(topology) == levels
    assert topology.names[32:34] == ("node33", "node34")


def test_one_of_several_rings_is_chosen_by_name():
    topology = conf(RING, "ring1")
    assert (topology.dims, topology.names[0]) == ((8,), "node09")
    assert topology.distance(0, [1, 4, 7]).tolist() == [1, 4, 1]
    with pytest.raises(TopologyError, match="expected file:PATH#NAME with one of ring0, ring1"):
        conf(RING)


@pytest.mark.parametrize(
    "text",
    [
        "SwitchName=s0 Nodes=a[0-1],\\\nb[0-1]\n",
        "SwitchName=s0 \\\r\n  Nodes=a[0-1],b[0-1]\r\n",
        "SwitchName=s0 \\  \nNodes=a[0-1],b[0-1]\n",
        "SwitchName=s0 Nodes=a[0-1],\\ # two\nb[0-1]",
        "# was: \\\nSwitchName=s0 Nodes=a[0-1],b[0-1] # more: \\\nSwitchName=s1 Switches=s0\n",
        'SwitchName = s0 Nodes = "a[0-1], b[0-1]"\n',
    ],
)
def test_lines_are_joined_and_taken_apart_as_slurm_does(text):
    assert conf(text).names == ("a0", "a1", "b0", "b1")


def test_a_line_is_named_by_its_number_below_one_that_goes_on():
    with pytest.raises(TopologyError, match="line 4: nothing below it"):
        conf("SwitchName=s0 \\\n  Nodes=a\n\nSwitchName=s1\n")


ORIGIN = {"x": 0, "y": 0, "z": 0}


def document(**networks):
    entries = [{"topology": name} | network for name, network in networks.items()]
    return yaml.safe_dump(entries, sort_keys=False)


def torus3d(**torus):
    return {"torus3d": {"toruses": [{"name": "t", "dims": {"x": 4, "y": 3, "z": 2}} | torus]}}


def test_a_torus_has_our_numbers_x_fastest():
    topology = from_slurm_yaml(document(big=torus3d(nodes="node[01-24]")), "file:t.yaml")
    assert topology.dims == (4, 3, 2)
    x, y, z = 3, 1, 1
    assert topology.names[x + 4 * (y + 3 * z)] == "node20"
    assert topology.coords[19].tolist() == [x, y, z]
    assert topology.distance(0, 3)[0] == 1


def test_regions_of_a_torus_are_put_to_their_places():
    half = {"x": 2, "y": 3, "z": 2}
    regions = [
        {"anchor": {"x": 0, "y": 0, "z": 0}, "dims": half, "nodes": "a[00-11]"},
        {"anchor": {"x": 2, "y": 0, "z": 0}, "dims": half, "nodes": "b[00-11]"},
    ]
    topology = from_slurm_yaml(document(t=torus3d(regions=regions)), "file:t.yaml")
    assert topology.names[:6] == ("a00", "a01", "b00", "b01", "a02", "a03")


def test_the_default_topology_is_taken_or_one_by_name(tmp_path):
    small = {"tree": {"switches": [{"switch": "s", "nodes": "n[1-4]"}]}}
    blocks = {
        "block": {
            "block_sizes": [4, 8],
            "blocks": [{"block": f"b{k}", "nodes": f"b{k}n[0-3]"} for k in range(4)],
        }
    }
    ring = {"cluster_default": True, "ring": {"rings": [{"ring": "r", "nodes": "n[1-9]"}]}}
    file = tmp_path / "topology.yaml"
    file.write_text(document(small=small, blocks=blocks, ring=ring, big=torus3d(nodes="n[1-24]")))
    assert topology_from_spec(f"file:{file}").dims == (9,)
    assert hierarchy(topology_from_spec(f"file:{file}#small")) == (4,)
    assert hierarchy(topology_from_spec(f"file:{file}#blocks")) == (4, 2, 2)
    assert topology_from_spec(f"file:{file}#big").dims == (4, 3, 2)
    again = topology_from_spec(f"file:{file}#t")
    assert again.dims == (4, 3, 2)
    assert topology_from_spec(again.spec).names == again.names


@settings(deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_every_tree_of_like_switches_comes_back(sizes):
    """Written level by level from its sizes, leaves first."""
    lines, below, count = [], "", 1
    for level, _ in enumerate(sizes):
        count = 1
        for size in sizes[level + 1 :]:
            count *= size
        for k in range(count):
            first, last = k * sizes[level], (k + 1) * sizes[level] - 1
            key = "Switches" if level else "Nodes"
            lines.append(f"SwitchName=s{level}x{k} {key}={below or 'n'}[{first}-{last}]")
        below = f"s{level}x"
    topology = conf("\n".join(lines))
    assert hierarchy(topology) == tuple(sizes)
    assert topology.names == tuple(f"n{k}" for k in range(topology.nodes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Nodes=n1 Color=red", "line 1 is 'SwitchName=a Nodes=n1 Color=red'"),
        ("SwitchName=a", "line 1: nothing below it"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", "line 2: listed twice"),
        ("SwitchName=a Switches=b", "line 1: there is no switch 'b'"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "a switch is below itself"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2", "nothing joins 'a' and 'b'"),
        ("SwitchName=a Nodes=n[2-1]", "line 1: hosts 'n.2-1.': range '2-1'"),
        ("SwitchName=a Nodes=n1\nRingName=b Nodes=n2", "and only one"),
        (BLOCK + "BlockSizes=30,100", "block sizes 30, 100: expected each a power of two larger"),
        (BLOCK + "BlockSizes=30,x", "expected whole numbers"),
        ("RingName=b Nodes=n1,n2,n1", "node n1 twice"),
    ],
)
def test_a_conf_that_makes_no_sense_is_refused_by_line(text, message):
    with pytest.raises(TopologyError, match=message) as caught:
        conf(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- topology: a\n  tree: [", "cannot be read as YAML"),
        ("topology: a", "expected a list of mappings"),
        ("- topology: a\n  flat: true", "expected tree, block, ring or torus3d"),
        ("- topology: a\n  tree: 3", "switches: expected a list"),
        ("- topology: [a]", "expected topology: NAME"),
        ("- topology: 1" + 3000 * ":1" + "\n  flat: true", "Exceeds the limit"),
        (document(a=torus3d(nodes="n[1-23]")), "23 nodes: expected 4 x 3 x 2"),
        (document(a=torus3d(nodes="n[1-23],n1")), "node n1 twice"),
        (document(a=torus3d(dims={"x": 4, "y": "three"}, nodes="n1")), "expected whole numbers x"),
        (document(a=torus3d(dims={"x": 9999, "y": 9999, "z": 9}, nodes="n1")), "at most 262144"),
        (
            document(
                a=torus3d(
                    regions=[{"anchor": ORIGIN, "dims": {"x": 1, "y": 1, "z": 1}, "nodes": "n1"}]
                )
            ),
            r"no node at \(1, 0, 0\)",
        ),
        (
            document(
                a=torus3d(
                    regions=[
                        {"anchor": ORIGIN, "dims": {"x": 5, "y": 1, "z": 1}, "nodes": "n[1-5]"}
                    ]
                )
            ),
            r"node n5 at \(4, 0, 0\): expected within",
        ),
    ],
)
def test_yaml_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(TopologyError, match=message) as caught:
        from_slurm_yaml(text, "file:t.yaml")
    assert "\n" not in str(caught.value)


SCONTROL = """
SwitchName=leaf01 Level=0 LinkSpeed=1 Nodes=rack[1-2]n[01-02]
SwitchName=leaf02 Level=0 LinkSpeed=1 Nodes=rack[3-4]n[01-02]
SwitchName=leaf03 Level=0 LinkSpeed=1 Nodes=gpu7,gpu[08-10]
SwitchName=spine1 Level=1 LinkSpeed=1 Nodes=gpu[08-10],gpu7,rack[1-4]n[01-02] Switches=leaf[01-03]
"""


def test_what_scontrol_shows_is_a_network():
    topology = conf(SCONTROL)
    assert hierarchy(topology) == (4, 3)
    assert topology.names[:4] == ("rack1n01", "rack1n02", "rack2n01", "rack2n02")
    assert topology.names[8:] == ("gpu7", "gpu08", "gpu09", "gpu10")
    assert topology.distance(0, [1, 4]).tolist() == [2, 4]


def test_scontrol_shows_leaves_below_several_spines():
    spine2 = SCONTROL.splitlines()[-1].replace("spine1", "spine2") + "\n"
    topology = conf(SCONTROL + spine2)
    assert (topology.nodes, topology.switches) == (12, 5)


def test_scontrol_shows_blocks():
    shown = BLOCK.replace("\n", " BlockSize=32\n").replace(" Nodes", " BlockIndex=0 Nodes")
    assert hierarchy(conf(shown.lstrip(" BlockSize=32"))) == (32, 4)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        # cut off in the middle of a line, or of a list
        (" Switches=leaf[01-03]", "", "line 5: Level=1 without Switches="),
        ("Switches=leaf[01-03]", "Switches=leaf[01-", "line 5: hosts 'leaf.01-': expected a list"),
        ("Switches=leaf[01-03]", "Switch", "line 5 is 'SwitchName=spine1"),
        # a line is missing: a leaf, or hosts of one
        (SCONTROL.splitlines()[2] + "\n", "", "line 4: there is no switch 'leaf02'"),
        ("Nodes=gpu7,gpu[08-10]\n", "Nodes=gpu7\n", "line 5: host 'gpu08' is not below switch"),
        ("gpu[08-10],gpu7,", "gpu7,", "line 5: host 'gpu08' is below, but not named by, switch"),
        ("SwitchName=leaf02", "SwitchName=leaf01", "line 3: listed twice: expected once"),
    ],
)
def test_a_dump_that_is_not_whole_is_refused(before, after, message):
    assert before in SCONTROL
    with pytest.raises(TopologyError, match=message) as caught:
        conf(SCONTROL.replace(before, after))
    assert "\n" not in str(caught.value)
