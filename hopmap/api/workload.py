"""What runs: a trace, a benchmark, traffic or a program, and how it is taken.

The one place where text, paths and objects become a workload, and what it is as a program and as
traffic; `hopmap.traces.sources` tells which kind of source a text names. An archive, another tool's
trace or a benchmark is its calls, lowered; so is one collective, by the algorithm that it names. A
schedule is its graph of operations, whose collectives are messages already. Files of traffic say
how much, and not in which order: they are sent in rounds. A stencil's iteration posts all receives,
then all sends, and waits for all of them (Lehr, listing 7.2): one round.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hopmap.errors import HopmapWarning, expect_one_of
from hopmap.simulator import ParameterError, Parameters
from hopmap.traces import TraceError, Traffic
from hopmap.traces.sources import Source, open_source
from hopmap.units import show_bytes

from .input_kinds import TRACE, check_kind

if TYPE_CHECKING:
    from hopmap.progress import Progress
    from hopmap.simulator import Program
    from hopmap.traces import Folded, Trace
    from hopmap.traces.schedule import Schedule
    from hopmap.traces.summary import Omission, Summary
    from hopmap.traces.trace import SharedCores

WorkloadLike: TypeAlias = "str | Path | Source | Trace | Folded | Program | Traffic | Workload"

open = open_source  # noqa: A001 - what the front door calls it
COLLECTIVES = ("auto", "ignore", "expand")
RMA = ("include", "ignore")
LOOKED_THROUGH = 5_000_000  # events of an archive: a second or two


class Sent(NamedTuple):
    """Who sends how much to whom, and what is counted in it."""

    traffic: Traffic
    # Algorithms of collectives with the number of calls, by operation.
    chosen: Mapping[str, Mapping[str, int]] = {}
    notes: Mapping[str, int] = {}  # See `Program.notes`, where collectives are counted.
    expanded: bool = False  # Whether they are.
    # What is sent in messages and in collectives, where these outweigh messages.
    collectives_dominate: str = ""
    one_sided: str = ""  # What one-sided operations move, whether it is counted or not.


@dataclass(frozen=True, eq=False)
class Workload:
    """What runs, and how it is interpreted. Its files are read only once.

    Attributes
    ----------
    source : str, Path, Source, Trace, Folded, Program or Traffic
        For text and paths see `open_source`.
    steps : int, optional
        Time steps of a benchmark, instead of all.
    rounds : int, optional
        Rounds in which traffic is sent, see `program_of_traffic`. When left out, a stencil is sent
        in one, and files in as many as the pair with most messages has.
    collectives : {"auto", "ignore", "expand"}
        Whether traffic counts what collectives send; "auto" does where that outweighs the messages,
        or where algorithms are set. Programs have all of it.
    rma : {"include", "ignore"}
        Whether traffic counts what one-sided operations move.
    loops : bool
        Whether a benchmark's calls may be loops; an archive of a run needs each of them.

    Raises
    ------
    TraceError
        No such file or benchmark, or something that is no workload.
    ParameterError
        An unknown word; steps of anything but a benchmark, rounds of what has an order of its own.

    Examples
    --------
    >>> Workload("lu.S.16", steps=2).program().ranks
    16
    """

    source: str | Path | Source | Trace | Folded | Program | Traffic
    steps: int | None = None
    rounds: int | None = None
    collectives: str = "auto"
    rma: str = "include"
    loops: bool = True
    _read: Source | Trace | Folded | Program | Traffic = field(init=False, repr=False)
    _programs: dict[tuple[tuple[str, str], ...], Program] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        source = self.source
        check_kind(TRACE, source)
        read = open_source(source) if isinstance(source, str | Path) else source
        object.__setattr__(self, "_read", read)
        expect_one_of(ParameterError, "unknown collectives", self.collectives, COLLECTIVES)
        expect_one_of(ParameterError, "unknown rma", self.rma, RMA)
        has_steps = isinstance(read, Source) and read.has_steps
        if self.steps is not None and not has_steps:
            raise ParameterError(f"steps {self.steps}: {self.name} is no benchmark like lu.C.64")
        if self.rounds is not None and self.has_order:
            raise ParameterError(
                f"rounds {self.rounds} requires traffic: {self.name} has an order of messages"
            )

    @classmethod
    def of(cls, workload: WorkloadLike) -> Workload:
        """Return a workload as it is, and anything else with the defaults."""
        return workload if isinstance(workload, Workload) else cls(workload)

    @property
    def name(self) -> str:
        """What reports call it."""
        from hopmap.traces import Folded

        if isinstance(self._read, Folded):
            return self._read.trace.name
        return "traffic" if isinstance(self._read, Traffic) else self._read.name

    @property
    def generated(self) -> bool:
        """Whether it computes at a rate that is assumed, as a benchmark called by its name does."""
        return isinstance(self._read, Source) and self._read.assumes_rate

    @property
    def has_order(self) -> bool:
        """Whether the order of messages is known, and not only how many there are."""
        if isinstance(self._read, Source):
            return self._read.has_program
        return not isinstance(self._read, Traffic)

    @property
    def assumed_rounds(self) -> int | None:
        """Rounds in which traffic alone is sent, an assumption; None of all else."""
        from hopmap.simulator.programs.from_traffic import rounds_of

        source = self._read
        if self.has_order or (isinstance(source, Source) and not source.needs_rounds):
            return None
        traffic = source.traffic() if isinstance(source, Source) else source
        assert isinstance(traffic, Traffic)
        return self.rounds or rounds_of(traffic)

    @cached_property
    def calls(self) -> Trace | Folded | None:
        """What every rank does, call by call; None of traffic, schedules and programs."""
        from hopmap.simulator import Program

        if (source := self._source_of_calls()) is not None:
            return source.calls() if self.loops else source.trace()
        return None if isinstance(self._read, Source | Traffic | Program) else self._read

    def trace(self) -> Trace | None:
        """Return what every rank does, loops written out; None of what has no `calls`."""
        from hopmap.traces import Folded, unfold

        source = self._source_of_calls()
        calls = self.calls if source is None else source.trace()
        return unfold(calls) if isinstance(calls, Folded) else calls

    @property
    def shared_cores(self) -> SharedCores | None:
        """Ranks that shared cores while they were recorded, so that computing took too long."""
        from hopmap.traces import Folded

        calls = self.calls.trace if isinstance(self.calls, Folded) else self.calls
        return None if calls is None else calls.shared_cores

    def _source_of_calls(self) -> Source | None:
        """Return the source, in the time steps asked for, if it has calls."""
        source = self._read
        if not (isinstance(source, Source) and source.has_program and source.has_calls):
            return None
        return source if self.steps is None else source.with_steps(self.steps)

    def program(self, algorithms: Mapping[str, str] | None = None) -> Program:
        """Return what is replayed.

        `algorithms` are of collectives, by operation; others are as Open MPI chooses them.
        """
        own = self._read.algorithms if isinstance(self._read, Source) else {}  # before others
        named = {**(algorithms or {}), **Parameters(algorithms=own).algorithms}
        key = tuple(sorted(named.items()))
        if key not in self._programs:
            from hopmap.simulator.programs.from_traffic import ASSUMED_ROUNDS

            program, rounds = self._lower(dict(key)), self.assumed_rounds
            if rounds is not None:
                program = replace(program, notes={**program.notes, ASSUMED_ROUNDS: rounds})
            self._programs[key] = program
        return self._programs[key]

    def _lower(self, algorithms: dict[str, str]) -> Program:
        from hopmap.simulator import Program, lower, program_of_traffic

        if isinstance(self._read, Program):
            return self._read
        if self.calls is not None:
            return lower(self.calls, algorithms)
        if not isinstance(self._read, Source):
            assert isinstance(self._read, Traffic)
            return program_of_traffic(self._read, rounds=self.rounds)
        if self.schedule is not None:
            from hopmap.simulator.programs.from_schedule import program_of_schedule

            return program_of_schedule(self.schedule)
        rounds = 1 if self.rounds is None and not self._read.needs_rounds else self.rounds
        return program_of_traffic(self._read.traffic(), rounds=rounds, name=self.name)

    def traffic(self, algorithms: Mapping[str, str] | None = None) -> Traffic:
        """Return who sends how much to whom.

        Warn if collectives send most of the bytes, and if some of the traffic is assumed.
        """
        from hopmap.simulator.programs.from_collectives import PAIRS_COUNTED, SOME_MEMBERS

        sent = self.sent(algorithms)
        self.warn_about(sent)
        certain = (PAIRS_COUNTED, SOME_MEMBERS)  # notes that leave no traffic uncertain
        notes = [f"{what}: {n:,}" for what, n in sent.notes.items() if what not in certain]
        if notes:
            warnings.warn(f"{self.name}: {'; '.join(notes)}", HopmapWarning, stacklevel=2)
        return sent.traffic

    def sent(self, algorithms: Mapping[str, str] | None = None) -> Sent:
        """Return who sends how much to whom, and what is counted in it.

        For `algorithms` see `program`; with collectives "ignore" they are a `ParameterError`.
        Among traffic files, only Open MPI's monitoring files record collectives.
        """
        source, why = self._read, ""
        if algorithms and self.collectives == "ignore":
            first = next(iter(algorithms))
            raise ParameterError(f"--set collective.{first} requires --collectives expand")
        if self.schedule is not None:
            if algorithms:
                raise ParameterError(f"{self.name}: a schedule has no collectives to choose for")
            return self.messages
        # one collective, which names its algorithm, sends nothing else
        named = isinstance(source, Source) and source.algorithms
        if not (self.collectives == "expand" or algorithms or named):
            why = self.messages.collectives_dominate
            if self.collectives == "ignore" or not why:
                return self.messages
        return self.with_collectives(algorithms)._replace(collectives_dominate=why)

    def with_collectives(self, algorithms: Mapping[str, str] | None = None) -> Sent:
        """Return what is sent, messages of collectives included; see `sent`."""
        from hopmap.simulator import Program

        if isinstance(self._read, Source):
            counted = self._read.traffic_with_collectives()
            if counted is not None:
                return Sent(counted, expanded=True)
        if not self.has_order:
            place = getattr(self._read, "path", None) or self.name
            raise TraceError(f"{place}: traffic without separate collectives: expected a trace")
        program = self.program(algorithms)
        if isinstance(self._read, Program):
            algorithms = algorithms or program.algorithms
            if dict(algorithms) != dict(program.algorithms):
                raise ParameterError(
                    f"algorithms {dict(algorithms)}: the program was lowered with "
                    f"{dict(program.algorithms)}: expected the same"
                )
        sent = Sent(program.two_sided_traffic(), program.chosen, program.notes, expanded=True)
        return self._with_one_sided(sent, program.one_sided_traffic())

    @cached_property
    def messages(self) -> Sent:
        """What is sent outside of collectives, and whether these outweigh it.

        Of a source that is one collective, what that sends.
        """
        from hopmap.simulator import Program
        from hopmap.traces import Folded

        source = self._read
        if isinstance(source, Traffic):
            return Sent(source)
        if isinstance(source, Source) and source.algorithms:
            return self.with_collectives()
        summary = self.summary
        in_collectives: int | None = None
        if summary is not None:
            sent = self._with_one_sided(Sent(summary.traffic), summary.one_sided)
            in_collectives = summary.collective_bytes
        elif isinstance(source, Folded | Program) or self.steps is not None:
            program = self.program()
            sent = Sent(program.p2p_traffic())
            in_all = int(program.two_sided_traffic().bytes.sum())
            in_collectives = in_all - int(sent.traffic.bytes.sum())
            sent = self._with_one_sided(sent, program.one_sided_traffic())
        else:
            assert isinstance(source, Source)
            sent = Sent(source.traffic())
            in_collectives = self._in_collectives(sent.traffic)
        return sent._replace(collectives_dominate=self._dominance(sent.traffic, in_collectives))

    def _in_collectives(self, messages: Traffic) -> int | None:
        """Return the bytes that the collectives of a source send, if anybody says so."""
        source = self._read
        assert isinstance(source, Source)
        if (counted := source.traffic_with_collectives()) is not None:
            return int(counted.bytes.sum() - messages.bytes.sum())
        if source.is_short:
            return int(self.program().traffic().bytes.sum() - messages.bytes.sum())
        return None

    def _dominance(self, messages: Traffic, in_collectives: int | None) -> str:
        """Say what is sent in messages where collectives send more, like NAS FT and IS.

        If the bytes of collectives are unknown, fewer messages than ranks are a sign of it.
        """
        source = self._read
        if messages.ranks == 1 or (isinstance(source, Source) and not source.has_collectives):
            return ""
        sent, number = int(messages.bytes.sum()), int(messages.messages.sum())
        if not number:
            return "no point-to-point messages"
        if in_collectives is None:
            few = number < messages.ranks
            return f"{number} point-to-point messages of {show_bytes(sent)} in all" if few else ""
        if in_collectives > sent:
            return f"{show_bytes(sent)} in messages and {show_bytes(in_collectives)} in collectives"
        return ""

    @cached_property
    def summary(self) -> Summary | None:
        """The sums over a recorded trace, by one pass over its files; None of anything else."""
        from hopmap.traces import Trace, summarize

        recorded = isinstance(self._read, Source) and self._read.is_recorded
        if isinstance(self._read, Source) and not (recorded and self.archive is None):
            return self._read.summary()
        return summarize(self.calls) if isinstance(self.calls, Trace) else None

    def read_summary(self, progress: Progress, workers: int | None = None) -> Summary | None:
        """Return `summary`, of an archive read by so many processes."""
        if self.archive is not None:
            from hopmap.traces.otf2.totals import read_summary

            read = read_summary(self.archive, progress=progress, workers=workers)
            self.__dict__["summary"] = read
        return self.summary

    @property
    def archive(self) -> Path | None:
        """The OTF2 archive, if it is one."""
        return self._read.archive if isinstance(self._read, Source) else None

    @cached_property
    def schedule(self) -> Schedule | None:
        """The schedule of operations, if it is one."""
        source = self._read
        if isinstance(source, Source) and source.has_program and not source.has_calls:
            return source.schedule()
        return None

    def _with_one_sided(self, sent: Sent, one_sided: Traffic) -> Sent:
        """Add what one-sided operations move, if it is to be counted, and say so."""
        if not one_sided.pairs:
            return sent
        messages, moved = (int(column.sum()) for column in (one_sided.messages, one_sided.bytes))
        said = f"{messages:,} one-sided messages of {show_bytes(moved)} in all"
        traffic = sent.traffic.plus(one_sided) if self.rma == "include" else sent.traffic
        return sent._replace(traffic=traffic, one_sided=said)

    def warn_about(self, sent: Sent) -> None:
        """Warn of a program that sends in collectives only, or most, or one-sided."""
        if sent.one_sided:
            how = "not counted (--rma include counts them)"
            if self.rma == "include":
                how = "counted, too (--rma ignore leaves them out)"
            warnings.warn(f"{self.name}: {sent.one_sided}: {how}", HopmapWarning, stacklevel=3)
        if why := sent.collectives_dominate:
            how = "count collectives with --collectives expand"
            if sent.expanded:
                how = "what collectives send is counted, too (--collectives ignore leaves it out)"
            warnings.warn(f"{self.name}: {why}: {how}", HopmapWarning, stacklevel=3)

    def to_dict(self) -> dict[str, Any]:
        """Return what is in it, messages of collectives apart, under the keys of ``info --json``.

        What is not known is None. "counts" is the table of an archive's alltoallv, if there is one.
        """
        from hopmap.traces.otf2.files import companion_of, find_archive

        if self.summary is not None:
            facts = self.summary.to_dict()
        else:
            unknown = dict.fromkeys(("events", "collective_bytes", "duration"))
            facts = {**self.messages.traffic.to_dict(), **unknown, "collectives": {}, "ignored": {}}
            if self.schedule is not None:
                facts["events"] = self.schedule.operations
        if self.archive is not None:
            counts = companion_of(find_archive(self.archive))
            facts |= {"counts": str(counts)} if counts.is_file() else {}
        return facts

    def omissions(self) -> tuple[Omission, ...]:
        """List what a replay would leave out of a recorded trace.

        Of a large archive, and of a trace that cannot be replayed, only the records that are
        ignored; that it is so, is a warning.
        """
        from hopmap.simulator.programs.computation import omissions, truncated
        from hopmap.traces.summary import Doubt, of_records

        summary = self.summary
        if summary is None:
            return () if self.calls is not None or not self.has_order else omissions(self.program())
        if self.archive is not None and summary.events > LOOKED_THROUGH:
            why = (
                f"{summary.name}: {summary.events:,} events, more than {LOOKED_THROUGH:,}: lists "
                "ignored records only; hopmap simulate also lists what a replay leaves out"
            )
        else:
            try:
                program = self.program()
                return (*omissions(program), *truncated(program))
            except TraceError as error:
                why = f"cannot be replayed: {error}"
        warnings.warn(why, HopmapWarning, stacklevel=2)
        shared, cancelled = summary.shared_cores, summary.cancelled
        doubts = [] if shared is None else [Doubt(str(shared), shared.ranks)]
        if cancelled:
            doubts.append(Doubt("cancelled requests, of which sends are counted", cancelled))
        return (*doubts, *of_records(summary.ignored))
