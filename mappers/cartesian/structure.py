"""Structure: coordinates of ranks whose traffic is a product or a lattice, in any numbering.

**Products.** A graph that is a Cartesian product (paths, rings, cliques, hypercubes: stencils of
faces, rows and columns of a process grid, tensor, pipeline and data parallel groups) has classes of
parallel edges, which squares and triangles tell (Feder, Product graph representations, J. Graph
Theory 16, 1992; Imrich and Peterin, Recognizing Cartesian products in linear time, Discrete
Mathematics 307, 2007). Without the edges of one factor what is connected has one coordinate there.
O(sum of squared degrees); Imrich and Peterin's is O(pairs), and not needed for degrees of stencils.

**Lattices.** Stencils with diagonals, or longer steps, are no products. The neighbourhood of one
inner rank is matched to the stencils of `_lattices`, and coordinates grow from there: a rank goes
where most of its placed neighbours can reach it. A pair whose cells are no step of the stencil
apart spans a period. Few pairs too many or too few do no harm: ranks that find no cell get a free
one near their peers. O(pairs * steps).

In both what comes out is checked: all cells are different and fill a box, and nearly all pairs are
steps of the stencil. Weights play no role, except that where all pairs have no structure, the
heavier ones may (see `grid.find_structures`).
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Ints

LARGEST, DEGREES = 512, 64  # most neighbours where structure is looked for; different numbers
FACTORS = 12
SEEDS, INNER = 8, 0.03  # ranks that coordinates may grow from; least part of all
ADJACENT = 1
REACH = 4  # longest step of a stencil in one dimension
NEARLY = 0.9  # of the pairs that have to be steps of the stencil
REST = 0.02  # of the ranks that may be put into the last free cells
SHORTEST, COMMON = 3, 4  # period; differences that one may explain
SHORT = 3, 4  # periods that a rank's neighbours show


class Pairs(NamedTuple):
    """Undirected pairs as adjacency lists."""

    indptr: Ints  # shape (ranks + 1,)
    # peer, edge: shape (2 * pairs,): neighbours, and the pair of each entry
    peer: Ints
    edge: Ints
    # src, dst: shape (pairs,)
    src: Ints
    dst: Ints


class Cells(NamedTuple):
    """Where every rank is in a box."""

    dims: tuple[int, ...]
    coords: Ints  # shape (ranks, dimensions)


def find_structure(ranks: int, src: Ints, dst: Ints) -> Cells | None:
    """Coordinates of ranks in a product or a lattice; None where none is found.

    - `src`, `dst`, shape (pairs,): undirected pairs, each once, without loops.
    """
    ends, others = np.concatenate((src, dst)), np.concatenate((dst, src))
    degree = np.bincount(ends, minlength=ranks)
    if ranks < 4 or not 0 < degree.min() <= degree.max() <= LARGEST:
        return None
    if len(np.unique(degree)) > DEGREES:
        return None
    order = np.argsort(ends * ranks + others)  # of pairs, which differ
    indptr = np.concatenate(([0], np.cumsum(degree)))
    edge = np.tile(np.arange(len(src)), 2)[order]
    pairs = Pairs(indptr, others[order], edge, src, dst)
    return product_cells(pairs) or lattice_cells(pairs)


def product_cells(pairs: Pairs) -> Cells | None:
    """Coordinates of the factors of a Cartesian product; None if there are not two at least."""
    from .structure_kernels import parallel_edges

    ranks = len(pairs.indptr) - 1
    order = _breadth_first(pairs)
    if len(order) < ranks:
        return None
    root = parallel_edges(pairs.indptr, pairs.peer, pairs.edge, order, FACTORS)
    classes, factor = np.unique(root, return_inverse=True)
    if not 1 < len(classes) <= FACTORS:
        return None
    coords = np.empty((ranks, len(classes)), dtype=np.int64)
    for k in range(len(classes)):
        within = factor != k
        coords[:, k] = _components(ranks, pairs.src[within], pairs.dst[within])
    dims = coords.max(axis=0) + 1
    if np.prod(dims.astype(np.float64)) != ranks or len(np.unique(coords, axis=0)) < ranks:
        return None
    for k, length in enumerate(dims.tolist()):
        inside = factor == k
        ends = coords[pairs.src[inside], k], coords[pairs.dst[inside], k]
        coords[:, k] = _line_up(length, *ends)[coords[:, k]]
    longest = np.argsort(-dims, kind="stable")
    return Cells(tuple(dims[longest].tolist()), coords[:, longest])


def _breadth_first(pairs: Pairs) -> Ints:
    """Ranks that the first can reach, breadth first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    ranks = len(pairs.indptr) - 1
    ones = np.ones(len(pairs.peer), dtype=np.int8)
    graph = csr_array((ones, pairs.peer, pairs.indptr), shape=(ranks, ranks))
    found = breadth_first_order(graph, 0, return_predecessors=False)
    return np.asarray(found, dtype=np.int64)


