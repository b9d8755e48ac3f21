"""NAS EP, FT and IS (NPB 3.3-MPI): the benchmarks whose ranks talk in collectives."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32, Table
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.trace import TraceError

from .benchmarks import (
    Benchmark,
    Row,
    bcast,
    begin,
    call_table,
    delay,
    everyone,
    log2_of,
    parameters_of,
    reduce,
    steps_of,
)

EP_ABOUT = """\
NAS EP (NPB 3.3-MPI): random numbers drawn by each rank alone, and three sums at the end.

There are no messages, only collectives. No recording is at hand: order and sizes are those that the
source says.

Source: NPB 3.3-MPI, EP: ep.f.
"""

# Class: logarithm of the number of pairs of random numbers (m).
EP_CLASSES = {"S": 24, "W": 25, "A": 28, "B": 30, "C": 32, "D": 36, "E": 40}

EP_BATCH = 16  # logarithm of the pairs in a batch (mk), the unit that ranks get

# Doubles of the sums of what was drawn, then the largest time.
SUMS = (1, 1, 10, 1)


def ep_batches(nas_class: str, ranks: int, steps: int | None = None) -> tuple[int, int]:
    """Batches of a rank, and how many ranks have one more."""
    batches = 1 << (parameters_of("EP", EP_CLASSES, nas_class) - EP_BATCH)
    if not 1 <= ranks <= batches:
        raise TraceError(
            f"EP class {nas_class} on {ranks} ranks: expected 1 to {batches}, a batch each"
        )
    if steps is not None:
        raise TraceError(f"EP with {steps} time steps: it has none")
    return divmod(batches, ranks)


def _ep_programs(shares: tuple[int, int], ranks: int, seconds: float) -> Iterator[Parts]:
    batches, more = shares
    a_batch = (2 << EP_BATCH) * seconds  # two numbers a pair
    for rank in range(ranks):
        sums = [everyone(Call.ALLREDUCE, ranks, 8 * doubles) for doubles in SUMS]
        sums[0] = delay((batches + (rank < more)) * a_batch, sums[0])
        barrier, end = everyone(Call.BARRIER, ranks), everyone(Call.FINALIZE, ranks)
        yield [*begin(rank, ranks, [4]), barrier, *sums, end]


EP = Benchmark("ep", EP_ABOUT, ep_batches, _ep_programs)

FT_ABOUT = """\
NAS FT (NPB 3.3-MPI): its collectives, the full program; it has no point-to-point messages.

A spectral solver on an nx x ny x nz grid. Every 3-D FFT transposes the grid: on up to nz ranks, a
slab each, by one all-to-all exchange of all ranks; on more, p1 = nz times p2 ranks with a pencil
each, by one in the ranks' row (p2 in order) and one in their column (p1, every p2-th). There is
one FFT before the clock starts, the same again behind that, and one backwards in each time step.

