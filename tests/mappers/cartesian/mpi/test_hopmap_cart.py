"""hopmap_cart.h: the Python's coordinates from C."""

from __future__ import annotations

import shutil
import subprocess
from math import prod
from pathlib import Path

import numpy as np
import pytest

from hopmap.mappers import map_ranks
from hopmap.mappers.cartesian.boxes import factorise_all, gropp_all, level_factors
from hopmap.mappers.cartesian.grid import crossing
from hopmap.mappers.cartesian.halvings import dividing_mean, hyperplane_all, skewed_kd_tree_all
from hopmap.mappers.cartesian.strips import stencil_strips_all
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from hopmap.traces.patterns.stencils import STENCILS, star
from support.grids import (
    gropp_coordinates,
    hyperplane_coordinates,
    kd_tree_coordinates,
    row_major,
    skewed_kd_tree_coordinates,
    squarest_strips_coordinates,
    stencil_strips_coordinates,
)
from support.slow import slow

from .cart_header import (
    ALGORITHM,
    DIMS,
    EQUAL,
    EVERYONE,
    FLAGS,
    INDEX,
    NODES,
    WEIGHTS,
    algorithms,
    line,
)

HERE = Path(__file__).parent

# Of one index, from dims, the size of all nodes, and the stencil.
LOCAL = {
    "row_major": lambda i, dims, size, stencil: row_major(i, dims),
    "kd_tree": lambda i, dims, size, stencil: kd_tree_coordinates(i, dims),
    "skewed_kd_tree": lambda i, dims, size, stencil: skewed_kd_tree_coordinates(i, dims, stencil),
    "squarest_strips": lambda i, dims, size, stencil: squarest_strips_coordinates(i, dims, size),
    "squarest_strips(path=snake)": lambda i, dims, size, stencil: squarest_strips_coordinates(
        i, dims, size, path="snake"
    ),
    "stencil_strips": stencil_strips_coordinates,
    "hyperplane": hyperplane_coordinates,
    "gropp": lambda i, dims, size, stencil: gropp_coordinates(i, dims, size),
}


