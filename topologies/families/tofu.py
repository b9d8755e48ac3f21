"""TofuD, the network of Fugaku: groups of 2 x 3 x 2 nodes on a torus of three dimensions.

A node has six coordinates (x, y, z, a, b, c) and ten links: two along X, Y, Z and B, which are
rings, one along A and C, which have two nodes each. Packets go in dimension order. Tofu's extended
dimension order routes A, B and C to a place that the sender chooses, then X, Y and Z, then A, B and
C to the target; here the place is the sender's own, so that X, Y and Z come first. Which one the
hardware takes by default is not published.

A job asks for a torus of one to three dimensions and gets groups of its own. The published
rule: neighbours in the job's torus are neighbours in TofuD, by a Hamiltonian cycle through one of
X, Y, Z and one of A, B, C for every dimension. Which cycle is not published. Here it goes out along
X or Z at A or C = 0 and back at 1, and along Y it goes out at B = 0 and winds back through
1 and 2, RIKEN's rank maps for QCD turned round. Groups are as few as possible; nodes left over stay
idle.

That this is near what Fugaku does is seen in measured times (HLC-Lab's, MPI of Fujitsu, at 1 MiB
and above, in times that a link of 6.34 GB/s takes for the buffer; ``order=YZX`` and ``YX``):
pairwise alltoall on 4x4x4 takes 2.70 and has a busiest link of 2.64 in the mean round here, 1.75
on a flat torus; on 64x64 18.9 and 19.5, and recursive doubling's allgather 4.15 and 3.99 (flat:
21.7), if Z has one group and a dimension is folded into X, A and C; 2.1 and 18.5 where X and Z have
four each.

Sources: Ajima et al., The Tofu Interconnect D (CLUSTER 2018); Ajima, Sumimoto and Shimizu, Tofu: a
6D mesh/torus interconnect for exascale computers (IEEE Computer 42, 2009); Ajima, High-dimensional
interconnect technology for the K computer and the supercomputer Fugaku (Fujitsu Technical Review,
2020); RIKEN-LQCD/qws, get_tofu_coord_openY.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import ceil, prod

import numpy as np

from hopmap.arrays import Ints
from hopmap.topologies.box_kernels import GRID, BoxRouter, FoldedRouter
from hopmap.topologies.topology import (
    AS_LINKS,
    LinkKind,
    Topology,
    TopologyError,
    by_x,
    check_size,
    times,
    whole,
)

from .grid import box, torus

GROUP = (2, 3, 2)
# Six interfaces, each as fast as a link (Ajima et al.: 6.8 GB/s), send in turns, a message through
# one; what comes in takes as long as through one of them. Buffers of 64 MiB are kept, buffers of
# 256 MiB are new in every call (both measured, benchmarks/trust).
END_POINTS: Mapping[str, str | float] = {
    "nic": "round_robin",
    "nic.rails": 6,
    "injection.bandwidth": AS_LINKS,
    "ejection.bandwidth": AS_LINKS,
    "collective.fresh_memory_threshold": 128 * 2**20,
}
LONGEST_X, LONGEST_YB = 24, 69  # groups of Fugaku along X, nodes along Y and B
ORDERS = tuple("".join(axes) for axes in (*permutations("XYZ"), *permutations("XY"), "X"))
TOFU_LINK = LinkKind(
    "link",
    bandwidth=6.8e9,
    latency=100e-9,
    sources=("Ajima et al., The Tofu Interconnect D (CLUSTER 2018)", "assumed"),
)


def tofu(
    sizes: Sequence[int],
    job: bool = False,
    *,
    slots: int = 1,
    ties: str = "direct",
    order: str = "",
) -> Topology:
    """TofuD of Fugaku: all of it by its groups of 12 nodes, or the torus that a job gets."""
    if job and ties != "direct":
        raise TopologyError(f"tofud: ties={ties} and job are mutually exclusive")
    if order and not job:
        raise TopologyError("tofud: order requires job")
    if job:
        return tofud_job(sizes, order=order, slots=slots)
    return tofud(sizes, slots=slots, ties=ties)


def tofud(groups: Sequence[int], *, slots: int = 1, ties: str = "direct") -> Topology:
    """TofuD, or a box of it, by its groups in X, Y and Z: 12 nodes each (2 x 3 x 2).

    Two groups have one link, as two nodes have. For ties half-way round a ring see `torus`.
    """
    if len(groups) != 3:
        raise TopologyError(f"tofud: {by_x(groups)}: expected groups along X, Y and Z, like 4x4x4")
    _check_groups(groups, slots)
    machine = torus((*groups, *GROUP), slots=slots, ties=ties)
    suffix = times(slots) + (f",ties={ties}" if ties != "direct" else "")
    return replace(machine, spec=f"tofud:{by_x(groups)}{suffix}", kinds=(TOFU_LINK,))


def tofud_job(shape: Sequence[int], *, order: str = "", slots: int = 1) -> Topology:
    """TofuD under a job that has asked for a torus of one to three dimensions.

    Nodes are numbered as the job numbers them; those behind them are in its groups but idle, with
    no slots. X, Y and Z are lines here: a box of groups, smaller than the machine, has no rings.

    `shape` is nodes along the job's X, Y and Z, as in ``node=4x4x4:torus``, `order` the axes of the
    job, first the one along which nodes are numbered first, as in ``rank-map-bynode=YZX``; XYZ when
    left out.

    Three dimensions are folded into XA, YB and ZC; two into XAC, with Z where X is too short, and
    YB, or the other way round where the second does not fit into Fugaku's YB; one into all six.
    """
    sizes = whole("tofud: job", *shape)
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise TopologyError(f"tofud: job={by_x(sizes)}: expected one to three sizes of at least 1")
    _check_groups([ceil(size / 2) for size in sizes], slots)
    axes = "XYZ"[: len(sizes)]
    order = order or axes
    if sorted(order) != list(axes):
        raise TopologyError(
            f"tofud: order={order}: expected each of {', '.join(axes)} once, the axes of the job"
        )
    rings = _rings(sizes)
    places = np.zeros((*sizes, 6), dtype=np.int64)
    for axis, ring in enumerate(rings):
        along = [1] * len(sizes)
        along[axis] = -1
        places += ring.reshape(*along, 6)
    # The first axis of the order is the fastest.
    fastest_last = ["XYZ".index(axis) for axis in reversed(order)]
    places = places.transpose(*fastest_last, -1).reshape(-1, 6)
    groups = (places[:, :3].max(axis=0) + 1).tolist()
    block = box("tofud", GRID, (*groups, *GROUP), np.array([False] * 4 + [True, False]), slots)
    place = np.asarray(np.ravel_multi_index(tuple(places.T), (*groups, *GROUP), order="F"))
    suffix = times(slots) + (f",order={order}" if order != axes else "")
    return replace(
        renumber_nodes(block, place),
        spec=f"tofud:job={by_x(sizes)}{suffix}",
        kinds=(TOFU_LINK,),
        parameters=END_POINTS,
    )


def _check_groups(groups: Sequence[int], slots: int) -> None:
    nodes = prod(GROUP) * prod(groups)
    check_size(f"tofud: {by_x(groups)} groups", nodes=nodes, links=0, slots=nodes * slots)


def _rings(sizes: Sequence[int]) -> list[Ints]:
    """Coordinates (x, y, z, a, b, c) along every axis of a job, shape (size, 6); zero elsewhere."""
    if len(sizes) == 3:
        x, y, z = sizes
        return [_double(x, 3, [(0, ceil(x / 2))]), _wound(y), _double(z, 5, [(2, ceil(z / 2))])]
    if len(sizes) == 2:
        turned = sizes[1] > LONGEST_YB >= sizes[0]
        long, short = reversed(sizes) if turned else sizes
        z = ceil(long / 4 / LONGEST_X)
        rings = [_double(long, 3, [(0, ceil(long / 4 / z)), (5, 2), (2, z)]), _wound(short)]
        return rings[::-1] if turned else rings
    groups = ceil(sizes[0] / prod(GROUP))
    x = round(groups ** (1 / 3))
    y = round((groups / x) ** (1 / 2))
    return [_double(sizes[0], 3, [(4, 3), (5, 2), (0, x), (1, y), (2, ceil(groups / x / y))])]


def _double(size: int, pair: int, axes: Sequence[tuple[int, int]]) -> Ints:
    """Ring out along the axes, each wound within the next, and back on the pair's other side.

    A ring of an odd number has one of its hops over a place that is left out.
    """
    half = ceil(size / 2)
    out = np.zeros((half, 6), dtype=np.int64)
    step = np.arange(half)
    turn = step.copy()
    for axis, length in axes:
        turn, at = np.divmod(step, length)
        out[:, axis] = np.where(turn % 2 == 0, at, length - 1 - at)
        step = turn
    back = out[::-1].copy()
    back[:, pair] = 1
    return np.concatenate((out, back))[:size]


def _wound(size: int) -> Ints:
    """Ring through Y and B: out at B = 0, back winding through 1 and 2, which 0 follows again.

    So that the second place is the one that is routed to first, as in the other dimensions:
    broadcasts by binomial and binary trees on 4x4x4 take 9.0 times then as measured, 8.0 else.
    """
    half = ceil(size / 3)
    winding = [(y, b) for y in range(half) for b in ((1, 2) if y % 2 == 0 else (2, 1))]
    if 3 * half - size == 1:
        del winding[-1]
    elif 3 * half - size == 2:
        del winding[1 : min(3, len(winding))]
    ring = [(0, 0), *((y, 0) for y in range(1, half)), *winding[::-1]]
    places = np.zeros((size, 6), dtype=np.int64)
    places[:, [1, 4]] = ring[:size]
    return places


def renumber_nodes(block: Topology, first: Ints) -> Topology:
    """Return a box with its nodes renumbered, these first; the others have no slots."""
    rest = np.ones(block.nodes, dtype=np.bool_)
    rest[first] = False
    node_at = np.concatenate((first, np.flatnonzero(rest)))
    number = np.empty(block.nodes, dtype=np.int32)
    number[node_at] = np.arange(block.nodes, dtype=np.int32)
    router = block.router
    assert isinstance(router, BoxRouter)
    slots = block.slots.copy()
    slots[len(first) :] = 0
    link_from, link_to = number[block.link_from], number[block.link_to]
    of_node = {name: getattr(router, name)[node_at] for name in ("coords", "ports")}
    folded = FoldedRouter(*router._replace(**of_node, link_to=link_to))
    return replace(block, slots=slots, link_from=link_from, link_to=link_to, router=folded)
