"""One call as a program: the same as that of a trace with this call alone."""

from __future__ import annotations

import numpy as np
import pytest

from hopmap.simulator import ALGORITHMS
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.measured.single_call import call_program
from hopmap.simulator.programs.from_source import program_of_source
from hopmap.traces.patterns.collectives import OPERATIONS
from hopmap.traces.sources import open_source

COLUMNS = (
    "offsets", "rank_of", "kind", "compute", "peer", "tag", "context", "size", "target", "mode",
)  # fmt: skip
SIX = ("bine_folded", "bine_halving_in_turns", "bine_any_even")
OPTIONS = {
    "bcast": ("chain(fanout=4, segment=0)", "bine(puts=1, segment=1000)"),
    "reduce": ("bine(puts=1, ports=2)",),
    "allreduce": ("bine_halving(segment=1000)",),
}


@pytest.mark.parametrize("members", [2, 6, 8])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_call_is_the_program_that_a_trace_of_it_becomes(operation, members):
    size = members * 1000
    for algorithm in (*ALGORITHMS[operation], *OPTIONS.get(operation, ())):
        powers_only = algorithm.startswith(("bine", "torus")) and algorithm not in SIX
        if members == 6 and powers_only:
            with pytest.raises(AlgorithmError, match="6 members: expected"):
                call_program(operation, algorithm, members, size)
            continue
        call = call_program(operation, algorithm, members, size)
        source = open_source(f"collective:{operation}={algorithm},{members},{size}")
        lowered = program_of_source(source).program
        for column in COLUMNS:
            same = np.array_equal(getattr(call, column), getattr(lowered, column))
            assert same, (algorithm, column)
        for here, there in zip(call.work, lowered.work, strict=True):
            assert np.array_equal(here, there), algorithm
        assert call.chosen == lowered.chosen
        assert {k: v.tolist() for k, v in call.collectives.items()} == {
            k: v.tolist() for k, v in lowered.collectives.items()
        }


@pytest.mark.parametrize(
    ("operation", "algorithm", "size", "instead"),
    [
        # Elements have 4 bytes: Open MPI's ring needs one for each of 8 ranks.
        ("allreduce", "ring", 31, "recursive_doubling"),
        ("allreduce", "ring", 32, "ring"),
        ("bcast", "scatter_allgather", 31, "linear"),
        ("allreduce", "bine_halving", 31, "bine_halving"),
    ],
)
def test_for_few_elements_open_mpi_takes_another_algorithm(operation, algorithm, size, instead):
    assert call_program(operation, algorithm, 8, size).chosen == {operation: {instead: 1}}
