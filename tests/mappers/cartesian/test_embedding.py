"""Embedding: meshes of points, in any numbering, get cells in which what talks is near."""

from itertools import combinations
from math import log2, prod

import numpy as np
import pytest
from generated import blocks, traffic_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Delaunay, cKDTree

from hopmap.mappers.cartesian import embedding, grid
from hopmap.mappers.cartesian.axes import open_axes
from hopmap.mappers.cartesian.boxes import products
from hopmap.mappers.cartesian.embedding import FIRST, LENGTHS, _sides, boxed, embed, fill, shapes
from hopmap.mappers.cartesian.grid import _by_faces, find_structures
from hopmap.mappers.cartesian.structure import find_structure
from hopmap.mappers.objectives import cost_model
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from support.slow import examples


def nearest_eight(sides, ranks, points, seed):
    """Traffic of blocks of points in a box with their eight nearest, and the blocks' centres."""
    rng = np.random.default_rng(seed)
    place = rng.random((points * ranks, len(sides))) * sides
    block = rng.permutation(ranks)[blocks(place, ranks)]
    near = cKDTree(place).query(place, 9)[1][:, 1:]
    traffic = weighted(ranks, np.stack((np.repeat(block, 8), block[near.ravel()]), axis=1))
    return traffic, np.stack([np.bincount(block, x, ranks) for x in place.T], axis=1)


def weighted(ranks, pairs, weight=1):
    """Traffic of pairs; no rank talks to itself."""
    src, dst = np.asarray(pairs).T
    weight = np.broadcast_to(weight, len(src))[src != dst]
    return Traffic.from_pairs(ranks, src[src != dst], dst[src != dst], weight, weight)


MESHES = *LENGTHS[:2], LENGTHS[3]  # lengths for meshes that are no triangulations


def embedded(traffic, tries=4):
    """Cells as many as ranks, from so many tries."""
    model = cost_model(traffic, topology_from_spec(f"mesh:{traffic.ranks}"), "hop_bytes")
    spaces = embed(model, traffic.ranks, tries, np.random.default_rng(0))
    return [boxed(each, traffic.ranks) for each in spaces]


def length(traffic, coords):
    """Mean steps between ranks that talk."""
    steps = np.abs(coords[traffic.src] - coords[traffic.dst]).sum(axis=1)
    return np.average(steps, weights=traffic.bytes)


