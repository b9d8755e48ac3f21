"""Bine trees: who talks to whom is what the authors' C++ says, in one dimension and in several."""

from __future__ import annotations

from collections import Counter
from inspect import signature

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS, Parameters, simulate
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.topologies import torus
from support.rank_scripts import assert_same_scripts
from support.schedules import as_program

from . import bine_c as c

SHAPES = [(2,), (4,), (8,), (16,), (2, 2), (4, 2), (2, 8), (4, 4), (2, 2, 2), (4, 2, 2)]
shapes = pytest.mark.parametrize("dims", SHAPES, ids=lambda dims: "x".join(map(str, dims)))
BLOCK = 96


def ranks(size, of, *given):
    return [of(rank, *given) for rank in range(size)]


def schedule(operation, name, dims, root, volume, **options):
    algorithm = ALGORITHMS[operation][name]
    return algorithm(int(np.prod(dims)), root, volume, dims=dims, puts=1, **options)


@shapes
def test_trees(dims):
    size = int(np.prod(dims))
    counts = 2 ** np.arange(size)
    for root in {0, 3 % size}:
        for segment in (5000, 700, 1000):
            for name, of in (("bcast", c.bcast), ("reduce", c.reduce)):
                ours = schedule(name, "bine", dims, root, np.array([2500]), segment=segment)
                assert_same_scripts(
                    ours, ranks(size, of, root, 2500, 0, dims, segment), name, root, segment
                )
        for operation, name, of, decreasing in (
            ("gather", "bine", c.gather, True),
            ("gather", "bine_increasing", c.gather, False),
            ("scatter", "bine", c.scatter, False),
            ("scatter", "bine_decreasing", c.scatter, True),
        ):
            expected = ranks(size, of, root, counts.tolist(), 0, dims, decreasing)
            ours = schedule(operation, name, dims, root, counts)
            assert_same_scripts(ours, expected, operation, name, root)


@pytest.mark.parametrize("root", [0, 4, 6])
def test_trees_with_ranges_of_blocks(root):
    """The authors' functions over MPI, which know one dimension alone; odd roots mix up blocks."""
    for size in (1, 2, 4, 8, 16, 32):
        counts, top = 2 ** np.arange(size), root % size
        for operation, of in (("gather", c.gather_mpi), ("scatter", c.scatter_mpi)):
            ours = ALGORITHMS[operation]["bine_ranges"](size, top, counts)
            assert_same_scripts(ours, ranks(size, of, top, counts.tolist()), operation)


@shapes
def test_exchanges(dims):
    size = int(np.prod(dims))
    for operation, name, of in (
        ("allgather", "bine", c.allgather_permute),
        ("allgather", "bine_sending", c.allgather_send),
        ("reduce_scatter", "bine", c.reduce_scatter),
    ):
        ours = schedule(operation, name, dims, 0, np.full(size, BLOCK))
        assert_same_scripts(ours, ranks(size, of, BLOCK, dims), operation, name)
    for count in (512, 1024, 4096):
        for name, of, recdoub in (
            ("bine", c.allreduce_l, False),
            ("torus_doubling", c.allreduce_l, True),
            ("bine_halving", c.allreduce_b_cont, False),
            ("torus_halving", c.allreduce_b_cont, True),
        ):
            ours = schedule("allreduce", name, dims, 0, np.array([count]))
            assert_same_scripts(ours, ranks(size, of, count, dims, recdoub), name, count)
    ours = schedule("alltoall", "bine", dims, 0, np.full((size, size), BLOCK))
    assert_same_scripts(ours, ranks(size, c.alltoall, BLOCK, dims))


def test_the_authors_bruck():
    for size in range(2, 18):
        ours = ALGORITHMS["alltoall"]["bruck_by_blocks"](size, 0, np.full((size, size), BLOCK))
        assert_same_scripts(ours, ranks(size, c.bruck_alltoall, size, BLOCK))


