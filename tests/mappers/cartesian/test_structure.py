"""Structure: products and lattices are found in any numbering, with some faults."""

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopmap.mappers import map_ranks, objective_value
from hopmap.mappers.cartesian import lattice as lattice_module
from hopmap.mappers.cartesian.cells import Cells, as_lists
from hopmap.mappers.cartesian.grid import find_structures
from hopmap.mappers.cartesian.lattice import _straightened, lattice_cells
from hopmap.mappers.cartesian.structure import find_structure
from hopmap.topologies import check_mapping, topology_from_spec
from hopmap.topologies.routing import distances
from hopmap.traces import Traffic
from support.traffic import grid_traffic

BOX = np.array([step for step in product((-1, 0, 1), repeat=3) if any(step)])
STENCILS = {
    7: BOX[np.abs(BOX).sum(axis=1) == 1],
    15: BOX[(BOX >= 0).all(axis=1) | (BOX <= 0).all(axis=1)],
    19: BOX[np.abs(BOX).sum(axis=1) < 3],
    27: BOX,
}
FACTORS = {
    "path": lambda n: [(k, k + 1) for k in range(n - 1)],
    "ring": lambda n: [(k, (k + 1) % n) for k in range(n)],
    "clique": lambda n: list(combinations(range(n), 2)),
    "bipartite": lambda n: list(product((0, 1), range(2, n))),
}


def renumbered(ranks, pairs, seed):
    new = np.random.default_rng(seed).permutation(ranks)
    ends = new[np.unique(np.sort(np.asarray(pairs), axis=1), axis=0)]
    return ends[:, 0], ends[:, 1]


def lattice(dims, points, periodic, seed=0):
    """Pairs of a stencil on a box, periodic in some dimensions."""
    cells = np.indices(dims).reshape(3, -1).T
    moved = cells[:, None] + STENCILS[points]
    inside = ((moved >= 0) & (moved < dims) | np.array(periodic)).all(axis=2)
    to = np.ravel_multi_index(tuple(np.moveaxis(moved % dims, 2, 0)), dims)
    pairs = np.argwhere(inside)[:, 0], to[inside]
    return renumbered(prod(dims), np.stack(pairs, axis=1), seed)


def apart(found, src, dst):
    """Steps of all pairs, the short way round."""
    steps = np.abs(found.coords[src] - found.coords[dst])
    return np.minimum(steps, np.array(found.dims) - steps)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(list(FACTORS)), st.integers(5, 7)), min_size=2, max_size=3),
    st.integers(0, 10**6),
)
def test_the_factors_of_a_product_are_found(factors, seed):
    """Along a pair one coordinate changes: on a path or ring by one."""
    dims = tuple(n for _, n in factors)
    number = np.arange(prod(dims)).reshape(dims)
    pairs = []
    for axis, (kind, n) in enumerate(factors):
        lines = np.moveaxis(number, axis, 0)
        for a, b in FACTORS[kind](n):
            pairs.append(np.stack((lines[a].ravel(), lines[b].ravel()), axis=1))
    src, dst = renumbered(number.size, np.concatenate(pairs), seed)
    found = find_structure(number.size, src, dst)
    assert sorted(found.dims) == sorted(dims)
    assert len(np.unique(found.coords, axis=0)) == number.size
    steps = apart(found, src, dst)
    assert ((steps > 0).sum(axis=1) == 1).all()
    if {kind for kind, _ in factors} <= {"path", "ring"}:
        assert (steps.sum(axis=1) == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_factor_that_is_a_lattice_has_coordinates_of_its_own(seed, compiled):
    """Honeycombs above each other in a ring of four, two by two: all pairs are one hop."""
    number = np.arange(16 * 8 * 4).reshape(16, 8, 4)
    even = np.indices((16, 7)).sum(axis=0) % 2 == 0
    pairs = [(number[:-1], number[1:]), (number[:, :-1][even], number[:, 1:][even])]
    pairs.append((number, np.roll(number, -1, axis=2)))
    ends = [np.stack((src.ravel(), dst.ravel()), axis=1) for src, dst in pairs]
    src, dst = renumbered(number.size, np.concatenate(ends), seed)
    assert find_structure(number.size, src, dst).dims == (16, 8, 2, 2)
    ones = np.ones(len(src), dtype=np.int64)
    traffic = Traffic.from_pairs(number.size, src, dst, ones, ones)
    topology = topology_from_spec("torus:16x8x4")
    node_of = map_ranks(traffic, topology, "fold")
    assert objective_value(traffic, topology, node_of, "hop_bytes") == len(src)


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([7, 15, 19, 27]),
    st.tuples(*[st.integers(5, 9)] * 3),
    st.tuples(*[st.booleans()] * 3),
    st.integers(0, 10**6),
)
@example(27, (6, 6, 6), (True, True, True), 0)
def test_a_stencil_is_found_whichever_dimensions_are_periodic(points, dims, periodic, seed):
    """Rings of seven at least: in shorter ones steps of opposite directions nearly meet."""
    dims = tuple(n + 2 * wraps for n, wraps in zip(dims, periodic, strict=True))
    src, dst = lattice(dims, points, periodic, seed)
    found = find_structure(prod(dims), src, dst)
    assert sorted(found.dims) == sorted(dims)
    assert len(np.unique(found.coords, axis=0)) == prod(dims)
    assert (apart(found, src, dst) <= 1).all()


