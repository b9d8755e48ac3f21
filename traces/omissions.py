"""What a reading leaves out of a run, and how much of the run that is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .trace import Trace

SUBSTANTIAL = 0.01  # of a run's time: from here on its user should be warned

# Records that say nothing which is missed: communicators are known by their definitions.
_KNOWN = {"ProgramBegin", "ProgramEnd", "CommCreate", "CommDestroy"}


@dataclass(frozen=True)
class LeftOut:
    """Something that a trace has and a replay does not, or not as it was."""

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


def rank_seconds(trace: Trace) -> float:
    """Seconds from the first to the last event of each rank, all ranks together."""
    begin, end = trace.offsets[:-1], trace.offsets[1:]
    some = end > begin
    return float((trace.time[end[some] - 1] - trace.time[begin[some]]).sum())


def of_records(ignored: Mapping[str, int], told: Collection[str] = ()) -> list[LeftOut]:
    """List the kinds of records that were read and left out, but for those told otherwise."""
    return [
        LeftOut(f"{name} records", count)
        for name, count in sorted(ignored.items())
        if name not in _KNOWN and name not in told
    ]


def timed(what: str, count: int, seconds: float, total: float) -> LeftOut:
    """Say how much of `total` seconds something took."""
    return LeftOut(what, int(count), float(seconds), float(seconds / total) if total else 0.0)
