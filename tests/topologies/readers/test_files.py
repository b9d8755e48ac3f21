"""Files of networks: recognised by what is in them, and never a traceback."""

import copy
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
import yaml

from hopmap.topologies import TopologyError, topology_from_spec

HWLOC = (
    '<topology version="2.0"><object type="Machine"><object type="Package">'
    '<object type="Core"/><object type="Core"/></object></object></topology>'
)
CLUSTER = (
    '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
    '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-11" bw="10Gbps"'
    ' lat="1us" speed="1Gf" topology="FAT_TREE" topo_parameters="2;4,3;1,2;1,2"/></platform>'
)
ROUTES = (
    '<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1f"/>'
    '<host id="b" speed="1f"/><link id="l" bandwidth="1Gbps" latency="1us"/>'
    '<route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>'
)
CONF = (
    "SwitchName=s0 Nodes=dev[0-5]\nSwitchName=s1 Nodes=dev[6-11]\nSwitchName=s2 Switches=s[0-1]\n"
)
YAML = """- topology: topo1
  torus3d:
    toruses:
    - name: t
      dims: {x: 3, y: 2, z: 2}
      nodes: node[01-12]
"""
GRAPHML = "\n".join(nx.generate_graphml(nx.path_graph(["a", "b", "c", "d", "e"])))
FILES = {"graphml": GRAPHML, "hwloc": HWLOC, "cluster": CLUSTER, "routes": ROUTES} | {
    "conf": CONF,
    "yaml": YAML,
}


@pytest.mark.parametrize(
    ("name", "nodes"),
    {"graphml": 5, "hwloc": 2, "cluster": 12, "routes": 2, "conf": 12, "yaml": 12}.items(),
)
def test_a_file_is_known_by_what_is_in_it(tmp_path, name, nodes):
    file = tmp_path / "some file.txt"
    file.write_text(FILES[name], encoding="utf-8-sig" if name == "conf" else "utf-8")
    topology = topology_from_spec(f"file:{file}")
    assert (topology.nodes, topology.spec) == (nodes, f"file:{file}")
    assert name == "hwloc" or len(topology.names) == nodes


def test_comments_may_be_in_another_encoding(tmp_path):
    """An XML file says in which; Slurm's names are of ASCII anyway."""
    declared = CLUSTER.replace('"1.0"?>', '"1.0" encoding="ISO-8859-1"?><!-- Gebäude -->')
    for text in (f"# Gebäude\n{CONF}", declared):
        file = tmp_path / "x"
        file.write_bytes(text.encode("latin-1"))
        assert topology_from_spec(f"file:{file}").nodes == 12
    file.write_bytes(CONF.replace("dev", "gerät").encode("latin-1"))
    with pytest.raises(TopologyError, match="expected a list like"):
        topology_from_spec(f"file:{file}")


@pytest.mark.parametrize("text", ["", "hello", "<a/>", "rank,node\n0,1\n", "\0\1\2"])
def test_what_is_no_network_is_refused_with_what_would_be(tmp_path, text):
    file = tmp_path / "x"
    file.write_text(text)
    with pytest.raises(TopologyError, match=r"expected one of"):
        topology_from_spec(f"file:{file}")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for path in (tmp_path / "none.xml", tmp_path / "none.yaml#name", tmp_path):
        with pytest.raises(TopologyError, match="cannot be read"):
            topology_from_spec(f"file:{path}")


def test_slots_behind_a_files_name_are_answered_with_where_they_stand(tmp_path):
    file = tmp_path / "net.graphml"
    file.write_text(FILES["graphml"])
    where = "attribute slots of a node, SimGrid: core of a host): expected file:"
    with pytest.raises(TopologyError, match=r"\*4 is for Slurm's files") as error:
        topology_from_spec(f"file:{file}*4")
    assert str(error.value).endswith(f"{where}{file}")