def test_a_domain_that_is_no_box_is_mapped_onto_itself():
    """An L, a disc and a grid with a hole, on the nodes of a mesh that have their shape."""
    x, y = np.indices((20, 20)).reshape(2, -1)
    from_middle = np.hypot(x - 9.5, y - 9.5)
    shapes = (x < 8) | (y < 9), from_middle < 10, from_middle > 4
    for inside, seed in product(shapes, range(4)):
        number = np.where(inside, np.cumsum(inside) - 1, -1).reshape(20, 20)
        along = np.stack((number[:, :-1].ravel(), number[:, 1:].ravel()))
        across = np.stack((number[:-1].ravel(), number[1:].ravel()))
        pairs = np.concatenate((along, across), axis=1)
        src, dst = renumbered(inside.sum(), pairs[:, (pairs >= 0).all(axis=0)].T, seed)
        ones = np.ones(len(src), dtype=np.int64)
        traffic = Traffic.from_pairs(int(inside.sum()), src, dst, ones, ones)
        assert find_structures(traffic)[0] is None
        part = topology_from_spec("mesh:20x20").only(np.flatnonzero(inside))
        node_of = map_ranks(traffic, part, "fold")
        check_mapping(node_of, part)
        assert objective_value(traffic, part, node_of, "hop_bytes") == len(src)


def test_a_ring_of_which_cells_are_missing_is_closed():
    """Seas around the earth without the cells of two continents."""
    x, y = np.indices((40, 24)).reshape(2, -1)
    inside = (np.hypot(x - 12, y - 8) > 5) & (np.hypot(x - 30, y - 14) > 6)
    number = np.where(inside, np.cumsum(inside) - 1, -1).reshape(40, 24)
    pairs = np.concatenate(
        [
            np.stack((number.ravel(), np.roll(number, 1, 0).ravel())),
            np.stack((number[:, 1:].ravel(), number[:, :-1].ravel())),
        ],
        axis=1,
    )
    for seed in range(8):
        src, dst = renumbered(inside.sum(), pairs[:, (pairs >= 0).all(axis=0)].T, seed)
        found = find_structure(int(inside.sum()), src, dst)
        assert found.dims == (40, 24)
        steps = np.abs(found.coords[src] - found.coords[dst])
        steps[:, 0] = np.minimum(steps[:, 0], 40 - steps[:, 0])
        assert (steps.sum(axis=1) != 1).sum() <= 1  # a cell at a coast may be on its other side
        layers = np.bincount(found.coords[:, 0])
        assert layers[0] == layers.min()


