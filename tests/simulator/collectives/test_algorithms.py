"""Every algorithm delivers what its operation means, for all sizes and every root.

Block i has 2^i bytes, so that the size of a message says which blocks it carries; the test follows
them from member to member, and in reductions whose contributions a block holds.
"""

from __future__ import annotations

from inspect import getfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from hopmap.plugins import is_installed
from hopmap.simulator import ALGORITHMS, Parameters
from hopmap.simulator.collectives.broadcasts import SEGMENT
from hopmap.simulator.collectives.selection import select, substitute
from hopmap.simulator.simulate import simulate
from hopmap.source_files import PACKAGE, sources_of
from hopmap.topologies import mesh
from support.results import bits
from support.schedules import as_program, depth, played

ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
SAME = ("gatherv", "scatterv", "alltoallv", "alltoallw")  # as gather, scatter and alltoall
MEASURE = PACKAGE / "scenarios" / "sweep" / "measure.py"
CUTTING = (
    *("reductions:cut", "broadcasts:equal_blocks"),
    *("bine.blocks:cut", "bine.blocks:equal_blocks"),
    *("bine.exchanges:cut", "bine.exchanges:equal_blocks"),
)
WHOLE = ("barrier", "bcast", "reduce", "allreduce", "scan", "exscan")  # move one buffer


def each(*operations):
    """Algorithms of operations, once where several have the same."""
    functions = {
        function: (operation, name)
        for operation in reversed(operations)
        for name, function in ALGORITHMS[operation].items()
        if name not in ("pipeline", "allgather_reduce")  # which have tests of their own
    }
    return pytest.mark.parametrize(("operation", "algorithm"), functions.values())


def test_some_operations_have_the_algorithms_of_others():
    for same in SAME:
        assert ALGORITHMS[same] == ALGORITHMS[same.rstrip("vw")]


def members_of(operation, algorithm):
    return [n for n in range(1, 18) if substitute(operation, algorithm, n) == algorithm]


def whole(value=8):
    return np.array([value])


def blocks(members):
    return 2 ** np.arange(members)


@pytest.fixture
def cut_like_blocks(monkeypatch):
    """Cut whole buffers into blocks whose sizes tell them apart."""
    for place in CUTTING:
        if is_installed("hopmap.simulator.collectives", place):
            name = f"hopmap.simulator.collectives.{place.replace(':', '.')}"
            monkeypatch.setattr(name, lambda _whole, parts: blocks(parts))


def parts_of(algorithm, members):
    """Blocks into which an algorithm cuts a whole buffer."""
    if algorithm in ("rabenseifner", "bine_halving_in_turns"):
        return 1 << (members.bit_length() - 1)
    if algorithm == "split_binary":
        return 2
    cuts = any(word in algorithm for word in ("ring", "scatter", "halving", "any_even"))
    return members if cuts else 1


@each("barrier")
def test_after_a_barrier_everyone_has_heard_of_everyone(operation, algorithm):
    for members in members_of(operation, algorithm):
        heard = [1 << i for i in range(members)]
        schedule = ALGORITHMS[operation][algorithm](members, 0, whole(0))
        for sent, dst, size in played(schedule, heard):
            assert size == 0
            heard[dst] |= sent
        assert heard == [2**members - 1] * members


def move_blocks(schedule, held):
    for sent, dst, size in played(schedule, held):
        assert size & sent == size, "a member sends what it does not have"
        held[dst] |= size
    return held


@pytest.mark.usefixtures("cut_like_blocks")
@each("bcast")
def test_bcast_brings_every_block_to_everyone(operation, algorithm):
    for members in members_of(operation, algorithm):
        parts = parts_of(algorithm, members)
        everything = 2**parts - 1
        for root in range(members):
            schedule = ALGORITHMS[operation][algorithm](members, root, whole(everything))
            held = [0] * members
            held[root] = everything
            assert move_blocks(schedule, held) == [everything] * members, (members, root)
            if parts == 1:
                assert sorted(schedule.dst) == sorted(set(range(members)) - {root})