Source: NPB 3.3-MPI, FT: ft.f (setup, fft, transpose2_global, transpose_x_z_global,
transpose_x_y_global, checksum, verify).
"""

# Class: nx, ny, nz and time steps (niter).
FT_CLASSES = {
    "S": (64, 64, 64, 6),
    "W": (128, 128, 32, 6),
    "A": (256, 256, 128, 6),
    "B": (512, 256, 256, 20),
    "C": (512, 512, 512, 20),
    "D": (2048, 1024, 1024, 25),
    "E": (4096, 2048, 2048, 25),
}

# NPB's own count of floating-point operations per grid point (ft.f, "mflops"): constant, and per
# natural logarithm of the number of points; once for the set-up with its FFT, and a time step.
SETUP, FIRST_FFT = 14.8157, 7.19641
STEP, FFT = 5.23518, 7.21113

INPUT_BCASTS = (4, 4, 4, 4, 4)  # in bytes (setup)


class FtProblem(NamedTuple):
    """A class on a number of ranks; p1 ranks in a column, p2 in a row, p1 * p2 in all."""

    nx: int
    ny: int
    nz: int
    steps: int
    p1: int
    p2: int


def ft_problem(nas_class: str, ranks: int, steps: int | None = None) -> FtProblem:
    """Lay a class out on a power of two of ranks, at most one for each line of the grid."""
    nx, ny, nz, niter = parameters_of("FT", FT_CLASSES, nas_class)
    log2_of("FT", ranks)
    p1, p2 = (1, ranks) if ranks <= nz else (nz, ranks // nz)
    if p1 > min(nx, ny) or p2 > min(ny, nz):
        raise TraceError(
            f"FT class {nas_class} on {ranks} ranks: a {p1} x {p2} layout of {nx} x {ny} x {nz} "
            f"points: expected at most {min(nx, ny)} x {min(ny, nz)}"
        )
    return FtProblem(nx, ny, nz, steps_of("FT", steps, niter), p1, p2)


def _ft_communicators(p: FtProblem, ranks: int) -> list[Ints32]:
    """Rows, then columns; communicators of one rank move nothing and are left out."""
    grid = np.arange(ranks, dtype=np.int32).reshape(p.p1, p.p2)
    return [*(grid if p.p2 > 1 else ()), *(grid.T if p.p1 > 1 else ())]


def _ft_program(p: FtProblem, rank: int, ranks: int, seconds: float) -> Parts:
    """All calls of one rank, in order."""
    column, row = divmod(rank, p.p2)
    points = p.nx * p.ny * p.nz // ranks
    seconds *= points  # of an operation on each point

    def transposition(comm: int, members: int) -> Table:
        size = 16 * points
        return calls(Call.ALLTOALL, int(members > 1), comm=comm, size=size, received=size)

    in_row = transposition(1 + column, p.p2)
    in_column = transposition(1 + (p.p1 if p.p2 > 1 else 0) + row, p.p1)

    def fft(unit: float, before: float, forwards: bool) -> tuple[list[Table], float]:
        """Transform along x, y and z or back; what is left to compute behind the last call."""
        x, y, z = (unit * log(n) * seconds for n in (p.nx, p.ny, p.nz))
        stages = [(x, in_column), (y, in_row), (z, None)]
        if not forwards:
            stages = [(z, in_row), (y, in_column), (x, None)]
        tables = []
        for work, exchange in stages:
            before += work
            if exchange is not None and len(exchange):
                tables.append(delay(before, exchange))
                before = 0.0
        return tables, before

    def time_step(before: float) -> list[Table]:
        """Evolve, transform back, add up the checksum."""
        exchanges, rest = fft(FFT, before + STEP * seconds, forwards=False)
        return [*exchanges, delay(rest, reduce(rank, ranks, 16))]

    warm_up, rest = fft(FIRST_FFT, SETUP * seconds, forwards=True)
    # The same once more, with the clock running.
    first, behind_first = fft(FIRST_FFT, SETUP * seconds, forwards=True)
    others: Parts = [Repeat(p.steps - 1, [*time_step(0.0)])] if p.steps > 1 else []
    split = everyone(Call.COMM_SPLIT, ranks)
    return [
        everyone(Call.INIT, ranks),
        calls(Call.COMM_SIZE),
        calls(Call.COMM_RANK),
        *[bcast(rank, ranks, size) for size in INPUT_BCASTS],
        split,
        split,
        *warm_up,
        delay(rest, everyone(Call.BARRIER, ranks)),
        *first,
        *time_step(behind_first),
        *others,
        calls(Call.COMM_SIZE, int(rank == 0)),  # verify
        everyone(Call.FINALIZE, ranks),
    ]


def _ft_programs(p: FtProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    return (_ft_program(p, rank, ranks, seconds) for rank in range(ranks))


FT = Benchmark("ft", FT_ABOUT, ft_problem, _ft_programs, communicators=_ft_communicators)

IS_ABOUT = """\
NAS IS (NPB 3.3-MPI): a bucket sort of integer keys, ranked again and again.

A ranking sums the sizes of all buckets (Allreduce), tells how many keys go to whom (Alltoall) and
sends them (Alltoallv). A rank gets whole buckets, so many as reach its share of the keys; how many
keys that is follows from the keys, which are drawn here as the benchmark draws them. At the end
every rank sends its largest key to the next one: the only messages.

