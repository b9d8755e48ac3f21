"""NAS IS (NPB 3.3-MPI): a bucket sort of integer keys, ranked again and again.

A ranking sums the sizes of all buckets (Allreduce), tells how many keys go to whom (Alltoall) and
sends them (Alltoallv). A rank gets whole buckets, so many as reach its share of the keys; how many
keys that is follows from the keys, which are drawn here as the benchmark draws them. At the end
every rank sends its largest key to the next one: the only messages.

Source: NPB 3.3-MPI, IS: is.c (create_seq, rank, full_verify).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Parts
from hopmap.traces.trace import TraceError

from .skeleton import (
    Benchmark,
    Ints,
    Row,
    after,
    begin,
    everyone,
    listed,
    log2_of,
    parameters_of,
    reduce,
    steps_of,
)

# Class: logarithms of the number of keys, of their range, of the number of buckets; ranks.
CLASSES = {
    "S": (16, 11, 9, (1, 128)),
    "W": (20, 16, 10, (1, 1024)),
    "A": (23, 19, 10, (1, 1024)),
    "B": (25, 21, 10, (1, 1024)),
    "C": (27, 23, 10, (1, 1024)),
    "D": (31, 27, 10, (4, 1024)),
}

RANKINGS = 10
SEED, MULTIPLIER = 314159265, 1220703125
TEST_KEYS = 5  # that every Allreduce carries besides the sizes of buckets
KEY = 4  # bytes of a key or count
TAG = 1000

# Share of a ranking's operations before its collectives, on the keys a rank has drawn; the others
# are on those that it is sent. NPB counts keys ranked; that halves are equal is our assumption.
OWN = 0.5


class IsProblem(NamedTuple):
    """A class on a number of ranks.

    Attributes
    ----------
    keys, own : int
        Keys in all, and drawn by a rank.
    largest, buckets : int
        Keys are below the one and fall into so many of the others.
    steps : int
        Timed rankings.
    """

    keys: int
    own: int
    largest: int
    buckets: int
    steps: int


def is_problem(nas_class: str, ranks: int, steps: int | None = None) -> IsProblem:
    """Lay a class out on a power of two of ranks; `steps` are rankings.

    There are at most 128 ranks in class S and 1024 in others, and at least 4 in class D. Rankings
    are at most half of a rank's keys, of which each changes two.
    """
    log_keys, log_largest, log_buckets, (low, high) = parameters_of("IS", CLASSES, nas_class)
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


def _pairs(_: IsProblem, ranks: int) -> list[Ints]:
    """Traffic of a whole run: keys travel in collectives."""
    low = np.arange(ranks - 1)
    return [low, low + 1, np.ones_like(low), np.full_like(low, KEY)]


def _programs(p: IsProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    """Draws all keys first, the 2^31 of class D in 2 s."""
    received = keys_received(p, ranks)
    for rank in range(ranks):
        yield _rank_program(p, rank, ranks, received[:, rank], seconds)


def _rank_program(p: IsProblem, rank: int, ranks: int, received: Ints, seconds: float) -> Parts:
    """All calls of one rank, in order."""
    sizes = everyone(Call.ALLREDUCE, ranks, KEY * (p.buckets + TEST_KEYS))
    parts: Parts = []
    spent = 0.0
    for keys in received.tolist():
        parts += [
            after(spent + OWN * p.own * seconds, sizes),
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
        after(spent, reduce(rank, ranks, 8)),
        listed(chain),
        reduce(rank, ranks, 4),
        everyone(Call.FINALIZE, ranks),
    ]


BENCHMARK = Benchmark("is", __doc__, is_problem, _programs, _pairs)