@pytest.mark.parametrize(
    ("sides", "ranks", "points", "dims"),
    [
        ((1, 1), 256, 1, (16, 16)),
        ((2, 1), 512, 4, (32, 16)),
        ((1, 1, 1), 512, 1, (8, 8, 8)),
        ((2, 1, 1), 1024, 1, (16, 8, 8)),
        ((1, 1, 1), 512, 4, (8, 8, 8)),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_points_in_a_box_get_cells_in_which_pairs_are_near(
    sides, ranks, points, dims, seed, monkeypatch
):
    """Little farther than in cells by coordinates, which an embedding has not: 1.42 was the most.

    At random they are 4 times as far at least.
    """
    monkeypatch.setattr(embedding, "LENGTHS", MESHES)
    traffic, place = nearest_eight(sides, ranks, points, seed)
    true = fill(place, np.ones(dims, int))
    assert length(traffic, np.random.default_rng(0).permutation(true)) > 3.9 * length(traffic, true)
    found = embedded(traffic)
    assert len(found) == 4
    for cells in found:
        assert sorted(cells.dims, reverse=True) == list(dims)
        assert len(np.unique(cells.coords, axis=0)) == ranks
        assert length(traffic, cells.coords) < 1.45 * length(traffic, true)
    assert min(length(traffic, cells.coords) for cells in found) < 1.2 * length(traffic, true)
    again = embedded(traffic)
    assert all(np.array_equal(a.coords, b.coords) for a, b in zip(found, again, strict=True))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_box_is_as_long_as_pairs_say(seed):
    """Points have variance 1 along every axis."""
    assert [shapes(1024, np.array(s))[0] for s in ((4, 1), (1, 1))] == [(64, 16), (32, 32)]
    assert shapes(256, np.array((1, 2.5, 1)))[0] == (4, 16, 4)
    assert sorted(shapes(6, np.array((3, 2)))) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    traffic, place = nearest_eight((2.5, 1, 1), 2048, 1, seed)
    model = cost_model(traffic, topology_from_spec("mesh:2048"), "hop_bytes")
    sides = _sides(open_axes(place / place.std(axis=0)), model)
    assert sides[0] / sides[1:] == pytest.approx([2.5, 2.5], rel=0.1)
    assert {tuple(sorted(cells.dims)) for cells in embedded(traffic)} == {(8, 8, 32)}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("sides", "dims"), [((2, 1), (32, 16)), ((1, 1, 1), (8, 8, 8))])
def test_long_pairs_along_its_hull_do_not_bend_a_triangulation(sides, dims, seed):
    """It has as many dimensions as its points by one of the lengths, and cells as near."""
    rng = np.random.default_rng(seed)
    place = rng.random((512, len(sides))) * sides
    corners = Delaunay(place).simplices
    pairs = np.concatenate([corners[:, list(two)] for two in combinations(range(len(dims) + 1), 2)])
    traffic = weighted(512, np.unique(np.sort(pairs, axis=1), axis=0))
    least = 1.2 * length(traffic, fill(place, np.ones(dims, int)))
    flat = [cells for cells in embedded(traffic) if sorted(cells.dims) == sorted(dims)]
    assert min(length(traffic, cells.coords) for cells in flat) < least


def test_a_triangulation_whose_hull_is_nearly_straight_stays_flat():
    """Points near those of a grid: pairs along its hull are up to half a side long."""
    rng = np.random.default_rng(0)
    cells = np.indices((32, 32)).reshape(2, -1).T
    corners = Delaunay(cells + rng.uniform(-0.25, 0.25, (1024, 2))).simplices
    pairs = np.concatenate([corners[:, list(two)] for two in combinations(range(3), 2)])
    traffic = weighted(1024, rng.permutation(1024)[np.unique(np.sort(pairs, axis=1), axis=0)])
    longest = np.abs(cells[pairs[:, 0]] - cells[pairs[:, 1]]).max()
    assert longest >= 12
    flat = [cells for cells in embedded(traffic) if cells.dims == (32, 32)]
    own = weighted(1024, np.unique(np.sort(pairs, axis=1), axis=0))
    least = min(length(traffic, cells.coords) for cells in flat)
    assert least < 1.3 * length(own, np.indices((32, 32)).reshape(2, -1).T)


@pytest.mark.parametrize(("sides", "dims"), [((2, 1), (32, 16)), ((1, 1, 1), (8, 8, 8))])
def test_shortcuts_do_not_hide_a_space(sides, dims, monkeypatch):
    """5 % of the pairs join ranks anywhere; the others are as near as without those."""
    monkeypatch.setattr(embedding, "LENGTHS", MESHES)
    joined, place = nearest_eight(sides, 512, 1, 0)
    few = joined.pairs // 20
    ends = np.random.default_rng(0).integers(0, 512, (2, few))
    src, dst = np.concatenate(((joined.src, joined.dst), ends), axis=1)
    volume = np.concatenate((joined.bytes, joined.bytes[:few]))
    found = embedded(Traffic.from_pairs(512, src, dst, volume, volume))
    assert len(found) >= 3
    for cells in found:
        assert length(joined, cells.coords) < 1.4 * length(joined, fill(place, np.ones(dims, int)))


def test_a_small_world_is_a_ring_with_shortcuts():
    """Neighbours along it are nearer than half of a row of cells, on average."""
    traffic = traffic_of("small_world", 256)
    cells = embedded(traffic)[0]
    assert np.median(np.abs(cells.coords[traffic.src] - cells.coords[traffic.dst]).sum(axis=1)) < 8


@pytest.mark.parametrize("silent", [4, 14, 24])
def test_some_ranks_without_peers_do_no_harm_to_an_embedding(silent):
    joined, place = nearest_eight((1, 1, 1), 256, 1, 0)
    traffic = Traffic(256 + silent, joined.src, joined.dst, joined.messages, joined.bytes)
    found = embedded(traffic, tries=8)
    assert len(found) == 8
    for cells in found:
        assert prod(cells.dims) == 256 + silent
        assert len(np.unique(cells.coords, axis=0)) == 256 + silent
        assert length(traffic, cells.coords) < 1.5 * length(
            joined, fill(place, np.ones((8, 8, 4), int))
        )


@pytest.mark.filterwarnings("error")
def test_pairs_that_weigh_nothing_join_nobody_in_an_embedding():
    """Two boxes whose ranks talk, with messages without bytes between them; then next to them."""
    joined, _ = nearest_eight((1, 1), 128, 1, 0)
    src, dst, volume = joined.src, joined.dst, joined.bytes
    number, none = np.arange(128), np.zeros(128, dtype=np.int64)
    pairs = np.concatenate((src, src + 128, number)), np.concatenate((dst, dst + 128, number + 128))
    two = Traffic.from_pairs(256, *pairs, np.ones(len(pairs[0])), [*volume, *volume, *none])
    assert embedded(two) == []
    extra = np.concatenate((src, number)), np.concatenate((dst, (number + 64) % 128))
    one = Traffic.from_pairs(128, *extra, np.ones(len(extra[0])), [*volume, *none])
    for cells, same in zip(embedded(one), embedded(joined), strict=True):
        assert np.array_equal(cells.coords, same.coords)


@pytest.mark.filterwarnings("error")
def test_what_is_in_no_space_is_not_embedded():
    rng = np.random.default_rng(0)
    points, place = nearest_eight((1, 1, 1), 256, 1, 0)
    side = place[:, 0].argsort()[:80]
    mesh = np.stack((points.src, points.dst), axis=1)
    clique = list(combinations(range(32), 2))
    nowhere = {
        "random": weighted(256, rng.integers(0, 256, (1500, 2))),
        "few": weighted(1024, rng.integers(0, 1024, (4000, 2))),
        "star": weighted(64, [(0, k) for k in range(1, 64)]),
        "path": weighted(128, [(k, k + 1) for k in range(127)]),
        "thick path": weighted(128, [(k, k + d) for d in (1, 2, 3) for k in range(128 - d)]),
        "pair": weighted(2, [(0, 1)]),
        "clique": weighted(32, clique),
        "uneven clique": weighted(32, clique, rng.integers(1, 99, len(clique))),
        "with a hub": weighted(257, [*mesh, *((256, k) for k in range(0, 256, 2))]),
        "with a hub at one side": weighted(257, [*mesh, *((256, k) for k in side)]),
        "in two parts": weighted(512, np.concatenate((mesh, mesh + 256))),
        "with many silent": weighted(288, mesh),
        "no pairs": Traffic.from_pairs(16, [], [], [], []),
        "attachment": traffic_of("ba", 256),
        "bipartite": traffic_of("bipartite", 256),
    }
    assert embedded(weighted(256, mesh))
    assert [name for name, traffic in nowhere.items() if embedded(traffic)] == []


def test_where_there_is_no_space_that_is_seen_after_the_first_landmarks(monkeypatch):
    made = []

    def counted(*words, **more):
        made.append(1)
        return dijkstra(*words, **more)

    monkeypatch.setattr("scipy.sparse.csgraph.dijkstra", counted)
    pairs = np.random.default_rng(0).integers(0, 1024, (4000, 2))
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    for weight, lengths in ((1 + np.arange(len(pairs)) % 2, LENGTHS), (1, LENGTHS[1:])):
        made.clear()
        assert not embedded(weighted(1024, pairs, weight))
        assert len(made) == len(lengths) * (FIRST + 1)


@examples(60)
@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(
            st.sampled_from([*map(tuple, products(n, (n, n, n)))]), st.integers(0, 10**6)
        )
    )
)
def test_each_cell_of_any_box_gets_a_point(case):
    dims, seed = case
    points = np.random.default_rng(seed).random((prod(dims), 3))
    room = np.ones(dims, dtype=int)
    coords = fill(points, room)
    assert sorted(map(tuple, coords.tolist())) == list(np.ndindex(dims))
    for fewer in {1, prod(dims) // 2, prod(dims) - 1} - {0}:
        some = fill(points[:fewer], room)
        assert len(set(map(tuple, some.tolist()))) == fewer
        assert (some >= 0).all() and (some < dims).all()
    corner = np.stack(np.unravel_index(np.arange(prod(dims)), dims), axis=1)
    new = np.random.default_rng(seed).permutation(prod(dims))
    assert np.array_equal(fill(corner[new] + 0.5, room), corner[new])


@examples(60)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(0, 10**6), st.integers(1, 3)
)
def test_no_cell_gets_more_points_than_it_has_room_for(dims, seed, most):
    """And all of it is taken by as many points."""
    rng = np.random.default_rng(seed)
    room = rng.integers(0, most + 1, dims)
    room.flat[0] = most
    points = rng.random((rng.integers(0, room.sum() + 1), len(dims)))
    assert (np.bincount(numbers(fill(points, room), dims), minlength=room.size) <= room.flat).all()
    full = rng.random((room.sum(), len(dims)))
    assert (np.bincount(numbers(fill(full, room), dims), minlength=room.size) == room.flat).all()


