"""What members of a collective copy and reduce takes their time, where it is set."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from inspect import signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.simulator import ALGORITHMS, Op, Parameters, lower, simulate
from hopmap.simulator.collectives.selection import substitute
from hopmap.simulator.programs.program import LocalWork
from hopmap.simulator.programs.unrolling import without_loops
from hopmap.simulator.run_plan import absorb
from hopmap.topologies import mesh
from hopmap.traces import nas_folded, nas_trace
from support.collective_calls import collective, trace_of_calls
from support.results import bits
from support.slow import examples

COPY, REDUCE = 2e-9, 5e-9
SIZE = 1000
WORKING = Parameters(
    collective_copy_per_byte=COPY,
    collective_reduce_per_byte=REDUCE,
    collective_per_block=3e-7,
    collective_put_setup=2e-6,
)
NEW = replace(
    WORKING, collective_fresh_memory_per_byte=1e-9, collective_fresh_memory_threshold=SIZE // 2
)


def called(operation, ranks, algorithm, *, root=-1, sent=0, received=0):
    """Every rank calls one collective, all with the same bytes."""
    call = collective(operation, 0.0, 1.0, root=root, sent=sent, received=received)
    return lower(trace_of_calls([[call]] * ranks), {operation.lower(): algorithm})


@lru_cache
def network_of(nodes):
    return mesh((nodes,))


def run(program, parameters, engine="compiled"):
    ranks = range(program.ranks)
    return simulate(program, network_of(program.ranks), ranks, parameters=parameters, engine=engine)


def gathered(ranks=3, root=1):
    calls = [
        collective("GATHER", 0.0, 1.0, root=root, sent=SIZE, received=SIZE * ranks * (i == root))
        for i in range(ranks)
    ]
    return lower(trace_of_calls([[call] for call in calls]), {"gather": "linear"})


def test_work_stands_where_the_algorithm_does_it():
    # The root receives from 0, copies its own block, and receives from 2.
    program = gathered()
    rows = np.flatnonzero((program.kind == Op.RECV) & (program.rank_of_row() == 1))
    assert program.work.row.tolist() == [rows[1]]
    assert program.work.copied.tolist() == [SIZE]
    assert program.work.reduced.tolist() == [0]


def test_work_behind_the_last_message_stands_before_what_comes_next():
    reduced = called("REDUCE", 3, "linear", root=0, sent=SIZE)
    last = int(np.flatnonzero(reduced.rank_of_row() == 0)[-1])
    assert reduced.kind[last] == Op.FINISH
    # The contribution of 1 is added, and the root's own behind it: both with nothing to come.
    assert reduced.work.row[reduced.work.reduced > 0].tolist() == [last]
    assert reduced.work.reduced[-1] == 2 * SIZE


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_a_root_is_done_when_it_has_added_up(engine):
    program = called("REDUCE", 2, "linear", root=0, sent=SIZE)
    without, result = run(program, Parameters(), engine), run(program, WORKING, engine)
    assert result.finish[0] - without.finish[0] == pytest.approx(REDUCE * SIZE)
    assert result.finish[1] == without.finish[1]
    assert result.compute[0] == pytest.approx(REDUCE * SIZE)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_a_copy_hides_behind_a_message_that_is_under_way(engine):
    # The root of two copies before it receives; the message is there when it has copied.
    program = gathered(2, root=0)
    slow = replace(WORKING, collective_copy_per_byte=1e-6)
    without, result = run(program, Parameters(), engine), run(program, slow, engine)
    assert without.finish[0] < 1e-6 * SIZE
    assert result.finish[0] == pytest.approx(1e-6 * SIZE + Parameters().overhead_recv)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_blocks_that_are_copied_one_by_one_take_time_each(engine):
    """A Bine gather of 4: the root puts 4 blocks into order when all are there."""
    calls = [
        [collective("GATHER", 0.0, 1.0, root=0, sent=SIZE, received=4 * SIZE * (i == 0))]
        for i in range(4)
    ]
    program = lower(trace_of_calls(calls), {"gather": "bine"})
    assert program.work.blocks.sum() == 4
    blocks = Parameters(collective_per_block=2e-6)
    without, result = run(program, Parameters(), engine), run(program, blocks, engine)
    assert result.finish[0] - without.finish[0] == pytest.approx(4 * 2e-6)
    assert result.finish[1:].tolist() == without.finish[1:].tolist()


@pytest.mark.parametrize(
    ("operation", "algorithm", "blocks"),
    [
        ("ALLGATHER", "bine", 8),  # in the end
        ("REDUCE_SCATTER", "bine", 8),  # in the beginning
        ("ALLTOALL", "bine", 3 * 8 + 8),  # in each of 3 steps, and in the end
        ("ALLTOALL", "bruck", 3 * 3 * 4 + 8),  # half: packed, unpacked, back; in the end all
        ("ALLTOALL", "bruck_by_blocks", 8 + 3 * 2 * 4 + 8),
        ("ALLTOALL", "pairwise", 0),
        ("ALLGATHER", "bruck", 0),  # in order but for a rotation
    ],
)
def test_how_many_blocks_a_member_copies(operation, algorithm, blocks):
    whole = {"sent": 8 * SIZE, "received": SIZE} if operation == "REDUCE_SCATTER" else {}
    size = {"sent": 8 * SIZE, "received": 8 * SIZE}
    if operation == "ALLGATHER":
        size["sent"] = SIZE
    program = called(operation, 8, algorithm, **(whole or size))
    of = program.rank_of_row()[program.work.row]
    assert np.bincount(of, program.work.blocks, 8).tolist() == [blocks] * 8


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_a_collective_that_puts_is_prepared_once_by_everyone(engine):
    preparing = Parameters(collective_put_setup=1e-3)
    for puts, seconds in ((0, 0.0), (1, 1e-3)):
        program = called("ALLREDUCE", 4, f"bine(puts={puts})", sent=SIZE, received=SIZE)
        without, result = run(program, Parameters(), engine), run(program, preparing, engine)
        assert result.finish - without.finish == pytest.approx(np.full(4, seconds), abs=1e-12)


@pytest.mark.parametrize("engine", ["simpy", "compiled", "flow", "analytic"])
def test_buffers_from_a_size_on_are_new_memory_before_anything_else(engine):
    """Recursive doubling has one buffer a member; Bruck's allgather of 3 has two blocks and one."""
    price = 1e-6
    for least, seconds in ((SIZE, price * SIZE), (SIZE + 1, 0.0)):
        new = Parameters(
            collective_fresh_memory_per_byte=price, collective_fresh_memory_threshold=least
        )
        program = called("ALLREDUCE", 4, "recursive_doubling", sent=4 * SIZE, received=4 * SIZE)
        without, result = run(program, Parameters(), engine), run(program, new, engine)
        assert result.finish - without.finish == pytest.approx(np.full(4, seconds), abs=1e-12)
    program = called("ALLGATHER", 3, "bruck", sent=3 * SIZE, received=3 * SIZE)
    of = program.rank_of_row()[program.work.row]
    assert np.bincount(of, program.work.allocated, 3).tolist() == [0, 2 * SIZE, SIZE]
    assert np.bincount(of, program.work.buffers, 3).tolist() == [0, 1, 1]


