"""How much of the time between calls is computation, and what else passed there.

* Time in which the measurement system wrote out its buffers, did not record, or was in a region of
  its own with nothing inside, is not the program's.
* Polling is waiting: the time between a call that looks for something and finds nothing
  (MPI_Test, MPI_Iprobe, ...), and the next such call of the rank, is no computation; looks at the
  clock (MPI_Wtime) in between do not count. If another region was entered and left in between, the
  program did something there, and it is computation; and so is what other threads of the rank
  compute meanwhile. A program that computes between its polls, and of which only MPI was recorded,
  is treated as waiting; `Omission` says how many seconds that is about.
* MPI-IO is not simulated: its calls last as they did and count as computation behind the call. If
  the trace says that such a call is collective, it synchronises like a barrier first, and lasts
  as long as at the member that was in it for the shortest time, which waited least. What other
  threads compute during the call lasts as long as that at least.
* One-sided calls without any record of what they do are left out, and so is their time.

A recorded run of a NAS benchmark also gives the rate of its compute model. It makes the very calls
that its generator makes, so that the two can be laid side by side: what a rank computed before its
calls against the operations that the model puts there. Time before messages counts, packing them
included; time before collectives counts where the model has operations. Left out is what NPB's own
Mop/s leaves out: start-up, all up to and with the first operations of a rank (before which matrices
and keys are made), and verification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, equals_before
from hopmap.traces import Kind, Role, Span, Spans, Trace, TraceError, mpi_name
from hopmap.traces.summary import Doubt, Omission, format_duration, of_records, rank_seconds
from hopmap.traces.trace import FRUITLESS, NO_SPANS, join_rows

from .mpi_calls import Calls, calls_of
from .program import Op, Program

_CLOCKS = ("wtime", "wtick")


class Computation(NamedTuple):
    """What a trace's ranks compute."""

    gap: Floats  # shape (calls,): seconds of computation before each call
    omitted: tuple[Omission, ...]  # what else there was, and took time


def computation(trace: Trace, calls: Calls) -> Computation:
    """Take from the time between calls what is no computation, and add what is in calls."""
    total = rank_seconds(trace)
    omitted = []
    gap = calls.gap.copy()
    visits = _empty_visits(trace, calls)
    for what, count, taken, in_files in _recording_overhead(trace, calls, visits):
        omitted.append(format_duration(what, count, taken.sum() + in_files, total))
        gap -= taken

    spans = _of_kind(trace, Span.THREADS)
    end = trace.time[calls.last[calls.finish[spans.rank]]]
    np.add.at(
        gap, calls.finish[spans.rank], np.maximum(spans.end - np.maximum(spans.begin, end), 0)
    )

    polls = calls.role == Role.POLL
    if polls.any():
        waiting = _waiting(trace, calls, polls, visits)
        busy = np.minimum(_during(trace, calls, spans, between=True), gap)
        taken = np.where(waiting, gap - busy, 0.0)
        omitted.append(format_duration("waiting between polls", polls.sum(), taken.sum(), total))
        gap = np.where(waiting, busy, gap)
    files = np.flatnonzero(calls.role == Role.FILE)
    if files.size:
        seconds = _of_files(trace, calls, files)
        gap[files + 1] += np.maximum(seconds, _during(trace, calls, spans)[files])
        what = "calls of MPI-IO, counted as computation"
        omitted.append(format_duration(what, files.size, seconds.sum(), total))
    one_sided = np.flatnonzero(calls.role == Role.ONE_SIDED)
    if one_sided.size and not (trace.kind >= Kind.RMA_WIN_CREATE).any():
        lost = _length(trace, calls, one_sided).sum()
        what = "one-sided calls without records, not simulated"
        omitted.append(format_duration(what, one_sided.size, lost, total))
    if trace.shared_cores is not None:
        computing = format_duration(
            str(trace.shared_cores), trace.shared_cores.ranks, gap.sum(), total
        )
        omitted.append(Doubt(**computing.to_dict()))
    return Computation(gap, tuple(omitted))


def other_threads_seconds(trace: Trace, calls: Calls) -> Floats:
    """Seconds that other threads of its rank computed during each call that is simulated."""
    seconds = _during(trace, calls, _of_kind(trace, Span.THREADS))
    return np.where(calls.role == Role.FILE, 0.0, seconds)


