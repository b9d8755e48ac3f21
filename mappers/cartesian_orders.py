"""What all mappers of Cartesian grids make of a traffic that is one: starts for `auto`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..topologies import Mapping, MappingError, Topology
from ..traces import Traffic
from .cartesian import cartesian
from .factorisation import factorisation
from .gropp import gropp
from .hyperplane import hyperplane
from .kd_tree import kd_tree
from .mapper import MapperFunction
from .skewed_kd_tree import skewed_kd_tree
from .squarest_strips import squarest_strips
from .stencil_strips import stencil_strips

MAPPERS_OF_GRIDS: dict[str, MapperFunction] = {
    "kd_tree": kd_tree,
    "skewed_kd_tree": skewed_kd_tree,
    "squarest_strips": squarest_strips,
    "squarest_strips(carry=narrower)": partial(squarest_strips, carry="narrower"),
    "stencil_strips": stencil_strips,
    "hyperplane": hyperplane,
    "gropp": gropp,
    "factorisation": factorisation,
}


def cartesian_orders(
    traffic: Traffic, topology: Topology, rng: np.random.Generator
) -> Iterator[tuple[str, Mapping]]:
    """Map a grid by all mappers that take it; other traffic by none.

    The grid is looked for once, and the mappers get nothing but its metadata.
    """
    try:
        grid = cartesian(traffic, "auto")
    except MappingError:
        return
    metadata = {
        "dims": grid.dims,
        "stencil": grid.stencil,
        "stencil_bytes": grid.sizes,
        "periodic": grid.periodic,
    }
    bare = Traffic.from_pairs(traffic.ranks, [], [], [], [], metadata)
    for name, mapper in MAPPERS_OF_GRIDS.items():
        try:
            yield name, mapper(bare, topology, rng=rng)[grid.cells]
        except MappingError:
            continue
