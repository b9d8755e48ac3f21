"""Stencils and butterflies of which the program at more ranks is known: the same, or refused."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces import Kind, TraceError
from hopmap.traces.calls import Call, calls, trace_of_calls, with_requests
from hopmap.traces.extrapolation.extrapolate import extrapolate
from hopmap.traces.extrapolation.partners import balance_grid, coordinates, rank_at
from hopmap.traces.nas.benchmarks import everyone
from support.made_traces import as_folded, differences
from support.slow import examples


def exchange(to, from_, tag, size):
    """Irecv, Send, Wait, as far as there are partners."""
    rows = [calls(Call.IRECV)] if from_ >= 0 else []
    rows += [calls(Call.SEND, peer=to, tag=tag, size=size)] if to >= 0 else []
    return rows + ([calls(Call.WAIT, peer=from_, tag=tag, size=size)] if from_ >= 0 else [])


def program(ranks, of_rank):
    def table(rank):
        start, end = (everyone(call, ranks) for call in (Call.INIT, Call.FINALIZE))
        return with_requests(np.concatenate([start, *of_rank(rank), end]))

    return trace_of_calls(f"made.{ranks}", ranks, map(table, range(ranks)))


def stencil(dims, periodic, vectors, sizes):
    ranks, at = int(np.prod(dims)), coordinates(dims)

    def neighbour(rank, vector):
        to = at[rank] + vector
        if any((c < 0 or c >= n) and not p for c, n, p in zip(to, dims, periodic, strict=True)):
            return -1
        return int(rank_at(to % dims, dims))

    def of_rank(rank):
        for tag, (vector, size) in enumerate(zip(vectors, sizes, strict=True)):
            back = tuple(-v for v in vector)
            yield from exchange(neighbour(rank, vector), neighbour(rank, back), tag, size)

    return program(ranks, of_rank)


def butterfly(ranks, upwards, share):
    bits = range(ranks.bit_length() - 1)

    def of_rank(rank):
        for tag, bit in enumerate(bits if upwards else reversed(bits)):
            yield from exchange(rank ^ 1 << bit, rank ^ 1 << bit, tag, share // ranks)

    return program(ranks, of_rank)


@st.composite
def stencils(draw):
    """Arguments of `stencil` but for the dims, and how many there are."""
    dimensions = draw(st.integers(2, 3))
    steps = [v for v in product((-1, 0, 1), repeat=dimensions) if any(v)]
    vectors = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=4, unique=True))
    used = [any(v[axis] for v in vectors) for axis in range(dimensions)]
    periodic = [draw(st.booleans()) and use for use in used]
    return dimensions, periodic, vectors, [draw(st.sampled_from([0, 8, 804])) for _ in vectors]


def same_or_ambiguous(sources, expected):
    """Scaled, it is what is expected, unless the sources allow of something else."""
    try:
        found = extrapolate(sources, expected.ranks, weak=len(sources) == 1)
    except TraceError as error:
        assert "differ at" in str(error)
        return
    assert differences(found.program, as_folded(expected)) == []


@pytest.mark.slow
@examples(60, 10)
@given(stencils())
def test_stencils_of_two_sizes(drawn):
    dimensions, *rest = drawn
    counts = {2: (16, 36, 64), 3: (27, 64, 125)}[dimensions]
    made = [stencil(balance_grid(ranks, dimensions), *rest) for ranks in counts]
    same_or_ambiguous(made[:2], made[2])


@examples(40, 8)
@given(stencils())
def test_stencils_of_one_size(drawn):
    dimensions, *rest = drawn
    counts = {2: (25, 64), 3: (64, 125)}[dimensions]
    made = [stencil(balance_grid(ranks, dimensions), *rest) for ranks in counts]
    same_or_ambiguous(made[:1], made[1])


def test_a_grid_that_is_no_square_goes_on_as_one():
    made = [stencil(dims, (False, True), [(1, 0), (0, -1)], [8, 16]) for dims in SHAPES]
    found = extrapolate(made[:2], 96)
    assert found.grids == SHAPES
    assert differences(found.program, as_folded(made[2])) == []


SHAPES = ((4, 6), (6, 8), (8, 12))


def test_two_families_of_grids_that_differ_are_no_answer():
    """Of 16 ranks, 4 further on is a neighbour in 4 x 4 as well."""
    with pytest.raises(TraceError, match=r"follows grids 16, 64 as well as grids 4x4, 8x8"):
        extrapolate([stencil((4, 4), (True, True), [(0, 1)], [8])], 64, weak=True)


def test_computation_goes_on_as_the_two_largest_say_and_calls_take_no_time():
    """A second shared out evenly before each call, which lasts 5 s."""

    def timed(dims):
        made = stencil(dims, (True, True), [(1, 0), (0, 1)], [8, 16])
        took = np.where(made.kind == Kind.ENTER, 1 / made.ranks, 5)
        each = [np.cumsum(took[a:b]) for a, b in pairwise(made.offsets)]
        return replace(made, time=np.concatenate(each))

    trace = extrapolate([timed((4, 4)), timed((8, 8))], 256).program.trace
    own = np.arange(trace.offsets[3], trace.offsets[4])
    calls = (trace.kind[own] == Kind.ENTER)[1:]
    np.testing.assert_allclose(np.diff(trace.time[own]), np.where(calls, 1 / 256, 0), atol=2e-9)


@pytest.mark.parametrize("upwards", [False, True])
def test_butterflies_have_a_stage_more_for_twice_the_ranks(upwards):
    made = [butterfly(ranks, upwards, 2**16) for ranks in (8, 16, 128)]
    found = extrapolate(made[:2], 128)
    assert differences(found.program, as_folded(made[2])) == []


def test_one_size_of_a_butterfly_does_not_say_where_the_bits_begin():
    said = r"rules that differ there, .* expected a recording on other numbers of ranks, like 64"
    with pytest.raises(TraceError, match=said):
        extrapolate([butterfly(16, True, 2**16)], 64, weak=True)


def test_one_recording_does_not_tell_strong_from_weak_scaling():
    """A halo of 9 ranks whose blocks become smaller at 16: two recordings tell."""

    def halo(side):
        around = [(1, 0), (-1, 0), (0, 1), (0, -1)]
        return stencil((side, side), (False, False), around, [96000 // side] * 4)

    with pytest.raises(TraceError, match=r"does not tell how bytes change .* or --weak"):
        extrapolate([halo(3)], 16)
    with pytest.raises(TraceError, match="expected one recording"):
        extrapolate([halo(3), halo(4)], 36, weak=True)
    found = extrapolate([halo(3), halo(4)], 25)
    assert differences(found.program, as_folded(halo(5))) == []


@pytest.mark.parametrize("place", [0, -1])
def test_the_root_of_a_collective_is_a_rank_and_no_neighbour(place):
    """Of one size, rank 0 stays it; the last rank may be the last, or rank 8."""

    def made(side):
        ranks, root = side * side, place % (side * side)

        def of_rank(rank):
            yield calls(Call.RECV, peer=(rank + 1) % ranks, tag=1, size=8)
            yield calls(Call.SEND, peer=(rank - 1) % ranks, tag=1, size=8)
            sent = 72 * ranks if rank == root else 0
            yield calls(Call.BCAST, peer=root, size=sent, received=72)

        return program(ranks, of_rank)

    if place:
        with pytest.raises(
            TraceError, match=r"MPI_Bcast: roots follow 2 .* rank 8 or the last rank"
        ):
            extrapolate([made(3)], 16, weak=True)
    else:
        found = extrapolate([made(3)], 16, weak=True)
        assert differences(found.program, as_folded(made(4))) == []
    found = extrapolate([made(3), made(4)], 25)
    assert differences(found.program, as_folded(made(5))) == []


def test_one_rank_that_does_something_else_is_seen():
    made = [stencil(dims, (True, True), [(1, 0), (0, 1)], [8, 16]) for dims in SHAPES]
    sends = np.flatnonzero(made[1].kind == 2)
    for column, match in (("size", "follow no rule"), ("peer", "partners follow no rule")):
        values = getattr(made[1].records, column)
        row = made[1].ref[sends[31]]
        values[row] += 1
        with pytest.raises(TraceError, match=match):
            extrapolate(made[:2], 96)
        values[row] -= 1
    assert differences(extrapolate(made[:2], 96).program, as_folded(made[2])) == []