def _of_kind(trace: Trace, *kinds: Span) -> Spans:
    columns: Iterator[Any] = (column[np.isin(trace.spans.kind, kinds)] for column in trace.spans)
    return Spans(*columns)


def _during(trace: Trace, calls: Calls, spans: Spans, *, between: bool = False) -> Floats:
    """Seconds of each call, or `between` it and the one before, that lie in spans of its rank."""
    seconds = np.zeros(len(calls.gap))
    for r in np.unique(spans.rank).tolist():
        of_rank = slice(calls.finish[r - 1] + 1 if r else 0, calls.finish[r] + 1)
        begin, end = (trace.time[event[of_rank]] for event in (calls.first, calls.last))
        if between:
            begin, end = np.append(calls.start[r], end[:-1]), begin
        seconds[of_rank] = _overlap(begin, end, spans, r)
    return seconds


def _empty_visits(trace: Trace, calls: Calls) -> Ints:
    """Rows of ENTERs between calls whose LEAVE comes next."""
    kind, outside = trace.kind, calls.of_event < 0
    if not outside.any():
        return np.zeros(0, dtype=np.int64)
    found = outside[:-1] & outside[1:] & (kind[:-1] == Kind.ENTER) & (kind[1:] == Kind.LEAVE)
    rows = np.flatnonzero(found)
    same: Ints = rows[trace.ref[rows] == trace.ref[rows + 1]]
    return same


def _recording_overhead(
    trace: Trace, calls: Calls, visits: Ints
) -> Iterator[tuple[str, int, Floats, float]]:
    """Go through what the recording did: what, how often, seconds of each gap and within MPI-IO."""
    rows = visits[trace.roles[trace.ref[visits]] == Role.TOOL]
    rank = (np.searchsorted(trace.offsets, rows, side="right") - 1).astype(np.int32)
    flushes, off = (_of_kind(trace, kind) for kind in (Span.FLUSH, Span.OFF))
    times = trace.time
    regions = Spans(rank, times[rows], times[rows + 1], np.zeros(len(rows), dtype=np.uint8))
    so_far, before = NO_SPANS, np.zeros(len(calls.gap))
    for what, spans in (
        ("flushes of trace buffers", flushes),
        ("recording switched off", off),
        ("regions of the measurement system", regions),
    ):
        if not len(spans.rank):
            continue
        # Where two of them overlap, the first has it.
        so_far = join_rows([so_far, spans])
        covered = np.clip(_during(trace, calls, so_far, between=True), before, calls.gap)
        in_files = _during(trace, calls, spans)[calls.role == Role.FILE].sum()
        yield what, len(spans.rank), covered - before, float(in_files)
        before = covered


def _overlap(begins: Floats, ends: Floats, spans: Spans, rank: int) -> Floats:
    """Seconds between each begin and its end that lie in spans of a rank, which may overlap."""
    mine = np.flatnonzero(spans.rank == rank)
    mine = mine[np.argsort(spans.begin[mine], kind="stable")]
    end = np.maximum.accumulate(spans.end[mine])
    begin = np.maximum(spans.begin[mine], np.append(spans.begin[mine[:1]], end[:-1]))
    end = np.maximum(begin, end)
    knots = np.stack((begin, end), axis=1).ravel()
    passed = np.repeat(np.cumsum(end - begin), 2)
    passed[::2] -= end - begin
    return np.asarray(np.interp(ends, knots, passed) - np.interp(begins, knots, passed))


def _waiting(trace: Trace, calls: Calls, polls: Bools, visits: Ints) -> Bools:
    """Which gaps lie between a poll that found nothing and the next one, with nothing inside."""
    says = (trace.kind > Kind.LEAVE) & ~np.isin(trace.kind, FRUITLESS)
    fruitful = np.zeros(len(polls), dtype=np.bool_)
    fruitful[calls.of_event[says]] = True
    # Looking at the clock says nothing: a poll may have a time limit.
    clocks = [row for row, name in enumerate(trace.regions) if mpi_name(name) in _CLOCKS]
    first = calls.first
    looks = (trace.kind[first] == Kind.ENTER) & np.isin(trace.ref[first], clocks)
    looks[calls.finish] = False
    kept = np.flatnonzero(~looks)
    leads_to = np.searchsorted(kept, np.arange(len(polls)))
    waiting = polls[kept]
    waiting[0] = False
    waiting[1:] &= (polls & ~fruitful)[kept[:-1]]
    own = visits[trace.roles[trace.ref[visits]] == Role.USER]
    waiting[leads_to[np.searchsorted(first, own, side="right")]] = False
    return np.asarray(waiting[leads_to])


