"""Rounds and bytes of every algorithm are the published ones."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.selection import substitute
from support.schedules import depth

MEMBERS = [*range(2, 18), 31, 32, 33, 64]
N = 1009  # bytes of a buffer, which no number of members divides


def levels(p):
    return (p - 1).bit_length()


def power(p):
    return 1 << (p.bit_length() - 1)


def folds(p):
    """1 if some members are beyond the last power of two."""
    return int(p != power(p))


def deepest(p):
    """Depth of a binomial tree: one for every bit of a number."""
    return max(v.bit_count() for v in range(p))


def quaternary(p):
    """Depth of the tree of radix 4: one for every digit that is not 0."""
    return max(sum(bool(v >> k & 3) for k in range(0, 16, 2)) for v in range(p))


ROUNDS = {
    "barrier": {
        "dissemination": levels,
        "recursive_doubling": lambda p: int(log2(p)) + 2 * folds(p),
        "double_ring": lambda p: 2 * p,
        "tree": lambda p: 2 * deepest(p) if p == power(p) else None,
        "linear": lambda p: p,
    },
    "bcast": {
        "binomial": deepest,
        "linear": lambda p: 1,
        "knomial": quaternary,
        "binary": lambda p: int(log2(p)),
        "split_binary": lambda p: {2: 2, 3: 3, 4: 3, 5: 4, 8: 5}.get(p),
        "chain": lambda p: p - 1,
        "pipeline": lambda p: p - 1,
        "scatter_allgather": lambda p: 2 * levels(p) if p == power(p) else None,
        "scatter_allgather_ring": lambda p: levels(p) + p - 1,
    },
    "gather": {"binomial": deepest, "linear": lambda p: 1, "linear_sync": lambda p: 2 * p - 1},
    "scatter": {"binomial": levels, "linear": lambda p: p - 1, "linear_nb": lambda p: 1},
    "allgather": {
        "bruck": levels,
        "recursive_doubling": levels,
        "neighbour_exchange": lambda p: p // 2,
        "ring": lambda p: p - 1,
        "sparbit": levels,
        "gather_bcast": lambda p: None,
    },
    "alltoall": {
        "pairwise": lambda p: p - 1,
        "linear": lambda p: 1,
        "linear_sync": lambda p: 1,
        "bruck": levels,
        "bruck_by_blocks": levels,
    },
    "allreduce": {
        "recursive_doubling": lambda p: int(log2(p)) + 2 * folds(p),
        "rabenseifner": lambda p: 2 * int(log2(p)) + 3 * folds(p),
        "ring": lambda p: 2 * (p - 1),
        "segmented_ring": lambda p: 2 * (p - 1),
        "reduce_bcast": lambda p: None,
        "allgather_reduce": lambda p: None,
        "linear": lambda p: 2,
    },
    "reduce": {
        "binomial": deepest,
        "linear": lambda p: 1,
        "binary": lambda p: int(log2(p)),
        "in_order_binary": lambda p: {2: 2, 3: 2, 4: 3, 9: 4}.get(p),
        "chain": lambda p: p - 1,
        "pipeline": lambda p: p - 1,
        "rabenseifner": lambda p: 2 * int(log2(p)) + 2 * folds(p),
    },
    "reduce_scatter": {
        "pairwise": lambda p: p - 1,
        "recursive_halving": lambda p: int(log2(p)) + 2 * folds(p),
        "ring": lambda p: p - 1,
        "butterfly": lambda p: None if folds(p) else int(log2(p)) + (p > 2),
        "reduce_scatter": lambda p: None,
    },
    "scan": {"recursive_doubling": levels, "linear": lambda p: p - 1},
}


def volume_of(operation, p):
    if operation == "alltoall":
        return np.full((p, p), N)
    if operation in ("gather", "scatter", "allgather", "reduce_scatter"):
        return N + np.arange(p)
    return np.array([N])


def schedule_of(operation, algorithm, p, volume=None):
    volume = volume_of(operation, p) if volume is None else np.array(volume)
    return ALGORITHMS[operation][algorithm](p, 0, volume)


def bytes_of(operation, algorithm, p, volume=None):
    return int(schedule_of(operation, algorithm, p, volume).size.sum())


def suiting(operation, algorithm):
    return [p for p in MEMBERS if substitute(operation, algorithm, p) == algorithm]


def of_bine(algorithm):
    """Those that test_bine.py has."""
    return algorithm.startswith(("bine", "torus"))


def test_every_algorithm_is_here():
    same = {
        "gatherv": "gather",
        "scatterv": "scatter",
        "allgatherv": "allgather",
        "alltoallv": "alltoall",
        "alltoallw": "alltoall",
        "reduce_scatter_block": "reduce_scatter",
        "exscan": "scan",
    }
    for operation, table in ALGORITHMS.items():
        others = {name for name in table if not of_bine(name)}
        assert ROUNDS[same.get(operation, operation)].keys() == others


@pytest.mark.parametrize("operation", ROUNDS)
def test_rounds(operation):
    for algorithm, published in ROUNDS[operation].items():
        for p in suiting(operation, algorithm):
            if published(p) is not None:
                found = depth(schedule_of(operation, algorithm, p))
                assert found == published(p), (algorithm, p)
        assert len(schedule_of(operation, algorithm, 1).round) == 0, algorithm


@pytest.mark.parametrize("algorithm", ["binomial", "linear", "knomial", "binary", "chain"])
def test_trees_send_the_buffer_to_everyone_else_once(algorithm):
    for p in MEMBERS:
        assert bytes_of("bcast", algorithm, p) == (p - 1) * N
        if algorithm != "knomial":
            assert bytes_of("reduce", algorithm, p) == (p - 1) * N


@pytest.mark.parametrize(("algorithm", "children"), [("binary", 2), ("chain", 1), ("binomial", 6)])
def test_trees_have_so_many_children_in_a_round(algorithm, children):
    schedule = schedule_of("bcast", algorithm, 64)
    turns, sent = np.unique(schedule.round * 64 + schedule.src, return_counts=True)
    assert sent.max() == children
    assert np.bincount(turns % 64).max() == 1  # all children at once


@pytest.mark.parametrize("operation", ["bcast", "reduce"])
def test_a_pipeline_sends_no_more_than_a_chain(operation):
    for p in MEMBERS:
        size = 1_000_003
        assert bytes_of(operation, "pipeline", p, [size]) == (p - 1) * size


def test_van_de_geijns_broadcast():
    """Scatter n/2 a level, then p - 1 blocks to everyone."""
    for p in (2, 4, 8, 16, 32, 64):
        n = 64 * p
        expected = levels(p) * n // 2 + (p - 1) * n
        assert bytes_of("bcast", "scatter_allgather", p, [n]) == expected
        assert bytes_of("bcast", "scatter_allgather_ring", p, [n]) == expected


def sent_by_each(schedule, p):
    return np.bincount(schedule.src, weights=schedule.size, minlength=p)


@pytest.mark.parametrize("algorithm", ["ring", "rabenseifner"])
def test_allreduces_of_least_bytes(algorithm):
    """Each member sends 2 (p - 1) / p n bytes; over all members that is exact for any n."""
    for p in MEMBERS:
        if algorithm == "rabenseifner" and p != power(p):
            continue
        even = schedule_of("allreduce", algorithm, p, [7 * p])
        assert (sent_by_each(even, p) == 2 * (p - 1) * 7).all()
        for n in (0, 1, p - 1, p + 1, N):
            assert bytes_of("allreduce", algorithm, p, [n]) == 2 * (p - 1) * n


def test_rabenseifner_folds_with_twice_the_buffer_and_a_half_for_each_member_too_many():
    for p in MEMBERS:
        extra = p - power(p)
        for n in (0, 1, 64, N):
            blocks = n // power(p) + (np.arange(power(p)) < n % power(p))
            second = int(blocks[power(p) // 2 :].sum())
            fold = extra * (n + second)  # a half each way, and one back
            there = (power(p) - 1) * n
            assert bytes_of("allreduce", "rabenseifner", p, [n]) == fold + 2 * there + extra * n
            gathered = bytes_of("reduce", "rabenseifner", p, [n]) - fold - there
            if n % power(p) == 0:
                assert gathered == levels(power(p)) * n // 2


def test_recursive_doubling_sends_everything_every_time():
    for p in MEMBERS:
        rounds = int(log2(p))
        expected = power(p) * rounds * N + 2 * (p - power(p)) * N
        assert bytes_of("allreduce", "recursive_doubling", p) == expected


def test_allgathers_bring_each_block_to_everyone_else_once():
    for algorithm in ("bruck", "recursive_doubling", "neighbour_exchange", "ring"):
        for p in suiting("allgather", algorithm):
            volume = volume_of("allgather", p)
            assert bytes_of("allgather", algorithm, p) == (p - 1) * volume.sum()


def test_neighbour_exchange_talks_to_two_neighbours_only():
    for p in range(4, 20, 2):
        schedule = schedule_of("allgather", "neighbour_exchange", p)
        assert set((schedule.dst - schedule.src) % p) == {1, p - 1}
        assert (np.bincount(schedule.src) == p // 2).all()


def test_bruck_carries_a_block_once_for_every_bit_of_its_way():
    for p in MEMBERS:
        bits = sum(d.bit_count() for d in range(p))
        assert bytes_of("alltoall", "bruck", p) == p * bits * N
        assert bytes_of("alltoall", "pairwise", p) == p * (p - 1) * N
        assert (np.bincount(schedule_of("alltoall", "bruck", p).src) == levels(p)).all()


def test_reduce_scatters_of_least_bytes():
    for p in MEMBERS:
        n = int(volume_of("reduce_scatter", p).sum())
        for algorithm in ("ring", "pairwise"):
            assert bytes_of("reduce_scatter", algorithm, p) == (p - 1) * n
        folded = np.arange(0, 2 * (p - power(p)), 2)
        back = int(volume_of("reduce_scatter", p)[folded].sum())
        expected = len(folded) * n + (power(p) - 1) * n + back
        assert bytes_of("reduce_scatter", "recursive_halving", p) == expected


def test_halves_go_near_first_where_blocks_are_nobodys():
    """Rabenseifner's long messages are between neighbours; reduce-scatter's go far."""
    allreduce = schedule_of("allreduce", "rabenseifner", 16, [1600])
    scatter = schedule_of("reduce_scatter", "recursive_halving", 16, [100] * 16)
    for schedule, distance in ((allreduce, 1), (scatter, 8)):
        first = schedule.round == 0
        assert set(schedule.size[first]) == {800}
        assert set(abs(schedule.dst - schedule.src)[first]) == {distance}
