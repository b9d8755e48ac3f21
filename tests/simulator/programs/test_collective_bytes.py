"""All members together send as docs/explanations/collectives.md says, in place or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hopmap.simulator import lower
from hopmap.simulator.programs.from_collectives import NOT_IN_PLACE
from hopmap.traces import Collective, read_trace, write_trace
from support.collective_calls import collective, trace_of_calls
from support.scorep_bytes import WITH_ROOT, recorded
from support.slow import examples

# Bytes of all members together, p of them, for a buffer or block of b.
BYTES = {
    ("BCAST", "binomial"): lambda p, b: b * (p - 1),
    ("BCAST", "chain"): lambda p, b: b * (p - 1),
    ("REDUCE", "binomial"): lambda p, b: b * (p - 1),
    ("GATHER", "linear"): lambda p, b: b * (p - 1),
    ("SCATTER", "linear"): lambda p, b: b * (p - 1),
    ("GATHERV", "linear"): lambda p, b: b * (p - 1),
    ("SCATTERV", "linear"): lambda p, b: b * (p - 1),
    ("ALLREDUCE", "ring"): lambda p, b: 2 * b * (p - 1),
    ("ALLREDUCE", "reduce_bcast"): lambda p, b: 2 * b * (p - 1),
    ("ALLGATHER", "ring"): lambda p, b: b * p * (p - 1),
    ("ALLGATHER", "bruck"): lambda p, b: b * p * (p - 1),
    ("ALLGATHERV", "ring"): lambda p, b: b * p * (p - 1),
    ("ALLTOALL", "pairwise"): lambda p, b: b * p * (p - 1),
    ("ALLTOALL", "linear"): lambda p, b: b * p * (p - 1),
    ("REDUCE_SCATTER", "ring"): lambda p, b: b * p * (p - 1),
    ("REDUCE_SCATTER_BLOCK", "pairwise"): lambda p, b: b * p * (p - 1),
    ("SCAN", "linear"): lambda p, b: b * (p - 1),
    ("EXSCAN", "linear"): lambda p, b: b * (p - 1),
}


def calls_of(operation, sizes, members, root, in_place):
    """One list of calls per rank, of this operation with these sizes in turn."""
    ranks = [[] for _ in range(members)]
    for k, size in enumerate(sizes):
        sent, received = recorded(Collective[operation], [size] * members, root, in_place)
        for rank, (mine, theirs) in enumerate(zip(sent, received, strict=True)):
            ranks[rank].append(
                collective(operation, k, k + 1, root=root, sent=int(mine), received=int(theirs))
            )
    return ranks


@pytest.mark.parametrize(("operation", "algorithm"), BYTES, ids=" by ".join)
@examples(40, least=10)
@given(
    members=st.integers(2, 9),
    sizes=st.lists(st.integers(1, 10**9), min_size=1, max_size=3),
    in_place=st.booleans(),
    data=st.data(),
)
def test_bytes_of_all_members_are_the_published_ones(
    operation, algorithm, members, sizes, in_place, data
):
    kind = Collective[operation]
    root = data.draw(st.integers(0, members - 1)) if kind in WITH_ROOT else -1
    in_place = in_place and operation not in ("BCAST", "EXSCAN")
    if members == 2 and not in_place:
        # Nothing tells, and two bytes might be half of an element in place.
        assume(all(size % 4 != 2 for size in sizes))
    else:  # one call tells for all others
        assume(sizes[0] % (members if in_place else members - 1))
    trace = trace_of_calls(calls_of(operation, sizes, members, root, in_place))
    program = lower(trace, {operation.lower(): algorithm})
    expected = sum(BYTES[operation, algorithm](members, size) for size in sizes)
    assert program.traffic().bytes.sum() == expected
    assert program.chosen == {operation.lower(): {algorithm: len(sizes)}}


def test_a_megabyte_in_place_on_two_members_is_one_where_other_calls_tell(tmp_path):
    # A megabyte in place on {0, 1}, after nine bytes in place by all eight.
    ranks = calls_of("ALLREDUCE", [9], 8, -1, True)
    sent, _ = recorded(Collective.ALLREDUCE, [1 << 20] * 2, in_place=True)
    for rank in (0, 1):
        more = {"sent": int(sent[rank]), "received": int(sent[rank])}
        ranks[rank].append(collective("ALLREDUCE", 2, 3, comm=1, **more))
    write_trace(trace_of_calls(ranks, [[0, 1]]), tmp_path / "made.otf2")
    program = lower(read_trace(tmp_path / "made.otf2"), {"allreduce": "recursive_doubling"})
    assert np.bincount(program.size[program.sends()] >> 20).tolist() == [24, 2]
    assert NOT_IN_PLACE not in program.notes
