"""Every rank finds its coordinates alone, the same as all of them at once."""

from __future__ import annotations

import time
from math import prod

import numpy as np
from hypothesis import given

from hopmap.mappers.cartesian.boxes import factorise_all, gropp_all, level_factors
from hopmap.mappers.cartesian.grid import all_row_major, crossing
from hopmap.mappers.cartesian.halvings import hyperplane_all, kd_tree_all, skewed_kd_tree_all
from hopmap.mappers.cartesian.strips import squarest_strips_all, stencil_strips_all
from hopmap.traces.patterns.stencils import star
from support.grids import (
    factorised_coordinates,
    gropp_coordinates,
    hyperplane_coordinates,
    kd_tree_coordinates,
    row_major,
    skewed_kd_tree_coordinates,
    squarest_strips_coordinates,
    stencil_strips_coordinates,
    stencils_on_nodes,
)
from support.slow import examples


def forms(dims, size, stencil):
    """Pairs of (coordinates of one rank, coordinates of all)."""
    across = crossing(stencil, None, len(dims))
    factors = level_factors(dims, (prod(dims) // size, size), across)
    return {
        "row_major": (lambda r: row_major(r, dims), all_row_major(dims)),
        "gropp": (lambda r: gropp_coordinates(r, dims, size), gropp_all(dims, size)),
        "factorisation": (lambda r: factorised_coordinates(r, factors), factorise_all(factors)),
        "kd_tree": (lambda r: kd_tree_coordinates(r, dims), kd_tree_all(dims)),
        "skewed_kd_tree": (
            lambda r: skewed_kd_tree_coordinates(r, dims, stencil),
            skewed_kd_tree_all(dims, stencil),
        ),
        "squarest_strips": (
            lambda r: squarest_strips_coordinates(r, dims, size),
            squarest_strips_all(dims, size),
        ),
        "squarest_strips, ours": (
            lambda r: squarest_strips_coordinates(r, dims, size, "narrower"),
            squarest_strips_all(dims, size, "narrower"),
        ),
        "squarest_strips, snake": (
            lambda r: squarest_strips_coordinates(r, dims, size, path="snake"),
            squarest_strips_all(dims, size, path="snake"),
        ),
        "stencil_strips": (
            lambda r: stencil_strips_coordinates(r, dims, size, stencil),
            stencil_strips_all(dims, size, stencil),
        ),
        "hyperplane": (
            lambda r: hyperplane_coordinates(r, dims, size, stencil),
            hyperplane_all(dims, size, stencil),
        ),
    }


@examples(200)
@given(stencils_on_nodes(longest=6))
def test_every_rank_finds_its_coordinates_alone(case):
    dims, _, _ = case
    for name, (local, everyone) in forms(*case).items():
        assert [local(rank) for rank in range(prod(dims))] == everyone.tolist(), name


@examples(100)
@given(stencils_on_nodes())
def test_every_coordinate_is_taken_once(case):
    dims, _, _ = case
    for name, (_, everyone) in forms(*case).items():
        numbers = np.ravel_multi_index(tuple(everyone.T), dims)
        assert np.array_equal(np.sort(numbers), np.arange(prod(dims))), name


def test_a_million_ranks_take_less_than_a_second():
    dims, size, stencil = (1024, 1024), 32, star(2)
    makers = {
        "kd_tree": lambda: kd_tree_all(dims),
        "skewed_kd_tree": lambda: skewed_kd_tree_all(dims, stencil),
        "squarest_strips": lambda: squarest_strips_all(dims, size),
        "squarest_strips, snake": lambda: squarest_strips_all(dims, size, path="snake"),
        "stencil_strips": lambda: stencil_strips_all(dims, size, stencil),
        "hyperplane": lambda: hyperplane_all(dims, size, stencil),
        "gropp": lambda: gropp_all(dims, size),
        "factorisation": lambda: factorise_all(level_factors(dims, (2**15, size), (2, 2))),
    }
    for name, make in makers.items():
        begin = time.process_time()
        assert len(make()) == 2**20
        assert time.process_time() - begin < 1, name
