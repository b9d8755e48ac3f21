"""NAS Parallel Benchmarks by name, "lu.C.64" is class C on 64 ranks; and what generators share.

A benchmark says who is where, who sends what to whom, and the calls of one rank after the other;
`Benchmark` makes traffic and traces of that. The compute model is the same for all:
operations as NPB counts them for the benchmark's Mop/s figure (floating-point ones; IS: keys
ranked; EP: random numbers), shared out over the phases of the program, at a rate per rank. What
NPB leaves out of its count (start-up, matrix or key generation, verification) costs nothing.

Tables of calls that several programs are made of stand here, too: messages, collectives, the
beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hopmap import plugins
from hopmap.arrays import Ints32, Table
from hopmap.errors import expect_between, expect_one_of
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Folded, Parts, folded_of_parts, trace_of_parts
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.sources import BENCHMARK_NAME, Source
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import MOST_RANKS, Traffic

MOST_STEPS = 10**6  # whose bytes add up in 64 bits in any class

Row = tuple[Call, int, int, int]


def call_table(rows: list[Row]) -> Table:
    """Make a table of calls from (call, peer, tag, size); the oldest request is waited for."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    call, peer, tag, size = columns.T
    waits = call == Call.WAIT
    request = np.where(waits, np.cumsum(waits) - 1 - np.cumsum(call == Call.IRECV), -1)
    return calls(
        call.astype(np.uint8), len(columns), peer=peer, tag=tag, size=size, request=request
    )


def everyone(call: Call, ranks: int, size: int = 0, comm: int = 0) -> Table:
    """One collective in which each rank sends `size` bytes to each, or reduces them for all."""
    return calls(call, size=size * ranks, received=size * ranks, comm=comm)


def bcast(rank: int, ranks: int, size: int, comm: int = 0) -> Table:
    """One broadcast from rank 0."""
    sent = size * ranks if rank == 0 else 0
    return calls(Call.BCAST, peer=0, size=sent, received=size, comm=comm)


def reduce(rank: int, ranks: int, size: int, comm: int = 0) -> Table:
    """One reduction to rank 0."""
    received = size * ranks if rank == 0 else 0
    return calls(Call.REDUCE, peer=0, size=size, received=received, comm=comm)


def begin(rank: int, ranks: int, bcasts: Sequence[int], *before_them: Table) -> list[Table]:
    """How most programs begin: MPI_Init, rank and size, and their input by broadcasts."""
    return [
        everyone(Call.INIT, ranks),
        calls(Call.COMM_RANK),
        calls(Call.COMM_SIZE),
        *before_them,
        *[bcast(rank, ranks, size) for size in bcasts],
    ]


def delay(seconds: float, table: Table) -> Table:
    """Put computation before the first call."""
    table = table.copy()
    table["before"][:1] += seconds
    return table


P = TypeVar("P")  # a class on a number of ranks
T = TypeVar("T")

# Of a trace: at least 6 events of 13 bytes and 2 records of 37; measured, 370.
BYTES_PER_MESSAGE = 250


@dataclass(frozen=True)
class Benchmark(Generic[P]):
    """A benchmark in parts, and what is made of them."""

    name: str  # in lower case
    about: str | None  # the docstring of its file: what it computes, and its source
    # Lays a class (S, W, A, ...) out on ranks, in its own time steps by default. Raises
    # `TraceError` for a class, ranks or steps that the benchmark does not allow.
    problem: Callable[[str, int, int | None], P]
    # Yields all calls of one rank after the other, where an operation takes so many seconds
    programs: Callable[[P, int, float], Iterator[Parts]]
    # Columns of the traffic of a whole run, as `Traffic.from_pairs` takes them
    pairs: Callable[[P, int], Sequence[ArrayLike]] = lambda _problem, _ranks: ([], [], [], [])
    # What is known of the layout of ranks, see `Traffic.metadata`
    grid: Callable[[P], Mapping[str, Any]] = lambda _problem: {}
    # World ranks of the members of communicators 1, 2, ...; 0 is MPI_COMM_WORLD
    communicators: Callable[[P, int], Sequence[Ints32]] = lambda _problem, _ranks: ()

    def traffic(self, nas_class: str, ranks: int, *, steps: int | None = None) -> Traffic:
        """Point-to-point traffic of a whole run, in closed form, linear in ranks."""
        problem = self.problem(nas_class, ranks, steps)
        metadata = {"benchmark": self.name, "class": nas_class, **self.grid(problem)}
        if steps is not None:
            metadata["steps"] = steps
        src, dst, messages, volume = self.pairs(problem, ranks)
        return Traffic.from_pairs(ranks, src, dst, messages, volume, metadata)

    def trace(
        self, nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9
    ) -> Trace:
        """Generate the full program: every call in its real order, with sizes and tags.

        `flops` are operations per second of one rank, as NPB counts them: see this file's head. 0
        means no computation. A rank's times are its own computation only: what waiting costs is for
        a replay to say. Takes 60 bytes an event and about 6 events a message (LU.C.64: 54 million
        events).
        """
        name, programs, communicators = self._program(nas_class, ranks, steps, flops)
        messages = int(self.traffic(nas_class, ranks, steps=steps).messages.sum())
        require_memory(
            BYTES_PER_MESSAGE * messages,
            f"{name}: the whole trace of {messages:,} messages",
            "take fewer steps",
        )
        return trace_of_parts(name, ranks, programs, communicators)

    def folded(
        self, nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9
    ) -> Folded:
        """Generate the full program with its loops as loops; see `trace`.

        Does not grow with steps: LU takes 15 kB a rank in any class. Computation equals the
        trace's except for the clock, whose nanoseconds do not divide evenly into iterations.
        """
        name, programs, communicators = self._program(nas_class, ranks, steps, flops)
        return folded_of_parts(name, ranks, programs, communicators)

    def _program(
        self, nas_class: str, ranks: int, steps: int | None, flops: float
    ) -> tuple[str, Iterator[Parts], Sequence[Ints32]]:
        """Name, calls of each rank, and communicators."""
        name = f"{self.name}.{nas_class}.{ranks}" + ("" if steps is None else f" ({steps} steps)")
        problem = self.problem(nas_class, ranks, steps)
        programs = self.programs(problem, ranks, seconds_per_operation(self.name.upper(), flops))
        return name, programs, self.communicators(problem, ranks)