def test_ranks_beyond_a_ring_find_no_room_in_it():
    """A ring of 62 and a pair of its own: there is no box for all."""
    ring = np.arange(62)
    pairs = np.append(np.stack((ring, (ring + 1) % 62), axis=1), [[62, 63]], axis=0)
    assert find_structure(64, *renumbered(64, pairs, 0)) is None


def test_boxes_that_are_not_connected_lie_next_to_each_other():
    """Members of an ensemble are a box of boxes, rings of several lengths have a common side."""
    for heights, dims in (((8, 8, 8, 8), (8, 8, 2, 2)), ((6, 8), (14, 12)), ((6, 8, 5), (19, 12))):
        width = dims[1]
        parts, begin = [], 0
        for height in heights:
            number = begin + np.arange(width * height).reshape(width, height)
            parts += [*zip(number.ravel(), np.roll(number, 1, 0).ravel(), strict=True)]
            parts += [*zip(number[:, 1:].ravel(), number[:, :-1].ravel(), strict=True)]
            begin += width * height
        src, dst = renumbered(begin, parts, 0)
        found = find_structure(begin, src, dst)
        assert found.dims == dims
        assert len(np.unique(found.coords, axis=0)) == begin
        assert (apart(found, src, dst).sum(axis=1) == 1).all()
    for one, other in (((8,), (6, 6)), ((5, 9), (6, 8))):
        pairs, begin = [], 0
        for dims in (one, other):
            for axis in range(len(dims)):
                number = np.moveaxis(begin + np.arange(prod(dims)).reshape(dims), axis, 0)
                pairs += [*zip(number[1:].ravel(), number[:-1].ravel(), strict=True)]
            begin += prod(dims)
        assert find_structure(begin, *renumbered(begin, pairs, 0)) is None


def test_members_of_an_ensemble_fill_a_torus(compiled):
    """Eight grids of 4 x 4 x 4: all pairs are one hop."""
    number = np.arange(512).reshape(8, 4, 4, 4)
    ends = [(np.delete(number, 3, axis), np.delete(number, 0, axis)) for axis in (1, 2, 3)]
    pairs = np.concatenate([np.stack((a.ravel(), b.ravel()), axis=1) for a, b in ends])
    src, dst = renumbered(512, pairs, seed=2)
    ones, topology = np.ones(len(src), dtype=np.int64), topology_from_spec("torus:8x8x8")
    node_of = map_ranks(Traffic.from_pairs(512, src, dst, ones, ones), topology, "fold")
    check_mapping(node_of, topology, 512)
    assert (distances(topology.router, node_of[src], node_of[dst]) == 1).all()


def test_a_torus_with_diagonals_is_not_sheared():
    """Any diagonal has as many ranks as a side; along the sides no pair has two steps."""
    for seed in range(8):
        for dims in ((1, 30, 30), (10, 10, 10)):
            src, dst = lattice(dims, 27, tuple(n > 1 for n in dims), seed)
            src, dst = src[src != dst], dst[src != dst]
            found = find_structure(prod(dims), src, dst)
            assert sorted(found.dims) == [n for n in dims if n > 1]
            assert (apart(found, src, dst) <= 1).all()


def test_a_sheared_box_is_straightened_whatever_its_sides():
    """The first two are periodic, and every pair is one step apart without the shear."""
    dims = 4, 8, 3
    src, dst = lattice(dims, 7, (True, True, False))
    x, y, z = np.indices(dims).reshape(3, -1)
    sheared = np.empty((96, 3), dtype=np.int64)
    cells = np.stack(((x + y + 2 * z) % 4, (y + z) % 8, z), axis=1)
    sheared[np.random.default_rng(0).permutation(96)] = cells
    coords, length = _straightened(as_lists(96, src, dst), sheared, np.array(dims), 2)
    assert length == len(src)
    assert (apart(Cells(dims, coords), src, dst).sum(axis=1) == 1).all()


