"""Escape classes: no ring, wherever packets are and wherever they go."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from hopmap.topologies import from_networkx, topology_from_spec
from hopmap.topologies.channel_classes import classes_by_place, dependencies, waiting_cycle
from hopmap.topologies.next_hops import next_hops

NEEDED = {
    "mesh:3x3": 1,
    "torus:5x4": 2,
    "torus:6x3,ties=parity": 2,
    "haec:5x3x2": 2,
    "fattree:3x3": 1,
    "dragonfly:2x4x2": 2,
    "dragonfly:1x4x2x4": 2,
}


def ring_of(network, classes=None):
    """A ring of the channels of all routes from everywhere, if there is one."""
    tables = next_hops(network, np.arange(network.nodes))
    classes = classes_by_place(network, tables) if classes is None else classes(tables)
    most = int(classes.max(initial=0)) + 1
    return waiting_cycle(*dependencies(tables, classes, most)), most


@pytest.mark.parametrize("spec", NEEDED)
def test_routes_from_everywhere_form_no_ring(spec):
    ring, classes = ring_of(topology_from_spec(spec))
    assert not len(ring)
    assert classes == NEEDED[spec]


@pytest.mark.parametrize("spec", [spec for spec in NEEDED if NEEDED[spec] > 1])
def test_with_one_class_they_would(spec):
    def alone(tables):
        return np.zeros(tables.port.shape, dtype=np.int16)

    assert len(ring_of(topology_from_spec(spec), alone)[0]) > 1


def test_on_any_other_network_it_is_the_hops_that_are_left():
    ring, classes = ring_of(from_networkx(nx.cycle_graph(6)))
    assert not len(ring)
    assert classes == 3
    assert ring_of(from_networkx(nx.path_graph(6)))[1] == 1
