"""Fold a recorded trace: find what each rank repeats, and list it once.

Calls are words (`event_tokens.py`), and loops the tandem repeats of a rank's words (`find_loops`).
Collectives need care: counting decides which calls of ranks are one, so a loop that holds some
has to be one of all ranks. So, first, loops without collectives are found rank by rank. Then the
stretches between blocking collectives of all ranks are words of the whole run, equal if they are
equal at every rank, and their repeats are loops of all ranks.

What is folded is compared with the recording, event by event: nothing rests on hashes alone. The
cost is that of a few sorts of the events of a rank, and a pass over its calls for each doubling of
the period and each level of loops.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.errors import HopmapWarning
from hopmap.traces.folded import Folded, Recorded
from hopmap.traces.sources import Source, open_source
from hopmap.traces.summary import Summary
from hopmap.traces.trace import Kind, Spans, Trace, TraceError, columns_of
from hopmap.traces.traffic import Traffic

from .event_tokens import Reduced, Words, find_loops, mix, requests_of, words_of

NO_LOOPS = np.zeros((0, 3), dtype=np.int64)


def fold(trace: Trace, *, keep: bool = True) -> Folded:
    """Find the loops of a recorded trace.

    Calls repeat if they have the same regions, partners, communicators, tags, sizes and requests in
    the same order. Times differ between iterations: in the folded trace an event comes as long
    after the one before as it did on the average of its iterations, so that every rank computes as
    long as it did, all in all. A replay with loops computes the average in every iteration.

    Parameters
    ----------
    trace : Trace
    keep : bool
        Whether to keep the times and the numbers of requests as they were recorded, 8 bytes an
        event, so that `unfold` gives the recording back. Otherwise it gives one whose times are
        averages.

    Returns
    -------
    Folded
        Without loops where nothing repeats. These stay as they are: calls that look for something
        (MPI_Test, MPI_Iprobe), matched probes, cancelled requests, calls that make or free handles,
        calls with times in them that were not the program's; loops at whose ends requests are under
        way, and loops with collectives that are not blocking ones of all ranks or between such.

    Raises
    ------
    TraceError
        The trace has one-sided operations, which a replay does not take in loops.
    """
    if (trace.kind >= Kind.RMA_WIN_CREATE).any():
        raise TraceError(f"{trace.name}: one-sided operations: they cannot be folded")
    requests = requests_of(trace)
    nothing = Folded(trace, *NO_LOOPS.T)
    # The order of all messages decides what a receive without a wait took.
    if (requests.stray & (trace.kind == Kind.IRECV_REQUEST)).any():
        return nothing
    words = words_of(trace, requests)
    ranks = [_of_rank(words, rank) for rank in range(trace.ranks)]
    together = _find_loops(words, ranks)
    loops = [
        _in_listing(np.concatenate((own.loops, of_all)), int(words.offsets[rank]))
        for rank, (own, of_all) in enumerate(zip(ranks, together, strict=True))
    ]
    rows = np.concatenate([NO_LOOPS, *loops])
    if not len(rows):
        return nothing
    # From calls to events.
    begin = words.first[rows[:, 0]]
    length = words.first[rows[:, 0] + rows[:, 1]] - begin
    rows = np.stack((begin, length, rows[:, 2]), axis=1)
    source = _sources(trace, rows)
    if not _is_same(trace, source):  # two words of one hash, in a recording made for it
        return nothing
    return _fold(trace, rows, source, keep)


def _of_rank(words: Words, rank: int) -> Reduced:
    """Find the loops of a rank that hold no collective."""
    low, high = words.offsets[rank : rank + 2]
    apart = words.single[low:high] | words.collective[low:high]
    hashes = words.hashes[low:high].copy()
    # What stays as it is is like nothing else.
    at = np.flatnonzero(words.single[low:high])
    hashes[at] = mix(-2 - (low + at))
    clean = np.append(words.open[low:high] == 0, False)
    return find_loops(hashes, apart, clean, np.append(words.level[low:high], -1))


def _find_loops(words: Words, ranks: list[Reduced]) -> list[Ints]:
    """Find the loops of all ranks: of each rank its first call, length and iterations."""
    from .repeats_kernels import sums_of

    none = [NO_LOOPS] * len(ranks)
    ends = [
        np.flatnonzero(words.joint[low:high]) + 1 for low, high in pairwise(words.offsets.tolist())
    ]
    if not ends or len({len(end) for end in ends}) > 1 or len(ends[0]) < 2:
        return none
    cuts = len(ends[0])
    stretch = np.zeros(cuts, dtype=np.uint64)
    level = np.zeros(cuts + 1, dtype=np.uint64)
    clean = np.ones(cuts + 1, dtype=np.bool_)
    for rank, (own, end) in enumerate(zip(ranks, ends, strict=True)):
        low = int(words.offsets[rank])
        # A collective is a symbol by itself, so that it ends one.
        at = np.searchsorted(own.start, np.append(0, end))
        sums, powers = sums_of(own.hashes)
        of_rank = sums[at[1:]] - sums[at[:-1]] * powers[np.diff(at)]
        stretch += mix(mix(of_rank.view(np.int64)) + mix(np.array([rank])))
        place = low + np.append(0, end)
        behind = place < words.offsets[rank + 1]
        level += mix(mix(np.where(behind, words.level[place - ~behind], -1)) + np.uint64(rank))
        clean &= behind & (words.open[place - ~behind] == 0)
    found = find_loops(stretch, np.zeros(cuts, dtype=np.bool_), clean, level.view(np.int64))
    rows = []
    for end in ends:
        place = np.append(0, end)
        first, length, iterations = found.loops.T
        rows.append(
            np.stack((place[first], place[first + length] - place[first], iterations), axis=1)
        )
    return rows


def _in_listing(loops: Ints, low: int) -> Ints:
    """Leave out loops in iterations that are not listed; count calls from the trace's first."""
    begin, length, iterations = loops.T
    size = int((begin + length * iterations).max(initial=0)) + 1
    gone = np.zeros(size, dtype=np.int64)
    np.add.at(gone, begin + length, 1)
    np.add.at(gone, begin + length * iterations, -1)
    listed = np.cumsum(gone)[begin] == 0
    found: Ints = np.stack((begin + low, length, iterations), axis=1)[listed]
    return found


