"""Products of shares: sizes of messages in programs that cut a grid of points into blocks.

n points on p ranks in a line are n div p each, and one more for the first n mod p. A message has
as many elements as a product of such shares, of a rank's own coordinates or, where p x p ranks
have cells along diagonals (the multi-partition of NAS SP and BT), of sums and differences of these
and of the step. Points on the border of the whole grid may be left out.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints

from .partners import Place

FEW = 24  # values of a size by which factors are looked up, before all are compared
MOST_POINTS = 4096  # of an edge of a grid whose cells are added up
OFFSETS = (0, 1, -1, 2, -2)  # elements that a side has besides a rank's share


class Factor(NamedTuple):
    """What a factor is at each size and at the target, shapes (ranks, iterations).

    Two are multiplied if only one has an offset, or both the same; one without any stands alone.
    """

    at: tuple[Ints, ...]
    offset: int | None
    whole: bool = False  # the same for all ranks: points div parts


def share(points: int | Ints, parts: int, place: Ints) -> Ints:
    """Points of a part; the first ones have what is left over."""
    has: Ints = points // parts + (place < points % parts)
    return has


def cells(place: Place) -> list[tuple[Ints, Ints]]:
    """Coordinates of a rank's cells in a multi-partition, shapes (ranks, iterations).

    Rank (i, j) of p x p has cells (i + c, j - c, c), modulo p. A sweep along an axis takes the cell
    at 0, 1, ... there, or back from the end; a message is of this cell or of one up to two further.
    Listed are its coordinates in the two other dimensions, sweep by sweep.
    """
    i, j, p = place.coords[:, 0, None], place.coords[:, 1, None], place.dims[0]
    found = []
    for axis, way, ahead in product(range(3), (1, -1), range(-2, 3)):
        at = way * place.t[None, :] + ahead
        c = (at - i, j - at, at + 0 * i)[axis]
        cell = [(i + c) % p, (j - c) % p, c % p]
        del cell[axis]
        found.append((cell[0], cell[1]))
    return found


def factors(points: int, places: list[Place], diagonal: bool) -> list[Factor]:
    """Shares of so many points, with and without the border, each only once; 1 is the first.

    If `diagonal`, faces of the cells of a multi-partition are among them.
    """
    found: dict[bytes, Factor] = {}

    def add(offset: int | None, arrays: list[Ints], whole: bool = False) -> None:
        if min(int(a.min(initial=1)) for a in arrays) > 0:
            key = b"".join(a.tobytes() for a in arrays)
            found.setdefault(key, Factor(tuple(arrays), offset, whole))

    def shares(at: Ints, length: int, inner: bool) -> Ints:
        border = (at == 0).astype(np.int64) + (at == length - 1)
        inside: Ints = share(points, length, at) - inner * border
        return inside

    add(0, [np.ones((len(p.coords), p.iterations), dtype=np.int64) for p in places])
    for more, axis in product(OFFSETS, range(len(places[0].dims))):
        own = [(p.coords[:, axis, None] + 0 * p.t, p.dims[axis]) for p in places]
        for inner in (False, True):
            add(more, [shares(at, length, inner) + more for at, length in own])
        add(more, [0 * at + points // length + more for at, length in own], True)
    if diagonal:
        for pairs in zip(*map(cells, places), strict=True):
            for inner in (False, True):
                faces = [
                    shares(one, p.dims[0], inner) * shares(other, p.dims[0], inner)
                    for (one, other), p in zip(pairs, places, strict=True)
                ]
                add(None, faces)
    return list(found.values())


def products(values: list[Ints], table: list[Factor]) -> list[tuple[Ints, int]]:
    """Return what products of two factors that fit the sizes of messages are at the target.

    `values` is an array (ranks, iterations) for each size of the program; `table` has the factors
    at the same sizes, then at the target. With each different product stands the whole number that
    it is multiplied by at all sizes.
    """
    v = np.concatenate([each.ravel() for each in values])
    if v.min(initial=1) <= 0:
        return []
    flat = [np.concatenate([a.ravel() for a in factor.at[:-1]]) for factor in table]
    some = np.unique(np.linspace(0, len(v) - 1, FEW).astype(np.int64))
    some = np.unique(np.concatenate((some, [np.argmin(v), np.argmax(v)])))

    def key(row: Floats) -> bytes:
        return bytes(np.rint(row / row[0] * 1e9).tobytes())

    by_key: dict[bytes, list[int]] = {}
    for number, row in enumerate(flat):
        by_key.setdefault(key(row[some].astype(np.float64)), []).append(number)
    found: dict[bytes, tuple[Ints, int]] = {}
    wholes: dict[bytes, tuple[Ints, int]] = {}  # only where a rank's own share is not it
    for number, row in enumerate(flat):
        for other in by_key.get(key(v[some] / row[some]), []):
            offsets = {table[number].offset, table[other].offset}
            if other > number or len(offsets - {0}) > 1 or (None in offsets and other):
                continue
            both = row * flat[other]
            unit, rest = divmod(int(v[0]), int(both[0]))
            if rest == 0 and np.array_equal(unit * both, v):
                told = unit * table[number].at[-1] * table[other].at[-1]
                whole = table[number].whole or table[other].whole
                (wholes if whole else found).setdefault(told.tobytes(), (told, unit))
    return list((found or wholes).values())


def divides(points: int, places: list[Place]) -> bool:
    """Whether it is known who has what is left over at the target, the last of `places`."""
    *sources, target = places
    left = any(points % length for place in sources for length in place.dims)
    return left or not any(points % length for length in target.dims)


def points_from(values: list[Ints], places: list[Place]) -> set[int]:
    """Points of a line that sizes which differ by one element tell, where the last of them are."""
    found = set()
    for v, place in zip(values, places, strict=False):
        sizes = np.unique(v)
        if len(sizes) != 2 or sizes[0] <= 0:
            continue
        unit = int(sizes[1] - sizes[0])
        for axis, parts in enumerate(place.dims):
            at = np.repeat(place.coords[:, axis, None], place.iterations, axis=1)
            more, less = at[v == sizes[1]], at[v == sizes[0]]
            if sizes[0] % unit or more.max() >= less.min():
                continue
            base = int(sizes[0]) // unit
            for left, offset in product(range(int(more.max()) + 1, int(less.min()) + 1), OFFSETS):
                if 0 < left < parts and base - offset > 0:
                    found.add((base - offset) * parts + left)
    return found


def cell_sums(values: list[Ints], places: list[Place]) -> tuple[list[Ints], set[int]]:
    """Sizes of faces of all cells of a rank of a multi-partition, those at one end left out.

    Returned are the different ones that fit, at the target (ranks, iterations), and the edges of
    the grid by which they do.
    """
    found: dict[bytes, Ints] = {}
    known: set[int] = set()
    most = max(place.dims[0] for place in places)
    start = np.arange(most, MOST_POINTS)
    for axis, high in product(range(3), (False, True)):
        points, unit = start, None
        for v, place in zip(values, places, strict=False):
            area = _faces(points, place, axis, high)
            first = v[0, 0] if unit is None else unit * area[:, 0]
            if unit is None:
                fits = (area[:, 0] > 0) & (first % np.maximum(area[:, 0], 1) == 0)
                unit = first // np.maximum(area[:, 0], 1)
            else:
                fits = first == v[0, 0]
            fits &= (unit[:, None] * area == v[:, 0]).all(axis=1)
            points, unit = points[fits], unit[fits]
        for n, each in zip(points.tolist(), unit.tolist() if unit is not None else [], strict=True):
            if divides(n, places):
                known.add(n)
                told = each * _faces(np.array([n]), places[-1], axis, high)[0][:, None]
                found.setdefault(told.tobytes(), told)
    return list(found.values()), known


def _faces(points: Ints, place: Place, axis: int, high: bool) -> Ints:
    """Area across an axis of each rank's cells but those at an end; shape (points, ranks)."""
    p, c = place.dims[0], np.arange(place.dims[0])
    i, j = place.coords[:, 0, None], place.coords[:, 1, None]
    at = np.stack([(i + c) % p, (j - c) % p, 0 * i + c])
    one, other = (at[b] for b in range(3) if b != axis)
    inner = at[axis] != (p - 1 if high else 0)
    extent = share(points[:, None], p, c[None, :])
    area: Ints = (extent[:, one] * extent[:, other] * inner).sum(axis=-1)
    return area
