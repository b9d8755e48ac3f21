"""Hilbert's curve: continuous on a cube, and close in the cube when close on the curve.

In three dimensions there are many; this is the thesis', a recursion over the octants of a cube
spanned by axes (u, v, w), each octant with its own axes (Bader: Space-Filling Curves, 2013,
section 8). In two dimensions it is unique but for symmetry, in four and more this is the one of
Skilling (Programming the Hilbert curve, AIP Conference Proceedings 707, 2004).

Source: HAEC thesis, section 3.3. O(nodes log nodes). On any box, skipping what is outside: where a
side is no power of two or shorter than the others the curve jumps at the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.mappers.mapper import mapper
from hopmap.topologies import Mapping, Topology
from hopmap.traces import Traffic

from .curve import along, coordinates, levels, on_box, order_by

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


@mapper("hilbert", source="HAEC thesis, section 3.3", presets={"thesis": {}}, needs=on_box)
def hilbert(traffic: Traffic, topology: Topology) -> Mapping:
    """Hilbert's curve, the thesis' variant in three dimensions."""
    axes = coordinates(topology, "hilbert")
    digits = octant_digits(axes) if len(axes) == 3 else skilling_digits(axes)
    return along(order_by(digits, topology), traffic, topology)


def octant_digits(axes: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
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


def skilling_digits(axes: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
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