@pytest.mark.parametrize("dims", [(8,), (4, 4), (2, 2, 2), (4, 2, 2)])
def test_every_port_has_a_tree_of_its_own(dims):
    size, count = int(np.prod(dims)), 6000
    for ports in (2, 3, 6):
        ours = schedule("bcast", "bine_with_buffer", dims, 1, np.array([count]), ports=ports)
        sent = Counter(zip(ours.src.tolist(), ours.dst.tolist(), ours.size.tolist(), strict=True))
        trees = [c.Tree(1, port, dims, decreasing=True) for port in range(ports)]
        assert sent == Counter(
            (tree.parent[rank], rank, count // ports)
            for tree in trees
            for rank in range(size)
            if rank != 1
        )


def test_the_authors_blocks_are_sent_one_by_one():
    whole, each = (
        ALGORITHMS["allgather"][name](8, 0, 2 ** np.arange(8), dims=(4, 2))
        for name in ("bine", "bine_blocks")
    )
    assert (np.bitwise_count(whole.size.astype(np.uint64)) > 1).any()
    assert (np.bitwise_count(each.size.astype(np.uint64)) == 1).all()
    for key in zip(whole.round, whole.src, whole.dst, strict=True):
        now, src, dst = key
        here = (each.round == now) & (each.src == src) & (each.dst == dst)
        then = (whole.round == now) & (whole.src == src)
        assert each.size[here].sum() == whole.size[then][0]


def test_where_buffers_are_is_told_before_puts_and_nothing_before_messages():
    volume = np.array([4096])
    for name, told in (("bine", 3 * 8), ("bine_scatter_allgather", 3 * 8), ("bine_with_buffer", 0)):
        algorithm = ALGORITHMS["bcast"][name]
        plain, puts = (algorithm(8, 0, volume, dims=(2, 2, 2), puts=puts) for puts in (0, 1))
        assert len(puts.size) - len(plain.size) == told
        assert puts.size.sum() - plain.size.sum() == (8 * 7 * 16 if told else 0)


def test_steps_are_those_of_the_paper():
    """Of 8 ranks, 0 talks to 1, -1, 3; its tree reaches the far ones first (SC25, figure 3)."""
    ours = ALGORITHMS["bcast"]["bine"](8, 0, np.array([1]))
    parents = dict(zip(ours.dst.tolist(), ours.src.tolist(), strict=True))
    assert parents == {3: 0, 7: 0, 4: 3, 1: 0, 2: 3, 6: 7, 5: 4}


def test_lengths_have_to_be_powers_of_two_and_make_the_members():
    for members, dims in ((12, (4, 3)), (8, (4, 4)), (6, ())):
        with pytest.raises(AlgorithmError, match=rf"{members} members: expected"):
            ALGORITHMS["bcast"]["bine"](members, 0, np.array([1]), dims=dims)


BINE = {
    function: (operation, name)
    for operation, table in ALGORITHMS.items()
    for name, function in table.items()
    if name.startswith(("bine", "torus"))
}


@pytest.mark.parametrize("ports", [1, 3])
def test_nothing_gets_stuck_where_parts_are_longer_than_a_put_and_wait_for_receives(ports):
    """Without puts every message here is a rendezvous."""
    size, parameters = 40_000_000, Parameters(eager_limit=0, packet_size=2**30)
    for algorithm, (operation, name) in BINE.items():
        volume = {
            **dict.fromkeys(("alltoall", "alltoallv", "alltoallw"), np.full((8, 8), size)),
            **dict.fromkeys(("bcast", "reduce", "allreduce"), np.array([8 * size])),
        }.get(operation, np.full(8, size))
        if (operation, name, ports) == ("reduce", "bine", 3):
            with pytest.raises(AlgorithmError, match="requires puts=1"):
                algorithm(8, 0, volume, ports=ports)
            continue
        options = {"ports": ports, "dims": (2, 2, 2)}
        given = {key: options[key] for key in options if key in signature(algorithm).parameters}
        program = as_program(algorithm(8, 0, volume, **given), 8)
        result = simulate(program, torus((2, 2, 2)), range(8), parameters=parameters)
        assert result.messages == len(program.sends()), (operation, name)
