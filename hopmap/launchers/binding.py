"""Which cores and which GPU the ranks of a node get.

Ranks fill the NUMA domains of a node in order of their numbers, as evenly as the domains have room.
If a node has a GPU for every rank, ranks go to the domains of the GPUs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from hopmap.topologies import MappingError
from hopmap.topologies.readers.node import Domain

from .formats import Launch


class Seat(NamedTuple):
    """Where a rank is bound to on its node."""

    cores: Sequence[int]  # logical numbers
    domain: int | None = None  # None if it spans several, or the node is not described
    gpu: int | None = None  # the nearest, where the domain has one

    @property
    def slots(self) -> str:
        """Its cores as ``0-3,8``."""
        runs = [
            [core for _, core in run]
            for _, run in groupby(enumerate(self.cores), lambda place: place[1] - place[0])
        ]
        return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def seats_on(ranks: int, threads: int, node: Sequence[Domain] | None) -> list[Seat]:
    """Return the seats of a node's ranks, each on as many cores as it has threads.

    On a node that is not described they are cores 0, 1, ...; ranks that do not fit into domains
    span several.
    """
    if node is None:
        return [Seat(range(first, first + threads)) for first in range(0, ranks * threads, threads)]
    cores = [core for domain in node for core in domain.cores]
    room = [len(domain.cores) // threads for domain in node]
    if ranks * threads > len(cores):
        raise MappingError(
            f"{ranks} ranks of {threads} threads a node: expected {len(cores)} cores at most"
        )
    if sum(room) < ranks:
        return [Seat([cores[n] for n in seat.cores]) for seat in seats_on(ranks, threads, None)]
    counts = _shares(ranks, room)
    gpus = [len(domain.gpus) for domain in node]
    if ranks <= sum(gpus):
        by_gpu = _shares(ranks, gpus)
        counts = by_gpu if (by_gpu <= room).all() else counts
    seats = []
    for number, (domain, count) in enumerate(zip(node, counts.tolist(), strict=True)):
        for turn in range(count):
            own = domain.cores[turn * threads : (turn + 1) * threads]
            gpu = domain.gpus[turn * len(domain.gpus) // count] if domain.gpus else None
            seats.append(Seat(own, number, gpu))
    return seats


def _shares(ranks: int, room: Sequence[int]) -> np.ndarray:
    """Return how many of the ranks each domain takes: in proportion to its room, never more."""
    ends = np.cumsum([0, *room])
    return np.diff(-(-ranks * ends // ends[-1]))


def note_cores(launch: Launch) -> list[str]:
    """Say by which rule ranks get their cores."""
    most = int(np.bincount(launch.node_of).max())
    seats = seats_on(most, launch.threads or 1, launch.node)
    if launch.node is None:
        last = seats[-1].cores[-1]
        cores = f"cores 0 to {last} in order" if last else "core 0"
        return [f"ranks are bound to {cores}: give --node FILE.xml (of lstopo) to use NUMA domains"]
    if seats[0].domain is None:
        return ["ranks span NUMA domains: the domains have too few cores for their threads"]
    near = " and the nearest GPU" if any(seat.gpu is not None for seat in seats) else ""
    used = len({seat.domain for seat in seats})
    spread = f"ranks of a node use {used} of {len(launch.node)} NUMA domains"
    return [f"{spread}; each line names the domain{near}"]
