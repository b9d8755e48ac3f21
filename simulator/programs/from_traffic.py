"""Traffic without a trace as a program: who sends how much is known, when is not.

In bulk-synchronous rounds: in each, a rank posts the receives of the round, then its sends, and
waits for all of them. One round is everything at once.

Or as background of others: nodes that send messages at a rate, without waiting for them. An open
loop, as networks are loaded in Dally and Towles, Principles and Practices of Interconnection
Networks, 2004, 23.1: what is sent does not depend on how fast it gets through. Messages set out at
the moments of a Poisson process; no rank receives them or waits. Such a load has no end of
its own, so that it is made for a time; for a longer time it begins with the same messages.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.errors import expect_between, expect_one_of
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.traces import TraceError, Traffic, require_memory
from hopmap.traces.patterns.synthetic import PATTERNS, synthetic_traffic

from .mpi_calls import SendMode
from .program import Op, Program, with_finishes

MOST_ROUNDS = 10**9
MODES = ("rounds", "at_once")
ASSUMED_ROUNDS = "rounds assumed of traffic alone, without computation and collectives"
MOST_MESSAGES = 4_000_000  # each takes some 500 bytes while the program is made


def rounds_of(traffic: Traffic) -> int:
    """Return as many rounds as the pair with most messages has."""
    return int(traffic.messages.max(initial=1))


def program_of_traffic(
    traffic: Traffic, mode: str = "rounds", rounds: int | None = None, name: str = "traffic"
) -> Program:
    """Turn traffic into a program that sends exactly it, in rounds or all at once.

    There are as many rounds as messages of the pair that has most, when left out, so that no pair
    has two messages in a round. A pair's messages are spread evenly over the rounds, and its bytes
    over its messages: sizes differ by one byte at most.

    Examples
    --------
    >>> from hopmap.traces import Traffic
    >>> program = program_of_traffic(Traffic.from_pairs(2, [0], [1], [3], [10]))
    >>> program.size[program.sends()].tolist()
    [4, 3, 3]
    """
    expect_one_of(ParameterError, "mode", mode, MODES)
    if rounds is None or mode == "at_once":
        rounds = rounds_of(traffic) if mode == "rounds" else 1
    messages = int(traffic.messages.sum())
    if messages > MOST_MESSAGES:
        raise TraceError(
            f"{name}: {messages:,} messages to replay one by one: expected at most "
            f"{MOST_MESSAGES:,}"
        )
    expect_between(ParameterError, f"rounds {rounds}", rounds, 1, MOST_ROUNDS)
    # A pair's j-th of m messages is in round j * rounds // m, its j-th of b bytes' parts likewise.
    pair = np.repeat(np.arange(traffic.pairs), traffic.messages)
    before = np.cumsum(traffic.messages) - traffic.messages
    nth = np.arange(len(pair)) - np.repeat(before, traffic.messages)
    turn = nth * rounds // traffic.messages[pair]
    mean, more = np.divmod(traffic.bytes, traffic.messages)
    size = mean[pair] + (nth < more[pair])
    src, dst = traffic.src[pair].astype(np.int64), traffic.dst[pair].astype(np.int64)

    # Per rank and round: IRECVs, ISENDs, then a WAIT for each.
    both = len(pair)
    rank = np.concatenate((dst, src))
    peer = np.concatenate((src, dst))
    kind = np.repeat([int(Op.IRECV), int(Op.ISEND)], both)
    rank, peer, kind = (np.concatenate((column, column)) for column in (rank, peer, kind))
    waits = np.arange(4 * both) >= 2 * both
    stage = np.where(waits, 2, kind == Op.ISEND)
    turn, number = np.tile(turn, 4), np.tile(np.arange(both), 4)
    order = np.lexsort((number, kind, stage, turn, rank))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    columns = {
        "kind": np.where(waits, int(Op.WAIT), kind),
        "peer": np.where(waits, -1, peer),
        "tag": np.where(waits, -1, 0),
        "context": np.where(waits, -1, 0),
        "size": np.where(waits, 0, np.tile(size, 4)),
        "target": np.where(waits, np.roll(place, 2 * both), -1),
    }
    sorted_columns = {column: values[order] for column, values in columns.items()}
    return with_finishes(name, traffic.ranks, rank[order], sorted_columns)


UNIFORM, INCAST = "uniform", "incast"
BYTES_PER_MESSAGE = 200  # of its rows and of an engine's


def background(
    pattern: str,
    ranks: int,
    *,
    rate: float,
    size: int,
    seconds: float,
    seed: int = 0,
    parameters: Parameters | None = None,
) -> Program:
    """Return the traffic of as many ranks, which stand on a node each.

    The pattern is "uniform", every message to any other rank; "incast", all but the first to the
    first; or one of `PATTERNS` on a line of the ranks. A rank sends `rate` bytes/s in the mean, in
    messages of `size` bytes, which set out until `seconds`. The parameters' overheads and scale of
    computation are allowed for, so that the rate is kept under them.
    """
    parameters = parameters or Parameters()
    said = f"background {pattern}"
    expect_one_of(ParameterError, "unknown background", pattern, BACKGROUNDS)
    if ranks < 2:
        raise ParameterError(f"{said}: {ranks} nodes for it: expected at least 2")
    if not (rate > 0 and size >= 1):
        raise ParameterError(
            f"{said}: {rate:g} bytes/s in messages of {size} bytes: expected more than 0 of both"
        )
    busy = parameters.overhead_send
    if size < parameters.eager_limit:
        busy += size * parameters.overhead_per_byte
    if size / rate <= busy:
        raise ParameterError(
            f"{said}: {rate:g} bytes/s a node in messages of {size} bytes, each {busy:g} s of "
            f"overhead: expected less than {size / busy:g} bytes/s, or larger messages"
        )
    if parameters.compute_scale <= 0:
        raise ParameterError(f"{said}: compute.scale 0: expected more, it waits between messages")
    require_memory(
        int(BYTES_PER_MESSAGE * ranks * seconds * rate / size),
        f"{said}: {seconds:g} s of it",
        "expected a shorter time, a lower rate or larger messages",
    )
    target = np.zeros(ranks, dtype=np.int64)
    if pattern not in (UNIFORM, INCAST):
        pairs = synthetic_traffic(pattern, (ranks,))
        target[pairs.src] = pairs.dst
    parts: list[tuple[Floats, Ints]] = []
    for rank in range(ranks):
        sends = pattern == UNIFORM or target[rank] != rank
        sent = _moments(size / rate, seconds if sends else 0.0, seed, rank)
        to = np.full(len(sent), target[rank])
        if pattern == UNIFORM:
            others = np.random.default_rng([seed, rank, 1]).integers(ranks - 1, size=len(sent))
            to = others + (others >= rank)
        parts.append((_pauses(sent, busy) / parameters.compute_scale, to))
    return _program(f"{pattern} background", parts, size)


BACKGROUNDS = (UNIFORM, INCAST, *(name for name in PATTERNS if name != UNIFORM))


def _moments(mean: float, seconds: float, seed: int, rank: int) -> Floats:
    """Draw when a rank's messages set out."""
    number = int(seconds / mean) + 16
    while True:
        gaps = np.random.default_rng([seed, rank, 0]).exponential(mean, size=number)
        sent = np.cumsum(gaps)
        if sent[-1] > seconds:
            return sent[sent <= seconds]
        number *= 2


def _pauses(sent: Floats, busy: float) -> Floats:
    """Return what a rank computes before each send, which then keeps it busy for so long."""
    behind = np.arange(len(sent)) * busy
    at = np.maximum.accumulate(sent - behind) + behind if len(sent) else sent
    return np.diff(at, prepend=-busy) - busy


def _program(name: str, parts: list[tuple[Floats, Ints]], size: int) -> Program:
    rank = np.repeat(np.arange(len(parts)), [len(to) for _, to in parts])
    columns = {
        "kind": Op.ISEND,
        "compute": np.maximum(np.concatenate([pauses for pauses, _ in parts]), 0.0),
        "peer": np.concatenate([to for _, to in parts]),
        "tag": 0,
        "context": 0,
        "size": size,
        "mode": SendMode.READY,
    }
    return with_finishes(name, len(parts), rank, columns)
