"""Numbers of steps (bytes, tags, requests, iterations) as functions of the grid of ranks.

A rule counts if it gives every number of every rank at every size that is known, exactly. Where
several do, and do not say the same at more ranks, nothing is said. Rules with fewer free numbers
come first: a constant, a product of powers of the grid's dimensions, shares of points. A line
through two points is no rule, except where its slope is known from other messages.

Shares follow programs that cut a grid of points into blocks: n points on p ranks in a line
are n div p each, and one more for the first n mod p. A message has as many elements as a product of
such shares, of a rank's own coordinates or, where p x p ranks have cells along diagonals (the
multi-partition of NAS SP and BT), of sums and differences of these and of the step. Points on the
border of the whole grid may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints

from .partners import Place

ELEMENT = 8  # bytes: sizes are taken to be of elements as large, if all that are known could be
POWERS = (-2, -1, 0, 1)
FEW = 24  # values of a size by which factors are looked up, before all are compared
MOST_POINTS = 4096  # of an edge of a grid whose cells are added up
OFFSETS = (0, 1, -1, 2, -2)  # elements that a side has in addition to a rank's share


class Unknown(Exception):  # noqa: N818 - no error yet: it may be known later
    """Why a number is not known at more ranks."""


@dataclass
class Known:
    """What is known from other messages of a program."""

    # Bytes that are shared out evenly along a dimension
    slopes: set[Fraction] = field(default_factory=set)
    # Edges of the grid of points that is cut into blocks
    points: set[int] = field(default_factory=set)
    # Bytes of a share's point in messages that show who has more, and the edge
    units: set[tuple[int, int]] = field(default_factory=set)
    tables: dict[object, list[Factor]] = field(default_factory=dict)  # factors that were made

    def size(self) -> tuple[int, ...]:
        """How much is known."""
        return len(self.slopes), len(self.points), len(self.units)

    def factors(self, points: int, places: list[Place], diagonal: bool) -> list[Factor]:
        """See `factors`; made once."""
        key = (points, diagonal, *((p.dims, p.iterations, p.coords.tobytes()) for p in places))
        if key not in self.tables:
            self.tables[key] = factors(points, places, diagonal)
        return self.tables[key]


def iterations_at(iterations: list[int], places: list[Place]) -> int:
    """Return the iterations of a loop at the target, the last of `places`."""
    if len(set(iterations)) == 1:
        return iterations[0]
    candidates = set()
    for axis in range(len(places[-1].dims)):
        lengths = [p.dims[axis] for p in places]
        for counts in (lengths, [_bits(n) for n in lengths]):
            more = {n - count for n, count in zip(iterations, counts, strict=False)}
            if len(more) == 1 and abs(min(more)) <= 2 and min(counts) > 0:
                candidates.add(counts[-1] + min(more))
    return int(_require_one(candidates, f"a loop of {_format_list(iterations)} iterations"))


def _bits(length: int) -> int:
    """Logarithm of a power of two, 0 of other numbers."""
    return 0 if length & (length - 1) else length.bit_length() - 1


def count_at(values: list[Ints], places: list[Place]) -> Ints | None:
    """Numbers that are constant, or count iterations up or down, at the target; else None."""
    *sources, target = places
    for up, down in product((0, 1, -1), (0, 1)):
        rest = [v - up * p.t - down * p.iterations for v, p in zip(values, sources, strict=True)]
        base = int(rest[0].flat[0])
        if all((each == base).all() for each in rest):
            shape = (len(target.coords), target.iterations)
            return np.broadcast_to(base + up * target.t + down * target.iterations, shape).copy()
    return None


def tag_at(values: list[Ints], places: list[Place]) -> Ints:
    """Tags at the target: also coordinates of cells, c + first + p * second."""
    plain = count_at(values, places)
    if plain is not None:
        return plain
    if not _square(places):
        raise Unknown("tags differ between ranks")
    candidates: dict[bytes, Ints] = {}
    for pairs in zip(*map(cells, places), strict=True):
        label = [one + p.dims[0] * other for (one, other), p in zip(pairs, places, strict=True)]
        base = int(values[0].flat[0] - label[0].flat[0])
        if all((v == base + each).all() for v, each in zip(values, label, strict=False)):
            candidates.setdefault(label[-1].tobytes(), base + label[-1])
    return _one_of(list(candidates.values()), "tags")


def size_at(
    values: list[Ints], places: list[Place], known: Known, *, everyone: bool = False
) -> Ints:
    """Bytes at the target.

    Of a collective (`everyone`) OTF2 counts a rank's bytes for each member: with one size they are
    taken to be as many a member.
    """
    target = places[-1]
    shape = (len(target.coords), target.iterations)
    single = all((v == v.flat[0]).all() for v in values)
    first = int(values[0].flat[0])
    one = single and all(v.flat[0] == first for v in values)
    if one and (len(values) > 1 or not everyone or first <= 0):
        return np.full(shape, first)
    if len(values) == 1:
        if single and everyone:
            each, rest = divmod(first, places[0].ranks)
            if rest == 0:
                return np.full(shape, each * target.ranks)
            raise Unknown(f"{first} bytes in all do not divide by {places[0].ranks} ranks")
        shown = _format_list(np.unique(values[0]).tolist())
        raise Unknown(
            f"sizes of {shown} bytes differ between {'ranks' if len(values[0]) > 1 else 'steps'}, "
            "and one number of ranks does not say how"
        )
    even: set[int] = set()
    if single:
        sizes = [int(v.flat[0]) for v in values]
        candidates = _proportional(sizes, places, known) or _affine(sizes, places, known)
        unit = gcd(ELEMENT, *sizes)
        even = {int(size) for size in candidates if size.denominator == 1 and size % unit == 0}
        if candidates and not even and not known.points:
            raise Unknown(
                f"sizes of {_format_list(sizes)} bytes would be {float(max(candidates)):g} at "
                f"{target.ranks} ranks: expected multiples of {unit}, so what is shared out does "
                "not divide evenly there, and nothing says who has the rest"
            )
    shares, same = _of_shares(values, places, known) if known.points or not even else ([], False)
    if not same:  # what is shared out like other messages is not shared out evenly
        shares += [np.full(shape, size) for size in even if size >= 0]
    different = {each.tobytes(): each for each in shares}
    shown = ", ".join(_format_list(np.unique(v).tolist()) for v in values)
    return _one_of(list(different.values()), f"sizes of {shown} bytes")


def _proportional(sizes: list[int], places: list[Place], known: Known) -> set[Fraction]:
    """Constants times powers of the grid's dimensions, of the fewest powers that fit."""
    fits: dict[int, set[Fraction]] = {}
    sides = len(places[-1].dims)
    for powers in product(POWERS, repeat=sides):
        base = [
            Fraction(prod(Fraction(n) ** k for n, k in zip(p.dims, powers, strict=True)))
            for p in places
        ]
        each = {size / b for size, b in zip(sizes, base[:-1], strict=True)}
        if len(each) == 1:
            unit = each.pop()
            all_ranks = len(set(powers)) == 1  # a power of the ranks is one, not one of each side
            fits.setdefault(sum(map(abs, powers)) // (sides if all_ranks else 1), set()).add(
                unit * base[-1]
            )
            if min(powers) == -1 and sum(map(abs, powers)) == 1:
                known.slopes.add(unit)
    return fits[min(fits)] if fits else set()