def test_buffers_of_a_row_count_as_equally_large():
    work = LocalWork(*(np.array([[0, 1]] * 5)), np.array([300, 199]), np.array([3, 2]))
    assert work.new_memory(100).tolist() == [300, 0]


def test_work_is_not_scaled_with_computation():
    program = gathered()
    half = replace(WORKING, compute_scale=0.5)
    assert bits(run(program, half)) == bits(run(program, WORKING))


@pytest.mark.parametrize("name", ["ft.S.4", "is.S.4", "mg.S.8", "cg.S.8", "lu.S.4", "bt.S.4"])
def test_work_before_a_loop_is_done_once(name):
    folded = lower(nas_folded(name))
    flat = without_loops(folded)
    iterations = folded.iterations()
    for bytes_of in LocalWork._fields[1:]:
        here = getattr(folded.work, bytes_of) * iterations[folded.work.row]
        assert here.sum() == getattr(flat.work, bytes_of).sum()
    assert (flat.work.copied + flat.work.reduced).sum() > 0
    written = lower(nas_trace(name))
    for bytes_of in LocalWork._fields[1:]:
        assert getattr(flat.work, bytes_of).sum() == getattr(written.work, bytes_of).sum()
    assert np.array_equal(run(folded, WORKING).finish, run(flat, WORKING).finish)


def test_what_is_put_asks_for_nothing():
    size = 10**6
    for puts, waits in ((0, True), (1, False)):
        calls = [
            [collective("BCAST", 0.0, 1.0, root=0, sent=2 * size * (i == 0), received=size)]
            for i in range(2)
        ]
        program = lower(trace_of_calls(calls), {"bcast": f"bine(puts={puts})"})
        asked, eager = (run(program, Parameters(eager_limit=limit)) for limit in (0, 2 * size))
        assert (asked.makespan > eager.makespan) == waits


@st.composite
def collectives(draw):
    operation = draw(st.sampled_from(["bcast", "reduce", "allreduce", "allgather", "alltoall"]))
    ranks = draw(st.integers(2, 9))
    names = [name for name in ALGORITHMS[operation] if substitute(operation, name, ranks) == name]
    size = draw(st.sampled_from([0, 24, 4000, 100_000])) * ranks
    root = draw(st.integers(0, ranks - 1)) if operation in ("bcast", "reduce") else -1
    algorithm = draw(st.sampled_from(sorted(names)))
    if "puts" in signature(ALGORITHMS[operation][algorithm]).parameters:
        algorithm += f"(puts={draw(st.integers(0, 1))})"
    return called(operation.upper(), ranks, algorithm, root=root, sent=size, received=size)


@examples(60)
@given(collectives(), st.sampled_from([NEW, replace(WORKING, progress="in_mpi_calls", gap=1e-7)]))
def test_engines_agree_and_without_seconds_nothing_changes(program, parameters):
    assert bits(run(program, parameters, "simpy")) == bits(run(program, parameters))
    silent = replace(
        parameters,
        collective_copy_per_byte=0.0,
        collective_reduce_per_byte=0.0,
        collective_per_block=0.0,
        collective_put_setup=0.0,
        collective_fresh_memory_per_byte=0.0,
    )
    idle = replace(program, work=program.work._replace(row=program.work.row[:0]))
    assert bits(run(program, silent)) == bits(run(idle, silent))
    # What is written for other tools has it as computation.
    assert bits(run(absorb(program, parameters), silent)) == bits(run(program, parameters))
