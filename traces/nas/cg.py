"""NAS CG (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

Inverse power method with 25 steps of conjugate gradients a round, on a random sparse matrix of
n x n, split over R rows x C columns of ranks; rank = row * C + col, C = R or 2R. A product with
the matrix is summed over the row of ranks by halving distances, then exchanged with the transpose
partner, which for ranks on the diagonal is the rank itself: these messages are real ones.

Source: NPB 3.3-MPI, CG: cg.f (setup_submatrix_info, conj_grad).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Table
from hopmap.traces.calls import Call
from hopmap.traces.folded import Parts, Repeat
from hopmap.traces.trace import TraceError

from .benchmarks import (
    Benchmark,
    Row,
    begin,
    call_table,
    delay,
    everyone,
    log2_of,
    parameters_of,
    reduce,
    steps_of,
)

MOST_RANKS = 2**20  # with a dozen partners each, and, in class S, hardly more than a row
# Class: order n of the matrix, nonzeros of a generating vector, rounds (niter).
CLASSES = {
    "S": (1400, 7, 15),
    "W": (7000, 8, 15),
    "A": (14000, 11, 15),
    "B": (75000, 13, 75),
    "C": (150000, 15, 75),
    "D": (1500000, 21, 100),
    "E": (9000000, 26, 100),
}

INNER = 25  # steps of conjugate gradients in a round


class CgProblem(NamedTuple):
    """A class on a number of ranks."""

    # Order of the matrix, nonzeros of a generating vector, timed rounds
    n: int
    nonzer: int
    steps: int
    # Rows and columns of ranks
    R: int
    C: int
    partners: Ints  # (log2 C, ranks): ranks that sums over a row are exchanged with, in order
    transpose: Ints  # (ranks,): transpose partner
    # (log2 C + 1, ranks): elements of the piece that a rank sends to each partner, and to the
    # transpose one
    lengths: Ints


def cg_problem(nas_class: str, ranks: int, steps: int | None = None) -> CgProblem:
    """Lay a class out on a power of two of ranks, at most `MOST_RANKS`."""
    n, nonzer, own = parameters_of("CG", CLASSES, nas_class)
    if ranks > MOST_RANKS:
        raise TraceError(f"CG on {ranks} ranks: expected at most {MOST_RANKS}")
    R = 1 << (log2_of("CG", ranks) // 2)
    C = ranks // R
    me = np.arange(ranks)
    row, col = me // C, me % C
    stages = C.bit_length() - 1
    partners = np.array([row * C + (col ^ (C >> i)) for i in range(1, stages + 1)], dtype=np.int64)
    rows = n // R + (row < n % R)
    if C == R:
        transpose, mine = col * C + row, rows
    else:
        pair = me // 2
        transpose = 2 * (pair % R * R + pair // R) + me % 2
        mine = (rows + 1 - me % 2) // 2
    lengths = np.tile(mine, (stages + 1, 1))
    if C != R:
        lengths[-2] = rows - mine  # the neighbour's part of what both have summed so far
    return CgProblem(
        *(n, nonzer, steps_of("CG", steps, own), R, C),
        *(partners.reshape(stages, ranks), transpose, lengths),
    )


def _pairs(p: CgProblem, ranks: int) -> list[Ints]:
    """Traffic of a whole run; time and memory of the order of ranks log ranks."""
    me = np.arange(ranks)
    rounds = p.steps + 1
    vectors, scalars = rounds * (INNER + 1), rounds * 2 * (INNER + 1)
    stages = len(p.partners)
    src, dst = np.tile(me, stages), p.partners.ravel()
    messages = np.full(len(src), scalars + rounds + vectors)
    volume = 8 * scalars + 16 * rounds + 8 * vectors * p.lengths[:-1].ravel()
    if stages:
        src, dst = np.append(src, me), np.append(dst, p.transpose)
        messages = np.append(messages, np.full(ranks, vectors))
        volume = np.append(volume, 8 * vectors * p.lengths[-1])
    return [src, dst, messages, volume]


def _programs(p: CgProblem, ranks: int, seconds: float) -> Iterator[Parts]:
    # NPB counts 2 n (3 + z + 25 (5 + z) + 3) a round; a vector operation is 2 n of them, the
    # product with the matrix 2 n z.
    vector = 2 * p.n / ranks * seconds
    product = vector * p.nonzer * (p.nonzer + 1)
    for rank in range(ranks):
        yield _rank_program(p, rank, ranks, vector, product)


def _rank_program(p: CgProblem, rank: int, ranks: int, vector: float, product: float) -> Parts:
    """All calls of one rank, in order."""
    partners = p.partners[:, rank].tolist()
    stages = range(len(partners))

    def exchange(other: int, tag: int, sent: int, received: int) -> list[Row]:
        posted = (Call.IRECV, -1, -1, -1)
        return [posted, (Call.SEND, other, tag, sent), (Call.WAIT, other, tag, received)]

    def pieces(stage: int, other: int) -> tuple[int, int]:
        return 8 * int(p.lengths[stage, rank]), 8 * int(p.lengths[stage, other])

    def reduction(size: int) -> Table:
        rows = [exchange(partners[i], i + 1, size, size) for i in stages]
        return call_table([call for stage in rows for call in stage])

    scalar, norms = reduction(8), reduction(16)
    rows = [exchange(partners[i], i + 1, *pieces(i, partners[i])) for i in reversed(stages)]
    other = int(p.transpose[rank])
    rows.append(exchange(other, 1, *pieces(-1, other)))
    sum_up = call_table([call for stage in rows for call in stage])

    start = begin(rank, ranks, [4])
    barrier, end = everyone(Call.BARRIER, ranks), everyone(Call.FINALIZE, ranks)
    last = reduce(rank, ranks, 8)
    if ranks == 1:  # no messages to compute between
        spent = vector * (6 + 5 * INNER) + product * (1 + INNER)
        return [*start, delay(spent, barrier), delay(p.steps * spent, last), end]
    a_round: Parts = [
        delay(2 * vector, scalar),  # x of the last round; rho
        Repeat(
            INNER,
            [
                delay(vector + product, sum_up),  # p, q = A p
                delay(vector, scalar),  # p q
                delay(3 * vector, scalar),  # z, r, rho
            ],
        ),
        delay(product, sum_up),  # A z
        delay(2 * vector, scalar),  # the residual's norm
        delay(2 * vector, norms),  # x z, z z
    ]
    return [*start, *a_round, barrier, Repeat(p.steps, a_round), last, end]


CG = Benchmark(
    "cg",
    __doc__,
    cg_problem,
    _programs,
    _pairs,
    grid=lambda p: {"dims": [p.C, p.R], "periodic": [False, False]},
)