@pytest.fixture(
    scope="module",
    params=[
        "cc -std=c99 -O2",
        "cc -std=c99 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
        "c++ -std=c++11 -x c++",
    ],
)
def coordinates(request, tmp_path_factory):
    """Answer the compiled header's coordinates for a case, or its error: a list of numbers."""
    compiler, *flags = request.param.split()
    if shutil.which(compiler) is None:
        pytest.skip(f"no compiler {compiler}")
    folder = tmp_path_factory.mktemp("coordinates")
    source, program = HERE / "cart_coordinates.c", folder / "cart_coordinates"
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    probe = [compiler, *flags, folder / "empty.c", "-o", folder / "empty"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip(f"this compiler cannot: {request.param}")
    subprocess.run([compiler, *flags, "-pedantic", *FLAGS, source, "-o", program], check=True)

    def answer(cases):
        """Of cases (algorithm, dims, nodes, stencil, first, how many[, weights[, socket]])."""

        def written(name, dims, nodes, stencil, first, count, weights=(), socket=0):
            grid = [len(dims), dims, len(stencil), np.array(stencil, int)]
            return line(name, nodes, socket, *grid, len(weights) > 0, list(weights), first, count)

        lines = [written(*case) for case in cases]
        done = subprocess.run(
            program, input="\n".join(lines), capture_output=True, text=True, check=True
        )
        return [[int(x) for x in found.split()] for found in done.stdout.splitlines()]

    return answer


def check(coordinates, grids):
    """Compare all indices of grids (dims, ranks on each node, stencil) for every algorithm."""
    cases = [(name, *grid) for grid in grids for name in algorithms(grid[1])]
    found = coordinates(
        (name, dims, (len(sizes), min(sizes), max(sizes)), stencil, 0, prod(dims))
        for name, dims, sizes, stencil in cases
    )
    for (name, *grid), numbers in zip(cases, found, strict=True):
        assert numbers == EVERYONE[name](*grid).ravel().tolist(), (name, grid)


def equal_nodes(dims):
    """Every node size that divides a grid, as a list of the nodes' sizes."""
    ranks = prod(dims)
    return [[size] * (ranks // size) for size in range(1, ranks + 1) if ranks % size == 0]


def random_grids(count):
    """Every other one on nodes of unequal sizes, every third with vectors drawn by chance."""
    rng = np.random.default_rng(7)
    for n in range(count):
        dims = tuple(rng.integers(1, 13, rng.integers(1, 5)).tolist())
        ranks, choices = prod(dims), equal_nodes(dims)
        sizes = choices[rng.integers(len(choices))]
        if n % 2:
            cuts = np.sort(rng.integers(0, ranks + 1, rng.integers(0, 8)))
            sizes = [size for size in np.diff([0, *cuts, ranks]).tolist() if size]
        names = [name for name, (_, only) in STENCILS.items() if only in (None, len(dims))]
        stencil = STENCILS[rng.choice(names)][0](len(dims))
        if n % 3 == 0:
            stencil = rng.integers(-3, 4, (rng.integers(1, 7), len(dims))).tolist()
        yield dims, sizes, stencil


@pytest.mark.parametrize("grids", [40, *slow(200)])
def test_every_rank_of_many_grids_has_the_coordinates_of_the_python(coordinates, grids):
    check(coordinates, list(random_grids(grids)))


@pytest.mark.parametrize(
    "dims", [(4, 8), (12, 11, 8), (5, 4, 3, 2, 2, 2), *slow((30, 7, 10), (64, 81))]
)
def test_every_node_size_that_divides_a_grid_does(coordinates, dims):
    """Exact roots among them, like 27 on three dimensions."""
    check(coordinates, [(dims, sizes, star(len(dims))) for sizes in equal_nodes(dims)])


def test_equal_angles_are_equal_in_any_order(coordinates):
    """Six times 1/6 in the first dimension, 1 in the second: the longer one is cut."""
    stencil = [(1, 0, 1, 2)] * 6 + [(0, 1, 0, 0)]
    check(coordinates, [((6, 4, 1, 1), [4] * 6, stencil), ((4, 6, 1, 1), [4] * 6, stencil)])


@pytest.mark.parametrize(
    ("dims", "size"),
    [((46340, 46340), 662), ((2**31 - 1,), 2**31 - 1), ((1200, 1290, 1380), 516), ((2,) * 16, 8)],
)
def test_grids_as_large_as_an_int_allows_do_not_overflow(coordinates, dims, size):
    ranks, stencil = prod(dims), star(len(dims))
    at = [0, 1, ranks // 3, ranks - 1]
    nodes = (ranks // size, size, size)
    found = coordinates((name, dims, nodes, stencil, i, 1) for name in LOCAL for i in at)
    assert found == [local(i, dims, size, stencil) for local in LOCAL.values() for i in at]


def test_without_vectors_the_stencil_is_the_star(coordinates):
    dims, sizes = (12, 6, 4), [24] * 12
    found = coordinates((name, dims, (12, 24, 24), [], 0, 288) for name in EVERYONE)
    assert found == [every(dims, sizes, star(3)).ravel().tolist() for every in EVERYONE.values()]


@pytest.mark.parametrize("name", EVERYONE)
def test_wrong_input_is_an_error(coordinates, name):
    wrong = {
        (name, (4, 0), (1, 4, 4), (), 0, 1): DIMS,
        (name, (2,) * 17, (1, 4, 4), (), 0, 1): DIMS,
        (name, (65536, 32768), (1, 4, 4), (), 0, 1): DIMS,  # 2^31, one too many
        (name, (4, 4), (1, 16, 16), (), -1, 1): INDEX,
        (name, (4, 4), (1, 16, 16), (), 16, 1): INDEX,
        (name, (4, 4), (1, 17, 17), (), 0, 1): NODES,
        (name, (4, 4), (0, 4, 4), (), 0, 1): NODES,
        ("sweep", (4, 4), (4, 4, 4), (), 0, 1): ALGORITHM,
    }
    assert coordinates(wrong) == [[error] for error in wrong.values()]


@pytest.mark.slow
def test_weights_count_as_in_the_python(coordinates):
    rng, cases, expected = np.random.default_rng(5), [], []
    for dims, sizes, stencil in random_grids(60):
        weights = rng.choice([0, 1, 1, 10, 1000, 10**6], len(stencil)).tolist()
        mean, divides = sum(sizes) // len(sizes), dividing_mean(sizes)
        found = {
            "hyperplane": hyperplane_all(dims, divides, stencil, weights),
            "stencil_strips": stencil_strips_all(dims, mean, stencil, weights),
            "skewed_kd_tree": skewed_kd_tree_all(dims, stencil, weights),
        }
        if len(set(sizes)) == 1:
            across = crossing(stencil, weights, len(dims))
            factors = level_factors(dims, (len(sizes), sizes[0]), across)
            found["factorisation"] = factorise_all(factors)
        nodes = (len(sizes), min(sizes), max(sizes))
        cases += [(name, dims, nodes, stencil, 0, prod(dims), weights) for name in found]
        expected += [every.ravel().tolist() for every in found.values()]
    assert coordinates(cases) == expected


def test_sockets_are_boxes_in_the_boxes_of_nodes(coordinates):
    """Factorisation as on a tree of nodes, sockets and cores; Gropp's rule once for each."""
    dims, nodes = (12, 8), (4, 24, 24)
    found = coordinates((name, dims, nodes, star(2), 0, 96, (), 6) for name in EQUAL)
    tree = map_ranks(
        stencil_traffic(dims, "5pt"), topology_from_spec("tree:6:4:4"), "factorisation"
    )
    cells = np.ravel_multi_index(tuple(np.reshape(found[1], (96, 2)).T), dims)
    assert tree[cells].tolist() == list(range(96))
    by_gropp = np.reshape(found[0], (96, 2))
    box = gropp_all(dims, 24)[:24]  # 24 = 3 2 2 2: a node is 6 x 4
    assert np.ptp(box, axis=0).tolist() == [5, 3]
    assert sorted(map(tuple, by_gropp[:24])) == sorted(map(tuple, box))
    # A socket's 6 = 3 2: the shortest side that divides by 3 is the first, then the second by 2.
    sockets = [by_gropp[at : at + 6] for at in range(0, 96, 6)]
    assert {tuple(np.ptp(socket, axis=0).tolist()) for socket in sockets} == {(2, 1)}


def test_a_grid_without_dimensions_is_one_process(coordinates):
    assert coordinates([(name, (), (1, 1, 1), (), 0, 1) for name in EVERYONE]) == [[]] * len(
        EVERYONE
    )
    assert coordinates([("sweep", (), (1, 1, 1), (), 0, 1)]) == [[ALGORITHM]]
    assert coordinates([("kd_tree", (), (1, 1, 1), (), 1, 1)]) == [[INDEX]]


def test_wrong_weights_and_sockets_are_errors(coordinates):
    over = (2**31 - 1, 2**31 - 1, 1, 1)
    for name in ("hyperplane", "stencil_strips", "skewed_kd_tree", "factorisation"):
        for weights in ((-1, 1, 1, 1), over):
            case = (name, (4, 4), (4, 4, 4), star(2), 0, 1, weights)
            assert coordinates([case]) == [[WEIGHTS]]
    sockets = [(name, (4, 4), (4, 4, 4), (), 0, 1, (), 3) for name in EQUAL]
    assert coordinates(sockets) == [[NODES]] * 2


def test_gropp_refuses_nodes_that_it_cannot_factorise(coordinates):
    unequal, not_dividing = (2, 7, 9), (5, 3, 3)
    cases = [(n, (4, 4), nodes, (), 0, 1) for n in EQUAL for nodes in (unequal, not_dividing)]
    assert coordinates(cases) == [[NODES]] * 4