def numbers(cells, dims):
    """Row-major numbers of cells."""
    return np.ravel_multi_index(tuple(cells.T), dims)


@pytest.mark.parametrize(
    ("ranks", "points", "dims", "share"),
    [
        (128, 100, (16, 8), 1.0),
        (256, 32, (16, 16), 1.0),
        pytest.param(1024, 48, (16, 8, 8), 0.98, marks=pytest.mark.slow),
    ],
)
def test_blocks_of_a_mesh_of_points_that_halve_a_box_are_its_cells(
    ranks, points, dims, share, monkeypatch
):
    """Faces weigh more than edges and corners; up to the order and direction of coordinates.

    In space a few cells are others.
    """
    rng, dimensions = np.random.default_rng(0), len(dims)
    place, new = rng.random((ranks * points, dimensions)), rng.permutation(ranks)
    simplices = np.sort(Delaunay(place).simplices, axis=1)
    edges = [simplices[:, pair] for pair in combinations(range(dimensions + 1), 2)]
    edges = np.unique(np.concatenate(edges), axis=0)
    pairs = weighted(ranks, new[blocks(place, ranks)][edges]).undirected()
    assert find_structure(ranks, pairs.src.astype(int), pairs.dst.astype(int)) is None
    halves = (np.arange(ranks)[:, None] >> np.arange(int(log2(ranks)))[::-1]) & 1
    cell = [halves[:, d::dimensions] for d in range(dimensions)]
    cell = [x @ (1 << np.arange(x.shape[1])[::-1]) for x in cell]
    monkeypatch.setattr(grid, "GAPS", 0)
    for found in (_by_faces(pairs, pairs.bytes), next(find_structures(pairs)[1])):
        assert sorted(found.dims, reverse=True) == list(dims)
        assert len(np.unique(found.coords, axis=0)) == ranks
        axes = found.coords[new].T
        for x in cell:
            assert max((a == way).mean() for a in axes for way in (x, x.max() - x)) >= share


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16, 32])
def test_of_few_or_random_pairs_no_faces_are_found(ranks):
    empty = np.empty(0, dtype=np.int64)
    assert _by_faces(Traffic.from_pairs(ranks, [], [], [], []), empty) is None
    for seed in range(20):
        rng = np.random.default_rng(seed)
        src, dst = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.1 * (seed % 10 + 1), 1))
        weight = rng.integers(0, 99, len(src))
        pairs = Traffic.from_pairs(ranks, src, dst, np.ones(len(src)), weight)
        assert _by_faces(pairs, pairs.bytes) is None