Source: NPB 3.3-MPI, IS: is.c (create_seq, rank, full_verify).
"""

# Class: logarithms of the number of keys, of their range, of the number of buckets; ranks.
IS_CLASSES = {
    "S": (16, 11, 9, (1, 128)),
    "W": (20, 16, 10, (1, 1024)),
    "A": (23, 19, 10, (1, 1024)),
    "B": (25, 21, 10, (1, 1024)),
    "C": (27, 23, 10, (1, 1024)),
    "D": (31, 27, 10, (4, 1024)),
}

RANKINGS = 10
SEED, MULTIPLIER = 314159265, 1220703125
TEST_KEYS = 5  # that every Allreduce carries in addition to the sizes of buckets
KEY = 4  # bytes of a key or count
TAG = 1000

# Share of a ranking's operations before its collectives, on the keys a rank has drawn; the others
# are on those that it is sent. NPB counts keys ranked; that halves are equal is our assumption.
OWN = 0.5


class IsProblem(NamedTuple):
    """A class on a number of ranks."""

    # Keys in all, and drawn by a rank
    keys: int
    own: int
    # Keys are below the one and fall into so many of the others
    largest: int
    buckets: int
    steps: int  # timed rankings


def is_problem(nas_class: str, ranks: int, steps: int | None = None) -> IsProblem:
    """Lay a class out on a power of two of ranks; `steps` are rankings.

    There are at most 128 ranks in class S and 1024 in others, and at least 4 in class D. Rankings
    are at most half of a rank's keys, of which each changes two.
    """
    log_keys, log_largest, log_buckets, (low, high) = parameters_of("IS", IS_CLASSES, nas_class)
    log2_of("IS", ranks)
    if not low <= ranks <= high:
        raise TraceError(f"IS class {nas_class} on {ranks} ranks: expected {low} to {high}")
    p = IsProblem(
        1 << log_keys,
        (1 << log_keys) // ranks,
        1 << log_largest,
        1 << log_buckets,
        steps_of("IS", steps, RANKINGS),
    )
    most = min(p.own, p.largest) // 2 - 1
    if p.steps > most:
        raise TraceError(f"IS class {nas_class} with {p.steps} rankings: expected at most {most}")
    return p


def keys_received(p: IsProblem, ranks: int) -> Ints:
    """Keys that ranks are sent in each ranking, the untimed one first, shape (steps + 1, ranks)."""
    from .is_kernels import count_keys

    counts = np.zeros(p.buckets, dtype=np.int64)
    leading = 49 - p.buckets.bit_length()  # a sum of four numbers has 48 bits
    count_keys(p.keys, SEED, MULTIPLIER, leading, counts)
    bucket = [key >> leading for key in _first_sums(2 * p.steps + 1)]
    width = p.largest // p.buckets
    received = []
    for ranking in (1, *range(1, p.steps + 1)):
        # The benchmark sets two of rank 0's keys, to one of the smallest and one of the largest.
        for place, key in ((ranking, ranking), (ranking + p.steps, p.largest - ranking)):
            counts[bucket[place]] -= 1
            bucket[place] = key // width
            counts[bucket[place]] += 1
        received.append(_shares(counts, p.own, ranks))
    return np.array(received)


def _first_sums(keys: int) -> list[int]:
    """Form the sums of four random numbers that the first keys are."""
    x, sums = SEED, []
    for _ in range(keys):
        total = 0
        for _ in range(4):
            x = x * MULTIPLIER % (1 << 46)
            total += x
        sums.append(total)
    return sums


def _shares(counts: Ints, own: int, ranks: int) -> Ints:
    """Keys of each rank: its last bucket is the first that fills its share, one bucket at least."""
    last: list[int] = []
    for bucket, keys in enumerate(np.cumsum(counts).tolist()):
        if keys >= (len(last) + 1) * own:
            last.append(bucket)
    filled = np.diff(np.cumsum(counts)[last], prepend=0)
    return np.append(filled, np.zeros(ranks - len(filled), dtype=np.int64))


def _is_pairs(_: IsProblem, ranks: int) -> list[Ints]:
    """Traffic of a whole run: keys travel in collectives."""
    low = np.arange(ranks - 1)
    return [low, low + 1, np.ones_like(low), np.full_like(low, KEY)]


def _is_programs(p: IsProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    """Draws all keys first, the 2^31 of class D in 2 s."""
    received = keys_received(p, ranks)
    for rank in range(ranks):
        yield _is_program(p, rank, ranks, received[:, rank], seconds)


def _is_program(p: IsProblem, rank: int, ranks: int, received: Ints, seconds: float) -> Parts:
    """All calls of one rank, in order."""
    sizes = everyone(Call.ALLREDUCE, ranks, KEY * (p.buckets + TEST_KEYS))
    parts: Parts = []
    spent = 0.0
    for keys in received.tolist():
        parts += [
            delay(spent + OWN * p.own * seconds, sizes),
            everyone(Call.ALLTOALL, ranks, KEY),
            calls(Call.ALLTOALLV, size=KEY * p.own, received=KEY * keys),
        ]
        spent = (1 - OWN) * keys * seconds
    chain: list[Row] = []
    if rank > 0:
        chain.append((Call.IRECV, -1, -1, -1))
    if rank < ranks - 1:
        chain.append((Call.SEND, rank + 1, TAG, KEY))
    if rank > 0:
        chain.append((Call.WAIT, rank - 1, TAG, KEY))
    return [
        *begin(rank, ranks, [KEY]),
        *parts,
        delay(spent, reduce(rank, ranks, 8)),
        call_table(chain),
        reduce(rank, ranks, 4),
        everyone(Call.FINALIZE, ranks),
    ]


IS = Benchmark("is", IS_ABOUT, is_problem, _is_programs, _is_pairs)