def _length(trace: Trace, calls: Calls, which: Ints) -> Floats:
    """Seconds from the begin to the end of calls."""
    return trace.time[calls.last[which]] - trace.time[calls.first[which]]


def _of_files(trace: Trace, calls: Calls, files: Ints) -> Floats:
    """Seconds that each call of MPI-IO takes by itself, without what is the recording's."""
    seconds = _length(trace, calls, files)
    seconds -= _during(trace, calls, _of_kind(trace, Span.FLUSH, Span.OFF))[files]
    ends = np.flatnonzero(trace.kind == Kind.COLLECTIVE_END)
    ends = ends[calls.role[calls.of_event[ends]] == Role.FILE]
    if not ends.size:
        return seconds
    comm = trace.records.comm[trace.ref[ends]].astype(np.int64)
    rank = np.searchsorted(trace.offsets, ends, side="right") - 1
    # The k-th such call of each member of a communicator is one.
    turn = equals_before(comm * trace.ranks + rank)
    _, which = np.unique(np.stack((comm, turn)), axis=1, return_inverse=True)
    call = np.searchsorted(files, calls.of_event[ends])
    shortest = np.full(len(ends), np.inf)
    np.minimum.at(shortest, which.ravel(), seconds[call])
    seconds[call] = shortest[which.ravel()]
    return seconds


def omissions_of(
    trace: Trace, timed: tuple[Omission, ...], dropped: Mapping[str, int]
) -> tuple[Omission, ...]:
    """List what lowering leaves out of a trace, or takes for something else.

    First what takes time, most of it first; then what was dropped, and records that were ignored.
    """
    probes = np.flatnonzero(trace.kind == Kind.PROBE)
    plain = int((trace.records.request[trace.ref[probes]] < 0).sum())
    return (
        *sorted(timed, key=lambda entry: -(entry.seconds or 0.0)),
        *(Omission(what, count) for what, count in dropped.items()),
        *([Omission("probes, not simulated", plain)] if plain else ()),
        *of_records(trace.ignored, reported=("BufferFlush", "MeasurementOnOff")),
    )


def omissions(
    program: Program, channel: Ints | None = None, iterations: Ints | None = None
) -> tuple[Omission, ...]:
    """List what a program leaves out, and the messages that none of its receives takes.

    What takes time comes first. `channel` and `iterations`, shape (operations,), are the
    program's, where they are known.
    """
    channel = program.channels() if channel is None else channel
    iterations = program.iterations() if iterations is None else iterations
    rows = np.flatnonzero(channel >= 0)
    if program.jobs:  # background traffic has no receives
        others = np.repeat(
            [each.background for each in program.jobs], [each.ranks for each in program.jobs]
        )
        rows = rows[~others[program.rank_of_row()[rows]]]
    takes = program.kind[rows] >= Op.RECV
    excess = np.bincount(channel[rows], np.where(takes, -iterations[rows], iterations[rows]))
    found = {
        "messages that are never received, counted and sent": excess[excess > 0].sum(),
        "receives that no message reaches, where a replay gets stuck": -excess[excess < 0].sum(),
    }
    return (*program.omitted, *(Doubt(what, int(count)) for what, count in found.items() if count))


def truncated(program: Program) -> tuple[Omission, ...]:
    """List the messages of which fewer bytes are received than are sent; none of loops."""
    if (program.kind == Op.REPEAT).any():
        return ()
    sends, receives = program.sends(), program.receives()
    size, taken = program.size[sends], program.size[receives]
    count = int(((receives >= 0) & (size > taken)).sum())
    return (Doubt("messages of which fewer bytes are received than sent", count),) * (count > 0)


NAS_CLASSES = "SWABCDE"


