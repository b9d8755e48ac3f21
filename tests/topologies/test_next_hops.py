"""Tables of next hops against the topology's own routes."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.topologies import TopologyError, topology_from_spec
from hopmap.topologies import next_hops as module
from hopmap.topologies.families.graph import from_routes
from hopmap.topologies.next_hops import has_groups, next_hops

SPECS = [
    *("mesh:3x3", "torus:5x4,ties=parity", "haec:2x3x3", "hypercube:3", "cluster:3*2+1"),
    *("fattree:4x4", "fattree:3x3:2x2:1x2", "dragonfly:2x4x2", "dragonfly:2x4x2x4"),
    *("dragonfly+:2x2x2x3", "tree:4:3@1:9"),
]


@pytest.mark.parametrize("spec", SPECS)
def test_following_ports_is_the_route_and_counts_its_links(spec):
    network = topology_from_spec(spec)
    tables = next_hops(network, np.arange(network.nodes))
    for source in range(network.nodes):
        for target in range(network.nodes):
            if source == target:
                continue
            links, here = [], tables.home[source]
            if tables.up[source] >= 0:
                links.append(tables.up[source])
            left = int(tables.hops[tables.home_row[tables.home[target]], here])
            while (port := tables.port[tables.row[target], here]) >= 0:
                assert tables.hops[tables.home_row[tables.home[target]], here] == left
                number = tables.starts[here] + port
                links.append(tables.links[number])
                here, left = tables.ends[number], left - 1
            assert left == 0
            if tables.down[target] >= 0:
                links.append(tables.down[target])
            assert links == network.routes(source, target)[1].tolist()


def test_groups_are_those_of_dragonflies():
    for spec in SPECS:
        network = topology_from_spec(spec)
        tables = next_hops(network, np.arange(network.nodes))
        assert has_groups(tables) == spec.startswith("dragonfly")
    tables = next_hops(topology_from_spec("dragonfly:2x4x2"), np.arange(72))
    assert (tables.region[tables.home] == np.arange(72) // 8).all()
    tables = next_hops(topology_from_spec("dragonfly+:2x2x2x3"), np.arange(12))
    assert tables.region.tolist() == [0, 0, 1, 1, 2, 2] * 2


def test_a_node_whose_only_link_goes_to_a_node_forwards_as_others_do():
    tables = next_hops(topology_from_spec("mesh:3"), np.arange(3))
    assert tables.home.tolist() == [0, 1, 2]
    assert (tables.up == -1).all()
    assert (tables.down == -1).all()


def test_only_destinations_in_use_have_rows():
    tables = next_hops(topology_from_spec("fattree:4x4"), np.array([7, 2, 3]))
    assert tables.port.shape == (3, 8)
    assert tables.hops.shape == (2, 8)
    assert np.flatnonzero(tables.row >= 0).tolist() == [2, 3, 7]


def test_what_has_no_tables_is_refused_in_one_line(monkeypatch):
    pair = from_routes([1, 1], [(1e9, 0.0)] * 2, {(0, 1): [0], (1, 0): [1]}, "listed")
    with pytest.raises(TopologyError, match="listed: routes are known from node to node alone"):
        next_hops(pair, np.arange(2))
    for spec in ("torus:4x4", "fattree:2x4:1x2"):  # without a link, some routes go round it
        with pytest.raises(TopologyError, match=r"known from node to node alone.*links that are"):
            next_hops(topology_from_spec(f"failed:links=1@{spec}"), np.arange(8))
    monkeypatch.setattr(module, "MOST_BYTES", 4 * 16 * 16 - 1)
    with pytest.raises(TopologyError, match="torus:4x4: tables of next hops for 16 destinations"):
        next_hops(topology_from_spec("torus:4x4"), np.arange(16))
