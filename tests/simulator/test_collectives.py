"""Every algorithm delivers what its operation means, for all sizes and every root.

Block i has 2^i bytes, so that the size of a message says which blocks it carries; the test follows
them from member to member. In reductions it follows whose contributions a partial result holds.
"""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives import ALGORITHMS as TABLE
from hopmap.simulator.lowering_collectives import template_of
from hopmap.simulator.program import Op, Program
from hopmap.simulator.simulate import simulate
from hopmap.topologies import mesh

MEMBERS = range(1, 18)
ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")


def cases(*operations):
    return [
        pytest.param(operation, algorithm, members, id=f"{operation}-{algorithm}-{members}")
        for operation in operations
        for algorithm in ALGORITHMS[operation]
        for members in MEMBERS
    ]


def rounds(schedule):
    for k in np.unique(schedule.round):
        now = schedule.round == k
        yield list(
            zip(schedule.src[now], schedule.dst[now], schedule.size[now].tolist(), strict=True)
        )


def roots(operation, members):
    return range(members) if operation in ROOTED else (0,)


def whole(value=8):
    return np.array([value])


def blocks(members):
    return 2 ** np.arange(members)


def carried(size):
    return {i for i in range(size.bit_length()) if size >> i & 1}


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("barrier"))
def test_after_a_barrier_everyone_has_heard_of_everyone(operation, algorithm, members):
    heard = [{i} for i in range(members)]
    for messages in rounds(TABLE[operation][algorithm](members, 0, whole(0))):
        before = [set(known) for known in heard]
        for src, dst, size in messages:
            assert size == 0
            heard[dst] |= before[src]
    assert all(known == set(range(members)) for known in heard)


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("bcast"))
def test_bcast_reaches_every_member_once(operation, algorithm, members):
    for root in range(members):
        has = {root}
        for messages in rounds(TABLE[operation][algorithm](members, root, whole())):
            before = set(has)
            for src, dst, size in messages:
                assert src in before
                assert dst not in has
                assert size == 8
                has.add(dst)
        assert has == set(range(members))


def reduce_by(schedule, members, size=8, prefix=False):
    """Follow contributions; a message adds to a partial result, or replaces it with all of it."""
    held = [{i} for i in range(members)]
    for messages in rounds(schedule):
        before = [set(known) for known in held]
        for src, dst, given in messages:
            assert given == size
            if before[src] >= before[dst]:
                held[dst] = set(before[src])
            else:
                assert not held[dst] & before[src], "a contribution is counted twice"
                held[dst] |= before[src]
    return held


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("reduce"))
def test_reduce_adds_every_contribution_once_at_the_root(operation, algorithm, members):
    for root in range(members):
        held = reduce_by(TABLE[operation][algorithm](members, root, whole()), members)
        assert held[root] == set(range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("allreduce"))
def test_allreduce_adds_every_contribution_once_everywhere(operation, algorithm, members):
    held = reduce_by(TABLE[operation][algorithm](members, 0, whole()), members)
    assert held == [set(range(members))] * members


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("scan", "exscan"))
def test_scan_adds_the_contributions_of_all_before(operation, algorithm, members):
    # The exclusive scan keeps its own contribution apart and sends the same messages.
    held = reduce_by(TABLE[operation][algorithm](members, 0, whole()), members)
    assert held == [set(range(i + 1)) for i in range(members)]


def move_blocks(schedule, held):
    for messages in rounds(schedule):
        before = [set(known) for known in held]
        for src, dst, size in messages:
            assert carried(size) <= before[src], "a member sends what it does not have"
            held[dst] |= carried(size)
    return held


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("gather", "gatherv"))
def test_gather_brings_every_block_to_the_root(operation, algorithm, members):
    for root in range(members):
        schedule = TABLE[operation][algorithm](members, root, blocks(members))
        held = move_blocks(schedule, [{i} for i in range(members)])
        assert held[root] == set(range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("scatter", "scatterv"))
def test_scatter_brings_every_member_its_block(operation, algorithm, members):
    for root in range(members):
        held = [set() for _ in range(members)]
        held[root] = set(range(members))
        move_blocks(TABLE[operation][algorithm](members, root, blocks(members)), held)
        assert all(i in held[i] for i in range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("allgather", "allgatherv"))
