"""Several programs as one, whose ranks stand one program behind the other.

An engine, a buffer, noise or a timeline knows nothing of jobs: ranks of different jobs have no
messages for each other, and meet at links and nodes. A job starts by starting its ranks later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.programs.program import Job, LocalWork, Op, Program

from .repeated import repeated


def together(
    programs: Sequence[Program],
    starts: Sequence[float] | None = None,
    repeats: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    background: Sequence[bool] | None = None,
) -> Program:
    """Let programs run side by side.

    Parameters
    ----------
    programs : sequence of Program
        Of job after job; the ranks of each stand behind those of the one before.
    starts : sequence of float, optional
        When each begins, in seconds; 0 when left out.
    repeats : sequence of int, optional
        How often each runs, one run behind the other; see `repeated`.
    names : sequence of str, optional
        What each is called; the programs' own names when left out, numbered where two are alike.
    background : sequence of bool, optional
        Which are traffic of others; see `Job`.

    Returns
    -------
    Program
        Its `jobs` say whose each rank is. Rows have no events of a trace any more, but of one
        program that is neither late nor repeated.

    Raises
    ------
    ParameterError
        No programs, jobs among jobs, a start before 0, or a repetition that makes no sense.
    """
    number = len(programs)
    if not number:
        raise ParameterError("jobs: expected at least one")
    starts = [0.0] * number if starts is None else starts
    names = numbered_names([program.name for program in programs]) if names is None else names
    others = [False] * number if background is None else background
    for program, start in zip(programs, starts, strict=True):
        if program.jobs:
            raise ParameterError(f"{program.name}: it is several jobs: expected one program each")
        if not 0 <= start < np.inf:
            raise ParameterError(f"{program.name}: start {start:g} s: expected 0 or later")
    if repeats is not None:
        programs = [repeated(each, times) for each, times in zip(programs, repeats, strict=True)]
    first = np.cumsum([0] + [program.ranks for program in programs]).tolist()
    jobs = tuple(
        Job(name, begin, program.ranks, float(start), bool(other))
        for name, begin, program, start, other in zip(
            names, first[:-1], programs, starts, others, strict=True
        )
    )
    asked = {tuple(sorted(program.algorithms.items())) for program in programs}
    moved = _moved(programs)

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(program, name) for program in moved])

    columns = ("rank_of", "kind", "compute", "peer", "tag", "context", "size", "target", "mode")
    work = [program.work for program in moved]
    return Program(
        name=" + ".join(names),
        offsets=np.concatenate([moved[0].offsets[:1], *(each.offsets[1:] for each in moved)]),
        **{name: column(name) for name in columns},
        work=LocalWork(*(np.concatenate(each) for each in zip(*work, strict=True))),
        event=programs[0].event if number == 1 else np.zeros(0, dtype=np.int64),
        communicators=sum(program.communicators for program in programs),
        collectives={c: calls for each in moved for c, calls in each.collectives.items()},
        algorithms=dict(asked.pop()) if len(asked) == 1 else {},
        chosen=_chosen(programs),
        dropped=_summed(program.dropped for program in programs),
        left_out=tuple(
            entry if number == 1 else replace(entry, what=f"{name}: {entry.what}")
            for name, program in zip(names, programs, strict=True)
            for entry in program.left_out
        ),
        notes=_summed(program.notes for program in programs),
        jobs=jobs,
    )


def beside(program: Program, others: Program) -> Program:
    """Let a program run beside jobs that are one program already; its ranks come first."""
    bare = together([program, replace(others, jobs=())])
    first, rest = bare.jobs
    moved = [job._replace(first=rest.first + job.first) for job in others.jobs]
    return replace(bare, jobs=(first, *moved))


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that are not alone."""
    often, seen = Counter(names), Counter[str]()
    named = []
    for name in names:
        seen[name] += 1
        named.append(name if often[name] == 1 else f"{name} #{seen[name]}")
    return named


def _moved(programs: Sequence[Program]) -> list[Program]:
    """Give ranks, strands, rows, communicators and windows the numbers that they have together."""
    all_communicators = sum(program.communicators for program in programs)
    rank = strand = row = communicator = window = 0
    moved = []
    for program in programs:
        own = program.communicators
        # By sort of context: none, messages, collectives, one-sided.
        sort = np.where(program.context < 0, -1, np.minimum(program.context // max(own, 1), 2))
        shifts = np.array(
            [
                communicator,
                all_communicators - own + communicator,
                window - 2 * own + 2 * all_communicators,
                0,
            ]
        )
        context = program.context + shifts[sort]
        towards = np.where(program.kind == Op.START, strand, row)
        collectives = {
            c + int(shifts[min(c // max(own, 1), 2)]): calls
            for c, calls in program.collectives.items()
        }
        moved.append(
            replace(
                program,
                offsets=program.offsets + row,
                rank_of=program.rank_of + np.int32(rank),
                peer=np.where(program.peer < 0, program.peer, program.peer + np.int32(rank)),
                context=context.astype(np.int32),
                target=np.where(program.target < 0, program.target, program.target + towards),
                work=program.work._replace(row=program.work.row + row),
                collectives=collectives,
            )
        )
        windows = int(program.context.max(initial=-1)) + 1 - 2 * own
        rank, strand, row = rank + program.ranks, strand + program.strands, row + program.operations
        communicator, window = communicator + own, window + max(windows, 0)
    return moved


def _chosen(programs: Sequence[Program]) -> dict[str, dict[str, int]]:
    """Add up the calls that took each algorithm."""
    operations = sorted({operation for program in programs for operation in program.chosen})
    return {op: _summed(program.chosen.get(op, {}) for program in programs) for op in operations}


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
