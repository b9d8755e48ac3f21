"""What networks are made of: closed forms of links, switches and bisections."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.topologies import parts_of, topology_from_spec, torus
from support import about


def test_links_switches_and_bisections_are_those_of_the_textbook():
    """In links of unit bandwidth: k^(n-1) of a mesh, twice that of a torus, N / 2 of hypercubes
    and of full fat trees; with one parent to four children and one link, a quarter of the last."""
    for spec, switches, links, across in (
        ("mesh:8x8", 0, 112, 8),
        ("mesh:4x8", 0, 52, 4),
        ("torus:4x4x4", 0, 192, 32),
        ("torus:4x8", 0, 64, 8),
        ("torus:8x4", 0, 64, 8),
        ("hypercube:6", 0, 192, 32),
        ("fattree:4x4x4", 48, 192, 32),
        ("fattree:4x4:1x1", 5, 20, 2),
        ("fattree:4x4:1x2", 6, 24, 4),
        ("cluster:16*1", 1, 16, 8),
    ):
        with about(spec):
            network = topology_from_spec(spec)
            parts, unit = parts_of(network), network.kinds[0].bandwidth
            assert (parts.nodes, parts.switches) == (network.nodes, switches)
            assert sum(parts.links.values()) == links
            assert parts.bisection == pytest.approx(across * unit, rel=1e-5)


def test_bandwidths_of_kinds_count():
    """Two boards of a HAEC Box: the halves by board are joined by what is wireless."""
    box = topology_from_spec("haec:4x4x2")
    (wireless,) = (k for k, kind in enumerate(box.kinds) if kind.name == "wireless")
    between = int((box.link_kind == wireless).sum()) // 2
    parts = parts_of(box)
    optical = {kind.name: kind.bandwidth for kind in box.kinds}["optical"]
    assert parts.links["wireless"] == between
    rows = 8 * 2 * optical  # of the halves by x or y: two rings of four for each row of a board
    assert parts.bisection <= min(rows + between * box.kinds[wireless].bandwidth, 1e15)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3))
def test_no_halves_by_a_coordinate_are_joined_by_less(dims):
    network = torus(dims)
    least = parts_of(network).bisection
    bandwidth = network.kinds[0].bandwidth
    for column in network.coords.T:
        half = np.zeros(network.nodes, dtype=bool)
        half[np.argsort(column, kind="stable")[: network.nodes // 2]] = True
        crossing = (half[network.link_from] & ~half[network.link_to]).sum() * bandwidth
        assert least <= crossing


def test_a_price_adds_up_what_a_network_is_made_of():
    parts = parts_of(topology_from_spec("haec:4x4x4"))
    prices = {"node": 1000, "switch": 7, "link": 2, "link.wireless": 10}
    assert parts.price(prices) == 64 * 1000 + 2 * 128 + 10 * parts.links["wireless"]
    tree = parts_of(topology_from_spec("fattree:4x4x4"))
    assert tree.price({"switch": 100}) == 4800
    assert tree.price({}) == 0


def test_one_node_and_a_huge_network_have_no_bisection():
    assert parts_of(topology_from_spec("mesh:1")).bisection is None
    assert parts_of(topology_from_spec("dragonfly:16x32x17x74")).bisection is None