def test_allgather_brings_every_block_to_everyone_once(operation, algorithm, members):
    schedule = TABLE[operation][algorithm](members, 0, blocks(members))
    held = move_blocks(schedule, [{i} for i in range(members)])
    assert held == [set(range(members))] * members
    everything = int(blocks(members).sum())
    into = np.bincount(schedule.dst, weights=schedule.size, minlength=members)
    assert np.array_equal(into, everything - blocks(members))


@pytest.mark.parametrize(
    ("operation", "algorithm", "members"), cases("alltoall", "alltoallv", "alltoallw")
)
def test_alltoall_sends_every_pair_its_own(operation, algorithm, members):
    pairs = np.arange(members * members).reshape(members, members)
    schedule = TABLE[operation][algorithm](members, 0, pairs)
    got = np.full((members, members), -1)
    for src, dst, size in zip(schedule.src, schedule.dst, schedule.size, strict=True):
        assert got[src, dst] == -1
        got[src, dst] = size
    np.fill_diagonal(pairs, -1)
    assert np.array_equal(got, pairs)


@pytest.mark.parametrize(("operation", "members"), [("reduce_scatter", p) for p in MEMBERS])
def test_reduce_scatter_adds_up_each_members_block(operation, members):
    schedule = TABLE[operation]["pairwise"](members, 0, blocks(members))
    added = [{i} for i in range(members)]
    for messages in rounds(schedule):
        for src, dst, size in messages:
            assert carried(size) == {int(dst)}
            assert src not in added[dst]
            added[dst].add(int(src))
    assert added == [set(range(members))] * members


@pytest.mark.parametrize("members", MEMBERS)
def test_reduce_scatter_through_a_root_is_a_reduce_and_a_scatter(members):
    schedule = TABLE["reduce_scatter"]["reduce_scatter"](members, 0, blocks(members))
    everything = int(blocks(members).sum())
    first = schedule.round < (members - 1).bit_length()
    reduce = type(schedule)(*(column[first] for column in schedule))
    scatter = type(schedule)(*(column[~first] for column in schedule))
    assert reduce_by(reduce, members, everything)[0] == set(range(members))
    held = move_blocks(scatter, [set(range(members))] + [set() for _ in range(members - 1)])
    assert all(i in held[i] for i in range(members))


@pytest.mark.parametrize("operation", ALGORITHMS)
def test_no_algorithm_deadlocks_even_if_nothing_is_eager(operation):
    from hopmap.simulator import Parameters

    for algorithm, schedule_of in ALGORITHMS[operation].items():
        for members in (1, 2, 3, 5, 8, 13):
            for root in roots(operation, members):
                if operation.startswith("alltoall"):
                    volume = np.ones((members, members), dtype=np.int64)
                elif operation in ("barrier", "bcast", "reduce", "allreduce", "scan", "exscan"):
                    volume = whole()
                else:
                    volume = blocks(members)
                schedule = schedule_of(members, root, volume)
                assert np.all(np.diff(schedule.round) >= 0)
                program = as_program(schedule, members)
                assert (program.receives() >= 0).all(), algorithm
                result = simulate(
                    program, mesh((members,)), range(members), parameters=Parameters(eager_limit=0)
                )
                assert result.messages == len(schedule.src)


def as_program(schedule, members):
    rows = template_of(schedule, members)
    count = len(rows.member)
    end = np.arange(members)
    order = np.argsort(np.concatenate((rows.member, end)), kind="stable")
    place = np.argsort(order)

    def column(values, filler):
        return np.concatenate((values, np.full(members, filler)))[order]

    target = column(rows.target, -1)
    target[target >= 0] = place[target[target >= 0]]
    peer = column(rows.peer, -1)
    return Program(
        name="collective",
        offsets=np.searchsorted(
            np.concatenate((rows.member, end))[order], np.arange(members + 1)
        ).astype(np.int64),
        rank_of=end.astype(np.int32),
        kind=column(rows.kind, Op.FINISH).astype(np.uint8),
        compute=np.zeros(count + members),
        peer=peer.astype(np.int32),
        tag=np.zeros(count + members, dtype=np.int32),
        context=np.where(peer >= 0, 0, -1).astype(np.int32),
        size=column(rows.size, 0),
        target=target,
    )
