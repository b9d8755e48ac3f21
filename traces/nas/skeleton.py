"""What NAS generators share: checks of class, ranks and steps, and the way from calls to a trace.

A generator yields the `Parts` of one rank after the other. Its compute model is the same for all:
operations as NPB counts them for the benchmark's Mop/s figure (floating-point ones; IS: keys
ranked; EP: random numbers), shared out over the phases of the program, at a rate per rank. What
NPB leaves out of its count (start-up, matrix or key generation, verification) costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.calls import Call, calls, trace_of_calls, with_requests
from hopmap.traces.folded import Folded, Parts, folded_of_calls, once, written_out
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import Trace, TraceError

T = TypeVar("T")

# Of a trace: at least 6 events of 13 bytes and 2 records of 37; measured, 370.
BYTES_PER_MESSAGE = 250


def parameters_of(benchmark: str, classes: Mapping[str, T], nas_class: str) -> T:
    """Look a class up.

    Raises
    ------
    TraceError
        The benchmark has no such class.
    """
    if nas_class not in classes:
        raise TraceError(f"{benchmark} class {nas_class!r}: expected one of {', '.join(classes)}")
    return classes[nas_class]


def log2_of(benchmark: str, ranks: int) -> int:
    """Logarithm of a rank count that has to be a power of two.

    Raises
    ------
    TraceError
        It is not one.
    """
    if ranks < 1 or ranks & (ranks - 1):
        raise TraceError(f"{benchmark} on {ranks} ranks: expected a power of two")
    return ranks.bit_length() - 1


def steps_of(benchmark: str, steps: int | None, own: int) -> int:
    """Time steps to run: the class's own ones, or what was asked for.

    Raises
    ------
    TraceError
        Fewer than one.
    """
    if steps is not None and steps < 1:
        raise TraceError(f"{benchmark} with {steps} time steps: expected at least 1")
    return own if steps is None else steps


def seconds_per_operation(benchmark: str, flops: float) -> float:
    """Seconds that an operation takes at this rate; 0 operations/s means no computation.

    Raises
    ------
    TraceError
        A negative or endless rate.
    """
    if not (0 <= flops < np.inf):
        raise TraceError(f"{benchmark} at {flops} flop/s: expected 0 or more")
    return 1 / flops if flops else 0.0


def label(benchmark: str, nas_class: str, ranks: int, steps: int | None) -> str:
    """Name of a generated trace."""
    name = f"{benchmark.lower()}.{nas_class}.{ranks}"
    return name if steps is None else f"{name} ({steps} steps)"


Row = tuple[Call, int, int, int]


def listed(rows: list[Row]) -> NDArray[np.void]:
    """Make a table of calls given as (call, peer, tag, size); the oldest request is waited for."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    call, peer, tag, size = columns.T
    waits = call == Call.WAIT
    request = np.where(waits, np.cumsum(waits) - 1 - np.cumsum(call == Call.IRECV), -1)
    return calls(
        call.astype(np.uint8), len(columns), peer=peer, tag=tag, size=size, request=request
    )


def everyone(call: Call, ranks: int, size: int = 0) -> NDArray[np.void]:
    """One collective in which each rank sends `size` bytes to each, or reduces them for all."""
    return calls(call, size=size * ranks, received=size * ranks)


def bcast(rank: int, ranks: int, size: int) -> NDArray[np.void]:
    """One broadcast from rank 0."""
    return calls(Call.BCAST, peer=0, size=size * ranks if rank == 0 else 0, received=size)


def reduce(rank: int, ranks: int, size: int) -> NDArray[np.void]:
    """One reduction to rank 0."""
    return calls(Call.REDUCE, peer=0, size=size, received=size * ranks if rank == 0 else 0)


def after(seconds: float, table: NDArray[np.void]) -> NDArray[np.void]:
    """Put computation before the first call."""
    table = table.copy()
    table["before"][:1] += seconds
    return table


def whole_trace(
    name: str,
    ranks: int,
    messages: int,
    programs: Iterable[Parts],
    communicators: Sequence[NDArray[np.int32]] = (),
) -> Trace:
    """Write every rank's program out.

    Parameters
    ----------
    messages : int
        Messages of the whole run, to ask for memory beforehand.
    communicators
        As in `trace_of_calls`.

    Raises
    ------
    OutOfMemoryError
        It would not fit.
    """
    require_memory(
        BYTES_PER_MESSAGE * messages,
        f"{name}: the whole trace of {messages:,} messages",
        "take fewer steps",
    )
    tables = (with_requests(written_out(parts)) for parts in programs)
    return trace_of_calls(name, ranks, tables, communicators)


def folded_trace(
    name: str,
    ranks: int,
    programs: Iterable[Parts],
    communicators: Sequence[NDArray[np.int32]] = (),
) -> Folded:
    """Put every rank's program together with its loops as loops."""
    listed = []
    for parts in programs:
        table, loops = once(parts)
        listed.append((with_requests(table), loops))
    return folded_of_calls(name, ranks, listed, communicators)
