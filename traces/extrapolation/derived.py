"""Sources made from others: a program at more ranks, and a recording whose repeats are loops."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from hopmap.errors import HopmapWarning
from hopmap.traces.folded import Folded, traffic_of_folded
from hopmap.traces.sources import Source, open_source
from hopmap.traces.summary import Summary
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import Traffic

from .extrapolate import Scaled, scaled


@dataclass(frozen=True)
class ScaledSource(Source):
    """A program at more ranks than it was recorded on."""

    kind = "scaled"
    programs: tuple[Source, ...]
    ranks: int

    def parts(self) -> tuple[Source, ...]:
        """Return the program at fewer ranks."""
        return self.programs

    def extrapolated(self) -> Scaled:
        """Extrapolate the program."""
        return scaled([each.calls() for each in self.programs], self.ranks)

    def traffic(self) -> Traffic:
        """Compute who sends how much to whom."""
        return traffic_of_folded(self.calls())

    def calls(self) -> Folded:
        """Compute what every rank does, in loops."""
        return self.extrapolated().program


@dataclass(frozen=True)
class FoldedSource(Source):
    """A recording whose repetitions are loops."""

    kind = "folded"
    program: Source

    def parts(self) -> tuple[Source, ...]:
        """Return the recording."""
        return (self.program,)

    @property
    def is_short(self) -> bool:
        """Whether the recording is."""
        return self.program.is_short

    def traffic(self) -> Traffic:
        """Read who sends how much to whom."""
        return self.program.traffic()

    def summary(self) -> Summary | None:
        """Sum up the recording."""
        return self.program.summary()

    def calls(self) -> Trace | Folded:
        """Fold the recording, and say what became of it."""
        from .fold import fold

        calls = self.program.calls()
        if isinstance(calls, Folded):
            return calls
        folded = fold(calls, keep=False)
        summary = f"{self.name}: {calls.events:,} events: "
        if not len(folded.times):
            _warn(summary + "nothing repeats that can be folded")
        else:
            _warn(
                f"{summary}{folded.trace.events:,} of them listed, the others as trips of loops, "
                "each of which computes as long as the average one"
            )
        return folded


def open_scaled(words: str, folder: Path | None) -> ScaledSource:
    """Return the source that "scaled:RANKS,TRACE,..." is."""
    text = f"scaled:{words}"
    ranks, *traces = words.split(",")
    if not (ranks.isascii() and ranks.isdigit() and len(ranks) < 9) or not all([traces, *traces]):
        raise TraceError(f"{text}: expected scaled:RANKS,TRACE,..., like scaled:256,run16,run64")
    programs = tuple(open_source(each, folder) for each in traces)
    for each in programs:
        if not each.has_calls:
            raise TraceError(f"{text}: {each.name} has no calls: expected a trace or a benchmark")
        if isinstance(each, FoldedSource):
            raise TraceError(f"{text}: {each.name}: expected {each.program.name} itself")
    return ScaledSource(text, programs, int(ranks))


def open_folded(words: str, folder: Path | None) -> FoldedSource:
    """Return the source that "folded:TRACE" is."""
    text = f"folded:{words}"
    if not words:
        raise TraceError(f"{text}: expected folded:TRACE, like folded:run1")
    program = open_source(words, folder)
    if not program.has_calls:
        raise TraceError(f"{text}: {program.name} has no calls: expected a trace")
    return FoldedSource(text, program)


def _warn(text: str) -> None:
    warnings.warn(text, HopmapWarning, stacklevel=3)
