"""Every algorithm delivers what its operation means, for all sizes and every root.

Block i has 2^i bytes, so that the size of a message says which blocks it carries; the test follows
them from member to member, and in reductions whose contributions a block holds.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS, Parameters
from hopmap.simulator.collectives import allreduces, broadcasts
from hopmap.simulator.collectives.bine import blocks as bine_blocks
from hopmap.simulator.collectives.bine import clusters as bine_clusters
from hopmap.simulator.collectives.bine import exchanges as bine_exchanges
from hopmap.simulator.collectives.broadcasts import SEGMENT
from hopmap.simulator.collectives.selection import select, suited
from hopmap.simulator.simulate import simulate
from hopmap.topologies import mesh
from support.schedules import as_program, depth, played

MEMBERS = range(1, 18)
ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
WHOLE = ("barrier", "bcast", "reduce", "allreduce", "scan", "exscan")  # move one buffer


def cases(*operations):
    return [
        pytest.param(operation, algorithm, members, id=f"{operation}-{algorithm}-{members}")
        for operation in operations
        for algorithm in ALGORITHMS[operation]
        for members in MEMBERS
        if suited(operation, algorithm, members) == algorithm
        if algorithm not in ("pipeline", "allgather_reduce")  # which have tests of their own
    ]


def roots(operation, members):
    return range(members) if operation in ROOTED else (0,)


def whole(value=8):
    return np.array([value])


def blocks(members):
    return 2 ** np.arange(members)


def carried(size):
    return {i for i in range(size.bit_length()) if size >> i & 1}


@pytest.fixture
def cut_like_blocks(monkeypatch):
    """Cut whole buffers into blocks whose sizes tell them apart."""
    cutting = [(allreduces, "cut"), (bine_clusters, "cut")]
    cutting += [(module, "shares") for module in (broadcasts, bine_blocks, bine_exchanges)]
    for module, function in cutting:
        monkeypatch.setattr(module, function, lambda _whole, parts: blocks(parts))


def parts_of(algorithm, members):
    """Blocks into which an algorithm cuts a whole buffer."""
    if algorithm in ("rabenseifner", "bine_halving_in_turns"):
        return 1 << (members.bit_length() - 1)
    if algorithm == "split_binary":
        return 2
    cuts = any(word in algorithm for word in ("ring", "scatter", "halving", "any_even"))
    return members if cuts else 1


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("barrier"))
def test_after_a_barrier_everyone_has_heard_of_everyone(operation, algorithm, members):
    heard = [{i} for i in range(members)]
    for sent, dst, size in played(ALGORITHMS[operation][algorithm](members, 0, whole(0)), heard):
        assert size == 0
        heard[dst] |= sent
    assert all(known == set(range(members)) for known in heard)


def move_blocks(schedule, held):
    for sent, dst, size in played(schedule, held):
        assert carried(size) <= sent, "a member sends what it does not have"
        held[dst] |= carried(size)
    return held


@pytest.mark.usefixtures("cut_like_blocks")
@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("bcast"))
def test_bcast_brings_every_block_to_everyone(operation, algorithm, members):
    parts = parts_of(algorithm, members)
    everything = int(blocks(parts).sum())
    for root in range(members):
        schedule = ALGORITHMS[operation][algorithm](members, root, whole(everything))
        held = [set() for _ in range(members)]
        held[root] = set(range(parts))
        assert move_blocks(schedule, held) == [set(range(parts))] * members
        if parts == 1:
            assert sorted(schedule.dst) == sorted(set(range(members)) - {root})


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("size", [0, 1, SEGMENT, SEGMENT + 1, 4 * SEGMENT - 7])
def test_a_pipeline_sends_only_what_has_come_in(members, size):
    segments = max(-(-size // SEGMENT), 1)
    for root in range(members):
        schedule = ALGORITHMS["bcast"]["pipeline"](members, root, whole(size))
        got = [[0] for _ in range(members)]
        got[root] = [size]
        for before, dst, part in played(schedule, got):
            assert part <= SEGMENT
            got[dst][0] += part
            assert got[dst] <= before, "a member sends what it does not have"
        assert got == [[size]] * members
        assert len(schedule.src) == segments * (members - 1)
        assert depth(schedule) == (segments + members - 2) * (members > 1)
        # The reduction sends the same towards the root, each segment behind those that it adds up.
        back = ALGORITHMS["reduce"]["pipeline"](members, root, whole(size))
        for member in set(range(members)) - {root, (root - 1) % members}:
            ins, outs = np.flatnonzero(back.dst == member), np.flatnonzero(back.src == member)
            assert np.array_equal(back.size[ins], back.size[outs])
            assert (back.taken[ins] < back.round[outs]).all()


def add_up(schedule, members, parts):
    """Follow contributions to every block.

    A message adds to a partial result, or replaces it if it has all that it has.
    """
    held = [[{i} for _ in range(parts)] for i in range(members)]
    for sent, dst, size in played(schedule, held):
        for block in carried(size):
            if sent[block] >= held[dst][block]:
                held[dst][block] = set(sent[block])
            else:
                assert not held[dst][block] & sent[block], "counted twice"
                held[dst][block] |= sent[block]
    return held


@pytest.mark.usefixtures("cut_like_blocks")
@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("reduce"))
def test_reduce_adds_every_contribution_once_at_the_root(operation, algorithm, members):
    parts = parts_of(algorithm, members)
    for root in range(members):
        everything = int(blocks(parts).sum())
        schedule = ALGORITHMS[operation][algorithm](members, root, whole(everything))
        assert add_up(schedule, members, parts)[root] == [set(range(members))] * parts


@pytest.mark.usefixtures("cut_like_blocks")
@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("allreduce"))
def test_allreduce_adds_every_contribution_once_everywhere(operation, algorithm, members):
    parts = parts_of(algorithm, members)
    schedule = ALGORITHMS[operation][algorithm](members, 0, whole(int(blocks(parts).sum())))
    assert add_up(schedule, members, parts) == [[set(range(members))] * parts] * members


@pytest.mark.parametrize("members", MEMBERS)
def test_all_buffers_are_gathered_where_everyone_adds_up(members):
    schedule = ALGORITHMS["allreduce"]["allgather_reduce"](members, 0, whole(64))
    name = select("allgather", members, 64)
    gather = ALGORITHMS["allgather"][name](members, 0, np.full(members, 64))
    for ours, theirs in zip(schedule[:6], gather[:6], strict=True):
        assert np.array_equal(ours, theirs)
    added = np.bincount(schedule.work.member, schedule.work.reduced, members)
    assert (added == 64 * (members - 1)).all()


@pytest.mark.parametrize(
    ("operation", "algorithm", "members"), cases("reduce_scatter", "reduce_scatter_block")
)
def test_reduce_scatter_adds_up_each_members_block(operation, algorithm, members):
    schedule = ALGORITHMS[operation][algorithm](members, 0, blocks(members))
    held = add_up(schedule, members, members)
    assert all(held[i][i] == set(range(members)) for i in range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("scan", "exscan"))
def test_scan_adds_the_contributions_of_all_before(operation, algorithm, members):
    # A member has a result and what it sends next; the exclusive scan leaves its own out of it.
    schedule = ALGORITHMS[operation][algorithm](members, 0, whole(1))
    held = [[set() if operation == "exscan" else {i}, {i}] for i in range(members)]
    for (_, sent), dst, _ in played(schedule, held):
        if max(sent) < dst:
            assert not held[dst][0] & sent, "counted twice"
            held[dst][0] |= sent
        held[dst][1] |= sent
    assert [result for result, _ in held] == [
        set(range(i + (operation == "scan"))) for i in range(members)
    ]


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("gather", "gatherv"))
def test_gather_brings_every_block_to_the_root(operation, algorithm, members):
    for root in range(members):
        schedule = ALGORITHMS[operation][algorithm](members, root, blocks(members))
        held = move_blocks(schedule, [{i} for i in range(members)])
        assert held[root] == set(range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("scatter", "scatterv"))
def test_scatter_brings_every_member_its_block(operation, algorithm, members):
    for root in range(members):
        held = [set() for _ in range(members)]
        held[root] = set(range(members))
        move_blocks(ALGORITHMS[operation][algorithm](members, root, blocks(members)), held)
        assert all(i in held[i] for i in range(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("allgather", "allgatherv"))
def test_allgather_brings_every_block_to_everyone(operation, algorithm, members):
    schedule = ALGORITHMS[operation][algorithm](members, 0, blocks(members))
    held = move_blocks(schedule, [{i} for i in range(members)])
    assert held == [set(range(members))] * members
    if algorithm not in ("gather_bcast", "bine_sending"):  # the others bring no block twice
        everything = int(blocks(members).sum())
        into = np.bincount(schedule.dst, weights=schedule.size, minlength=members)
        assert np.array_equal(into, everything - blocks(members))


@pytest.mark.parametrize(("operation", "algorithm", "members"), cases("alltoall"))
def test_alltoall_sends_every_pair_its_own(operation, algorithm, members):
    for source, target in np.ndindex(members, members):
        pairs = np.zeros((members, members), dtype=np.int64)
        pairs[source, target] = 1
        schedule = ALGORITHMS[operation][algorithm](members, 0, pairs)
        way = schedule.size > 0  # of this one block
        assert (np.diff(schedule.round[way]) > 0).all()
        stops = [source, *schedule.dst[way].tolist()]
        assert schedule.src[way].tolist() == stops[:-1]
        assert stops[-1] == target
        if algorithm not in ("bruck", "bruck_by_blocks", "bine"):
            assert len(stops) <= 2


@pytest.mark.parametrize("operation", ALGORITHMS)
def test_no_algorithm_deadlocks_even_if_nothing_is_eager_and_engines_agree(operation):
    for algorithm, schedule_of in ALGORITHMS[operation].items():
        for members in (1, 2, 3, 5, 8, 13):
            if suited(operation, algorithm, members) != algorithm:
                continue
            for root in roots(operation, members):
                if operation.startswith("alltoall"):
                    volume = np.ones((members, members), dtype=np.int64)
                else:
                    volume = whole() if operation in WHOLE else blocks(members)
                schedule = schedule_of(members, root, volume)
                program = as_program(schedule, members)
                assert (program.receives() >= 0).all(), algorithm
                results = [
                    simulate(
                        program,
                        mesh((members,)),
                        range(members),
                        parameters=Parameters(eager_limit=0),
                        engine=engine,
                    )
                    for engine in ("simpy", "compiled")
                ]
                assert results[0].messages == len(schedule.src)
                assert_same(*results)


def assert_same(one, other):
    for field in fields(one):
        if field.name not in ("engine", "wall_seconds", "compile_seconds", "network"):
            here, there = getattr(one, field.name), getattr(other, field.name)
            assert np.array_equal(np.asarray(here), np.asarray(there)), field.name
