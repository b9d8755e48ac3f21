"""What a source is as a program, and as traffic: the one place where that is decided.

An archive, another tool's trace or a benchmark is its calls, lowered; so is one collective, by the
algorithm that it names. A schedule is its graph of operations, whose collectives are messages
already. Files of traffic say how much, and not in which
order: they are sent in rounds. A stencil's iteration posts all receives, then all sends, and waits
for all of them (Lehr, listing 7.2): one round.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hopmap.errors import HopmapWarning, choice
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.traces.folded import Folded
from hopmap.traces.omissions import LeftOut, of_records
from hopmap.traces.sources import Source
from hopmap.traces.summary import Summary
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import Traffic, one_sided_traffic_of
from hopmap.units import show_bytes

from .computation import omissions
from .program import Program

COLLECTIVES = ("auto", "ignore", "expand")
RMA = ("include", "ignore")
LOOKED_THROUGH = 5_000_000  # events of an archive: a second or two


class SourceProgram(NamedTuple):
    """A program, and the calls that it was lowered from; None of traffic and of schedules."""

    program: Program
    calls: Trace | Folded | None


class SourceTraffic(NamedTuple):
    """Traffic, and the algorithms of its collectives with the number of calls, by operation.

    `notes` are those of `Program.notes` where collectives are counted, which `expanded` says;
    `outweighed` says what is sent in messages and in collectives where these outweigh them, and
    `one_sided` what one-sided operations move, whether it is counted or not.
    """

    traffic: Traffic
    chosen: Mapping[str, Mapping[str, int]]
    notes: Mapping[str, int] = {}
    expanded: bool = False
    outweighed: str = ""
    one_sided: str = ""

    def counting(self, one_sided: Traffic, rma: str) -> SourceTraffic:
        """Add what one-sided operations move, if `rma` includes it, and say so."""
        if not one_sided.pairs:
            return self
        messages, moved = (int(column.sum()) for column in (one_sided.messages, one_sided.bytes))
        said = f"{messages:,} one-sided messages of {show_bytes(moved)} in all"
        traffic = self.traffic.plus(one_sided) if rma == "include" else self.traffic
        return self._replace(traffic=traffic, one_sided=said)


def program_of_source(
    source: Source,
    *,
    steps: int | None = None,
    rounds: int | None = None,
    algorithms: Mapping[str, str] | None = None,
    written_out: bool = False,
) -> SourceProgram:
    """Return what is replayed of a source.

    Parameters
    ----------
    steps : int, optional
        Time steps of a benchmark, instead of all.
    rounds : int, optional
        Rounds in which traffic is sent, see `program_of_traffic`. When left out, a stencil is sent
        in one, and files in as many as the pair with most messages has.
    algorithms : mapping of str to str, optional
        Of collectives, by operation; Open MPI's choice for those that are not named.
    written_out : bool
        Whether a benchmark is to be a `Trace`, without loops.

    Raises
    ------
    ParameterError
        Steps of anything but a benchmark, or rounds of what has an order of its own.
    TraceError
        As `Source.calls` and `program_of_traffic`.
    """
    algorithms = _named(source, algorithms)
    if steps is not None and not source.has_steps:
        raise ParameterError(
            f"steps {steps}: {source.name} has none: only a benchmark, like lu.C.64"
        )
    if source.has_program:
        if rounds is not None:
            raise ParameterError(f"rounds {rounds}: only for traffic, {source.name} is a trace")
        if not source.has_calls:
            from .from_schedule import program_of_schedule

            return SourceProgram(program_of_schedule(source.schedule()), None)
        from .from_trace import lower

        timed = source if steps is None else source.with_steps(steps)
        calls = timed.trace() if written_out else timed.calls()
        return SourceProgram(lower(calls, algorithms), calls)
    if rounds is None and not source.needs_rounds:
        rounds = 1
    from .from_traffic import program_of_traffic

    return SourceProgram(
        program_of_traffic(source.traffic(), rounds=rounds, name=source.name), None
    )


def _named(source: Source, algorithms: Mapping[str, str] | None) -> dict[str, str]:
    """Return algorithms by operation, those that the source names before others."""
    return {**(algorithms or {}), **Parameters(algorithms=source.algorithms).algorithms}


def check_collectives(collectives: str, algorithms: Mapping[str, str] | None) -> None:
    """Raise `ParameterError` for a word that there is not, or algorithms that mean nothing."""
    if collectives not in COLLECTIVES:
        raise ParameterError(choice("unknown collectives", collectives, COLLECTIVES))
    if algorithms and collectives == "ignore":
        raise ParameterError(
            f"--set collective.{next(iter(algorithms))}: expected --collectives expand with it"
        )


def check_rma(rma: str) -> None:
    """Raise `ParameterError` for a word that there is not."""
    if rma not in RMA:
        raise ParameterError(choice("unknown rma", rma, RMA))


def traffic_of_source(
    source: Source,
    collectives: str = "ignore",
    algorithms: Mapping[str, str] | None = None,
    rma: str = "include",
    messages: SourceTraffic | None = None,
) -> SourceTraffic:
    """Return who sends how much to whom.

    Parameters
    ----------
    collectives : {"ignore", "expand", "auto"}
        Whether to count what collectives send, too; "auto" does where that outweighs the messages,
        see `outweighed`, or where algorithms are named.
    algorithms : mapping of str to str, optional
        See `program_of_source`; not with "ignore".
    rma : {"include", "ignore"}
        Whether to count what one-sided operations move, see `one_sided_traffic_of`.
    messages : SourceTraffic, optional
        What `messages_of_source` returns, where it is known already.

    Raises
    ------
    ParameterError
        Another word, or algorithms of collectives that are not counted.
    TraceError
        As `Source.traffic` and `Source.calls`: of files of traffic, only those of Open MPI's
        monitoring have collectives.
    """
    check_collectives(collectives, algorithms)
    check_rma(rma)
    if source.has_program and not source.has_calls:
        if algorithms:
            raise ParameterError(f"{source.name}: a schedule has messages in place of collectives")
        return SourceTraffic(source.traffic(), {})
    # one collective, which names its algorithm, sends nothing else
    expand = collectives == "expand" or bool(algorithms) or bool(source.algorithms)
    why = ""
    if not expand:
        messages = messages or messages_of_source(source, rma)
        why = messages.outweighed
        if collectives == "ignore" or not why:
            return messages
    if (monitored := source.traffic_with_collectives()) is not None:
        return SourceTraffic(monitored, {}, expanded=True, outweighed=why)
    return expanded(source.calls(), _named(source, algorithms), rma)._replace(outweighed=why)


def expanded(
    calls: Trace | Folded, algorithms: Mapping[str, str] | None, rma: str
) -> SourceTraffic:
    """Return what calls send, messages of collectives included; see `traffic_of_source`."""
    from .from_trace import lower

    program = lower(calls, algorithms)
    sent = program.two_sided_traffic()
    found = SourceTraffic(sent, program.chosen, program.notes, expanded=True)
    trace = calls.trace if isinstance(calls, Folded) else calls
    return found.counting(one_sided_traffic_of(trace), rma)


def messages_of_source(source: Source, rma: str = "include") -> SourceTraffic:
    """Return point-to-point traffic, one-sided or not, and whether collectives outweigh it."""
    if (summary := source.summary()) is not None:
        return of_summary(source, summary, rma)
    return weighed(source, SourceTraffic(source.traffic(), {}))


def of_summary(source: Source, summary: Summary, rma: str) -> SourceTraffic:
    """Return what `messages_of_source` does, of a source of which a summary is known."""
    sent = SourceTraffic(summary.traffic, {}).counting(summary.one_sided, rma)
    return weighed(source, sent, summary.collective_bytes)


def weighed(source: Source, sent: SourceTraffic, left_out: int | None = None) -> SourceTraffic:
    """Say of a source's point-to-point traffic whether collectives outweigh it.

    Parameters
    ----------
    left_out : int, optional
        What its collectives send, in bytes, where a summary of it says so.
    """
    found = sent.traffic
    if (counted := source.traffic_with_collectives()) is not None:
        left_out = int(counted.bytes.sum() - found.bytes.sum())
    if source.is_short:
        from .from_trace import lower

        left_out = int(lower(source.calls()).traffic().bytes.sum() - found.bytes.sum())
    why = outweighed(found, left_out) if source.has_collectives else ""
    return sent._replace(outweighed=why)


def outweighed(messages: Traffic, left_out: int | None) -> str:
    """Say what a program sends in messages where its collectives send more, like NAS FT and IS.

    Parameters
    ----------
    messages : Traffic
        Point to point.
    left_out : int or None
        What collectives send, in bytes. Where nobody says how much, fewer messages than ranks are
        a sign of it.

    Returns
    -------
    str
        Empty where they do not.
    """
    if messages.ranks == 1:
        return ""
    sent, number = int(messages.bytes.sum()), int(messages.messages.sum())
    if not number:
        return "no point-to-point messages"
    if left_out is None:
        few = number < messages.ranks
        return f"{number} point-to-point messages of {show_bytes(sent)} in all" if few else ""
    if left_out > sent:
        return f"{show_bytes(sent)} in messages and {show_bytes(left_out)} in collectives"
    return ""


def left_out_of_recording(trace: Trace) -> tuple[LeftOut, ...]:
    """List what a replay of another tool's trace would leave out; see `left_out_of_archive`."""
    from .from_trace import lower

    try:
        return omissions(lower(trace))
    except TraceError as error:
        warnings.warn(f"cannot be replayed: {error}", HopmapWarning, stacklevel=2)
    return tuple(of_records(trace.ignored))


def left_out_of_archive(path: Path, summary: Summary) -> tuple[LeftOut, ...]:
    """List what a replay of an archive would leave out, for whoever only asks what is in it.

    Of a large archive, and of one that cannot be replayed, only the records that are ignored; that
    it is so, is a warning.
    """
    from hopmap.traces.otf2.read import read_trace

    from .from_trace import lower

    if summary.events <= LOOKED_THROUGH:
        try:
            return omissions(lower(read_trace(path)))
        except TraceError as error:
            why = f"cannot be replayed: {error}"
    else:
        why = (
            f"{summary.name}: {summary.events:,} events, more than {LOOKED_THROUGH:,}: what a "
            "replay leaves out is not looked for, but for ignored records: hopmap simulate says it"
        )
    warnings.warn(why, HopmapWarning, stacklevel=2)
    return tuple(of_records(summary.ignored))
