"""Which links and virtual channels a packet asks for among finite buffers whose ways are chosen."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from hopmap.simulator import Parameters
from hopmap.simulator.reference.routing import Router
from hopmap.simulator.reference.ways import BufferedWays
from hopmap.simulator.routing.routes import routes_of
from hopmap.simulator.virtual_channels import channels_of
from hopmap.topologies import topology_from_spec
from hopmap.topologies.virtual_channels import waiting_cycle

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
