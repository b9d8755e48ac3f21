"""Buffers that members allocate, counted by hand from the sources."""

from __future__ import annotations

import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.algorithms import schedule_call
from hopmap.simulator.collectives.schedules import ALLOCATED
from hopmap.simulator.measured.prediction import bytes_moved

WHOLE = 8 * 1024


def allocated(operation, algorithm, members=8, root=0, whole=WHOLE):
    """Buffers of each member, the largest first."""
    volume = bytes_moved(operation, whole, members)
    buffers = schedule_call(operation, algorithm, members, root, volume).schedule.buffers
    return [
        sorted(buffers.size[buffers.member == member].tolist(), reverse=True)
        for member in range(members)
    ]


def in_wholes(buffers, whole=WHOLE):
    return [len(each) if all(size == whole for size in each) else each for each in buffers]


@pytest.mark.parametrize(
    ("algorithm", "root", "wholes"),
    [
        # Who has children has what comes in, twice where there are two; who is no root adds up.
        ("binomial", 0, [2, 0, 2, 0, 3, 0, 2, 0]),  # 0: 1 2 4; 2: 3; 4: 5 6; 6: 7
        ("binomial", 1, [0, 2, 0, 2, 0, 3, 0, 2]),
        ("binary", 0, [2, 3, 3, 2, 0, 0, 0, 0]),  # 0: 1 2; 1: 3 5; 2: 4 6; 3: 7
        ("pipeline(segment=0)", 0, [1, 2, 2, 2, 2, 2, 2, 0]),
        ("pipeline(segment=1024)", 0, [0, 1, 1, 1, 1, 1, 1, 0]),  # segments come in
        ("linear", 3, [0, 0, 0, 1, 0, 0, 0, 0]),
        ("rabenseifner", 0, [1, 2, 2, 2, 2, 2, 2, 2]),
        ("bine_whole", 2, [2, 2, 1, 2, 2, 2, 2, 2]),
    ],
)
def test_reductions_to_one(algorithm, root, wholes):
    assert in_wholes(allocated("reduce", algorithm, root=root)) == wholes


def test_the_last_member_of_an_in_order_tree_adds_up_and_passes_on():
    # 7: 6 3; 6: 5 4; 3: 2 1; 1: 0, as the tree is made for 8.
    here, other = (in_wholes(allocated("reduce", "in_order_binary", root=r)) for r in (7, 0))
    assert here[7] == 2
    assert other[7] == 3
    assert here[:7] == other[:7]


@pytest.mark.parametrize(
    ("operation", "algorithm", "sizes"),
    [
        ("allreduce", "recursive_doubling", [WHOLE]),
        ("allreduce", "rabenseifner", [WHOLE]),
        ("allreduce", "ring", [WHOLE // 8] * 2),
        ("allreduce", "bine_halving", [WHOLE]),
        ("reduce_scatter", "recursive_halving", [WHOLE] * 2),
        ("reduce_scatter", "butterfly", [WHOLE] * 2),
        ("reduce_scatter", "ring", [WHOLE]),
        ("reduce_scatter", "pairwise", [WHOLE // 8]),
        ("reduce_scatter", "bine", [WHOLE] * 2),
        ("alltoall", "bruck", [WHOLE]),
        ("alltoall", "linear", []),
        ("alltoall", "pairwise", []),
        ("allgather", "ring", []),
        ("allgather", "recursive_doubling", []),
        ("bcast", "binomial", []),
        ("bcast", "bine", []),
    ],
)
def test_exchanges_allocate_the_same_on_everyone(operation, algorithm, sizes):
    assert allocated(operation, algorithm) == [sizes] * 8


def test_brucks_allgather_keeps_the_blocks_behind_each_member():
    assert allocated("allgather", "bruck") == [[]] + [[WHOLE - WHOLE // 8 * k] for k in range(1, 8)]


def test_who_passes_blocks_on_has_a_buffer():
    block = WHOLE // 8
    assert in_wholes(allocated("gather", "binomial")) == [0, 0, 1, 0, 1, 0, 1, 0]
    assert in_wholes(allocated("gather", "binomial", root=1))[1] == 1  # turned in the end
    scattered = allocated("scatter", "binomial")
    assert scattered == [[], [], [2 * block], [], [4 * block], [], [2 * block], []]
    assert allocated("scatter", "binomial", root=1)[1] == [WHOLE]
    assert in_wholes(allocated("gather", "bine_ranges")) == [0] + [1] * 7


def test_puts_go_into_memory_that_is_registered_once():
    assert allocated("reduce", "bine(puts=1)") == [[]] * 8
    assert allocated("reduce", "bine") != [[]] * 8


def test_only_algorithms_that_there_are_are_listed():
    for operation, names in ALLOCATED.items():
        assert not names.keys() - ALGORITHMS[operation].keys()