@pytest.mark.parametrize("points", [15, 19, 27])
def test_a_stencil_is_found_on_rings_of_four(points):
    """There steps of opposite directions lead to the same rank after two."""
    for dims in ((4, 8, 8), (4, 4, 8), (4, 4, 4)):
        for open_ends in range(dims.count(4) - 1, 3):
            periodic = (*[True] * (3 - open_ends), *[False] * open_ends)
            src, dst = lattice(dims, points, periodic, 1)
            found = find_structure(prod(dims), src, dst)
            assert sorted(found.dims) == sorted(dims)
            assert len(np.unique(found.coords, axis=0)) == prod(dims)
            assert (apart(found, src, dst) <= 1).all(axis=1).mean() > 0.9


@pytest.mark.parametrize("points", [7, 15, 27])
def test_some_pairs_too_many_or_too_few_do_no_harm(points):
    dims = (10, 9, 8)
    src, dst = lattice(dims, points, (False, False, True))
    rng = np.random.default_rng(1)
    keep = rng.random(len(src)) > 0.01
    extra = rng.integers(0, prod(dims), (2, len(src) // 100))
    extra = extra[:, extra[0] != extra[1]]
    src, dst = np.concatenate((src[keep], extra[0])), np.concatenate((dst[keep], extra[1]))
    pairs = np.unique(np.sort(np.stack((src, dst), axis=1), axis=1), axis=0)
    found = find_structure(prod(dims), pairs[:, 0], pairs[:, 1])
    assert sorted(found.dims) == sorted(dims)
    assert (apart(found, src, dst) <= 1).all(axis=1).mean() > 0.97


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dims", [(32, 16), (40, 40)])
def test_a_damaged_grid_is_found(dims, seed):
    """Its own pairs are one step apart; where others are among them, nearly all are."""
    for missing, added in ((0.03, 0.0), (0.08, 0.0), (0.08, 0.02)):
        traffic, rng = grid_traffic(*dims, seed=seed), np.random.default_rng(seed)
        kept = rng.random(traffic.pairs) >= missing
        own = traffic.src[kept], traffic.dst[kept]
        others = np.sort(rng.integers(0, traffic.ranks, (2, int(added * traffic.pairs))), axis=0)
        pairs = np.unique(np.concatenate((np.sort(own, axis=0), others), axis=1), axis=1)
        found = find_structure(traffic.ranks, *pairs[:, pairs[0] != pairs[1]])
        assert found is not None
        one_step = apart(found, *own).sum(axis=1) == 1
        assert one_step.mean() > (0.96 if added else 0.99), (missing, added)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_torus_without_some_of_its_pairs_is_found(seed):
    """15 % are missing, so that hardly any rank has all squares around it."""
    src, dst = lattice((8, 8, 8), 7, (True, True, True), seed)
    kept = np.random.default_rng(seed).random(len(src)) >= 0.15
    found = find_structure(512, src[kept], dst[kept])
    assert found is not None
    assert (apart(found, src[kept], dst[kept]).sum(axis=1) == 1).mean() > 0.97


@pytest.mark.parametrize(
    ("closed", "missing", "added", "least"),
    [(0, 0.0, 0.0, 1.0), (0, 0.02, 0.0, 0.97), (0, 0.0, 0.08, 0.85), (1, 0.0, 0.0, 0.9)],
)
def test_a_honeycomb_is_found_as_bricks(closed, missing, added, least):
    """Each row is a path or ring; every other rank has one neighbour in the next row.

    Where rows and columns close, any direction of bricks may be a row. With 8 % of pairs added
    anywhere, about a fifth of the ranks have more neighbours than a honeycomb has.
    """
    for (rows, columns), seed in product(((12, 12), (16, 32), (30, 20)), range(4)):
        number = np.arange(rows * columns).reshape(rows, columns)
        even = np.indices(number.shape).sum(axis=0) % 2 == 0
        right, below = np.roll(number, -1, axis=1), np.roll(number, -1, axis=0)
        in_rows = [part[:, : columns - 1 + closed].ravel() for part in (number, right)]
        between = [part[: rows - 1 + closed][even[: rows - 1 + closed]] for part in (number, below)]
        pairs = np.concatenate((in_rows, between), axis=1)
        rng = np.random.default_rng(0)
        kept = rng.random(pairs.shape[1]) >= missing
        extra = rng.choice(number.size, (2, int(added * pairs.shape[1])), replace=False)
        pairs = np.concatenate((pairs[:, kept], extra), axis=1)
        src, dst = renumbered(number.size, pairs.T, seed)
        found = find_structure(number.size, src, dst)
        assert closed or sorted(found.dims) == sorted(number.shape)
        assert len(np.unique(found.coords, axis=0)) == prod(found.dims) == number.size
        assert (apart(found, src, dst).sum(axis=1) == 1).mean() >= least


def test_no_stencil_grows_twice_from_the_same_ranks(monkeypatch):
    """A star of four grows alike whether a rank matches it in the plane or on rings."""
    grown = []

    def note(near, pairs, around, lattice, *rule):
        grown.append((lattice.steps.tobytes(), *around, *rule))

    monkeypatch.setattr(lattice_module, "_grown", note)
    traffic = grid_traffic(12, 12, seed=0)
    assert lattice_cells(as_lists(traffic.ranks, traffic.src, traffic.dst)) is None
    assert len(grown) == len(set(grown)) > 0


def test_what_has_no_structure_gets_no_coordinates():
    rng = np.random.default_rng(0)
    tree = np.arange(1, 127), (np.arange(1, 127) - 1) // 2
    clique = np.array(list(combinations(range(20), 2))).T
    several = np.arange(0, 100, 2), np.arange(1, 100, 2)
    pairs = np.unique(np.sort(rng.integers(0, 256, (1500, 2)), axis=1), axis=0)
    random = pairs[pairs[:, 0] != pairs[:, 1]].T
    for ranks, (src, dst) in ((127, tree), (20, clique), (100, several), (256, random)):
        assert find_structure(ranks, src, dst) is None


@pytest.mark.parametrize(
    ("dims", "points", "periodic", "spec"),
    [
        ((8, 8, 8), 7, (False, False, True), "torus:8x8x8"),
        ((8, 8, 8), 27, (True, True, True), "torus:8x8x8"),
        ((16, 8, 8), 15, (True, False, False), "torus:16x8x8"),
        ((8, 8, 8), 7, (False, False, True), "mesh:8x8x8"),
    ],
)
def test_a_shuffled_stencil_costs_no_more_than_in_its_own_order(
    dims, points, periodic, spec, compiled
):
    """Weights are lognormal, so that the grid's own order need not be the best."""
    src, dst = lattice(dims, points, periodic, seed=3)
    weight = np.random.default_rng(0).lognormal(8, 1, len(src)).astype(int)
    topology = topology_from_spec(spec)
    shuffled = Traffic.from_pairs(prod(dims), src, dst, np.ones(len(src)), weight)
    number = np.random.default_rng(3).permutation(prod(dims))
    own = np.empty_like(number)
    own[number] = np.arange(prod(dims))
    natural = objective_value(shuffled, topology, own, "hop_bytes")
    node_of = map_ranks(shuffled, topology, "auto(moves=100000)", seed=0)
    assert objective_value(shuffled, topology, node_of, "hop_bytes") <= natural


def test_the_heavy_pairs_of_a_stencil_with_diagonals_are_its_grid():
    number = np.arange(30).reshape(5, 6)
    pairs = [(number[:-1], number[1:], 100), (number[:, :-1], number[:, 1:], 90)]
    pairs += [(number[:-1, :-1], number[1:, 1:], 1), (number[:-1, 1:], number[1:, :-1], 1)]
    src = np.concatenate([a.ravel() for a, _, _ in pairs])
    dst = np.concatenate([b.ravel() for _, b, _ in pairs])
    volume = np.concatenate([np.full(a.size, w) for a, _, w in pairs])
    traffic = Traffic.from_pairs(30, src, dst, np.ones(len(src)), volume).undirected()
    grid = next(find_structures(traffic)[1])
    assert grid is not None
    assert grid.dims == (6, 5)