def _sources(trace: Trace, rows: Ints) -> Ints:
    """Event that stands for each one in the listing: itself, or that of the first iteration."""
    source = np.arange(trace.events)
    for begin, length, iterations in rows.tolist():
        body = source[begin : begin + length]
        source[begin + length : begin + length * iterations] = np.tile(body, iterations - 1)
    return source


def _is_same(trace: Trace, source: Ints) -> bool:
    """Whether every event does what the one does that stands for it."""
    moved = np.flatnonzero(source != np.arange(trace.events))
    kind, of = trace.kind[moved], source[moved]
    if (trace.kind[of] != kind).any():
        return False
    bracket = kind <= Kind.LEAVE
    if (trace.ref[moved[bracket]] != trace.ref[of[bracket]]).any():
        return False
    mine, theirs = trace.ref[moved[~bracket]], trace.ref[of[~bracket]]
    columns = trace.records._asdict()
    del columns["request"]
    return all((column[mine] == column[theirs]).all() for column in columns.values())


def _fold(trace: Trace, rows: Ints, source: Ints, keep: bool) -> Folded:
    """List what is its own source, with the times of the average iteration."""
    listed = source == np.arange(trace.events)
    place = np.append(0, np.cumsum(listed))
    # In ticks, so that iterations of equal length have their length as the average.
    ticks = np.rint(trace.time * trace.resolution)
    gap = np.diff(ticks, prepend=0.0)
    some = trace.offsets[:-1][np.diff(trace.offsets) > 0]
    gap[some] = ticks[some]
    iterations = np.bincount(source, minlength=trace.events)[listed]
    gap = np.bincount(source, gap, minlength=trace.events)[listed] / iterations
    offsets = place[trace.offsets]
    time = np.concatenate([np.zeros(0), *(np.cumsum(gap[a:b]) for a, b in pairwise(offsets))])
    time /= trace.resolution

    begin, length, times = rows.T
    whole = replace(
        trace,
        offsets=offsets,
        time=time,
        spans=_shift_spans(trace, time, place),
        **columns_of(trace, listed),
    )
    own = Recorded(trace.time, trace.records.request, trace.spans) if keep else None
    return Folded(whole, place[begin], place[begin + length], times, own)


def _shift_spans(trace: Trace, time: Floats, place: Ints) -> Spans:
    """Return the spans at the new times of the events behind them, which are listed."""
    begin, end = trace.spans.begin.copy(), trace.spans.end.copy()
    for at, (rank, since) in enumerate(zip(trace.spans.rank, trace.spans.begin, strict=True)):
        low, high = trace.offsets[rank : rank + 2]
        if low == high:
            continue
        event = low + min(int(np.searchsorted(trace.time[low:high], since)), high - low - 1)
        shift = time[place[event]] - trace.time[event]
        begin[at] += shift
        end[at] += shift
    return trace.spans._replace(begin=begin, end=end)


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
        calls = self.program.calls()
        if isinstance(calls, Folded):
            return calls
        folded = fold(calls, keep=False)
        what = "nothing repeats that can be folded"
        if len(folded.times):
            what = (
                f"{folded.trace.events:,} of them listed, the others as iterations of loops, each "
                "of which computes as long as the average one; without its noise a replay ends "
                "earlier than the recording's (--tolerance extrapolates that)"
            )
        text = f"{self.name}: {calls.events:,} events: {what}"
        warnings.warn(text, HopmapWarning, stacklevel=2)
        return folded


def open_folded(words: str, folder: Path | None) -> FoldedSource:
    """Return the source that "folded:TRACE" is."""
    text = f"folded:{words}"
    if not words:
        raise TraceError(f"{text}: expected folded:TRACE, like folded:run1")
    program = open_source(words, folder)
    if not program.has_calls:
        raise TraceError(f"{text}: {program.name} has no calls: expected a trace")
    return FoldedSource(text, program)
