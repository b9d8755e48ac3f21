"""Ranks along a curve through a box of nodes: `scan`, `peano`, `gray` and `hilbert`.

A curve is an order of the nodes, here always a sort by the curve's digits, so that any box works:
the curve runs through the enclosing cube (a power of two a side, where it needs one) and the points
outside the box are skipped. For Hilbert's curve on a box of powers of two that is the compact
Hilbert index of Hamilton and Rau-Chaplin (2008). Axes of one node are left out first, so that
8x8x1 is an 8x8 box. O(nodes log nodes).

Source: HAEC thesis, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopmap.arrays import Ints
from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.traces import Traffic

from .node_orders import along

# Octant (u, v, w) in the order of the curve; its axes as 1, 2, 3 for u, v, w, negative if reversed.
_OCTANTS = (
    ((0, 0, 0), (3, 1, 2)),
    ((0, 1, 0), (2, 3, 1)),
    ((1, 1, 0), (2, 3, 1)),
    ((1, 0, 0), (-1, -2, 3)),
    ((1, 0, 1), (-1, -2, 3)),
    ((1, 1, 1), (2, -3, -1)),
    ((0, 1, 1), (2, -3, -1)),
    ((0, 0, 1), (-3, 1, -2)),
)


def coordinates(topology: Topology, curve: str) -> list[Ints]:
    """Coordinates of all nodes of a box, one array per axis of more than one node, x first."""
    if not topology.dims:
        raise MappingError(
            f"mapper {curve}: {topology.spec} has no coordinates for a curve to run through: "
            "expected a mesh, a torus or a HAEC Box"
        )
    return [
        topology.coords[:, axis].astype(np.int64)
        for axis, nodes in enumerate(topology.dims)
        if nodes > 1
    ]


def on_box(name: str, _: Traffic, topology: Topology) -> None:
    """Raise `MappingError` unless the topology is a box of nodes."""
    coordinates(topology, name)


@mapper("scan", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def scan(traffic: Traffic, topology: Topology) -> Mapping:
    """Rows to and fro (boustrophedon), continuous on any box.

    One path that turns round at the end of every row, plane, ... Source: Mokbel, Aref and Kamel,
    Performance of multi-dimensional space-filling curves (2002). O(nodes).
    """
    digits: list[Ints] = []
    behind = np.zeros(topology.nodes, dtype=np.int64)  # rows, planes, ... before this node's
    for axis in reversed(coordinates(topology, "scan")):
        nodes = int(axis.max()) + 1
        digit = np.where(behind % 2 == 0, axis, nodes - 1 - axis)
        digits.append(digit)
        behind = behind * nodes + digit
    return along(order_by(digits, topology), traffic, topology)


@mapper("peano", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def peano(traffic: Traffic, topology: Topology) -> Mapping:
    """Z order (Morton): the bits of the coordinates interleaved.

    Peano is what the field calls the order of Morton (1966). Bit j of x, y, z, ... is bit d*j,
    d*j + 1, d*j + 2, ... of the position on the curve. Source: Mokbel, Aref and Kamel (2002).
    """
    axes = coordinates(topology, "peano")
    digits = [axis >> level & 1 for level in levels(axes) for axis in reversed(axes)]
    return along(order_by(digits, topology), traffic, topology)


@mapper("gray", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def gray(traffic: Traffic, topology: Topology) -> Mapping:
    """Gray-code order: one bit of the interleaved coordinates changes a step.

    The position r has the Gray code g = r xor (r >> 1); its bits are dealt to x first and then to
    the other axes from the last to the second (x, z, y), lowest bits first; each coordinate is the
    Gray-decoded value of its bits. Source: Faloutsos, Gray codes for partial match and range
    queries (1988); the order of the axes is the thesis'.
    """
    axes = coordinates(topology, "gray")
    coded = [axis ^ axis >> 1 for axis in axes]
    digits = []
    bit = np.zeros(topology.nodes, dtype=np.int64)
    for level in levels(axes):
        # From the highest bit of g down: y, z, ..., x; decoding r is a running xor.
        for code in (*coded[1:], *coded[:1]):
            bit = bit ^ code >> level & 1
            digits.append(bit)
    return along(order_by(digits, topology), traffic, topology)


@mapper("hilbert", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def hilbert(traffic: Traffic, topology: Topology) -> Mapping:
    """Hilbert's curve, the thesis' variant in three dimensions.

    It is continuous on a cube, and points close on it are close in the cube. In three dimensions
    there are many; the thesis' is a recursion over the octants of a cube spanned by axes (u, v, w),
    each octant with its own axes (Bader: Space-Filling Curves, 2013, section 8). In two dimensions
    it is unique but for symmetry, in four and more this is the one of Skilling (Programming the
    Hilbert curve, AIP Conference Proceedings 707, 2004). Where a side is no power of two or shorter
    than the others the curve jumps at the gaps.
    """
    axes = coordinates(topology, "hilbert")
    digits = octant_digits(axes) if len(axes) == 3 else skilling_digits(axes)
    return along(order_by(digits, topology), traffic, topology)


def octant_digits(axes: Sequence[Ints]) -> list[Ints]:
    """Octant number of every point on every level, the coarsest first."""
    number = np.zeros((2, 2, 2), dtype=np.int64)
    turn = np.zeros((8, 3), dtype=np.int64)
    reverse = np.zeros((8, 3), dtype=np.int64)
    for index, (octant, spanned) in enumerate(_OCTANTS):
        number[octant] = index
        turn[index] = [abs(axis) - 1 for axis in spanned]
        reverse[index] = [axis < 0 for axis in spanned]
    points = np.stack(list(axes), axis=1)
    # Of every point's current cube: which coordinate u, v, w is, and whether it is reversed.
    axis_of = np.tile(np.arange(3), (len(points), 1))
    reversed_ = np.zeros_like(axis_of)
    digits = []
    for level in levels(axes):
        side = np.take_along_axis(points, axis_of, axis=1) >> level & 1 ^ reversed_
        digit = number[side[:, 0], side[:, 1], side[:, 2]]
        reversed_ = np.take_along_axis(reversed_, turn[digit], axis=1) ^ reverse[digit]
        axis_of = np.take_along_axis(axis_of, turn[digit], axis=1)
        digits.append(digit)
    return digits


def skilling_digits(axes: Sequence[Ints]) -> list[Ints]:
    """Bits of the Hilbert index in any number of dimensions, the highest first.

    Skilling's AxestoTranspose, on all points at once.
    """
    x = [axis.copy() for axis in axes]
    for level in levels(axes):
        lower = (1 << level) - 1
        for i in range(len(x)):
            high = x[i] >> level & 1 == 1
            exchange = np.where(high, 0, (x[0] ^ x[i]) & lower)
            x[0] = np.where(high, x[0] ^ lower, x[0] ^ exchange)
            if i > 0:
                x[i] = x[i] ^ exchange
    for i in range(1, len(x)):
        x[i] = x[i] ^ x[i - 1]
    flip = np.zeros_like(x[0]) if x else 0
    for level in levels(axes):
        flip = np.where(x[-1] >> level & 1 == 1, flip ^ (1 << level) - 1, flip)
    x = [part ^ flip for part in x]
    return [part >> level & 1 for level in levels(axes) for part in x]


def levels(axes: Sequence[Ints]) -> range:
    """Bit numbers of the enclosing cube's coordinates, highest first."""
    bits = max((int(axis.max()).bit_length() for axis in axes), default=0)
    return range(bits - 1, -1, -1)


def order_by(digits: Sequence[Ints], topology: Topology) -> Ints:
    """Nodes sorted by their digits, the first array being the most significant."""
    if not digits:
        return np.arange(topology.nodes)
    return np.lexsort(tuple(digits)[::-1])
