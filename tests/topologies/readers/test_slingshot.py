"""Slingshot's addresses and HPE's places as a dragonfly, checked with LUMI's allocations."""

import csv
import random

import pytest

from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies.readers.slingshot import from_slingshot, place_of_address

SPEC = "file:nodes.txt"


def address(group, switch, port):
    return group << 9 | switch << 4 | port


def test_an_address_is_group_switch_and_port():
    for place in ((0, 0, 0), (511, 31, 15), (8, 6, 2), (23, 1, 12)):
        assert place_of_address(address(*place)) == place


def test_nodes_of_a_switch_a_group_and_other_groups_are_as_far_as_in_a_dragonfly():
    places = [(3, 0, 1), (3, 0, 2), (3, 5, 0), (7, 2, 0)]
    text = "".join(f"nid{k} {address(*place):#x}\n" for k, place in enumerate(places))
    topology = from_slingshot(text, SPEC)
    nodes = [topology.names.index(f"nid{k}") for k in range(4)]
    assert topology.switches == 2 * 6
    assert topology.slots.sum() == 4 and (topology.slots[nodes] == 1).all()
    here, *others = nodes
    assert topology.distance(here, others[:2]).tolist() == [2, 3]
    assert 3 <= topology.distance(here, others[2:])[0] <= 5
    decimal = "".join(f"nid{k},{address(*place)}\n" for k, place in enumerate(places))
    assert from_slingshot(decimal, SPEC).names == topology.names


def test_places_are_cabinets_and_nodes_of_two_slots_share_a_switch():
    text = (
        "rank,host,xname\n0,n0,x1000c0s0b0n0\n1,n1,x1000c0s1b1n0\n2,n2,x1000c0s2b0n0\n"
        "3,n3,x1001c7s7b1n0\n"
    )
    topology = from_slingshot(text, SPEC)
    nodes = [topology.names.index(f"n{k}") for k in range(4)]
    assert topology.switches == 2 * 32
    assert topology.distance(nodes[0], nodes[1:3]).tolist() == [2, 3]
    assert [node // (topology.nodes // 2) for node in nodes] == [0, 0, 0, 1]


def test_a_host_with_several_cards_has_the_first():
    topology = from_slingshot("a 0x10\na 0x20\nb 0x11\n", SPEC)
    assert topology.distance(*(topology.names.index(name) for name in "ab")).tolist() == [2]


def test_global_links_of_a_switch_are_17_or_what_is_said(tmp_path):
    text = "".join(f"g{group} {address(group, 1, 0)}\n" for group in range(3))
    (tmp_path / "nodes.txt").write_text(text)
    links = [
        topology_from_spec(f"file:{tmp_path}/nodes.txt{ports}*8").links
        for ports in ("#2", "", "#17", "#1")
    ]
    assert links[1] == links[2] > links[0] > links[3]
    topology = topology_from_spec(f"file:{tmp_path}/nodes.txt*8")
    assert sorted(topology.slots.tolist()) == [0, 0, 0, 8, 8, 8]


def test_lumis_places_are_in_the_groups_of_its_preset(shared):
    """The preset numbers 24 cabinets of 124 nodes by the names of 2,976 nodes."""
    allocation = shared / "measured" / "lumi" / "2025_04_12___00_29_36" / "alloc.csv"
    if not allocation.exists():
        pytest.skip("needs LUMI's allocation of 1,000 nodes")
    topology = topology_from_spec(f"file:{allocation}")
    preset = topology_from_spec("preset:lumi-g")
    hosts = [row[1] for row in csv.reader(allocation.open()) if row[0].isdigit()]
    assert len(hosts) == 1000 == topology.slots.sum()
    each = topology.nodes // 22
    pairs = {
        (topology.names.index(host) // each, preset.names.index(host) // 124) for host in hosts
    }
    assert len(pairs) == 22 == len(dict(pairs)) == len({one for _, one in pairs})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 0x10\nb x1c0s0b0n0\n", "line 2 is 'b x1c0s0b0n0': expected a host and its address"),
        ("a 0x10\nb\n", "line 2 is 'b': expected a host and its address"),
        ("a 0x10\nb 0x40000\n", "line 2 is 'b 0x40000': expected a host"),
        ("a 0x10\nb 16\n", "line 2: 16 is b and a: expected one node"),
        ("# nothing\n", "no nodes: expected hosts with addresses or xnames"),
    ],
)
def test_what_is_no_list_of_places_is_refused(text, message):
    with pytest.raises(TopologyError, match=message):
        from_slingshot(text, SPEC)


def test_too_few_global_links_are_refused():
    text = "".join(f"g{group} {address(group, 0, 0)}\n" for group in range(4))
    with pytest.raises(TopologyError, match="#x: expected global links a switch, like #17"):
        from_slingshot(text, SPEC, "x")
    with pytest.raises(TopologyError, match="4 groups: expected at most 2"):
        from_slingshot(text, SPEC, "1")


def test_damaged_lists_are_a_network_or_one_line():
    draw = random.Random(0)
    text = "".join(f"nid{k:03d} {address(k % 3, k // 3, 0):#07x}\n" for k in range(12))
    for _ in range(300):
        at = draw.randrange(len(text))
        for damaged in (text[:at], text[:at] + draw.choice("x09f\n\0 ,é") + text[at + 1 :]):
            try:
                from_slingshot(damaged, SPEC)
            except TopologyError as error:
                assert "\n" not in str(error)