def _components(ranks: int, src: Ints, dst: Ints) -> Ints:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(src), dtype=np.int8), (src, dst)), shape=(ranks, ranks))
    found: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return found


def _line_up(length: int, src: Ints, dst: Ints) -> Ints:
    """Place of every vertex of a factor: along a path or a ring, else by Cuthill and McKee."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ends, others = np.concatenate((src, dst)), np.concatenate((dst, src))
    graph = csr_array((np.ones(len(ends)), (ends, others)), shape=(length, length))
    degree = np.diff(graph.indptr)
    if degree.max() > 2:
        order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    else:
        line: list[int] = []
        last, here = -1, int(degree.argmin())
        while here >= 0 and len(line) < length:
            line.append(here)
            peers = graph.indices[graph.indptr[here] : graph.indptr[here + 1]].tolist()
            last, here = here, next((p for p in peers if p != last), -1)
        order = np.array(line)
    place = np.empty(length, dtype=np.int64)
    place[order] = np.arange(length)
    return place


class Lattice(NamedTuple):
    """A stencil that coordinates grow by."""

    steps: Ints  # shape (neighbours, dimensions)
    relations: list[list[int]]  # of any two neighbours: see `_relations`


@cache
def _lattices() -> list[Lattice]:
    """Stencils of 27 to 3 points: boxes, stars, simplices, boxes in part, and steps along axes.

    Neighbours in a ring of three or four are related by way of its other side, too.
    """
    found: dict[frozenset[tuple[int, ...]], Ints] = {}
    for d in (3, 2, 1):
        box = np.array([v for v in product((-1, 0, 1), repeat=d) if any(v)])
        parts = np.abs(box).sum(axis=1)
        stencils = [box, box[parts == 1], box[(box >= 0).all(axis=1) | (box <= 0).all(axis=1)]]
        stencils += [box[parts < 3], box[parts != 2]]
        axes = np.concatenate((np.eye(d, dtype=np.int64), -np.eye(d, dtype=np.int64)))
        stencils += [
            np.concatenate([k * axes for k in range(1, reach + 1)]) for reach in range(2, REACH + 1)
        ]
        for steps in stencils:
            found.setdefault(frozenset(map(tuple, steps.tolist())), steps)
    lattices = [_lattice(steps, 0, 0) for steps in found.values()]
    for steps in found.values():
        rings = range(1, steps.shape[1] + 1) if np.abs(steps).max() == 1 else ()
        lattices += [_lattice(steps, count, length) for count in rings for length in SHORT]
    return lattices


def _lattice(steps: Ints, rings: int, length: int) -> Lattice:
    """Give the cells around its centre numbers; the first dimensions are rings of a length."""
    d = steps.shape[1]
    sides = np.where(np.arange(d) < rings, length, 4 * REACH + 1)
    number = (4 * REACH + 1) ** np.arange(d)
    reached = [((step + steps) % sides @ number).tolist() for step in steps]
    around = (steps % sides @ number).tolist()
    return Lattice(steps, _relations(around, list(map(set, reached)), 0))


def lattice_cells(pairs: Pairs) -> Cells | None:
    """Coordinates in a lattice, grown from a rank whose neighbourhood is that of a stencil."""
    degree = np.diff(pairs.indptr)
    rng = np.random.default_rng(0)
    for lattice in _lattices():
        inner = np.flatnonzero(degree == len(lattice.steps))
        if len(inner) < INNER * len(degree):
            continue
        for seed in rng.permutation(inner)[:SEEDS].tolist():
            around = _match(pairs, seed, lattice)
            found = around and _grown(pairs, seed, around, lattice.steps)
            if found:
                return found
            if around:
                break
    return None


def _match(pairs: Pairs, seed: int, lattice: Lattice) -> list[int] | None:
    """Neighbours of a rank in the order of the steps that they are; None where they are none."""
    peers = _peers(pairs, seed)
    reached = [set(_peers(pairs, u)) for u in peers]
    wanted = lattice.relations
    meet = sorted(len(each.intersection(peers)) for each in reached)
    if meet != sorted(row.count(ADJACENT) for row in wanted):
        return None
    found = _relations(peers, reached, seed)
    rows, wanted_rows = list(map(sorted, found)), list(map(sorted, wanted))
    chosen: list[int] = []

    def extend() -> bool:
        k = len(chosen)
        if k == len(peers):
            return True
        for i in range(len(peers)):
            if (
                i not in chosen
                and rows[i] == wanted_rows[k]
                and all(found[i][c] == wanted[k][m] for m, c in enumerate(chosen))
            ):
                chosen.append(i)
                if extend():
                    return True
                chosen.pop()
        return False

    return [peers[i] for i in chosen] if sorted(rows) == sorted(wanted_rows) and extend() else None


def _peers(pairs: Pairs, rank: int) -> list[int]:
    found: list[int] = pairs.peer[pairs.indptr[rank] : pairs.indptr[rank + 1]].tolist()
    return found


def _relations(around: list[int], reached: list[set[int]], centre: int) -> list[list[int]]:
    """Whether any two neighbours are adjacent, or have another common neighbour, or neither."""
    return [
        [
            ADJACENT if b in one else 2 * (len(one & other) > (centre in one & other))
            for b, other in zip(around, reached, strict=True)
        ]
        for one in reached
    ]


def _grown(pairs: Pairs, seed: int, around: list[int], steps: Ints) -> Cells | None:
    """Coordinates that grow from a rank and its neighbours; None if they are no box."""
    from .structure_kernels import grow

    ranks, d = len(pairs.indptr) - 1, steps.shape[1]
    table = np.zeros((2 * REACH + 3,) * d, dtype=np.bool_)  # negative steps count from its end
    table[tuple(steps.T)] = True
    place, placed = np.zeros((ranks, d), dtype=np.int64), np.zeros(ranks, dtype=np.bool_)
    place[around], placed[[seed, *around]] = steps, True
    grown = grow(pairs.indptr, pairs.peer, steps, place, placed)
    if grown < (1 - REST) * ranks:
        return None
    half = steps[[tuple(v) > (0,) * d for v in steps.tolist()]]
    known = placed[pairs.src] & placed[pairs.dst]
    apart = (place[pairs.dst] - place[pairs.src])[known]
    strange = apart[~_are_steps(apart, table)]
    periods: list[tuple[Ints, int]] = []
    shifts = np.zeros((1, d), dtype=np.int64)
    while len(periods) < d and len(strange):
        axis, length, count = _period(strange, shifts, half, table)
        if not length or count < ranks / length / 2:
            break
        periods.append((axis, length))
        turns = length * axis * np.array([[-1], [0], [1]])
        shifts = (shifts[:, None] + turns).reshape(-1, d)
        strange = strange[~_can_wrap(strange, shifts, table)]
    if len(strange) > (1 - NEARLY) * len(apart):
        return None
    return _boxed(pairs, place, placed, half, periods)


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
) -> Cells | None:
    """Coordinates along the axes in which the ranks fill a box and pairs are nearest, or None."""
    ranks, d = place.shape
    best, least = None, np.inf
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
        if np.prod(dims.astype(np.float64)) != ranks:
            continue
        inside = np.flatnonzero(placed & ((coords >= 0) & (coords < dims)).all(axis=1))
        number = np.ravel_multi_index(tuple(coords[inside].T), tuple(dims))
        taken, first = np.unique(number, return_index=True)
        if len(taken) < (1 - REST) * ranks:
            continue
        cells = np.full(ranks, -1)
        cells[inside[first]] = taken
        cells = _put_rest(pairs, cells, dims)
        coords = np.stack(np.unravel_index(cells, tuple(dims)), axis=1)
        apart = np.abs(coords[pairs.src] - coords[pairs.dst])
        length = int(np.minimum(apart, dims - apart).sum())
        if length < least:
            longest = np.argsort(-dims, kind="stable")
            best, least = Cells(tuple(dims[longest].tolist()), coords[:, longest]), length
    return best


def _put_rest(pairs: Pairs, cells: Ints, dims: Ints) -> Ints:
    """Put ranks without a cell into free cells, together as near to their peers as can be."""
    from scipy.optimize import linear_sum_assignment

    rest, free = np.flatnonzero(cells < 0), np.setdiff1d(np.arange(len(cells)), cells)
    where = np.stack(np.unravel_index(np.arange(len(cells)), tuple(dims)), axis=1)
    apart = np.zeros((len(rest), len(free)))
    for row, rank in zip(apart, rest.tolist(), strict=True):
        taken = cells[_peers(pairs, rank)]
        steps = np.abs(where[free][:, None] - where[taken[taken >= 0]])
        row += np.minimum(steps, dims - steps).sum(axis=(1, 2))
    cells = cells.copy()
    cells[rest] = free[linear_sum_assignment(apart)[1]]
    return cells


def _extent(values: Ints) -> tuple[int, int]:
    """First coordinate and length of a side, without layers that few are in."""
    low = int(values.min())
    count = np.bincount(values - low)
    full = np.flatnonzero(count > np.median(count[count > 0]) / 2)
    return low + int(full[0]), int(full[-1] - full[0]) + 1
