"""Meshes, tori, hypercubes and the HAEC Box: nodes on a box, numbered with x fastest.

Node (x, y, z) has the index (z * dy + y) * dx + x. Routes go in dimension order.
A ring of two nodes is one link each way: its wrap-around link would double the direct one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hopmap.arrays import Bools
from hopmap.errors import expect_one_of
from hopmap.topologies.box_kernels import GRID, HAEC, BoxRouter
from hopmap.topologies.topology import (
    MOST_LEVELS,
    LinkKind,
    Topology,
    TopologyError,
    by_x,
    check_size,
    check_slots,
    times,
    whole,
)

# Speeds of no particular machine; the round figures are there to be replaced (--set, scenarios).
DEFAULT_LINK = LinkKind("link", bandwidth=10e9, latency=100e-9)
# No source gives the HAEC Box' link speeds; these follow its programme's targets,
# 250 and 100 Gbit/s.
HAEC_OPTICAL = LinkKind("optical", bandwidth=31.25e9, latency=100e-9)
HAEC_WIRELESS = LinkKind("wireless", bandwidth=12.5e9, latency=100e-9)

TIES = ("direct", "parity")


def mesh(dims: Sequence[int], *, slots: int = 1) -> Topology:
    """k-ary n-mesh of any shape.

    `dims` are nodes per dimension, x first; each has so many slots.
    """
    return box("mesh", GRID, dims, np.zeros(len(dims), dtype=np.bool_), slots, "direct")


def torus(dims: Sequence[int], *, slots: int = 1, ties: str = "direct") -> Topology:
    """k-ary n-cube of any shape; see `mesh`.

    Half-way round a ring, ties="direct" goes in the direction that does not wrap (as published),
    "parity" upwards from even source coordinates and downwards from odd ones (balanced).
    """
    return box("torus", GRID, dims, np.ones(len(dims), dtype=np.bool_), slots, ties)


def haec(dims: Sequence[int], *, slots: int = 1, ties: str = "direct") -> Topology:
    """HAEC Box: z boards, each a 2-D torus of optical links; see `mesh` and `torus`.

    Every node has a wireless link to every node of the boards next to its own. Across boards the
    first hop lands on the target's (x, y), the others go straight up or down. That is longer than
    the shortest path for some pairs, 7.9 % of 4x4x4.
    Source: HAEC thesis, section 2.4; MapLib, mapper/topology.py and mapper/routing.py.
    """
    if len(dims) != 3:
        raise TopologyError(f"haec: sizes {by_x(dims)}: expected three, boards last, like 4x4x4")
    return box("haec", HAEC, dims, np.array([True, True, False]), slots, ties)


def both_ways(topology: Topology) -> tuple[Topology, ...]:
    """Return a box twice, with routes that part half-way round a ring; once where there is no ring.

    Where the first goes upwards, the second goes downwards. Traffic that takes both in equal parts
    splits its ties evenly, as textbooks assume; no rule that looks at the source alone does.
    """
    router = topology.router
    if not isinstance(router, BoxRouter) or not router.wraps.any():
        return (topology,)
    # Counted from the next node on, the coordinates of a ring are even where they were odd.
    turned = np.where(router.wraps, (router.coords + 1) % router.dims, router.coords)
    other = router._replace(parity=True, coords=turned.astype(np.int32))
    return replace(topology, router=router._replace(parity=True)), replace(topology, router=other)


def box(
    name: str, family: int, dims: Sequence[int], rings: Bools, slots: int, ties: str = "direct"
) -> Topology:
    """Box of nodes with the links and routes of a family, GRID or HAEC.

    The spec begins with `name`. Dimensions are rings and not lines where `rings`, shape (d,), says
    so and they have three nodes.
    """
    dims = whole(f"{name}: sizes", *dims)
    if not dims or any(d < 1 for d in dims):
        raise TopologyError(f"{name}: sizes {by_x(dims)}: expected whole numbers of at least 1")
    check_slots(name, slots)
    expect_one_of(TopologyError, f"{name}: ties", ties, TIES)
    what = f"{name}: sizes {by_x(dims)}"
    if len(dims) > MOST_LEVELS:
        raise TopologyError(f"{what}: {len(dims)} dimensions: expected at most {MOST_LEVELS}")
    size = np.array(dims, dtype=np.int64)
    nodes = prod(int(d) for d in dims)
    boards = int(size[0] * size[1]) if family == HAEC else 0
    wireless = 2 * max(nodes - boards, 0) * boards
    links = 2 * sum(d > 1 for d in dims) * nodes + wireless
    check_size(what, nodes=nodes, links=links, slots=nodes * slots)

    # Numbers of nodes and links fit into 32 bits (`check_size`), which halves time and memory here.
    index = np.arange(nodes, dtype=np.int32)
    strides = [prod(dims[:k]) for k in range(len(dims))]
    coords = np.empty((nodes, len(dims)), dtype=np.int32)
    for k, stride in enumerate(strides):
        coords[:, k] = index // stride % dims[k]
    wraps = rings & (size > 2)

    # Optical or plain links: node after node, in dimension order, upwards before downwards.
    wired = 2 if family == HAEC else len(dims)
    neighbour = np.full((nodes, 2 * wired), -1, dtype=np.int32)
    for k in range(wired):
        for column, step in ((2 * k, 1), (2 * k + 1, -1)):
            there = coords[:, k] + step
            inside = (there >= 0) & (there < dims[k])
            reached = index + (there % dims[k] - coords[:, k]) * strides[k]
            neighbour[:, column] = np.where(inside | wraps[k], reached, -1)
    exists = neighbour >= 0
    ports = np.full((nodes, 2 * len(dims)), -1, dtype=np.int32)
    ports[:, : 2 * wired][exists] = np.arange(exists.sum(), dtype=np.int32)
    link_from = np.repeat(index, exists.sum(axis=1))
    link_to = neighbour[exists]
    link_kind = np.zeros(len(link_to), dtype=np.uint8)

    if family == HAEC:
        # Upwards: nodes of all boards but the last, each to the whole board above; then downwards.
        lower = np.repeat(index[: nodes - boards], boards)
        place = np.tile(np.arange(boards, dtype=np.int32), nodes - boards)
        above = (lower // boards + 1) * boards + place
        upper = np.repeat(index[boards:], boards)
        below = (upper // boards - 1) * boards + place
        ports[:, 4] = len(link_to)
        ports[:, 5] = len(link_to) + len(lower)
        link_from = np.concatenate((link_from, lower, upper))
        link_to = np.concatenate((link_to, above, below))
        link_kind = np.concatenate((link_kind, np.ones(2 * len(lower), dtype=np.uint8)))

    suffix = times(slots) + (f",ties={ties}" if ties != "direct" else "")
    return Topology(
        spec=f"{name}:{by_x(dims)}{suffix}",
        slots=np.full(nodes, slots, dtype=np.int64),
        link_from=link_from,
        link_to=link_to,
        link_kind=link_kind,
        kinds=(HAEC_OPTICAL, HAEC_WIRELESS) if family == HAEC else (DEFAULT_LINK,),
        router=BoxRouter(family, size, wraps, coords, ports, link_to, ties == "parity"),
    )


def hypercube(dimensions: int, *, slots: int = 1) -> Topology:
    """2-ary n-cube; e-cube routing, lowest dimension first.

    Bit k of a node's number is its coordinate in dimension k. Routes correct the lowest bit that
    differs first (e-cube, which is dimension order). Source: Dally and Towles, Principles and
    Practices of Interconnection Networks (2004), 3 and 8.
    """
    (dimensions,) = whole("hypercube: dimensions", dimensions)
    if not 1 <= dimensions <= 20:
        raise TopologyError(f"hypercube: {dimensions} dimensions: expected 1 to 20")
    lines = np.zeros(dimensions, dtype=np.bool_)
    cube = box("hypercube", GRID, [2] * dimensions, lines, slots)
    return replace(cube, spec=f"hypercube:{dimensions}{times(slots)}")