@dataclass(frozen=True)
class Rate:
    """What a recorded run says about the compute model."""

    name: str  # the benchmark that it is a run of, like "cg.S.16"
    # operations, seconds: shape (ranks,): what the model has each rank do, and how long it took
    operations: Floats
    seconds: Floats
    omitted: float  # other seconds that ranks computed, all together

    @property
    def flops(self) -> float:
        """Operations per second of a rank: the rate at which all together take as long."""
        return float(self.operations.sum() / self.seconds.sum())

    @property
    def by_rank(self) -> Floats:
        """Operations per second of every rank that has some."""
        some = self.seconds > 0
        return self.operations[some] / self.seconds[some]

    def to_dict(self) -> dict[str, Any]:
        """Return the fit, JSON-serialisable."""
        ranks = self.by_rank
        return {
            "of": self.name,
            "flops": self.flops,
            "lowest": float(ranks.min()),
            "highest": float(ranks.max()),
            "deviation": float(ranks.std() / ranks.mean()),
            "seconds": float(self.seconds.sum()),
            "omitted_seconds": self.omitted,
        }


def fit_rate(recorded: Trace, benchmark: str) -> Rate:
    """Take the rate of the compute model from a whole run of a benchmark ("lu", "cg", ...).

    The run may be of any class and number of ranks.
    """
    from hopmap.traces import nas_trace

    name = _recognise(recorded, benchmark)
    model = nas_trace(name, flops=1.0)  # seconds are operations
    ours, theirs = _computation(model), _computation(recorded)
    if not np.array_equal(ours.ends, theirs.ends):
        raise TraceError(
            f"{recorded.name}: has other calls than {name}: expected a whole run of NPB 3.3-MPI"
        )
    operations, seconds = np.zeros(recorded.ranks), np.zeros(recorded.ranks)
    end = 0
    for rank, last in enumerate(ours.ends.tolist()):
        begin, end = end, last + 1
        model_has = np.flatnonzero(ours.before[begin:end])
        if not len(model_has):
            continue
        begin += int(model_has[0]) + (len(model_has) > 1)
        counts = ours.message[begin:end] | (ours.before[begin:end] > 0)
        operations[rank] = ours.before[begin:end].sum()
        seconds[rank] = theirs.before[begin:end][counts].sum()
    if not seconds.sum() > 0:
        raise TraceError(f"{recorded.name}: no computation in it: expected a recorded run")
    return Rate(name, operations, seconds, float(theirs.before.sum() - seconds.sum()))


class _Computed(NamedTuple):
    """Of calls that communicate and of the ends of ranks, rank after rank: what comes before."""

    before: Floats  # seconds
    message: Bools  # whether the call sends or receives one
    ends: Ints  # which are the ends


def _computation(trace: Trace) -> _Computed:
    calls = calls_of(trace)
    acts = trace.kind > Kind.LEAVE
    kept = np.union1d(calls.of_event[acts], calls.finish)
    messages = calls.of_event[acts & (trace.kind < Kind.COLLECTIVE_BEGIN)]
    return _Computed(
        np.add.reduceat(computation(trace, calls).gap, np.append(0, kept[:-1] + 1)),
        np.isin(kept, messages),
        np.searchsorted(kept, calls.finish),
    )


def _recognise(recorded: Trace, benchmark: str) -> str:
    """Name of the benchmark, class included, that has the messages of a recorded run."""
    from hopmap.traces import is_nas_name, nas_traffic, traffic_of

    traffic = traffic_of(recorded)
    found = []
    for nas_class in NAS_CLASSES:
        name = f"{benchmark}.{nas_class}.{recorded.ranks}"
        try:
            same = nas_traffic(name).same_as(traffic)
        except TraceError:  # no such class, or not on so many ranks
            continue
        if same:
            found.append(name)
    called = recorded.name.lower().removesuffix(".otf2")
    if is_nas_name(called) and len(found) > 1:  # classes that differ in collectives only
        found = [name for name in found if name.lower() == called]
    if not found:
        raise TraceError(
            f"{recorded.name}: {recorded.ranks} ranks, {traffic.messages.sum():,} messages: "
            f"expected a whole run of {benchmark}, of any class"
        )
    if len(found) > 1:
        raise TraceError(
            f"{recorded.name}: may be a run of {', '.join(found)}: expected an archive so named"
        )
    return found[0]