def _affine(sizes: list[int], places: list[Place], known: Known) -> set[Fraction]:
    """Lines in one over a dimension, whose slope is known or which three sizes lie on."""
    candidates: set[Fraction] = set()
    for axis in range(len(places[-1].dims)):
        x = [Fraction(1, p.dims[axis]) for p in places]
        if x[0] == x[1]:
            continue
        slope = (sizes[1] - sizes[0]) / (x[1] - x[0])
        base = sizes[0] - slope * x[0]
        fits = all(slope * a + base == size for a, size in zip(x, sizes, strict=False))
        if fits and (len(sizes) > 2 or slope in known.slopes):
            candidates.add(slope * x[-1] + base)
    return candidates


def _of_shares(values: list[Ints], places: list[Place], known: Known) -> tuple[list[Ints], bool]:
    """Products of shares, or faces of cells, that fit, and whether a unit of theirs is known."""
    square = _square(places)
    candidates: dict[bytes, Ints] = {}
    same: list[Ints] = []
    for points in sorted(known.points | points_from(values, places)):
        if divides(points, places):
            fits = products(values, known.factors(points, places, square))
            if fits:
                known.points.add(points)
            candidates |= {each.tobytes(): each for each, _ in fits}
            if any((v != v.flat[0]).any() for v in values):
                known.units |= {(unit, points) for _, unit in fits}
            same += [each for each, unit in fits if (unit, points) in known.units]
    if len(candidates) > 1 and len({each.tobytes() for each in same}) == 1:
        return same[:1], True
    if not candidates and square and all(v.shape[1] == 1 for v in values):
        sums, edges = cell_sums(values, places)
        known.points |= edges
        candidates |= {each.tobytes(): each for each in sums}
    return list(candidates.values()), len(same) > 0


