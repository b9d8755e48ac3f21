"""MapLib's file of a mapping: a line for every node in use, with its coordinates and its ranks.

    sweep
    x_coord y_coord z_coord number_of_processes process_id(s)
    0 0 0 2 0 1

The first line is the mapper's name, lines are sorted by x, then y, then z.
Source: unibas-dmi-hpc/MapLib, mapper/mapping.py, and the mappings stored beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hopmap.topologies import MappingError, Topology

from .text import Place

HEADER = "x_coord y_coord z_coord number_of_processes process_id(s)"
_WHOLE = re.compile(r"[0-9]{1,18}")


def maplib_text(node_of: ArrayLike, topology: Topology) -> str:
    """Return the file's text, "hopmap" in place of a mapper's name."""
    _expect_three("--to maplib", topology)
    places = np.asarray(node_of)
    lines = ["hopmap", HEADER]
    for node in sorted(np.unique(places).tolist(), key=lambda node: topology.coords[node].tolist()):
        ranks = np.flatnonzero(places == node)
        lines.append(" ".join(map(str, (*topology.coords[node], len(ranks), *ranks))))
    return "\n".join(lines) + "\n"


def read_places(lines: Sequence[str], topology: Topology, name: str) -> list[Place]:
    """Return number, rank and node of what stands in the lines below the header."""
    _expect_three(name, topology)
    dims = topology.dims
    places: list[Place] = []
    for number, line in enumerate(lines, 3):
        cells = line.split()
        if not cells:
            continue
        whole = len(cells) > 3 and all(map(_WHOLE.fullmatch, cells))
        if not whole or len(cells) != 4 + int(cells[3]):
            raise MappingError(
                f"{name}: line {number} is {line[:40]!r}: expected x y z count and count ranks"
            )
        x, y, z, _, *ranks = map(int, cells)
        if not (x < dims[0] and y < dims[1] and z < dims[2]):
            raise MappingError(
                f"{name}: line {number}: node ({x}, {y}, {z}) is not in {topology.spec}"
            )
        places += [(number, rank, (z * dims[1] + y) * dims[0] + x) for rank in ranks]
    return places


def _expect_three(name: str, topology: Topology) -> None:
    if len(topology.dims) != 3:
        raise MappingError(f"{name}: MapLib mappings are three-dimensional, {topology.spec} is not")
