"""What a packet chooses at a place, from its rules: draws, queues of ways, detours, ties."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.simulator import Parameters
from hopmap.simulator.model import mix_hash
from hopmap.simulator.reference.routing import BufferedWays, Router
from hopmap.simulator.routes import channels_of, routes_of
from hopmap.topologies import topology_from_spec
from hopmap.topologies.channel_classes import waiting_cycle

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
    return mix_hash(mix_hash(SEED, message), number)


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


DETOURS = {
    ("mesh:3x3", "valiant"): 2,
    ("torus:5x3", "ugal_l"): 4,
    ("fattree:3x3", "ugal_g"): 2,
    ("dragonfly:1x3x1", "valiant"): 3,
    ("dragonfly:2x3x1", "ugal_l"): 3,
    ("dragonfly:1x4x1", "par"): 4,
}


def ways_on(spec, routing, channels):
    """What packets ask, and the network."""
    network = topology_from_spec(spec)
    parameters = Parameters(
        network_routing=routing, network_buffer=4, network_virtual_channels=channels
    )
    routes = routes_of(network, np.arange(network.nodes), parameters)
    links = [
        SimpleNamespace(number=link, credits=[4] * channels)
        for link in range(network.links + 2 * network.nodes)
    ]
    found = BufferedWays(
        Router(routes, 0, lambda _: 0.0),
        channels_of(network, routes, parameters),
        links,
        channels,
        network.links + network.nodes,
    )
    return found, network


def walked(found, packet, most):
    """Channels, by link and class, that a packet takes between places."""
    taken = []
    while packet.at != found.routes.home[packet.target]:
        ((link, lanes),) = found.wishes(packet)
        taken.append(link.number * most + lanes.start)
        packet.at = found.end_of[link.number]
    return taken


@pytest.mark.parametrize(("spec", "routing"), DETOURS)
def test_no_ring_of_channels_wherever_packets_go_first_and_whenever_they_decide(spec, routing):
    """All ways that a packet can take: minimally, or from any of its places by any node."""
    most = DETOURS[spec, routing]
    found, network = ways_on(spec, routing, most)
    routes = found.routes
    region = [routes.region[routes.home[node]] for node in range(network.nodes)]
    progressive = routing == "par"

    def decide(packet):
        """Instead of draws and queues: go on minimally so often, then by the given node."""
        away = routes.region[packet.at] != region[packet.target] or not routes.groups
        packet.decided = not (away and progressive and packet.minimal > 0)
        if packet.decided and away:
            packet.via = packet.by
        packet.minimal -= 1

    routes.decide = decide
    ways = []
    for source, target, by in product(range(network.nodes), repeat=3):
        if routes.groups and region[by] in (region[source], region[target]):
            by = -1
        for minimal in range(3 if progressive else 1):
            packet = SimpleNamespace(by=by, minimal=minimal)
            routes.begin(packet, source, target)
            packet.ahead = []
            ways.append(walked(found, packet, most))
    indptr = np.cumsum([0] + [len(way) for way in ways])
    channels = np.concatenate(ways).astype(np.int64)
    assert not len(waiting_cycle(indptr, channels))
    assert len(waiting_cycle(indptr, channels // most)) > 0 or spec == "fattree:3x3"
    assert set(channels % most) == set(range(most))


@pytest.mark.parametrize(
    ("routing", "minimally", "around"),
    [("valiant", [], [0, 0, 1, 1, 2]), ("ugal_l", [1, 1, 2], [0, 0, 1, 1, 2]),
     ("par", [0, 2, 3], [1, 1, 2, 2, 3])],
)  # fmt: skip
def test_on_a_dragonfly_classes_say_how_far_a_packet_is(routing, minimally, around):
    """To the intermediate group, up to the target's, within it: local and global links in turn.
    With `par` one more before, for links of the source group that an undecided packet takes."""
    most = 4 if routing == "par" else 3
    found, network = ways_on("dragonfly:1x4x1", routing, most)
    routes, seen = found.routes, {}
    home_of = [routes.region[routes.home[node]] for node in range(network.nodes)]

    def decide(packet):
        away = routes.region[packet.at] != home_of[packet.target]
        packet.decided = not (away and routing == "par" and packet.by < 0)
        packet.via = packet.by

    routes.decide = decide
    for source, target, by in product(range(network.nodes), repeat=3):
        for via in {-1, by} if routing != "valiant" else {by}:
            groups = [home_of[node] for node in (source, target, via)]
            if len(set(groups)) < 3 - (via < 0):
                continue
            packet = SimpleNamespace(by=via)
            routes.begin(packet, source, target)
            packet.ahead = []
            classes = [channel % most for channel in walked(found, packet, most)]
            kind = via >= 0
            seen[kind] = max(seen.get(kind, []), classes, key=len)
    assert seen.get(False, []) == minimally
    assert seen[True] == around


def test_of_links_with_equal_room_a_packet_would_rather_have_its_own():
    """Up a fat tree, which is another for another target."""
    found, network = ways_on("fattree:3x3", "adaptive", 1)
    first = []
    for target in range(3, network.nodes):
        packet = SimpleNamespace()
        found.routes.begin(packet, 0, target)
        packet.ahead = []
        first.append(found.wishes(packet)[0][0].number)
        assert first[-1] == network.routes(0, target)[1][1]
    assert len(set(first)) == 3


def test_a_packet_would_rather_have_the_link_with_most_room_and_the_escape_channel_last():
    """On a torus two escape channels and the adaptive ones behind; of equals its own link."""
    found, network = ways_on("torus:5x5", "adaptive", 4)
    source, target = 0, 6
    packet = SimpleNamespace()
    found.routes.begin(packet, source, target)
    own, other = (
        int(np.flatnonzero((network.link_from == source) & (network.link_to == there))[0])
        for there in (1, 5)
    )
    assert network.routes(source, target)[1][0] == own

    def wishes():
        return [(link.number, lanes) for link, lanes in found.wishes(packet)]

    escape = (own, range(1, 2))  # no wrap-around link is ahead
    assert wishes() == [(own, range(2, 4)), (other, range(2, 4)), escape]
    found.links[own].credits[:] = [9, 9, 1, 4]
    assert wishes() == [(other, range(2, 4)), (own, range(2, 4)), escape]
    found.links[other].credits[:] = [9, 9, 4, 1]
    assert wishes() == [(own, range(2, 4)), (other, range(2, 4)), escape]
    around = SimpleNamespace()
    found.routes.begin(around, 4, 1)
    assert found.wishes(around)[-1][1] == range(1)  # from 4 to 0 it wraps around
