"""NAS EP (NPB 3.3-MPI): random numbers drawn by each rank alone, and three sums at the end.

There are no messages, only collectives. No recording is at hand: order and sizes are those that the
source says.

Source: NPB 3.3-MPI, EP: ep.f.
"""

from __future__ import annotations

from collections.abc import Iterator

from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Folded, Parts
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import Traffic

from .skeleton import (
    after,
    bcast,
    everyone,
    folded_trace,
    label,
    parameters_of,
    seconds_per_operation,
    whole_trace,
)

# Class: logarithm of the number of pairs of random numbers (m).
CLASSES = {"S": 24, "W": 25, "A": 28, "B": 30, "C": 32, "D": 36, "E": 40}

BATCH = 16  # logarithm of the pairs in a batch (mk), the unit that ranks get

# Doubles of the sums of what was drawn, then the largest time.
SUMS = (1, 1, 10, 1)


def ep_batches(nas_class: str, ranks: int, steps: int | None = None) -> tuple[int, int]:
    """Batches of a rank, and how many ranks have one more.

    Raises
    ------
    TraceError
        Unknown class, more ranks than batches, time steps.
    """
    batches = 1 << (parameters_of("EP", CLASSES, nas_class) - BATCH)
    if not 1 <= ranks <= batches:
        raise TraceError(
            f"EP class {nas_class} on {ranks} ranks: expected 1 to {batches}, a batch each"
        )
    if steps is not None:
        raise TraceError(f"EP with {steps} time steps: it has none")
    return divmod(batches, ranks)


def ep_traffic(nas_class: str, ranks: int, *, steps: int | None = None) -> Traffic:
    """Point-to-point traffic: there is none. See `ep_batches` for errors."""
    ep_batches(nas_class, ranks, steps)
    metadata = {"benchmark": "ep", "class": nas_class}
    return Traffic.from_pairs(ranks, [], [], [], [], metadata)


def ep_trace(nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9) -> Trace:
    """Generate the full program: every call in its real order, with sizes.

    Parameters
    ----------
    flops : float
        Random numbers per second of one rank, see `nas_program`. 0 means no computation.
    """
    programs = _rank_programs(nas_class, ranks, steps, flops)
    return whole_trace(label("ep", nas_class, ranks, None), ranks, 0, programs)


def ep_folded(
    nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9
) -> Folded:
    """Generate the full program, which has no loops; see `ep_trace`."""
    programs = _rank_programs(nas_class, ranks, steps, flops)
    return folded_trace(label("ep", nas_class, ranks, None), ranks, programs)


def _rank_programs(nas_class: str, ranks: int, steps: int | None, flops: float) -> Iterator[Parts]:
    batches, more = ep_batches(nas_class, ranks, steps)
    seconds = (2 << BATCH) * seconds_per_operation("EP", flops)  # two numbers a pair
    for rank in range(ranks):
        sums = [everyone(Call.ALLREDUCE, ranks, 8 * doubles) for doubles in SUMS]
        sums[0] = after((batches + (rank < more)) * seconds, sums[0])
        yield [
            everyone(Call.INIT, ranks),
            calls(Call.COMM_RANK),
            calls(Call.COMM_SIZE),
            bcast(rank, ranks, 4),
            everyone(Call.BARRIER, ranks),
            *sums,
            everyone(Call.FINALIZE, ranks),
        ]
