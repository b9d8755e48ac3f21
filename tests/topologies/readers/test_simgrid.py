"""SimGrid's platform files as networks."""

import xml.etree.ElementTree as ET

import pytest

from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies.readers.simgrid import from_platform


def read(inside: str):
    return from_platform(
        ET.fromstring(f'<platform version="4.1">{inside}</platform>'), "file:p.xml"
    )


CLUSTER = 'prefix="n" suffix=".org" radical="0-7" speed="1Gf" bw="10Gbps" lat="1us"'


def test_a_cluster_is_a_switch_with_a_link_each_way_to_every_host():
    topology = read(f'<cluster id="c" {CLUSTER} core="4" loopback_bw="5GBps" loopback_lat="0"/>')
    assert (topology.nodes, topology.switches, topology.links) == (8, 1, 16)
    assert set(topology.slots) == {4}
    assert (topology.names[0], topology.names[7]) == ("n0.org", "n7.org")
    assert (topology.kinds[0].bandwidth, topology.kinds[0].latency) == (1.25e9, 1e-6)
    assert topology.parameters["memory.bandwidth"] == 5e9
    assert topology.parameters["injection.bandwidth"] == 1e15


def test_a_backbone_is_crossed_between_the_links_of_hosts():
    topology = read(f'<cluster id="c" {CLUSTER} bb_bw="2GBps" bb_lat="500ns"/>')
    assert (topology.nodes, topology.switches, topology.links) == (8, 2, 17)
    _, links = topology.routes([2], [5])
    kinds = [topology.kinds[k] for k in topology.link_kind[links]]
    assert [(k.bandwidth, k.latency) for k in kinds] == [
        (1.25e9, 1e-6),
        (2e9, 5e-7),
        (1.25e9, 1e-6),
    ]
    assert topology.loads([0, 3], [1, 4], [10, 5]).max() == 15


def test_tori_and_fat_trees_are_those_of_the_same_name():
    torus = read(f'<cluster id="c" {CLUSTER} topology="TORUS" topo_parameters="4,2"/>')
    assert torus.dims == (4, 2)
    tree = read(f'<cluster id="c" {CLUSTER} topology="FAT_TREE" topo_parameters="2;4,2;1,2;1,3"/>')
    own = topology_from_spec("fattree:4x2:1x2:1x3")
    assert (tree.link_from.tolist(), tree.link_to.tolist()) == (
        own.link_from.tolist(),
        own.link_to.tolist(),
    )


ZONE = """
<zone id="AS0" routing="{routing}"><zone id="inner" routing="{routing}">
  <host id="a" speed="1Gf" core="2"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/>
  {routers}
  <link id="ab" bandwidth="1GBps" latency="1us"/>
  <link id="bc" bandwidth="125MBps" latency="2us" sharing_policy="SPLITDUPLEX"/>
  {routes}
</zone></zone>
"""
ROUTES = """
<route src="a" dst="b"><link_ctn id="ab"/></route>
<route src="b" dst="c"><link_ctn id="bc" direction="UP"/></route>
"""


def test_listed_routes_are_symmetrical_unless_they_say_otherwise():
    last = '<route src="a" dst="c"><link_ctn id="ab"/><link_ctn id="bc" direction="UP"/></route>'
    topology = read(ZONE.format(routing="Full", routers="", routes=ROUTES + last))
    assert (topology.nodes, topology.switches, topology.links) == (3, 0, 4)
    assert topology.slots.tolist() == [2, 1, 1]
    assert topology.distance([0, 2, 0], [2, 0, 1]).tolist() == [2, 2, 1]
    _, links = topology.routes([2], [0])
    assert topology.link_from[links].tolist() == [2, 1]
    assert topology.link_to[links].tolist() == [1, 0]
    with pytest.raises(TopologyError, match="no route from node 0 to node 2"):
        read(ZONE.format(routing="Full", routers="", routes=ROUTES))


def test_one_host_is_a_network():
    topology = read('<zone routing="Full"><host id="a" speed="1Gf"/></zone>')
    assert (topology.nodes, topology.links, topology.switches) == (1, 0, 0)


def test_more_cores_than_any_machine_has_are_refused():
    with pytest.raises(TopologyError, match="999,999,999 slots: expected at most"):
        read('<zone routing="Full"><host id="a" speed="1Gf" core="999999999"/></zone>')


