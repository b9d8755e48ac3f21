"""Schedules: what each rank does as a graph of operations, as GOAL has it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Ints

from .traffic import Traffic


class Task(IntEnum):
    """What an operation does, numbered as in LogGOPSim's binary schedules."""

    SEND = 1
    RECV = 2
    CALC = 3


@dataclass(frozen=True, eq=False)
class Schedule:
    """Operations of all ranks, rank after rank, and what they wait for."""

    name: str  # where it comes from
    offsets: Ints  # (ranks + 1,): operations of rank r are ``offsets[r]:offsets[r + 1]``
    kind: NDArray[np.uint8]  # `Task`
    size: Ints  # bytes of a message; nanoseconds of a CALC
    # Partner and tag of a message; -1 of a receive from anyone, or of any tag
    peer: Ints
    tag: Ints
    # Processor and network interface that the operation takes
    cpu: NDArray[np.uint16]
    nic: NDArray[np.uint16]
    # (edges,): operation `after` begins no sooner than operation `before` ends, of the same rank,
    after: Ints
    before: Ints
    begun: Bools  # (edges,): or than it begins

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
