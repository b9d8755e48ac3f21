"""One call of a collective by all ranks, with its algorithm: "allreduce=ring,64,1MiB".

Algorithms may have options: "bcast=chain(fanout=4, segment=64KiB),64,1MiB".

Bytes are the whole buffer, as benchmarks of collectives count them: what bcast, reduce and
allreduce carry; for allgather what is gathered in all, for alltoall what each rank splits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.errors import expect_between
from hopmap.traces.sources import Source
from hopmap.traces.trace import Collective, Kind, Records, Trace, TraceError
from hopmap.traces.traffic import MOST_MESSAGE, MOST_RANKS, Traffic
from hopmap.units import UnitError, parse_quantity

OPERATIONS = ("allgather", "allreduce", "alltoall", "bcast", "reduce")
SPLIT = ("allgather", "alltoall")
_FORM = re.compile(r"([a-z]+)=([a-z_0-9]+(?:\([^()]*\))?),(\d{1,9}),([^,]+)")


class Call(NamedTuple):
    """A collective: its operation, algorithm, ranks, and the bytes of the whole buffer."""

    operation: str
    algorithm: str
    ranks: int
    size: int


def parse_collective(text: str) -> Call:
    """Read OPERATION=ALGORITHM,RANKS,BYTES."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise TraceError(
            f"collective {text}: expected OPERATION=ALGORITHM,RANKS,BYTES, like "
            f"allreduce=ring,64,1MiB"
        )
    operation, algorithm, ranks = match[1], match[2], int(match[3])
    try:
        size = int(parse_quantity(match[4], "bytes"))
    except UnitError as error:
        raise TraceError(f"collective {text}: {error}") from None
    if operation not in OPERATIONS:
        raise TraceError(f"collective {text}: {operation}: expected {', '.join(OPERATIONS)}")
    expect_between(TraceError, f"collective {text}: {ranks} ranks", ranks, 1, MOST_RANKS)
    expect_between(TraceError, f"collective {text}: {size} bytes", size, 1, MOST_MESSAGE)
    if operation in SPLIT and size % ranks:
        raise TraceError(f"collective {text}: {size} bytes: expected as many for each of the ranks")
    return Call(operation, algorithm, ranks, size)


def collective_trace(call: Call) -> Trace:
    """Trace of the call, with bytes as Score-P records them: see `volumes.py` of the simulator."""
    ranks, size = call.ranks, call.size
    part = size // ranks if call.operation in SPLIT else size
    sent = np.full(ranks, part * ranks, dtype=np.int64)
    received = sent.copy()
    rooted = call.operation in ("bcast", "reduce")
    if rooted:
        other = sent if call.operation == "bcast" else received
        other[1:] = 0
        (received if call.operation == "bcast" else sent)[:] = size
    every = np.full(ranks, -1, dtype=np.int32)
    order = np.arange(ranks, dtype=np.int32)
    zeros = np.zeros_like(order)
    return Trace(
        name=f"{call.operation}={call.algorithm},{ranks},{size}B",
        offsets=np.arange(ranks + 1, dtype=np.int64) * 3,
        kind=np.tile(np.array([Kind.ENTER, Kind.COLLECTIVE_END, Kind.LEAVE], np.uint8), ranks),
        time=np.zeros(3 * ranks),
        ref=np.stack((zeros, order, zeros), axis=1).ravel(),
        records=Records(
            peer=zeros if rooted else every,
            comm=zeros,
            tag=every,
            operation=np.full(ranks, Collective[call.operation.upper()], dtype=np.uint8),
            size=sent,
            received=received,
            request=every.astype(np.int64),
        ),
        regions=(f"MPI_{call.operation.capitalize()}",),
        communicators=(order,),
    )


@dataclass(frozen=True)
class CollectiveSource(Source):
    """One call of a collective, which sends nothing else."""

    kind = "collective"
    call: Call

    @property
    def algorithms(self) -> dict[str, str]:
        """Algorithm that it names, by operation."""
        return {self.call.operation: self.call.algorithm}

    def traffic(self) -> Traffic:
        """Return traffic of nothing: there are no messages point to point."""
        return Traffic.from_pairs(self.call.ranks, [], [], [], [])

    def calls(self) -> Trace:
        """Return the call of all ranks."""
        return collective_trace(self.call)


def open_collective(words: str, _: Path | None) -> CollectiveSource:
    """Return the source that "collective:WORDS" is."""
    return CollectiveSource(f"collective:{words}", parse_collective(words))