def test_routes_of_single_links_are_a_graph():
    topology = read(ZONE.format(routing="Floyd", routers="", routes=ROUTES))
    assert topology.distance(0, 2)[0] == 2
    router = '<router id="r"/>' + "".join(
        f'<link id="{host}" bandwidth="1GBps" latency="1us"/>' for host in "abc"
    )
    routes = "".join(
        f'<route src="{host}" dst="r"><link_ctn id="{host}"/></route>' for host in "abc"
    )
    topology = read(ZONE.format(routing="Dijkstra", routers=router, routes=routes))
    assert (topology.nodes, topology.switches) == (3, 1)
    assert topology.distance(0, 2)[0] == 2


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("", "<platform> with 0 zones or clusters: expected one"),
        ('<zone routing="Full"/><zone routing="Full"/>', "with 2 zones"),
        (f'<cluster {CLUSTER} topology="DRAGONFLY"/>', "topology 'DRAGONFLY': expected TORUS"),
        (f'<cluster {CLUSTER} topology="TORUS" topo_parameters="3,2"/>', "8 hosts in radical"),
        (f'<cluster {CLUSTER} topology="TORUS" topo_parameters="a"/>', "expected numbers like"),
        (f'<cluster {CLUSTER} topology="FAT_TREE" topo_parameters="2;4;1;1"/>', "2 levels"),
        (f'<cluster {CLUSTER} limiter_link="1GBps"/>', "limiter_link: expected none"),
        ('<cluster radical="0-7" bw="fast"/>', "bw 'fast': expected a quantity like 10Gbps"),
        ('<cluster radical="7-0" bw="1Bps"/>', "radical '7-0': expected a list"),
        ('<cluster radical="0-99999999" bw="1Bps"/>', "at most 1048576"),
        ('<cluster radical="0-1" core="0" bw="1Bps"/>', "core '0': expected a whole number"),
        (
            ZONE.format(routing="Full", routers="", routes=ROUTES.replace('"ab"', '"xy"')),
            "route from a to b: link 'xy': expected a link of the zone",
        ),
        (
            ZONE.format(routing="Full", routers="", routes=ROUTES.replace(' direction="UP"', "")),
            "route from b to c: link 'bc'",
        ),
        (ZONE.format(routing="Vivaldi", routers="", routes=""), "routing 'Vivaldi': expected Full"),
        (
            ZONE.format(routing="Full", routers="", routes=ROUTES.replace('dst="b"', 'dst="d"')),
            "route from 'a' to 'd': expected hosts",
        ),
    ],
)
def test_what_is_not_understood_is_refused(inside, message):
    with pytest.raises(TopologyError, match=message) as caught:
        read(inside)
    assert "\n" not in str(caught.value)


ONE_WAY = """
<link id="cb" bandwidth="1GBps"/>
<route src="a" dst="b"><link_ctn id="ab"/></route>
<route src="b" dst="c" symmetrical="NO"><link_ctn id="bc" direction="UP"/></route>
"""


@pytest.mark.parametrize(
    ("routes", "message"),
    [
        (ONE_WAY, "between 'b' and 'c': expected a route each way, of one speed"),
        (
            ONE_WAY + '<route src="c" dst="b" symmetrical="NO"><link_ctn id="cb"/></route>',
            "between 'b' and 'c': expected a route each way, of one speed",
        ),
        (
            ROUTES.replace('"bc" direction="UP"', '"ab"'),
            "link 'ab' joins 'a' and 'b', and 'b' and 'c': expected a link for each route",
        ),
    ],
)
def test_a_graph_whose_links_are_not_alike_both_ways_or_shared_is_refused(routes, message):
    with pytest.raises(TopologyError, match=message):
        read(ZONE.format(routing="Floyd", routers="", routes=routes))


def test_a_graph_may_have_one_link_for_every_hosts_way_to_itself():
    own = '<link id="own" bandwidth="9GBps" sharing_policy="FATPIPE"/>'
    alone = "".join(f'<route src="{h}" dst="{h}"><link_ctn id="own"/></route>' for h in "abc")
    assert read(ZONE.format(routing="Floyd", routers=own, routes=ROUTES + alone)).links == 4


def test_a_graph_may_list_both_ways():
    back = '<route src="c" dst="b" symmetrical="NO"><link_ctn id="bc" direction="DOWN"/></route>'
    topology = read(ZONE.format(routing="Floyd", routers="", routes=ONE_WAY + back))
    assert (topology.links, topology.distance(2, 0)[0]) == (4, 2)


@pytest.mark.parametrize("routing", ["Full", "Floyd"])
@pytest.mark.parametrize(
    "inside",
    [
        f"<cluster {CLUSTER}/>",
        '<zone id="z" routing="Full"><host id="d" speed="1Gf"/></zone>',
        '<bypassRoute src="a" dst="b"><link_ctn id="bc" direction="UP"/></bypassRoute>',
    ],
)
def test_what_else_is_in_a_zone_of_hosts_is_not_passed_over(routing, inside):
    with pytest.raises(TopologyError, match=r"<(cluster|zone|bypassRoute)> among hosts"):
        read(ZONE.format(routing=routing, routers=inside, routes=ROUTES))


def test_a_link_that_nobody_shares_is_refused_but_for_memory():
    fat = ' sharing_policy="FATPIPE"'
    own = f'<link id="own" bandwidth="9GBps"{fat}/>'
    alone = '<route src="a" dst="a"><link_ctn id="own"/></route>'
    last = '<route src="a" dst="c"><link_ctn id="ab"/><link_ctn id="bc" direction="UP"/></route>'
    zone = ZONE.format(routing="Full", routers=own, routes=ROUTES + last + alone)
    assert read(zone).links == 4
    for routing in ("Full", "Floyd"):
        zone = ZONE.format(routing=routing, routers="", routes=ROUTES)
        with pytest.raises(TopologyError, match="link 'ab' is a FATPIPE: expected SHARED or"):
            read(zone.replace('latency="1us"', fat))
    for which in ("", "bb_"):
        with pytest.raises(TopologyError, match=f"{which}sharing_policy: FATPIPE: expected SHARED"):
            read(f'<cluster {CLUSTER} bb_bw="1GBps" {which}sharing_policy="FATPIPE"/>')


def test_two_nodes_that_share_a_first_link_are_refused():
    routes = "".join(
        f'<route src="{s}" dst="{t}" symmetrical="NO"><link_ctn id="ab"/></route>'
        for s in "abc"
        for t in "abc"
        if s != t
    )
    with pytest.raises(TopologyError, match="nodes 0 and 1 are one place"):
        read(ZONE.format(routing="Full", routers="", routes=routes))
