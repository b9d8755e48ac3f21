"""What a run of several jobs was for each of them, and the links that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Floats, Ints
from hopmap.simulator.programs.program import Program
from hopmap.simulator.result import Result
from hopmap.topologies import Topology, check_mapping


class JobResult(NamedTuple):
    """A job's part of a run; times in seconds."""

    name: str
    ranks: int
    # start, finish: when its ranks begin, and when the last of them has finished
    start: float
    finish: float
    # compute, communicate, wait: means over its ranks; before its start nobody waits
    compute: float
    communicate: float
    wait: float
    messages: int
    bytes: int
    background: bool  # see `Job`

    @property
    def makespan(self) -> float:
        """From its start to its last rank's end."""
        return self.finish - self.start


class SharedLinks(NamedTuple):
    """Links that messages of two jobs cross."""

    jobs: tuple[str, str]
    links: int  # how many
    bytes: tuple[int, int]  # what each of the two has on all of them together
    link: int  # the one on which the two together have most
    link_bytes: tuple[int, int]  # what each of the two has there


def by_job(result: Result, program: Program) -> list[JobResult]:
    """Split a run by the jobs of its program."""
    sends = program.sends()
    rank, times = program.rank_of_row()[sends], program.iterations()[sends]
    messages = np.bincount(rank, times, program.ranks)
    moved = np.zeros(program.ranks, dtype=np.int64)
    np.add.at(moved, rank, times * program.size[sends])
    found = []
    for job in program.jobs:
        mine = slice(job.first, job.first + job.ranks)
        found.append(
            JobResult(
                name=job.name,
                ranks=job.ranks,
                start=job.start,
                finish=float(result.finish[mine].max(initial=job.start)),
                compute=_mean(result.compute[mine]),
                communicate=_mean(result.communicate[mine]),
                wait=_mean(result.wait[mine]) - job.start,
                messages=int(messages[mine].sum()),
                bytes=int(moved[mine].sum()),
                background=job.background,
            )
        )
    return found


def loads_by_job(program: Program, topology: Topology, node_of: ArrayLike) -> Ints:
    """Bytes of each job on each link, shape (jobs, links)."""
    nodes = check_mapping(node_of, topology, program.ranks)
    traffic = program.traffic()
    loads = np.zeros((len(program.jobs), topology.links), dtype=np.int64)
    for load, job in zip(loads, program.jobs, strict=True):
        mine = (traffic.src >= job.first) & (traffic.src < job.first + job.ranks)
        src, dst = traffic.src[mine], traffic.dst[mine]
        load[:] = topology.loads(nodes[src], nodes[dst], traffic.bytes[mine])
    return loads


def shared_links(names: Sequence[str], loads: Ints) -> list[SharedLinks]:
    """Say of every two jobs which links they share, by `loads_by_job`; most bytes first."""
    found = []
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            both = (loads[a] > 0) & (loads[b] > 0)
            if both.any():
                pair = np.where(both, loads[[a, b]], 0)
                most = int(pair.sum(axis=0).argmax())
                found.append(
                    SharedLinks(
                        (names[a], names[b]),
                        int(both.sum()),
                        (int(pair[0].sum()), int(pair[1].sum())),
                        most,
                        (int(pair[0, most]), int(pair[1, most])),
                    )
                )
    return sorted(found, key=lambda shared: -sum(shared.bytes))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
