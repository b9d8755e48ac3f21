"""Members do what Open MPI's C does, call by call: collectives without a root."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.selection import substitute
from support.rank_scripts import assert_same_scripts

from . import openmpi_everyone as c
from . import openmpi_reductions as r

SIZES = range(2, 18)
COUNT = 1600  # bytes that halve evenly as often as sixteen members need
BLOCKS = {
    ("allgather", "ring"): c.allgather_ring,
    ("allgather", "bruck"): c.allgather_bruck,
    ("allgather", "recursive_doubling"): c.allgather_recursivedoubling,
    ("allgather", "neighbour_exchange"): c.allgather_neighborexchange,
    ("allgather", "sparbit"): c.allgather_sparbit,
    ("reduce_scatter", "ring"): r.reduce_scatter_ring,
    ("reduce_scatter", "recursive_halving"): r.reduce_scatter_recursivehalving,
    ("reduce_scatter", "butterfly"): r.reduce_scatter_butterfly,
}
# Written by hand: of how many members the C takes it, where not of any number.
ONLY_OF = {
    ("allgather", "recursive_doubling"): {2, 4, 8, 16},
    ("allgather", "neighbour_exchange"): {2, 4, 6, 8, 10, 12, 14, 16},
}
WHOLE = {
    ("allreduce", "recursive_doubling"): r.allreduce_recursivedoubling,
    ("allreduce", "rabenseifner"): r.allreduce_redscat_allgather,
    ("allreduce", "linear"): r.allreduce_basic_linear,
    ("allreduce", "ring"): lambda *given: r.allreduce_ring_segmented(*given, 0),
    ("scan", "linear"): c.scan_linear,
    ("exscan", "linear"): c.exscan_linear,
    ("scan", "recursive_doubling"): lambda *given: c.scan_recursivedoubling(*given, False),
    ("exscan", "recursive_doubling"): lambda *given: c.scan_recursivedoubling(*given, True),
}
BARRIERS = {
    "double_ring": c.barrier_doublering,
    "recursive_doubling": c.barrier_recursivedoubling,
    "dissemination": c.barrier_bruck,
    "linear": c.barrier_basic_linear,
    "tree": c.barrier_tree,
}


def ranks(size, of, *given):
    return [of(rank, size, *given) for rank in range(size)]


@pytest.mark.parametrize(("operation", "name"), BLOCKS)
def test_blocks_of_every_member(operation, name):
    taken = ONLY_OF.get((operation, name), set(SIZES))
    assert {size for size in SIZES if substitute(operation, name, size) == name} == taken
    for size in taken:
        # Sizes that tell blocks apart, and any sum of them.
        counts = 1000 + 2 ** np.arange(size)
        expected = ranks(size, BLOCKS[operation, name], counts.tolist())
        assert_same_scripts(ALGORITHMS[operation][name](size, 0, counts), expected)


@pytest.mark.parametrize(("operation", "name"), WHOLE)
def test_whole_buffers(operation, name):
    for size in SIZES:
        expected = ranks(size, WHOLE[operation, name], COUNT)
        assert_same_scripts(ALGORITHMS[operation][name](size, 0, np.array([COUNT])), expected)


@pytest.mark.parametrize("segment", [0, 1, 3, 10, 19, 20, 100])
def test_a_ring_in_segments(segment):
    algorithm = ALGORITHMS["allreduce"]["segmented_ring"]
    for size in SIZES:
        expected = ranks(size, r.allreduce_ring_segmented, 199, segment)
        assert_same_scripts(algorithm(size, 0, np.array([199]), segment=segment), expected)


def test_rabenseifners_reduction():
    algorithm = ALGORITHMS["reduce"]["rabenseifner"]
    for size in SIZES:
        for root in range(min(size, 6)):
            expected = [r.reduce_redscat_gather(rank, size, root, COUNT) for rank in range(size)]
            assert_same_scripts(algorithm(size, root, np.array([COUNT])), expected, root)


@pytest.mark.parametrize("name", BARRIERS)
def test_barriers(name):
    for size in SIZES:
        schedule = ALGORITHMS["barrier"][name](size, 0, np.array([0]))
        assert_same_scripts(schedule, ranks(size, BARRIERS[name]))


def test_alltoalls():
    table = ALGORITHMS["alltoall"]
    for size in SIZES:
        pairs = np.arange(size * size).reshape(size, size) + 1000
        given, equal = pairs.tolist(), np.full((size, size), 7)
        for name, volume, expected in (
            ("pairwise", pairs, ranks(size, c.alltoall_pairwise, given)),
            ("linear", pairs, ranks(size, c.alltoall_basic_linear, given)),
            ("linear_sync", pairs, ranks(size, c.alltoall_basic_linear, given)),
            ("bruck", equal, ranks(size, c.alltoall_bruck, 7)),
        ):
            assert_same_scripts(table[name](size, 0, volume), expected, name)
