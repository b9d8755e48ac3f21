"""MinMD: Algorithm 2 by hand, and near the thesis' figures."""

import pytest

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, lu_traffic
from support.traffic import published_hops


def test_the_heaviest_pair_sits_at_the_centre_and_partners_next_to_it():
    """mesh:5, centre 2: (0, 1) first, then 2 next to 1, then 3 next to 0, the silent 4 last."""
    traffic = Traffic.from_pairs(5, [0, 1, 3], [1, 2, 0], [1, 1, 1], [30, 20, 10])
    node_of = map_ranks(traffic, topology_from_spec("mesh:5"), "minmd")
    assert node_of.tolist() == [2, 3, 4, 1, 0]


def test_the_limit_of_ranks_a_node_rises_only_when_all_nodes_are_full():
    traffic = Traffic.from_pairs(4, [0, 1, 2], [1, 2, 3], [1, 1, 1], [3, 2, 1])
    node_of = map_ranks(traffic, topology_from_spec("mesh:3*2"), "minmd")
    assert sorted(node_of[:3].tolist()) == [0, 1, 2]
    assert node_of[3] == node_of[2]  # the nearest node with room once the limit is two


@pytest.mark.parametrize(
    ("spec", "published"), [("mesh:4x4x4", 302), ("torus:4x4x4", 229), ("haec:4x4x4", 169)]
)
def test_lu_on_64_nodes(spec, published):
    """Both counted as published; ties decide, and ours are never worse."""
    traffic, topology = lu_traffic("C", 64), topology_from_spec(spec)

    def hops(mapper):
        return published_hops(traffic, topology, map_ranks(traffic, topology, mapper))

    assert 0.8 * published < hops("minmd") <= published
    assert hops("minmd(rule=connected)") < hops("minmd")
