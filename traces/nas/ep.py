"""NAS EP (NPB 3.3-MPI): random numbers drawn by each rank alone, and three sums at the end.

There are no messages, only collectives. No recording is at hand: order and sizes are those that the
source says.

Source: NPB 3.3-MPI, EP: ep.f.
"""

from __future__ import annotations

from collections.abc import Iterator

from hopmap.traces.calls import Call
from hopmap.traces.folded import Parts
from hopmap.traces.trace import TraceError

from .skeleton import Benchmark, after, begin, everyone, parameters_of

# Class: logarithm of the number of pairs of random numbers (m).
CLASSES = {"S": 24, "W": 25, "A": 28, "B": 30, "C": 32, "D": 36, "E": 40}

BATCH = 16  # logarithm of the pairs in a batch (mk), the unit that ranks get

# Doubles of the sums of what was drawn, then the largest time.
SUMS = (1, 1, 10, 1)


def ep_batches(nas_class: str, ranks: int, steps: int | None = None) -> tuple[int, int]:
    """Batches of a rank, and how many ranks have one more."""
    batches = 1 << (parameters_of("EP", CLASSES, nas_class) - BATCH)
    if not 1 <= ranks <= batches:
        raise TraceError(
            f"EP class {nas_class} on {ranks} ranks: expected 1 to {batches}, a batch each"
        )
    if steps is not None:
        raise TraceError(f"EP with {steps} time steps: it has none")
    return divmod(batches, ranks)


def _programs(shares: tuple[int, int], ranks: int, seconds: float) -> Iterator[Parts]:
    batches, more = shares
    a_batch = (2 << BATCH) * seconds  # two numbers a pair
    for rank in range(ranks):
        sums = [everyone(Call.ALLREDUCE, ranks, 8 * doubles) for doubles in SUMS]
        sums[0] = after((batches + (rank < more)) * a_batch, sums[0])
        barrier, end = everyone(Call.BARRIER, ranks), everyone(Call.FINALIZE, ranks)
        yield [*begin(rank, ranks, [4]), barrier, *sums, end]


BENCHMARK = Benchmark("ep", __doc__, ep_batches, _programs)
