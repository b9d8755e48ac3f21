"""Members do what Open MPI's C does, call by call: bcast, reduce, gather, scatter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from support.rank_scripts import assert_same_scripts

from . import openmpi_rooted as c

COUNT = 1000
SIZES = range(2, 18)
ROOTS = (0, 3)


def everyone(size, root, of):
    return [of(rank) for rank in range(size)]


def generic(of, build):
    return lambda size, root, segment: [
        of(rank, root, COUNT, segment, *build(size, rank, root)) for rank in range(size)
    ]


def alone(of, *more):
    return lambda size, root, segment: [of(rank, size, root, COUNT, *more) for rank in range(size)]


TREES = {
    "binomial": c.build_bmtree,
    "binary": lambda size, rank, root: c.build_tree(2, size, rank, root),
    "pipeline": lambda size, rank, root: c.build_chain(1, size, rank, root),
    "chain": lambda size, rank, root: c.build_chain(1, size, rank, root),
}
CHAINS = {
    f"chain {fanout}": lambda size, rank, root, fanout=fanout: c.build_chain(
        fanout, size, rank, root
    )
    for fanout in (2, 3, 4)
}
KNOMIALS = {
    f"knomial {radix}": lambda size, rank, root, radix=radix: c.build_kmtree(
        size, rank, root, radix
    )
    for radix in (2, 3, 4)
}
SEGMENTED = {
    ("bcast", name): generic(c.bcast_generic, build)
    for name, build in (TREES | CHAINS | KNOMIALS).items()
} | {
    ("reduce", name): generic(c.reduce_generic, build)
    for name, build in (TREES | CHAINS | {"binomial": c.build_in_order_bmtree}).items()
}
SEGMENTED["bcast", "split_binary"] = lambda size, root, segment: [
    c.bcast_split_bintree(rank, size, root, COUNT, segment) for rank in range(size)
]
SEGMENTED["reduce", "in_order_binary"] = lambda size, root, segment: [
    c.reduce_in_order_binary(rank, size, root, COUNT, segment) for rank in range(size)
]
SEGMENTED["gather", "linear_sync"] = lambda size, root, segment: [
    c.gather_linear_sync(rank, size, root, COUNT, segment) for rank in range(size)
]
PLAIN = {
    ("bcast", "linear"): alone(c.bcast_basic_linear),
    ("bcast", "scatter_allgather"): alone(c.bcast_scatter_allgather, False),
    ("bcast", "scatter_allgather_ring"): alone(c.bcast_scatter_allgather, True),
    ("reduce", "linear"): alone(c.reduce_basic_linear),
    ("gather", "linear"): alone(c.gather_basic_linear),
    ("gather", "binomial"): alone(c.gather_binomial),
    ("scatter", "linear"): alone(c.scatter_basic_linear),
    ("scatter", "linear_nb"): alone(c.scatter_linear_nb),
    ("scatter", "binomial"): alone(c.scatter_binomial),
}


@pytest.mark.parametrize(("operation", "name"), SEGMENTED | PLAIN)
def test_calls_of_every_rank(operation, name):
    name, *option = name.split()
    options = {{"chain": "fanout", "knomial": "radix"}[name]: int(each) for each in option}
    key = (operation, " ".join((name, *option)))
    segments, expected = ((0, 300, 499, 500, 501, 1000, 2000), SEGMENTED.get(key))
    if key in PLAIN:
        segments, expected = (None,), PLAIN[key]
    for size, root, segment in product(SIZES, ROOTS, segments):
        volume = np.array([COUNT]) if operation in ("bcast", "reduce") else np.full(size, COUNT)
        given = options if segment is None else options | {"segment": segment}
        ours = ALGORITHMS[operation][name](size, root % size, volume, **given)
        assert_same_scripts(ours, expected(size, root % size, segment), root, segment)


def test_the_trees_of_eight_members_are_those_that_the_source_draws():
    assert [c.build_bmtree(8, rank, 0)[1] for rank in range(4)] == [[1, 2, 4], [3, 5], [6], [7]]
    assert [c.build_in_order_bmtree(8, rank, 0)[1] for rank in (0, 2, 4, 6)] == [
        [1, 2, 4],
        [3],
        [5, 6],
        [7],
    ]
    assert [c.build_in_order_bintree(9, rank)[1] for rank in (8, 7, 3)] == [[7, 3], [6, 5], [2, 1]]
    assert [c.build_kmtree(10, rank, 0, 4)[1] for rank in (0, 4, 8)] == [
        [4, 8, 1, 2, 3],
        [5, 6, 7],
        [9],
    ]
