"""Cartesian grids on nodes, for tests of their mappers."""

from math import prod

from hypothesis import strategies as st

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic


def nodes_on_grid(dims, spec, mapper, stencil="star"):
    """Node of every cell, shape dims."""
    traffic = stencil_traffic(dims, stencil)
    return map_ranks(traffic, topology_from_spec(spec), mapper).reshape(dims)


@st.composite
def stencils_on_nodes(draw, longest=9, most_dimensions=4):
    """Dims, a node size that divides the grid, and a stencil."""
    dims = draw(st.lists(st.integers(1, longest), min_size=1, max_size=most_dimensions))
    ranks = prod(dims)
    size = draw(st.sampled_from([size for size in range(1, ranks + 1) if ranks % size == 0]))
    vector = st.tuples(*[st.integers(-2, 2)] * len(dims))
    return tuple(dims), size, draw(st.lists(vector, min_size=1, max_size=6))