def parameters_of(benchmark: str, classes: Mapping[str, T], nas_class: str) -> T:
    """Look a class up."""
    expect_one_of(TraceError, f"{benchmark} class", nas_class, classes)
    return classes[nas_class]


def log2_of(benchmark: str, ranks: int) -> int:
    """Logarithm of a rank count that has to be a power of two."""
    if ranks < 1 or ranks & (ranks - 1):
        above = 1 << max(ranks, 1).bit_length()
        raise TraceError(
            f"{benchmark} on {ranks} ranks: expected a power of two, like {above // 2} or {above}"
        )
    return ranks.bit_length() - 1


def steps_of(benchmark: str, steps: int | None, own: int) -> int:
    """Time steps to run: the class's own ones, or what was asked for."""
    if steps is None:
        return own
    expect_between(TraceError, f"{benchmark} with {steps} time steps", steps, 1, MOST_STEPS)
    return steps


def seconds_per_operation(benchmark: str, flops: float) -> float:
    """Seconds that an operation takes at this rate; 0 operations/s means no computation."""
    if not (0 <= flops < np.inf):
        raise TraceError(f"{benchmark} at {flops} flop/s: expected 0 or more")
    return 1 / flops if flops else 0.0


BENCHMARKS: plugins.Table[Benchmark[Any]] = plugins.Table(
    __package__,
    {
        "lu": "lu:LU",
        "cg": "cg:CG",
        "mg": "mg:MG",
        "is": "ep_ft_is:IS",
        "ep": "ep_ft_is:EP",
        "sp": "sp_bt:SP_BENCHMARK",
        "bt": "sp_bt:BT_BENCHMARK",
        "ft": "ep_ft_is:FT",
    },
)


def nas_traffic(name: str, *, steps: int | None = None) -> Traffic:
    """Traffic of the benchmark "NAME.CLASS.RANKS", by formula; `steps` replace the class's own."""
    benchmark, nas_class, ranks = _split(name)
    return benchmark.traffic(nas_class, ranks, steps=steps)


def nas_trace(name: str, *, steps: int | None = None, flops: float = 1e9) -> Trace:
    """Full program of the benchmark so named; see `nas_traffic` and the benchmark's own file.

    `flops` are operations per second of one rank, as NPB counts them, see above.
    """
    benchmark, nas_class, ranks = _split(name)
    return benchmark.trace(nas_class, ranks, steps=steps, flops=flops)


def nas_folded(name: str, *, steps: int | None = None, flops: float = 1e9) -> Folded:
    """Full program of the benchmark so named, its repeated parts as loops; see `nas_trace`."""
    benchmark, nas_class, ranks = _split(name)
    return benchmark.folded(nas_class, ranks, steps=steps, flops=flops)


def _split(name: str) -> tuple[Benchmark[Any], str, int]:
    match = BENCHMARK_NAME.fullmatch(name)
    if match is None:
        raise TraceError(f"benchmark {name!r}: expected name.class.ranks, like lu.C.64")
    benchmark = match[1].lower()
    if benchmark not in BENCHMARKS:
        raise TraceError(
            f"{name}: {match[1]} cannot be generated: expected one of "
            f"{', '.join(BENCHMARKS)}, or a recorded trace"
        )
    if len(match[3]) > 9 or int(match[3]) > MOST_RANKS:
        raise TraceError(f"benchmark {name!r}: {match[3]} ranks: expected at most {MOST_RANKS}")
    return BENCHMARKS[benchmark], match[2].upper(), int(match[3])


@dataclass(frozen=True)
class NasSource(Source):
    """A benchmark, generated; its ranks compute at a rate that is assumed."""

    kind = "benchmark"
    has_steps = True
    assumes_rate = True
    steps: int | None = None

    def with_steps(self, steps: int) -> NasSource:
        """Return it with other time steps than all of its class."""
        return replace(self, steps=steps)

    def traffic(self) -> Traffic:
        """Compute who sends how much to whom, in all steps."""
        return nas_traffic(self.name)

    def calls(self) -> Folded:
        """Compute every call, in loops."""
        return nas_folded(self.name, steps=self.steps)

    def trace(self) -> Trace:
        """Compute every call, one after the other."""
        return nas_trace(self.name, steps=self.steps)


def open_benchmark(text: str, _: Path | None) -> NasSource:
    """Return the source that a benchmark's name is."""
    found, nas_class, ranks = _split(text)
    found.problem(nas_class, ranks, None)
    return NasSource(f"{found.name}.{nas_class}.{text.rpartition('.')[2]}")
