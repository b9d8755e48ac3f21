"""Traffic without a trace as a program: who sends how much is known, when is not.

In bulk-synchronous rounds: in each, a rank posts the receives of the round, then its sends, and
waits for all of them. One round is everything at once.
"""

from __future__ import annotations

import numpy as np

from hopmap.errors import choice
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.traces import TraceError, Traffic

from .program import Op, Program, with_finishes

MODES = ("rounds", "at_once")
MOST_MESSAGES = 4_000_000  # each takes some 500 bytes while the program is made


def program_of_traffic(
    traffic: Traffic, mode: str = "rounds", rounds: int | None = None, name: str = "traffic"
) -> Program:
    """Turn traffic into a program that sends exactly it.

    Parameters
    ----------
    mode : {"rounds", "at_once"}
        Bulk-synchronous rounds, or all messages in one.
    rounds : int, optional
        Number of rounds; as many as the messages of the pair that has most, when left out, so that
        no pair has two messages in a round. A pair's messages are spread evenly over the rounds,
        and its bytes over its messages: sizes differ by one byte at most.

    Examples
    --------
    >>> from hopmap.traces import Traffic
    >>> program = program_of_traffic(Traffic.from_pairs(2, [0], [1], [3], [10]))
    >>> program.size[program.sends()].tolist()
    [4, 3, 3]
    """
    if mode not in MODES:
        raise ParameterError(choice("mode", mode, MODES))
    if rounds is None or mode == "at_once":
        rounds = int(traffic.messages.max(initial=1)) if mode == "rounds" else 1
    if rounds < 1:
        raise ParameterError(f"rounds {rounds}: expected at least 1")
    messages = int(traffic.messages.sum())
    if messages > MOST_MESSAGES:
        raise TraceError(
            f"{name}: {messages:,} messages to replay one by one: expected at most "
            f"{MOST_MESSAGES:,}"
        )
    # A pair's j-th of m messages is in round j * rounds // m, its j-th of b bytes' parts likewise.
    pair = np.repeat(np.arange(traffic.pairs), traffic.messages)
    nth = np.arange(len(pair)) - np.repeat(
        np.cumsum(traffic.messages) - traffic.messages, traffic.messages
    )
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