def _square(places: list[Place]) -> bool:
    """Whether these are all ranks of squares, which multi-partitions have."""
    return all(
        len(p.dims) == 2 and p.dims[0] == p.dims[1] and len(p.coords) == p.ranks for p in places
    )


def _one_of(candidates: list[Ints], label: str) -> Ints:
    return candidates[int(_require_one(set(range(len(candidates))), label))]


def _require_one(candidates: set[Fraction] | set[int], label: str) -> Fraction | int:
    if not candidates:
        raise Unknown(f"{label} follow no rule that is known")
    if len(candidates) > 1:
        raise Unknown(f"{label} follow {len(candidates)} rules that differ there")
    return candidates.pop()


def _format_list(numbers: list[int]) -> str:
    """Write a few numbers."""
    few = [str(n) for n in numbers[:3]]
    return " ".join(few) + (" ..." if len(numbers) > 3 else "")


class Factor(NamedTuple):
    """What a factor is at each size and at the target, shapes (ranks, iterations).

    Two are multiplied if only one has an offset, or both the same; one without any stands alone.
    """

    at: tuple[Ints, ...]
    offset: int | None
    whole: bool = False  # the same for all ranks: points div parts


def points_in(points: int | Ints, parts: int, place: Ints) -> Ints:
    """Points of a part; the first ones have what is left over."""
    return points // parts + (place < points % parts)


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
        inside: Ints = points_in(points, length, at) - inner * border
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
                product = unit * table[number].at[-1] * table[other].at[-1]
                whole = table[number].whole or table[other].whole
                (wholes if whole else found).setdefault(product.tobytes(), (product, unit))
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
                total = each * _faces(np.array([n]), places[-1], axis, high)[0][:, None]
                found.setdefault(total.tobytes(), total)
    return list(found.values()), known


def _faces(points: Ints, place: Place, axis: int, high: bool) -> Ints:
    """Area across an axis of each rank's cells but those at an end; shape (points, ranks)."""
    p, c = place.dims[0], np.arange(place.dims[0])
    i, j = place.coords[:, 0, None], place.coords[:, 1, None]
    at = np.stack([(i + c) % p, (j - c) % p, 0 * i + c])
    one, other = (at[b] for b in range(3) if b != axis)
    inner = at[axis] != (p - 1 if high else 0)
    extent = points_in(points[:, None], p, c[None, :])
    area: Ints = (extent[:, one] * extent[:, other] * inner).sum(axis=-1)
    return area