@pytest.mark.parametrize("size", [0, 1, SEGMENT, SEGMENT + 1, 4 * SEGMENT - 7])
def test_a_pipeline_sends_only_what_has_come_in(size):
    segments = max(-(-size // SEGMENT), 1)
    for members, root in [(n, root) for n in range(1, 18) for root in range(n)]:
        schedule = ALGORITHMS["bcast"]["pipeline"](members, root, whole(size))
        got = [0] * members
        got[root] = size
        for before, dst, part in played(schedule, got):
            assert part <= SEGMENT
            got[dst] += part
            assert got[dst] <= before, "a member sends what it does not have"
        assert got == [size] * members, root
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
    held = [[1 << i] * parts for i in range(members)]
    for sent, dst, size in played(schedule, held):
        for block in range(parts):
            if not size >> block & 1:
                continue
            if sent[block] & held[dst][block] == held[dst][block]:
                held[dst][block] = sent[block]
            else:
                assert not held[dst][block] & sent[block], "counted twice"
                held[dst][block] |= sent[block]
    return held


@pytest.mark.usefixtures("cut_like_blocks")
@each("reduce")
def test_reduce_adds_every_contribution_once_at_the_root(operation, algorithm):
    for members in members_of(operation, algorithm):
        parts = parts_of(algorithm, members)
        for root in range(members):
            schedule = ALGORITHMS[operation][algorithm](members, root, whole(2**parts - 1))
            added = add_up(schedule, members, parts)
            assert added[root] == [2**members - 1] * parts, (members, root)


@pytest.mark.usefixtures("cut_like_blocks")
@each("allreduce")
def test_allreduce_adds_every_contribution_once_everywhere(operation, algorithm):
    for members in members_of(operation, algorithm):
        parts = parts_of(algorithm, members)
        schedule = ALGORITHMS[operation][algorithm](members, 0, whole(2**parts - 1))
        assert add_up(schedule, members, parts) == [[2**members - 1] * parts] * members


def test_all_buffers_are_gathered_where_everyone_adds_up():
    for members in range(1, 18):
        schedule = ALGORITHMS["allreduce"]["allgather_reduce"](members, 0, whole(64))
        name = select("allgather", members, 64)
        gather = ALGORITHMS["allgather"][name](members, 0, np.full(members, 64))
        for ours, theirs in zip(schedule[:6], gather[:6], strict=True):
            assert np.array_equal(ours, theirs), members
        added = np.bincount(schedule.work.member, schedule.work.reduced, members)
        assert (added == 64 * (members - 1)).all(), members


@each("reduce_scatter", "reduce_scatter_block")
def test_reduce_scatter_adds_up_each_members_block(operation, algorithm):
    for members in members_of(operation, algorithm):
        schedule = ALGORITHMS[operation][algorithm](members, 0, blocks(members))
        held = add_up(schedule, members, members)
        assert [held[i][i] for i in range(members)] == [2**members - 1] * members


@each("scan", "exscan")
def test_scan_adds_the_contributions_of_all_before(operation, algorithm):
    # A member has a result and what it sends next; the exclusive scan leaves its own out of it.
    for members in members_of(operation, algorithm):
        own = [1 << i for i in range(members)]
        held = [[mine if operation == "scan" else 0, mine] for mine in own]
        schedule = ALGORITHMS[operation][algorithm](members, 0, whole(1))
        for (_, sent), dst, _ in played(schedule, held):
            if sent < own[dst]:
                assert not held[dst][0] & sent, "counted twice"
                held[dst][0] |= sent
            held[dst][1] |= sent
        before = [2 * mine - 1 if operation == "scan" else mine - 1 for mine in own]
        assert [result for result, _ in held] == before


@each("gather", "gatherv")
def test_gather_brings_every_block_to_the_root(operation, algorithm):
    for members in members_of(operation, algorithm):
        for root in range(members):
            schedule = ALGORITHMS[operation][algorithm](members, root, blocks(members))
            held = move_blocks(schedule, [1 << i for i in range(members)])
            assert held[root] == 2**members - 1, (members, root)


@each("scatter", "scatterv")
def test_scatter_brings_every_member_its_block(operation, algorithm):
    for members in members_of(operation, algorithm):
        for root in range(members):
            held = [0] * members
            held[root] = 2**members - 1
            move_blocks(ALGORITHMS[operation][algorithm](members, root, blocks(members)), held)
            assert all(held[i] >> i & 1 for i in range(members)), (members, root)


@each("allgather", "allgatherv")
def test_allgather_brings_every_block_to_everyone(operation, algorithm):
    for members in members_of(operation, algorithm):
        schedule = ALGORITHMS[operation][algorithm](members, 0, blocks(members))
        held = move_blocks(schedule, [1 << i for i in range(members)])
        assert held == [2**members - 1] * members
        if algorithm not in ("gather_bcast", "bine_sending"):  # the others bring no block twice
            into = np.bincount(schedule.dst, weights=schedule.size, minlength=members)
            assert np.array_equal(into, 2**members - 1 - blocks(members)), members


@each("alltoall")
def test_alltoall_sends_every_pair_its_own(operation, algorithm):
    for members in {1, 2, 3, 4, 5, 7, 8, 12, 16}.intersection(members_of(operation, algorithm)):
        for source, target in np.ndindex(members, members):
            pairs = np.zeros((members, members), dtype=np.int64)
            pairs[source, target] = 1
            schedule = ALGORITHMS[operation][algorithm](members, 0, pairs)
            way = schedule.size > 0  # of this one block
            assert (np.diff(schedule.round[way]) > 0).all()
            stops = [source, *schedule.dst[way].tolist()]
            assert schedule.src[way].tolist() == stops[:-1]
            assert stops[-1] == target, members
            if algorithm not in ("bruck", "bruck_by_blocks", "bine"):
                assert len(stops) <= 2


@pytest.mark.parametrize("operation", [key for key in ALGORITHMS if key not in SAME])
def test_no_algorithm_deadlocks_even_if_nothing_is_eager_and_engines_agree(operation):
    for algorithm, members in product(ALGORITHMS[operation], (1, 2, 3, 5, 8, 11)):
        if substitute(operation, algorithm, members) != algorithm:
            continue
        line = mesh((members,))
        if operation.startswith("alltoall"):
            volume = np.ones((members, members), dtype=np.int64)
        else:
            volume = whole() if operation in WHOLE else blocks(members)
        for root in {0, members // 2} if operation in ROOTED else {0}:
            schedule = ALGORITHMS[operation][algorithm](members, root, volume)
            program = as_program(schedule, members)
            assert (program.receives() >= 0).all()
            simpy, compiled = (
                simulate(
                    program,
                    line,
                    range(members),
                    parameters=Parameters(eager_limit=0),
                    engine=engine,
                )
                for engine in ("simpy", "compiled")
            )
            assert simpy.messages == len(schedule.src)
            assert bits(simpy) == bits(compiled), (algorithm, members, root)


def test_the_id_of_a_run_depends_on_the_code_of_every_algorithm():
    """They are imported by name, so that no import at the head of a module says so."""
    files = {file.resolve() for file in sources_of(MEASURE, full=True)}
    for table in ALGORITHMS.values():
        for algorithm in table.values():
            assert Path(getfile(algorithm)).resolve() in files
