"""Axes of a space in which ranks are, from their distances to landmarks.

In a box, coordinates are the principal axes of squared distances: Pivot MDS (Brandes and Pich,
Eigensolver methods for progressive multidimensional scaling of large data, GD 2006). A box has two
or three, as many as come before the wider gap; if that is not wide, there is no box.

In a space that closes on itself, as a periodic mesh does, the squared distance along a ring is a
sum of waves. The first is four times as strong as the second, so that principal axes are the cosine
and sine of an angle. Their squares add up to the same everywhere, and no rank is in the middle.
Distances are averaged along a walk first. What known axes explain is taken away to find the next.

Axes of equal length come mixed. They are turned until coordinates are as independent as can be, as
they are along the sides of a box and on rings: FastICA, by kurtosis (Hyvarinen and Oja, Independent
component analysis, Neural Networks 13, 2000, section 6). O(pairs * landmarks).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Axis: TypeAlias = Floats | NDArray[np.complex128]  # a coordinate, or cosine and sine of an angle

SIDES, GAP = (2, 3), 2.0  # of a box; least ratio of two singular values
NORMAL = 3.0  # most fourth moment; it is 1.8 along the side of a box, more where some are far out
THIN = 1e-3  # singular value over the largest one that is none of an axis
MOST, MIXED = 3, 8  # axes where one closes; cosines and sines at a time: hexagons have three rings
FAINT = 0.03  # least singular value of an axis there over the largest
MAYBE = 1.5  # least ratio of two singular values where rings are looked for
# Most correlation of the squares of a cosine and a sine, which is -1 without noise, and for the
# first ring; part of the ranks that may be nearer than half to the middle of that.
ROUND, ROUNDER, HOLLOW = -0.2, -0.4, 0.015
STEPS = 10  # of the walk
WAVES = 3  # of an angle, and powers of a coordinate, that an axis explains
TURNS = 30


class Axes(NamedTuple):
    """Coordinates of ranks."""

    coords: Floats  # shape (ranks, dimensions)
    periods: Floats  # shape (dimensions,): 1 where an axis closes, else infinite


def open_axes(coords: Floats) -> Axes:
    """Axes of which none closes, by coordinates of shape (ranks, dimensions)."""
    return Axes(coords, np.full(coords.shape[1], np.inf))


def box_axes(apart: Floats, rng: np.random.Generator) -> Axes | None:
    """Coordinates in a box, from distances of shape (ranks, landmarks); None if there is no box."""
    square = _centred(apart**2)
    value, axes = _principal(square)
    dimensions = max(SIDES, key=lambda k: _gap(value, k))
    if _gap(value, dimensions) <= GAP:
        return None
    coords = _independent(square @ axes[:, :dimensions], rng)
    return None if (coords**4).mean(axis=0).max() > NORMAL else open_axes(coords)


def ring_axes(apart: Floats, walk: csr_array, rng: np.random.Generator) -> Axes | None:
    """Coordinates in a space that closes along one axis at least; None if there is none.

    - `apart`: distances, shape (ranks, landmarks).
    - `walk`: how often each pair is walked, shape (ranks, ranks).
    """
    talks, rest = _smoothed(apart, walk)
    found: list[Axis] = []
    largest = 0.0
    while len(found) < MOST:
        value, axes = _principal(rest)
        largest = largest or value[0]
        mixed = max(range(1, MIXED + 1), key=lambda k: _gap(value, k))
        if value[0] < FAINT * largest or _gap(value, mixed) <= MAYBE:
            break
        parts = _independent(rest @ axes[:, :mixed], rng)
        rings = _rings(parts, any(map(np.iscomplexobj, found)))
        for axis in rings or list(parts.T):
            unexplained = _unexplained(axis.real[:, None], found)
            if len(found) < MOST and (unexplained**2).sum() > (axis.real**2).sum() / 2:
                found.append(axis)
        rest = _unexplained(rest, found)
    closes = [np.iscomplexobj(axis) for axis in found]
    if not any(closes):
        return None
    coords = np.zeros((len(apart), len(found)))
    for axis, column in zip(found, coords.T, strict=True):
        column[talks] = _cut(axis) if np.iscomplexobj(axis) else axis
    return Axes(coords, np.where(closes, 1.0, np.inf))


def may_have_axes(apart: Floats, walk: csr_array) -> bool:
    """Whether distances to a few landmarks have few principal axes; see `ring_axes` for shapes."""
    value, _ = _principal(_smoothed(apart, walk)[1])
    return max(_gap(value, k) for k in range(SIDES[0], MIXED + 1)) > MAYBE


def _centred(square: Floats) -> Floats:
    square = square - square.mean(axis=0)
    centred: Floats = square - square.mean(axis=1)[:, None]
    return centred


def _smoothed(apart: Floats, walk: csr_array) -> tuple[Bools, Floats]:
    """Which ranks have peers, and squared distances where a walk ends that takes steps or not."""
    talks: Bools = walk.sum(axis=1) > 0
    square, near = apart[talks] ** 2, walk[talks][:, talks]
    total = near.sum(axis=1)[:, None]
    for _ in range(STEPS):
        square = (square + near @ square / total) / 2
    return talks, _centred(square)


def _principal(square: Floats) -> tuple[Floats, Floats]:
    """Singular values, largest first, and their axes."""
    value, axes = np.linalg.eigh(square.T @ square)
    return np.sqrt(np.maximum(value[::-1], 0.0)), axes[:, ::-1]


def _gap(value: Floats, axes: int) -> float:
    """Ratio of the last singular value of so many axes to the next."""
    return float(value[axes - 1] / max(value[axes], THIN * value[0], np.finfo(np.float64).tiny))


def _independent(points: Floats, rng: np.random.Generator) -> Floats:
    """Turn points until their coordinates are as independent as can be; all have variance 1."""
    value, axes = np.linalg.eigh(np.cov(points.T).reshape(points.shape[1], -1))
    white = (points - points.mean(axis=0)) @ axes / np.sqrt(value)
    turn = np.linalg.qr(rng.normal(size=axes.shape))[0]
    for _ in range(TURNS):
        now = white @ turn.T
        cubed = now * now * now
        left, _, right = np.linalg.svd(cubed.T @ white / len(white) - 3 * turn)
        turn = left @ right
    turned: Floats = white @ turn.T
    return turned


def _rings(parts: Floats, known: bool) -> list[Axis]:
    """Cosine and sine of every angle that two of the parts are, roundest first.

    - `known`: whether the space is known to close.
    """
    unused = set(range(parts.shape[1]))
    correlation = np.corrcoef(parts.T**2).reshape(len(unused), -1)
    rings: list[Axis] = []
    for i, k in sorted(combinations(range(len(correlation)), 2), key=lambda two: correlation[two]):
        square = (parts[:, [i, k]] ** 2).sum(axis=1)
        is_hollow = (square < square.mean() / 4).mean() < HOLLOW
        is_ring = correlation[i, k] < ROUNDER and is_hollow
        if {i, k} <= unused and (is_ring or ((known or rings) and correlation[i, k] < ROUND)):
            unused -= {i, k}
            rings.append(np.exp(1j * np.arctan2(parts[:, k], parts[:, i])))
    return rings


def _unexplained(square: Floats, axes: Sequence[Axis]) -> Floats:
    """Distances less what waves of the angles and powers of the coordinates explain."""
    rings = [axis for axis in axes if np.iscomplexobj(axis)]
    columns: list[Axis] = [np.ones(len(square))]
    for turns in product(range(-WAVES, WAVES + 1), repeat=len(rings)):
        if turns > (0,) * len(rings) and np.abs(turns).sum() <= WAVES:
            wave = np.prod([ring**k for ring, k in zip(rings, turns, strict=True)], axis=0)
            columns += [wave.real, wave.imag]
    columns += [axis**k for axis in axes if not np.iscomplexobj(axis) for k in range(1, WAVES + 1)]
    explained, _ = np.linalg.qr(np.stack(columns, axis=1))
    left: Floats = square - explained @ (explained.T @ square)
    return left


def _cut(ring: Axis) -> Floats:
    """Count turns, from 0 to 1, from the widest gap."""
    turn = np.angle(ring) / (2 * np.pi) % 1.0
    ordered = np.sort(turn)
    gap = np.diff(ordered, append=ordered[0] + 1.0)
    cut: Floats = (turn - ordered[(gap.argmax() + 1) % len(ordered)]) % 1.0
    return cut
