"""Schedules: what each rank does as a graph of operations, as GOAL has it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.traffic import Traffic

Ints = NDArray[np.int64]


class Task(IntEnum):
    """What an operation does, numbered as in LogGOPSim's binary schedules."""

    SEND = 1
    RECV = 2
    CALC = 3


@dataclass(frozen=True, eq=False)
class Schedule:
    """Operations of all ranks, rank after rank, and what they wait for.

    Attributes
    ----------
    name : str
        Where it comes from.
    offsets : ndarray(int64, shape=(ranks + 1,))
        Operations of rank r are ``offsets[r]:offsets[r + 1]``.
    kind : ndarray(uint8)
        `Task`.
    size : ndarray(int64)
        Bytes of a message; nanoseconds of a CALC.
    peer, tag : ndarray(int64)
        Partner and tag of a message; -1 of a receive from anyone, or of any tag.
    cpu, nic : ndarray(uint16)
        Processor and network interface that the operation takes.
    after, before : ndarray(int64, shape=(edges,))
        Operation `after` begins no sooner than operation `before` ends, of the same rank,
    begun : ndarray(bool, shape=(edges,))
        or than it begins.
    """

    name: str
    offsets: Ints
    kind: NDArray[np.uint8]
    size: Ints
    peer: Ints
    tag: Ints
    cpu: NDArray[np.uint16]
    nic: NDArray[np.uint16]
    after: Ints
    before: Ints
    begun: NDArray[np.bool_]

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.offsets) - 1

    @property
    def operations(self) -> int:
        """Number of operations."""
        return len(self.kind)

    def rank_of_operation(self) -> Ints:
        """Rank of each operation."""
        return np.repeat(np.arange(self.ranks), np.diff(self.offsets))

    def traffic(self) -> Traffic:
        """Reduce to who sends how much to whom."""
        sends = np.flatnonzero(self.kind == Task.SEND)
        return Traffic.from_pairs(
            self.ranks,
            self.rank_of_operation()[sends],
            self.peer[sends],
            np.ones(len(sends), dtype=np.int64),
            self.size[sends],
            name=self.name,
        )
