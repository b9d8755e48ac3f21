"""Schedules: who sends how many bytes to whom in which round, by position in the communicator.

In a round a member posts its receives, then its sends, and waits for all of them; a message
carries what its sender held when the round began. Algorithms are functions that write a schedule;
they are in the modules `collectives_trees`, `collectives_exchanges` and `collectives_reductions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Schedule(NamedTuple):
    """Messages of one collective, sorted by round; all of shape (messages,).

    Attributes
    ----------
    round : ndarray(int64)
    src, dst : ndarray(int64)
        Positions in the communicator.
    size : ndarray(int64)
        Bytes.
    """

    round: Ints
    src: Ints
    dst: Ints
    size: Ints


Algorithm = Callable[[int, int, Ints], Schedule]  # (members, root, volume)


def schedule(rounds: Iterable[tuple[Ints, Ints, Ints]]) -> Schedule:
    """Give each round, a tuple (src, dst, size), its number."""
    columns = [(np.full(len(src), k), src, dst, size) for k, (src, dst, size) in enumerate(rounds)]
    if not columns:
        return Schedule(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    return Schedule(
        *(np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True))
    )


def backwards(forth: Schedule) -> Schedule:
    """Send the same messages the other way, last round first."""
    last = forth.round.max(initial=0)
    order = np.argsort(last - forth.round, kind="stable")
    turned = Schedule(last - forth.round, forth.dst, forth.src, forth.size)
    return Schedule(*(column[order] for column in turned))


def one_after_another(*parts: Schedule) -> Schedule:
    """Begin each schedule in the round after the last of the one before."""
    begin, numbered = 0, []
    for part in parts:
        numbered.append(part._replace(round=part.round + begin))
        begin += int(part.round.max(initial=-1)) + 1
    return Schedule(*(np.concatenate(columns) for columns in zip(*numbered, strict=True)))


def renumbered(given: Schedule, member: Ints) -> Schedule:
    """Put ``member[i]`` in the place of i."""
    return given._replace(src=member[given.src], dst=member[given.dst])


def masks(members: int) -> list[int]:
    """1, 2, 4, ... below the number of members."""
    return [1 << k for k in range((members - 1).bit_length())]


def cut(whole: int, parts: int) -> Ints:
    """Cut a buffer into blocks that differ by one byte at most, the longer ones first."""
    return whole // parts + (np.arange(parts) < whole % parts)


def edges(blocks: Ints) -> Ints:
    """Bytes before each block, and in the end of all, shape (blocks + 1,)."""
    return np.concatenate(([0], np.cumsum(blocks)))
