"""Jobs among others on one machine, and the traffic of others, as they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from hopmap.errors import HopmapError
from hopmap.topologies.allocation import POLICIES
from hopmap.units import UnitError, parse_quantity

from .input_kinds import MappingLike
from .workload import Workload, WorkloadLike

LATEST = 10**6  # seconds: behind it a time of 64 bits no longer tells a nanosecond
MESSAGE = 64 * 1024  # bytes of a message of background traffic, unless told otherwise


class JobsError(HopmapError, ValueError):
    """Jobs cannot be run as asked."""


@dataclass(frozen=True, eq=False)
class Job:
    """A job among others.

    Attributes
    ----------
    trace : Workload, or what it takes
        What it does.
    mapping : mapping, optional
        A file, an array or a `Placement`; or one of the policies "contiguous", "random nodes",
        "random switches" by which it gets free nodes, the first when left out.
    hosts, nodelist : optional
        Its nodes, instead of a mapping: a file with a host a line, or Slurm's list; ranks sit on
        them in their order.
    name : str, optional
        What results call it.
    start : float or str
        When it begins: seconds, or like "2 ms".
    repeat : int
        How often it runs, one run behind the other.
    seed : int
        Of a random policy.
    steps, rounds : int, optional
        See `Workload`.
    """

    trace: WorkloadLike
    mapping: MappingLike | None = None
    hosts: str | Path | None = None
    nodelist: str | None = None
    name: str | None = None
    start: float | str = 0.0
    repeat: int = 1
    seed: int = 0
    steps: int | None = None
    rounds: int | None = None

    @cached_property
    def workload(self) -> Workload:
        """What it does."""
        workload = Workload.of(self.trace)
        if self.steps is None and self.rounds is None:
            return workload
        steps = workload.steps if self.steps is None else self.steps
        rounds = workload.rounds if self.rounds is None else self.rounds
        return replace(workload, steps=steps, rounds=rounds)

    @property
    def policy(self) -> str | None:
        """By which it gets nodes, if they are not given."""
        if self.mapping is None:
            return None if self.hosts or self.nodelist else "contiguous"
        word = str(self.mapping).replace("-", " ") if isinstance(self.mapping, str) else ""
        return word if word in POLICIES else None

    @property
    def begins(self) -> float:
        """Its start in seconds."""
        found = quantity(self.start, "s", "start")
        if found > LATEST:
            raise JobsError(f"start {self.start}: expected at most {LATEST:,} s")
        return found


@dataclass(frozen=True)
class Background:
    """Traffic that others send.

    Attributes
    ----------
    pattern : str
        "uniform", "incast", or another of `BACKGROUNDS`.
    rate : float or str
        That a node sends, in the mean: bytes/s, or like "5 GB/s".
    size : int or str
        Of a message: bytes, or like "64 KiB".
    duration : float or str, optional
        Until when messages set out: seconds, or like "2 ms"; until the jobs have ended when left
        out.
    hosts, nodelist : optional
        Nodes that send, as of a `Job`; all that are free when left out.
    seed : int
    """

    pattern: str
    rate: float | str
    size: int | str = MESSAGE
    duration: float | str | None = None
    hosts: str | Path | None = None
    nodelist: str | None = None
    seed: int = 0


def quantity(value: float | str, unit: str, what: str) -> float:
    """Return a number in SI units, of one or of a text with a unit, like "2 ms"."""
    try:
        found = parse_quantity(value, unit) if isinstance(value, str) else float(value)
    except UnitError as error:
        raise JobsError(f"{what} {value}: {error}") from None
    if not 0 <= found < float("inf"):
        raise JobsError(f"{what} {value}: expected 0 or more")
    return found
