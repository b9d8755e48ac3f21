"""What is in a trace, in a few numbers, and what a reading leaves out of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .trace import THREAD_LEVELS, Collective, Kind, SharedCores, Trace
from .traffic import Traffic, one_sided_traffic_of, traffic_of

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, eq=False)
class Summary:
    """The sums over a trace."""

    name: str  # the trace
    traffic: Traffic  # its point-to-point messages
    events: int  # event records, those that a `Trace` leaves out included
    # Calls of each collective operation, a call by all members of a communicator being one; non-
    # blocking ones are named "IALLREDUCE" and so on. A fraction says that some members took part
    # and others did not.
    collectives: Mapping[str, int | float]
    # What the ranks sent in collective operations, by the trace's own account, all in all
    collective_bytes: int
    duration: float  # seconds from the first to the last event
    one_sided: Traffic  # what one-sided operations move, see `one_sided_traffic_of`
    # Records of these, and of what synchronises them, by OTF2's names
    one_sided_records: Mapping[str, int] = field(default_factory=dict)
    # Records of ranks that a `Trace` leaves out, counted by name; records of locations that belong
    # to no rank together, as "of other locations"
    ignored: Mapping[str, int] = field(default_factory=dict)
    shared_cores: SharedCores | None = None
    thread_level: int = -1  # that MPI provided, a place in `THREAD_LEVELS`; -1: not known
    cancelled: int = 0  # requests that were cancelled, the sends among them in `traffic`

    @property
    def ranks(self) -> int:
        """Number of MPI processes."""
        return self.traffic.ranks

    @property
    def messages(self) -> int:
        """Point-to-point messages, those to oneself included."""
        return int(self.traffic.messages.sum())

    @property
    def bytes(self) -> int:
        """Bytes of these messages."""
        return int(self.traffic.bytes.sum())

    @property
    def pairs(self) -> int:
        """Directed pairs of ranks with a message, a rank with itself included."""
        return self.traffic.pairs

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers under the keys of ``info --json`` and ``matrix --json``."""
        moved = self.one_sided.to_dict()
        return {
            "ranks": self.ranks,
            "events": self.events,
            "messages": self.messages,
            "bytes": self.bytes,
            "pairs": self.pairs,
            "collectives": dict(self.collectives),
            "collective_bytes": self.collective_bytes,
            "duration": self.duration,
            "one_sided": {
                **{key: moved[key] for key in ("messages", "bytes", "pairs")},
                "records": dict(self.one_sided_records),
            },
            "ignored": dict(self.ignored),
            "shared_cores": None if self.shared_cores is None else self.shared_cores._asdict(),
            "thread_level": None if self.thread_level < 0 else THREAD_LEVELS[self.thread_level],
        }


def summarize(trace: Trace) -> Summary:
    """Sum up a trace that is in memory."""
    ends = np.flatnonzero(
        (trace.kind == Kind.COLLECTIVE_END) | (trace.kind == Kind.COLLECTIVE_COMPLETE)
    )
    one_sided = np.bincount(trace.kind, minlength=max(Kind) + 1)[Kind.RMA_WIN_CREATE :].tolist()
    rows = trace.ref[ends]
    keys = np.stack(
        [trace.kind[ends], trace.records.operation[rows], trace.records.comm[rows]], axis=1
    )
    distinct, counts = np.unique(keys, axis=0, return_counts=True)
    return Summary(
        name=trace.name,
        traffic=traffic_of(trace),
        events=trace.events + sum(trace.ignored.values()),
        collectives=count_calls(
            (
                bool(kind == Kind.COLLECTIVE_END),
                int(operation),
                int(count),
                len(trace.communicators[comm]) if comm >= 0 else trace.ranks,
            )
            for (kind, operation, comm), count in zip(distinct, counts, strict=True)
        ),
        collective_bytes=int(trace.records.size[rows].sum()),
        duration=trace.duration,
        one_sided=one_sided_traffic_of(trace),
        one_sided_records={
            record_name(kind): count
            for kind, count in enumerate(one_sided, Kind.RMA_WIN_CREATE)
            if count
        },
        shared_cores=trace.shared_cores,
        thread_level=trace.thread_level,
        ignored=trace.ignored,
    )


def record_name(kind: int) -> str:
    """Return OTF2's name of a kind of one-sided record, like "RmaOpCompleteNonBlocking"."""
    return Kind(kind).name.title().replace("_", "")


def count_calls(records: Iterable[tuple[bool, int, int, int]]) -> dict[str, int | float]:
    """Turn records of members into calls of communicators, by operation.

    Of each communicator and operation, a record is (blocking, operation, records, members); no
    members stands for MPI_COMM_SELF.
    """
    from fractions import Fraction

    calls: dict[str, Fraction] = {}
    for blocking, operation, count, members in records:
        known = operation in Collective.__members__.values()
        name = Collective(operation).name if known else f"OPERATION_{operation}"
        name = name if blocking else f"I{name}"
        calls[name] = calls.get(name, Fraction(0)) + Fraction(count, max(members, 1))
    return {
        name: int(number) if number.denominator == 1 else float(number)
        for name, number in sorted(calls.items())
    }


SUBSTANTIAL = 0.01  # of a run's time: from here on its user should be warned

# Records that say nothing which is missed: communicators are known by their definitions.
_KNOWN = {"ProgramBegin", "ProgramEnd", "CommCreate", "CommDestroy"}


@dataclass(frozen=True)
class Omission:
    """Something that a trace has and a replay does not, or not as it was."""

    kind: ClassVar[str] = "left out"

    what: str  # in plain words
    count: int  # how often
    seconds: float | None = None  # how long, all ranks together; None where that is not known
    share: float | None = None  # the same as a part of the time of all ranks together

    @property
    def substantial(self) -> bool:
        """Whether it takes more of a run than may pass without a warning."""
        return (self.share or 0.0) > SUBSTANTIAL

    def __str__(self) -> str:
        """Say it in a line."""
        if self.seconds is None or self.share is None:
            return f"{self.what}: {self.count:,}"
        return f"{self.what}: {self.count:,}, {self.seconds:.4g} s ({self.share:.2%} of the run)"

    def to_dict(self) -> dict[str, Any]:
        """Return it, JSON-serialisable."""
        return asdict(self)


@dataclass(frozen=True)
class Doubt(Omission):
    """Something that is taken as it was recorded, and that may be otherwise."""

    kind: ClassVar[str] = "in doubt"


def rank_seconds(trace: Trace) -> float:
    """Seconds from the first to the last event of each rank, all ranks together."""
    begin, end = trace.offsets[:-1], trace.offsets[1:]
    some = end > begin
    return float((trace.time[end[some] - 1] - trace.time[begin[some]]).sum())


def of_records(ignored: Mapping[str, int], reported: Collection[str] = ()) -> list[Omission]:
    """List the kinds of records that were read, left out, and not listed elsewhere."""
    return [
        Omission(f"{name} records", count)
        for name, count in sorted(ignored.items())
        if name not in _KNOWN and name not in reported
    ]


def format_duration(label: str, count: int, seconds: float, total: float) -> Omission:
    """Say how much of `total` seconds something took."""
    return Omission(label, int(count), float(seconds), float(seconds / total) if total else 0.0)
