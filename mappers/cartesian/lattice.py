"""Coordinates of ranks whose traffic is that of a stencil or a honeycomb, with some faults.

1. Pairs that may be shortcuts are set aside (see `cells.find_shortcuts`).
2. The neighbourhood of an inner rank is matched to the stencils of `lattices`.
3. Coordinates grow from there: a rank goes where most of its placed neighbours can reach it (see
   `lattice_kernels.grow`). Then all pairs count. It is done by each of the `RULES`, from `TRIALS`
   ranks, until there are few faults; the cells are taken in which pairs are nearest.
4. A pair whose cells are no step of the stencil apart spans a period.
5. Ranks that find no cell get a free one near their peers. Where they fill no box, as on a disc or
   in the seas around the earth, some cells stay free.

Missing and added pairs do little harm: of grids of 1,600 ranks with 8 % missing and 2 % added,
pairs are 0.2 to 4 % longer than in the grid, of those with 15 % missing 1 to 2 %. O(pairs * steps).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, islice, permutations, product
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints

from .cells import Cells, Pairs, as_lists, find_shortcuts, is_whole
from .neighbourhoods import REACH, Around, Lattice, around_of, lattices, match, peers_of

SEEDS, INNER = 16, 0.03  # ranks whose neighbourhood is looked at; least part of all
BEYOND = 0.8  # part of the ranks that may have more neighbours than the stencil
TRIALS, GOOD = 2, 0.015  # ranks to grow from; faults a pair that are few
# What a peer around a cell weighs, where others weigh -1; whether unclear cells are taken before
# all pairs count. Strangers tell little where pairs are missing, but much in stencils of 27 points.
RULES = (1000, False), (1000, True), (1, False)
BASE = (1 << 20) + 1  # more than all coordinates, and odd
NEARLY = 0.8  # of the pairs that have to be steps of the stencil
REST = 0.1  # of the ranks that may be put into the last free cells
# Of a box that ranks do not fill: most cells a rank, faults a pair; strays in a layer at its ends,
# at most so many and so large a part of the usual layer.
OPEN, EXACT, STRAYS, THIN = 4, 0.05, 2, 0.1
SHORTEST, COMMON = 3, 4  # period; differences that one may explain


class Grown(NamedTuple):
    """Cells for all ranks."""

    cells: Cells
    length: int  # of all pairs, in steps along the axes
    faults: int  # pairs that are no steps, and ranks that found no cell


def lattice_cells(pairs: Pairs) -> Cells | None:
    """Coordinates in a lattice, grown from a rank whose neighbourhood is that of a stencil."""
    nearby = np.ones(len(pairs.src), dtype=np.bool_)
    nearby[pairs.edge[find_shortcuts(pairs.indptr, pairs.peer)]] = False
    near = as_lists(len(pairs.indptr) - 1, pairs.src[nearby], pairs.dst[nearby])
    degree = np.diff(near.indptr)
    rng = np.random.default_rng(0)
    drawn: dict[int, list[Around]] = {}
    begun: set[tuple[int, ...]] = set()  # steps and ranks: some lattices differ in rings alone
    open_box = None
    for lattice in lattices():
        size = len(lattice.steps)
        if size not in drawn:
            inner = np.flatnonzero(degree == size)
            usual = len(inner) >= INNER * len(degree)
            ranks = rng.permutation(inner)[:SEEDS] if usual else inner[:0]
            crowded = np.count_nonzero(degree > size) > BEYOND * len(degree)
            drawn[size] = [] if crowded else [around_of(near, rank) for rank in ranks.tolist()]
        matched = (cells for each in drawn[size] if (cells := match(each, lattice)))
        begins = [
            begin
            for cells in islice(matched, TRIALS)
            if (begin := (id(lattice.steps), *cells)) not in begun
        ]
        begun.update(begins)
        grown = (
            _grown(near, pairs, cells, lattice, *rule) for _, *cells in begins for rule in RULES
        )
        best = _best(grown, int(GOOD * len(pairs.src)))
        if best and is_whole(best.cells):
            return best.cells
        open_box = open_box or best
    return open_box and open_box.cells


def _best(grown: Iterable[Grown | None], few: int) -> Grown | None:
    """Return the one in which pairs are nearest, or the first with few faults."""
    best = None
    for found in grown:
        if found and (best is None or _preference(found) < _preference(best)):
            best = found
        if best and best.faults <= few:
            break
    return best


def _preference(found: Grown) -> tuple[bool, int]:
    """Whole boxes come before open ones, near pairs before far ones."""
    return not is_whole(found.cells), found.length


def _grown(
    near: Pairs, pairs: Pairs, around: list[int], lattice: Lattice, weight: int, far: bool
) -> Grown | None:
    """Coordinates that grow from a rank and its neighbours; None if they are no box."""
    from .lattice_kernels import grow

    ranks, d = len(pairs.indptr) - 1, lattice.steps.shape[1]
    step = np.stack((_numbers(lattice.steps), _numbers(lattice.odd_steps)))
    two_steps = np.unique(step[0][:, None] + step[1])
    cell, placed = np.zeros(ranks, dtype=np.int64), np.zeros(ranks, dtype=np.bool_)
    cell[around[1:]], placed[around] = step[0], True
    if lattice.odd_steps is not lattice.steps:
        for rank, number in _second_neighbours(near, around, step):
            cell[rank], placed[rank] = number, True
    grow(near.indptr, near.peer, step, two_steps, cell, placed, weight, far)
    grown = grow(pairs.indptr, pairs.peer, step, two_steps, cell, placed, weight, True)
    if grown < (1 - REST) * ranks:
        return None
    place = _coordinates(cell, d)
    steps = np.unique(np.concatenate((lattice.steps, lattice.odd_steps)), axis=0)
    table = np.zeros((2 * REACH + 3,) * d, dtype=np.bool_)  # negative steps count from its end
    table[tuple(steps.T)] = True
    half = steps[[tuple(v) > (0,) * d for v in steps.tolist()]]
    known = placed[pairs.src] & placed[pairs.dst]
    apart = (place[pairs.dst] - place[pairs.src])[known]
    strange = apart[~_are_steps(apart, table)]
    periods: list[tuple[Ints, int]] = []
    shifts = np.zeros((1, d), dtype=np.int64)
    while len(periods) < d and len(strange):
        axis, length, count = _period(strange, shifts, half, table)
        most = ranks / length if length else np.inf
        if not periods and len(strange) <= EXACT * len(apart):  # few pairs may tell where it closes
            most = min(most, len(strange))
        if count < most / 2:
            break
        periods.append((axis, length))
        turns = length * axis * np.array([[-1], [0], [1]])
        shifts = (shifts[:, None] + turns).reshape(-1, d)
        strange = strange[~_can_wrap(strange, shifts, table)]
    if len(strange) > (1 - NEARLY) * len(apart):
        return None
    found = _boxed(pairs, place, placed, half, periods)
    faults = len(strange) + ranks - grown
    if found is None or (not is_whole(found[0]) and faults > EXACT * len(apart)):
        return None
    return Grown(*found, faults)


def _second_neighbours(near: Pairs, around: list[int], step: Ints) -> Iterator[tuple[int, int]]:
    """Cells of those two steps from a rank, each in a ring of six with two of its neighbours.

    - `around`: the rank and its neighbours; `step`: as `Growth.step`.
    """
    (even, odd), (rank, *neighbours) = step.tolist(), around
    outer = [set(peers_of(near, v)) - {rank} for v in neighbours]
    for k, m in permutations(range(len(neighbours)), 2):
        meet = [
            (p, q) for p, q in product(outer[k], outer[m])
            if len(set(peers_of(near, p)) & set(peers_of(near, q)) - set(around)) == 1
        ]  # fmt: skip
        ends = product([even[k] + s for s in odd], [even[m] + s for s in odd])
        cells = [c for c, d in ends if c and d and any(c + a + b == d for a in even for b in odd)]
        if len(meet) == 1 and len(cells) == 1:
            yield meet[0][0], cells[0]


def _numbers(coordinates: Ints) -> Ints:
    """Numbers of cells: odd for those whose coordinates have an odd sum, and sums for sums."""
    numbers: Ints = coordinates @ BASE ** np.arange(coordinates.shape[1])
    return numbers


def _coordinates(numbers: Ints, dimensions: int) -> Ints:
    """Coordinates of cells by their numbers."""
    found = np.empty((len(numbers), dimensions), dtype=np.int64)
    for k in range(dimensions):
        found[:, k] = (numbers + BASE // 2) % BASE - BASE // 2
        numbers = (numbers - found[:, k]) // BASE
    return found


def _are_steps(apart: Ints, table: Bools) -> Bools:
    """Which differences of cells are steps of a stencil; none is longer than `REACH`."""
    found: Bools = table[tuple(np.clip(apart, -REACH - 1, REACH + 1).T)]
    return found


def _can_wrap(apart: Ints, shifts: Ints, table: Bools) -> Bools:
    """Which differences of cells are steps of a stencil after one of some shifts."""
    found: Bools = np.any([_are_steps(apart + shift, table) for shift in shifts], axis=0)
    return found


def _period(strange: Ints, shifts: Ints, half: Ints, table: Bools) -> tuple[Ints, int, int]:
    """Axis and length of the period that explains most pairs, and how many."""
    best = np.zeros_like(half[0]), 0, 0
    for axis in half:
        lead = int(np.flatnonzero(axis)[0])
        values, counts = np.unique(np.abs(strange[:, lead]), return_counts=True)
        for value in values[np.argsort(-counts)[:COMMON]].tolist():
            for length in range(max(value - 1, SHORTEST), value + 2):
                turned = np.concatenate((shifts - length * axis, shifts + length * axis))
                count = int(_can_wrap(strange, turned, table).sum())
                longer = count == best[2] and axis is best[0]  # of equals: all layers differ
                if count > best[2] or longer:
                    best = axis, length, count
    return best


def _boxed(
    pairs: Pairs, place: Ints, placed: Bools, half: Ints, periods: list[tuple[Ints, int]]
) -> tuple[Cells, int] | None:
    """Coordinates along the axes in which pairs are nearest, best such that ranks fill a box."""
    ranks, d = place.shape
    best, least = None, 0
    free = [k for k, v in enumerate(half) if not any((v == axis).all() for axis, _ in periods)]
    for others in combinations(free, d - len(periods)):
        basis = np.array([axis for axis, _ in periods] + [half[k] for k in others])
        if abs(round(np.linalg.det(basis))) != 1:
            continue
        coords = place @ np.rint(np.linalg.inv(basis)).astype(np.int64)
        dims = np.array([length for _, length in periods] + [0] * len(others))
        for k in range(d):
            if k < len(periods):
                coords[:, k] %= dims[k]
            else:
                low, dims[k] = _extent(coords[placed, k])
                coords[:, k] -= low
        whole = np.prod(dims.astype(np.float64)) == ranks
        if not whole:
            for k in range(d):
                if k < len(periods):  # the emptiest layer is the first
                    layers = np.bincount(coords[placed, k], minlength=dims[k])
                    coords[:, k] = (coords[:, k] - layers.argmin()) % dims[k]
                else:
                    low, dims[k] = _extent(coords[placed, k], STRAYS)
                    coords[:, k] -= low
            if not ranks <= np.prod(dims.astype(np.float64)) <= OPEN * ranks:
                continue
        inside = np.flatnonzero(placed & ((coords >= 0) & (coords < dims)).all(axis=1))
        rank_at = np.full(dims.prod(), -1)  # the first of those that are at one place
        rank_at[np.ravel_multi_index(tuple(coords[inside[::-1]].T), tuple(dims))] = inside[::-1]
        taken = np.flatnonzero(rank_at >= 0)
        if len(taken) < (1 - REST) * ranks:
            continue
        cells = np.full(ranks, -1)
        cells[rank_at[taken]] = taken
        cells = _put_rest(pairs, cells, dims)
        coords = np.stack(np.unravel_index(cells, tuple(dims)), axis=1)
        coords, length = _straightened(pairs, coords, dims, len(periods))
        if best is None or (not whole, length) < (not is_whole(best), least):
            longest = np.argsort(-dims, kind="stable")
            best, least = Cells(tuple(dims[longest].tolist()), coords[:, longest]), length
    return best and (best, least)


def _straightened(pairs: Pairs, coords: Ints, dims: Ints, periods: int) -> tuple[Ints, int]:
    """Shear a box until pairs are nearest, as any diagonal of a torus can serve as an axis.

    - `periods`: so many dimensions, the first ones, are periodic.
    """
    coords = coords.copy()
    apart, count = _differences(pairs, coords, dims)
    shears = [
        (i, k, sign) for i, k, sign in product(range(periods), range(len(dims)), (1, -1))
        if i != k and (k >= periods or dims[k] % dims[i] == 0)
    ]  # fmt: skip
    while True:
        lengths = [int(_steps(a, side) @ count) for a, side in zip(apart, dims, strict=True)]
        gains = [
            lengths[i] - int(_steps(apart[i] + sign * apart[k], dims[i]) @ count)
            for i, k, sign in shears
        ]
        if max(gains, default=0) <= 0:
            return coords, sum(lengths)
        i, k, sign = shears[int(np.argmax(gains))]
        coords[:, i] = (coords[:, i] + sign * coords[:, k]) % dims[i]
        apart[i] += sign * apart[k]


def _differences(pairs: Pairs, coords: Ints, dims: Ints) -> tuple[Ints, Ints]:
    """Different ways from one end of a pair to the other, shape (d, ways), and pairs of each."""
    wide = 2 * dims - 1
    stride = np.append(np.cumprod(wide[:0:-1])[::-1], 1)
    number, offset = coords @ stride, (dims - 1) @ stride
    count = np.bincount(number[pairs.src] - number[pairs.dst] + offset)
    found = np.flatnonzero(count)
    return np.stack(np.unravel_index(found, tuple(wide))) - (dims - 1)[:, None], count[found]


def _steps(apart: Ints, side: int) -> Ints:
    """Count steps along an axis."""
    apart = np.abs(apart) % side
    return np.minimum(apart, side - apart)


def _put_rest(pairs: Pairs, cells: Ints, dims: Ints) -> Ints:
    """Put ranks without a cell into free cells, together as near to their peers as can be."""
    from scipy.optimize import linear_sum_assignment

    every = np.arange(dims.prod())
    rest, free = np.flatnonzero(cells < 0), np.delete(every, cells[cells >= 0])
    where = np.stack(np.unravel_index(every, tuple(dims)), axis=1)
    apart = np.zeros((len(rest), len(free)))
    for row, rank in zip(apart, rest.tolist(), strict=True):
        taken = cells[peers_of(pairs, rank)]
        steps = np.abs(where[free][:, None] - where[taken[taken >= 0]])
        row += np.minimum(steps, dims - steps).sum(axis=(1, 2))
    cells = cells.copy()
    cells[rest] = free[linear_sum_assignment(apart)[1]]
    return cells


def _extent(values: Ints, most: int | None = None) -> tuple[int, int]:
    """First coordinate and length of a side, without layers at its ends that few are in.

    - `most`: so many are few where ranks fill no box; by default fewer than half of the usual.
    """
    low = int(values.min())
    count = np.bincount(values - low)
    typical = np.median(count[count > 0])
    full = np.flatnonzero(count > (typical / 2 if most is None else min(most, THIN * typical)))
    return low + int(full[0]), int(full[-1] - full[0]) + 1