def test_slurms_files_say_nothing_of_cores_so_that_the_spec_may(tmp_path):
    file = tmp_path / "topology.conf"
    file.write_text(
        "SwitchName=s1 Nodes=a[1-3]\nSwitchName=s2 Nodes=b[1-3]\nSwitchName=top Switches=s[1-2]\n"
    )
    topology = topology_from_spec(f"file:{file}*48")
    assert topology.slots.tolist() == 6 * [48]
    assert topology.names == topology_from_spec(f"file:{file}").names
    assert topology_from_spec(topology.spec).slots.tolist() == 6 * [48]
    with pytest.raises(TopologyError, match="at most 67,108,864"):
        topology_from_spec(f"file:{file}*999999999")
    for slots in ("0", "-1", "x", ""):
        with pytest.raises(TopologyError, match="cannot be read"):
            topology_from_spec(f"file:{file}*{slots}")


def test_entities_that_explode_are_refused(tmp_path):
    bomb = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 12))
    file = tmp_path / "bomb.xml"
    file.write_text(f'<!DOCTYPE a [<!ENTITY e0 "x">{bomb}]><a>&e11;</a>')
    with pytest.raises(TopologyError, match="cannot be read as XML"):
        topology_from_spec(f"file:{file}")


def test_endless_nesting_is_refused(tmp_path):
    file = tmp_path / "deep.xml"
    file.write_text("<topology>" + "<object>" * 20_000 + "</object>" * 20_000 + "</topology>")
    with pytest.raises(TopologyError, match="nested too deep"):
        topology_from_spec(f"file:{file}")


def without_one(value):
    """Every document that is this one with a part left out, or something else in its place."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            for other in (None, 3, "x", [], {}, [1], {"x": 1}):
                changed = copy.copy(value)
                changed[key] = other
                yield changed
            rest = copy.copy(value)
            part = rest.pop(key)
            yield rest
            for inner in without_one(part):
                changed = copy.copy(value)
                changed[key] = inner
                yield changed


def read(file, text):
    file.write_text(text)
    try:
        topology_from_spec(f"file:{file}")
    except TopologyError as error:
        assert "\n" not in str(error)
        return False
    return True


def test_a_yaml_with_anything_in_the_place_of_anything_is_read_or_refused(tmp_path):
    tree = {"switches": [{"switch": "s", "children": "t"}, {"switch": "t", "nodes": "n[1-2]"}]}
    blocks = {"block_sizes": [1, 2], "blocks": [{"block": f"b{k}", "nodes": f"n{k}"} for k in "12"]}
    origin, dims = dict.fromkeys("xyz", 0), dict.fromkeys("xyz", 1)
    torus = {"name": "t", "dims": dims, "regions": [{"anchor": origin, "dims": dims, "nodes": "n"}]}
    read_at_all = [
        read(tmp_path / "x", "# topology:\n" + yaml.safe_dump(document))
        for kind, part in (
            ("tree", tree),
            ("block", blocks),
            ("ring", {"rings": [{"ring": "r", "nodes": ["a", "b"]}]}),
            ("torus3d", {"toruses": [torus]}),
        )
        for document in without_one([{"topology": "a", kind: part}])
    ]
    assert 0 < sum(read_at_all) < len(read_at_all) / 2


@pytest.mark.parametrize("name", ["cluster", "routes", "hwloc", "graphml"])
def test_xml_without_any_one_attribute_or_element_is_read_or_refused(tmp_path, name):
    count = len(list(ElementTree.fromstring(FILES[name]).iter()))
    for place in range(count):
        element = list(ElementTree.fromstring(FILES[name]).iter())[place]
        for key in (*element.attrib, None):
            root = ElementTree.fromstring(FILES[name])
            changed = list(root.iter())[place]
            if key is None:
                changed.clear()
            else:
                del changed.attrib[key]
            read(tmp_path / "x", ElementTree.tostring(root, encoding="unicode"))


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_read_or_refused_in_one_line(tmp_path, name):
    """Bytes changed, cut out and doubled at random."""
    rng, file, refused = np.random.default_rng(1), tmp_path / "x", 0
    for _ in range(150):
        content = bytearray(FILES[name].encode())
        for _ in range(rng.integers(1, 4)):
            begin, length = rng.integers(len(content)), rng.integers(1, 9)
            piece = bytes(content[begin : begin + length])
            what = rng.integers(3)
            other = (b"", piece * 2, bytes(rng.integers(32, 127, len(piece), dtype=np.uint8)))[what]
            content[begin : begin + length] = other
        file.write_bytes(bytes(content))
        try:
            topology_from_spec(f"file:{file}")
        except TopologyError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 10
