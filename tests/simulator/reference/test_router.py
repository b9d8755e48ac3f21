"""What a packet chooses at a place, from its rules: draws, queues of ways, detours, ties."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.simulator import Parameters
from hopmap.simulator.model import hashed
from hopmap.simulator.reference.routing import Router
from hopmap.simulator.routing.routes import routes_of
from hopmap.topologies import topology_from_spec

SPECS = ["torus:5x3", "mesh:4x3", "fattree:3x3", "dragonfly:2x3x1"]
SEED = 7


def router(spec, routing, waits=None):
    """A router, and its network, whose links have these queues."""
    network = topology_from_spec(spec)
    parameters = Parameters(network_routing=routing)
    routes = routes_of(network, np.arange(network.nodes), parameters)
    queue = (lambda _: 0.0) if waits is None else (lambda link: float(waits[link]))
    return Router(routes, SEED, queue), network


def packet(found, source, target, number=0, message=3):
    made = SimpleNamespace(number=number, message=SimpleNamespace(number=message))
    found.begin(made, source, target)
    return made


def draw(number, message=3):
    return hashed(hashed(SEED, message), number)


def between(network, found, source, target):
    """Links of the topology's own route that are between places."""
    ends = {found.up[source], found.down[target]}
    return [link for link in network.routes(source, target)[1].tolist() if link not in ends]


def region(found, node):
    return found.region[found.home[node]]


def detour(network, found, source, via, target):
    """Links of Valiant's way: to the intermediate node, or its group, and from there on."""
    links, place = [], found.home[source]
    ends = {
        link: end
        for of_place, others in zip(found.links, found.ends, strict=True)
        for link, end in zip(of_place, others, strict=True)
    }
    for link in between(network, found, source, via):
        if found.region[place] == region(found, via):
            break
        links.append(link)
        place = ends[link]
    return links + between(network, found, found.home.index(place), target)


def pairs(network, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(network.nodes, size=(60, 2)).tolist()


@pytest.mark.parametrize("spec", SPECS)
def test_the_intermediate_node_is_drawn_by_seed_message_and_packet_of_all_that_may_be(spec):
    """On dragonflies of those in neither group, and none within a group; elsewhere of all."""
    found, network = router(spec, "valiant")
    for number, (source, target) in enumerate(pairs(network, 0)):
        for message in (3, 4):
            going = packet(found, source, target, number, message)
            found.decide(going)
            groups = {region(found, source), region(found, target)} if found.groups else set()
            may = [node for node in range(network.nodes) if region(found, node) not in groups]
            alike = found.groups and len(groups) == 1
            expected = -1 if alike else may[draw(number, message) % len(may)]
            assert (going.via, going.decided) == (expected, True)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("routing", ["ugal_l", "ugal_g"])
def test_ugal_compares_the_queues_of_both_ways(spec, routing):
    """UGAL-L: the first link's, times the links. UGAL-G: on a dragonfly that of the first global
    link, as it is; elsewhere the sum of all."""
    network = topology_from_spec(spec)
    waits = np.random.default_rng(1).integers(0, 4, size=network.links)
    found, _ = router(spec, routing, waits)
    drawn, _ = router(spec, "valiant")
    took = []

    def cost(links):
        if routing == "ugal_l":
            return waits[links[0]] * len(links) if links else 0
        first = [link for link in links if found.crosses[link]]
        return waits[first[0]] if found.groups else waits[links].sum() if links else 0

    for number, (source, target) in enumerate(pairs(network, 2)):
        going, other = (packet(each, source, target, number) for each in (found, drawn))
        drawn.decide(other)
        if other.via < 0:
            continue
        found.decide(going)
        minimal = cost(between(network, found, source, target))
        around = cost(detour(network, found, source, other.via, target))
        assert going.via == (-1 if minimal <= around else other.via)
        took.append(going.via >= 0)
    assert 0 < sum(took) < len(took)


def test_progressive_routing_decides_again_in_the_source_group_until_it_detours():
    spec = "dragonfly:2x3x1"
    network = topology_from_spec(spec)
    waits = np.zeros(network.links)
    found, _ = router(spec, "par", waits)
    far, other = next(
        (far, other)
        for far in range(network.nodes)
        for other in range(network.nodes)
        if region(found, far) != region(found, other)
        and [found.crosses[link] for link in between(network, found, far, other)]
        == [False, True, False]
    )
    going = packet(found, far, other)
    found.decide(going)
    assert (going.via, going.decided) == (-1, False)  # all idle: minimally, for now
    way = between(network, found, far, other)
    assert found.take(going, found.next_port(going)) == way[0]
    waits[way[1]] = 9.0  # the global link: its own router sees it
    found.next_port(going)
    assert going.decided
    assert going.via >= 0
    via = going.via
    going.decided, going.via = False, -1
    found.decide(going)
    assert going.via == via  # the intermediate group is drawn once
    waits[:] = 0.0
    going.decided, going.via, going.at = False, -1, found.home[other]
    found.decide(going)
    assert going.decided  # the source group is behind it


def test_a_detour_is_over_in_the_group_that_it_went_to():
    found, network = router("dragonfly:2x3x1", "valiant")
    for number, (source, target) in enumerate(pairs(network, 3)):
        going = packet(found, source, target, number)
        found.decide(going)
        if going.via < 0:
            continue
        via, taken = going.via, []
        while going.at != found.home[target]:
            taken.append(found.take(going, found.next_port(going)))
        assert taken == detour(network, found, source, via, target)


def test_sprayed_packets_choose_anew_at_every_place():
    """On a mesh 3 x 3 from corner to corner: of two minimal ports either with a half."""
    found, network = router("mesh:3x3", "spraying")
    often, number = np.zeros(network.links), 4000
    for each in range(number):
        going = packet(found, 0, 8, each)
        while going.at != 8:
            often[found.take(going, found.next_port(going))] += 1
    share = {}
    for link in np.flatnonzero(often):
        ends = int(network.link_from[link]), int(network.link_to[link])
        share[ends] = often[link] / number
    assert share == pytest.approx(
        {
            **dict.fromkeys([(0, 1), (0, 3), (5, 8), (7, 8)], 0.5),
            **dict.fromkeys([(1, 2), (1, 4), (3, 4), (3, 6), (4, 5), (4, 7), (2, 5), (6, 7)], 0.25),
        },
        abs=0.03,
    )


def test_of_minimal_ports_with_equal_queues_the_own_one_is_taken_then_the_first():
    spec = "mesh:2x2x2"
    network = topology_from_spec(spec)
    waits = np.zeros(network.links)
    found, _ = router(spec, "adaptive", waits)
    going = packet(found, 0, 7)
    ports = found.minimal_ports(going)
    own = found.port[found.row[7]][0]
    first, second = [port for port in ports if port != own]
    assert found.next_port(going) == own
    waits[found.links[0][own]] = 2.0
    assert found.next_port(going) == first
    waits[found.links[0][first]] = 1.0
    assert found.next_port(going) == second
    waits[found.links[0][second]] = 2.0
    assert found.next_port(going) == first
