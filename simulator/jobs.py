"""Several programs as one, whose ranks stand one program behind the other; and results by job.

An engine, a buffer, noise or a timeline knows nothing of jobs: ranks of different jobs have no
messages for each other, and meet at links and nodes. A job starts by starting its ranks later.

A job that repeats begins again when it has ended, rank by rank. What repeats is a loop, so that it
stands in memory once. Background tasks are begun outside of loops only; a program that has some is
written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.arrays import Floats, Ints
from hopmap.errors import expect_between
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.programs.program import Job, LocalWork, Op, Program
from hopmap.topologies import Topology, check_mapping

from .result import Result

MOST_REPEATS = 10**6


def repeat(program: Program, times: int) -> Program:
    """Return a program whose ranks do all that they do so many times, one behind the other.

    There is no barrier in between. Events of the trace are not kept.
    """
    expect_between(ParameterError, f"{program.name}: repeat {times}", times, 1, MOST_REPEATS)
    if times == 1 or not program.tasks:
        return program
    _expect_balance(program, times)
    copies = times if (program.kind == Op.START).any() else 1
    old, copy = _order(program, copies)
    place = np.full((copies, program.operations), -1, dtype=np.int64)
    body = old >= 0
    place[copy[body], old[body]] = np.flatnonzero(body)

    kind = np.where(body, program.kind[old], Op.FINISH).astype(np.uint8)
    target = np.where(body, program.target[old], -1)
    row_targets = body & ((kind == Op.WAIT) | (kind == Op.REPEAT))
    target[row_targets] = place[copy[row_targets], target[row_targets]]
    starts = body & (kind == Op.START)
    target[starts] = _tasks(program, copies)[copy[starts], target[starts]]

    # Where a rank ended it goes on, or back, with what it computed before its end.
    main = program.main()
    ends = np.stack([place[k, program.offsets[main + 1] - 1] for k in range(copies)])
    kind[ends] = Op.REPEAT
    target[ends] = ends if copies > 1 else place[0, program.offsets[main]]
    size = np.where(body, program.size[old], 0)
    size[ends] = 1 if copies > 1 else times

    def column(values: NDArray[Any], missing: float) -> NDArray[Any]:
        return np.where(body, values[old], missing).astype(values.dtype)

    finishes = np.flatnonzero(kind == Op.FINISH)
    others = np.bincount(program.rank_of, minlength=program.ranks) - 1
    return replace(
        program,
        offsets=np.concatenate(([0], finishes + 1)).astype(np.int64),
        rank_of=np.repeat(np.arange(program.ranks, dtype=np.int32), 1 + copies * others),
        kind=kind,
        compute=column(program.compute, 0.0),
        peer=column(program.peer, -1),
        tag=column(program.tag, -1),
        context=column(program.context, -1),
        mode=column(program.mode, 0),
        size=size,
        target=target,
        work=_work(program.work, place),
        event=np.zeros(0, dtype=np.int64),
        chosen={op: _times(calls, times) for op, calls in program.chosen.items()},
        dropped=_times(program.dropped, times),
        notes=_times(program.notes, times),
    )


def _order(program: Program, copies: int) -> tuple[Ints, Ints]:
    """Row of the program that each row comes from, -1 of a new FINISH, and which copy it is."""
    parts: list[Ints] = []
    of: list[Ints] = []
    offsets = program.offsets.tolist()
    first = [*program.main().tolist(), program.tasks]
    for main, behind in pairwise(first):
        own = np.arange(offsets[main], offsets[main + 1])
        parts += [np.tile(own, copies), np.array([-1])]
        of += [np.repeat(np.arange(copies), len(own)), np.array([0])]
        sides = np.arange(offsets[main + 1], offsets[behind])
        parts.append(np.tile(sides, copies))
        of.append(np.repeat(np.arange(copies), len(sides)))
    return np.concatenate(parts), np.concatenate(of)


def _tasks(program: Program, copies: int) -> Ints:
    """Return the number of each background task in each copy, shape (copies, tasks)."""
    main = program.main()
    number = np.full((copies, program.tasks), -1, dtype=np.int64)
    begin = 0
    for first, behind in zip(main, np.append(main[1:], program.tasks), strict=True):
        sides = behind - first - 1
        for k in range(copies):
            number[k, first + 1 : behind] = begin + 1 + k * sides + np.arange(sides)
        begin += 1 + copies * sides
    return number


def _work(work: LocalWork, place: Ints) -> LocalWork:
    rows = place[:, work.row].ravel()
    order = np.argsort(rows, kind="stable")
    return LocalWork(rows[order], *(np.tile(each, len(place))[order] for each in work[1:]))


def _times(counts: Mapping[str, int], times: int) -> dict[str, int]:
    return {what: count * times for what, count in counts.items()}


def _expect_balance(program: Program, times: int) -> None:
    channel, iterations = program.channels(), program.iterations()
    rows = np.flatnonzero(channel >= 0)
    takes = program.kind[rows] >= Op.RECV
    if np.bincount(channel[rows], np.where(takes, -iterations[rows], iterations[rows])).any():
        raise ParameterError(
            f"{program.name}: repeat {times}: some messages are never received, or some receives "
            "get no message: expected 1"
        )


def merge_programs(
    programs: Sequence[Program],
    starts: Sequence[float] | None = None,
    repeats: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    background: Sequence[bool] | None = None,
) -> Program:
    """Let programs run at the same time; ranks of each are numbered behind the previous one's.

    Each begins at its start, in seconds, 0 when left out, and runs as often as `repeats` says, see
    `repeat`. `names` are what they are called, their own when left out, numbered where two are
    equal. `background` says which are traffic of others, see `Job`. The program's `jobs` say whose
    each rank is. Rows have no events of a trace any more, but of one program that is neither late
    nor repeated.
    """
    number = len(programs)
    if not number:
        raise ParameterError("jobs: expected at least one")
    starts = [0.0] * number if starts is None else starts
    names = number_names([program.name for program in programs]) if names is None else names
    others = [False] * number if background is None else background
    for program, start in zip(programs, starts, strict=True):
        if program.jobs:
            raise ParameterError(f"{program.name}: it is several jobs: expected one program each")
        if not 0 <= start < np.inf:
            raise ParameterError(f"{program.name}: start {start:g} s: expected 0 or later")
    if repeats is not None:
        programs = [repeat(each, times) for each, times in zip(programs, repeats, strict=True)]
    first = np.cumsum([0] + [program.ranks for program in programs]).tolist()
    jobs = tuple(
        Job(name, begin, program.ranks, float(start), bool(other))
        for name, begin, program, start, other in zip(
            names, first[:-1], programs, starts, others, strict=True
        )
    )
    choices = {tuple(sorted(program.algorithms.items())) for program in programs}
    moved = _shift(programs)

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(program, name) for program in moved])

    columns = ("rank_of", "kind", "compute", "peer", "tag", "context", "size", "target", "mode")
    work = [program.work for program in moved]
    operations = sorted({operation for program in programs for operation in program.chosen})
    return Program(
        name=" + ".join(names),
        offsets=np.concatenate([moved[0].offsets[:1], *(each.offsets[1:] for each in moved)]),
        **{name: column(name) for name in columns},
        work=LocalWork(*(np.concatenate(each) for each in zip(*work, strict=True))),
        event=programs[0].event if number == 1 else np.zeros(0, dtype=np.int64),
        communicators=sum(program.communicators for program in programs),
        collectives={c: calls for each in moved for c, calls in each.collectives.items()},
        algorithms=dict(choices.pop()) if len(choices) == 1 else {},
        chosen={op: _add_up(each.chosen.get(op, {}) for each in programs) for op in operations},
        dropped=_add_up(program.dropped for program in programs),
        omitted=tuple(
            entry if number == 1 else replace(entry, what=f"{name}: {entry.what}")
            for name, program in zip(names, programs, strict=True)
            for entry in program.omitted
        ),
        notes=_add_up(program.notes for program in programs),
        jobs=jobs,
    )


def add_co_running(program: Program, others: Program) -> Program:
    """Add jobs that are one program already to a program, whose ranks come first."""
    bare = merge_programs([program, replace(others, jobs=())])
    first, rest = bare.jobs
    moved = [job._replace(first=rest.first + job.first) for job in others.jobs]
    return replace(bare, jobs=(first, *moved))


def number_names(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that are not alone."""
    often, seen = Counter(names), Counter[str]()
    named = []
    for name in names:
        seen[name] += 1
        named.append(name if often[name] == 1 else f"{name} #{seen[name]}")
    return named


def _shift(programs: Sequence[Program]) -> list[Program]:
    """Give ranks, tasks, rows, communicators and windows the numbers that they have together."""
    all_communicators = sum(program.communicators for program in programs)
    rank = task = row = communicator = window = 0
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
        towards = np.where(program.kind == Op.START, task, row)
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
        rank, task, row = rank + program.ranks, task + program.tasks, row + program.operations
        communicator, window = communicator + own, window + max(windows, 0)
    return moved


def _add_up(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


class JobResult(NamedTuple):
    """A job's part of a run; times in seconds."""

    name: str
    ranks: int
    # start, finish: when its ranks begin, and when the last of them has finished
    start: float
    finish: float
    # compute, communicate, wait: means over its ranks; time before its start does not count
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
