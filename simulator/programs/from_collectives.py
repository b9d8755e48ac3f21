"""Collectives of a trace: found on each communicator, agreed between members, made messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Ints
from hopmap.simulator.collectives.algorithms import Chosen, choose
from hopmap.simulator.collectives.schedules import Schedule, Work
from hopmap.simulator.collectives.volumes import Account, habits, read_accounts, volume
from hopmap.traces import Collective, Folded, Kind, Trace

from .collective_calls import (
    OF_PAIRS,
    CountedPairs,
    Found,
    are_ambiguous,
    check_received,
    count_pairs,
    group_functions,
    match_calls,
)
from .mpi_calls import SendMode
from .operation_rows import REST, Carried, Rows, Worked, local_work, rows_of
from .program import Op, Program, number_keys, with_finishes

_ENDS = (Kind.COLLECTIVE_END, Kind.COLLECTIVE_COMPLETE, Kind.RMA_COLLECTIVE_END)

# Keys of `Program.notes`.
SOME_MEMBERS = "handles made or freed by some members of a communicator"
IN_PLACE = "collectives taken as MPI_IN_PLACE, undecided in the trace"
NOT_IN_PLACE = "collectives taken without MPI_IN_PLACE, undecided in the trace"
PAIRS_COUNTED = "alltoallv calls whose pairs come from the trace's .counts file"
SUMS_ONLY = "alltoallv calls recorded only as sums"
PAIRS_MADE_UP = "pairs assumed for these calls"
BYTES_MADE_UP = "bytes between these pairs"


class Template(NamedTuple):
    """Operations of one collective, member after member; members and rows counted from 0."""

    member: Ints
    kind: Ints
    peer: Ints
    size: Ints
    target: Ints
    mode: NDArray[np.uint8]
    worked: Worked


def find_collectives(
    folded: Folded, rank: Ints, events: Ints, kind: NDArray[np.uint8], partner: Ints
) -> Found:
    """List the collectives with more than one member, and number the tasks they need."""
    trace = folded.trace
    done = np.flatnonzero(np.isin(kind, _ENDS))
    members = np.array([len(c) for c in trace.communicators] + [0])
    record = trace.ref[events[done]]
    lonely = members[trace.records.comm[record]] < 2
    done, record = done[~lonely], record[~lonely]
    background = kind[done] == Kind.COLLECTIVE_COMPLETE
    start = np.where(background, partner[done], done)
    order = np.argsort(start, kind="stable")
    done, record, start, background = done[order], record[order], start[order], background[order]
    # A task comes behind its rank's main task and the tasks before it.
    task = np.where(background, np.cumsum(background) + rank[start], -1)
    columns = trace.records
    return Found(
        rank=rank[start],
        start=events[start],
        done=events[done],
        task=task,
        communicator=columns.comm[record].astype(np.int64),
        operation=columns.operation[record].astype(np.int64),
        root=columns.peer[record].astype(np.int64),
        sent=columns.size[record],
        received=columns.received[record],
        iterations=folded.iterations(events[start]),
    )


def collective_rows(
    trace: Trace, found: Found, algorithms: Mapping[str, str]
) -> tuple[Rows, Worked, Carried]:
    """Lower every collective."""
    parts = [_background_rows(found)]
    listed = len(parts[0].event)
    worked: list[Worked] = []
    carried = Carried({}, {}, {})
    counted, of_a_group = count_pairs(trace, found), group_functions(trace)
    sizes = np.array([len(members) for members in trace.communicators], dtype=np.int64)
    elsewhere = habits(found.operation, found.sent, sizes[found.communicator])
    for communicator in np.unique(found.communicator):
        context = len(trace.communicators) + int(communicator)
        first = 0  # tag of the first call
        operations = []
        for members, grid in match_calls(trace, found, int(communicator), of_a_group):
            operations.append(found.operation[grid[0]].astype(np.uint8))
            if len(members) < sizes[communicator]:
                carried.note(SOME_MEMBERS, int(found.iterations[grid[0]].sum()))
            if len(members) < 2:
                first += grid.shape[1]
                continue
            for calls, template in _templates(
                found, grid, members, algorithms, counted, elsewhere, carried
            ):
                rows = len(template.member)
                entry = grid[template.member][:, calls].T  # (calls, rows)
                shift = listed + rows * np.arange(len(calls))[:, None]
                parts.append(
                    Rows(
                        event=found.start[entry].ravel(),
                        phase=np.full(entry.size, REST),
                        task=found.task[entry].ravel(),
                        kind=np.tile(template.kind, len(calls)),
                        peer=np.tile(np.append(members, -1)[template.peer], len(calls)),
                        tag=np.repeat(first + calls, rows),
                        context=np.full(entry.size, context),
                        size=np.tile(template.size, len(calls)),
                        target=np.where(template.target < 0, -1, template.target + shift).ravel(),
                        mode=np.tile(template.mode, len(calls)),
                    )
                )
                worked.append(
                    Worked(
                        (template.worked.row + shift).ravel(),
                        np.tile(template.worked.behind, len(calls)),
                        *(np.tile(column, len(calls)) for column in template.worked[2:]),
                    )
                )
                listed += entry.size
            first += grid.shape[1]
        carried.collectives[context] = np.concatenate(operations)
    all_rows = Rows(*map(np.concatenate, zip(*parts, strict=True)))
    none = np.zeros(0, dtype=np.int64)
    worked.append(Worked(none, none.astype(np.bool_), *(none,) * (len(Worked._fields) - 2)))
    return all_rows, Worked(*map(np.concatenate, zip(*worked, strict=True))), carried


def _background_rows(calls: Found) -> Rows:
    """START and WAIT of the tasks of non-blocking collectives; a WAIT's target is its START."""
    which = np.flatnonzero(calls.task >= 0)
    return rows_of(
        np.concatenate((calls.start[which], calls.done[which])),
        REST,
        np.repeat([Op.START, Op.WAIT], len(which)),
        target=np.concatenate((calls.task[which], np.arange(len(which)))),
    )


def _templates(
    found: Found,
    grid: Ints,
    members: Ints,
    algorithms: Mapping[str, str],
    counted: CountedPairs | None,
    elsewhere: Mapping[Collective, bool],
    carried: Carried,
) -> list[tuple[Ints, Template]]:
    """Group the calls that move the same, lower each group once, and count what was chosen."""
    groups: dict[tuple[int, int, bytes, bytes, bytes], list[int]] = {}
    sent, received = found.sent[grid].T.copy(), found.received[grid].T.copy()
    for k, first in enumerate(grid[0]):
        of_pairs = found.operation[first] in OF_PAIRS
        key = (
            int(found.operation[first]),
            int(found.root[grid[:, k]].max()),
            sent[k].tobytes(),
            received[k].tobytes(),
            counted.key(grid[:, k]) if counted and of_pairs else b"",
        )
        groups.setdefault(key, []).append(k)
    accounts = [
        Account(Collective(operation), sent[calls[0]], received[calls[0]])
        for (operation, *_), calls in groups.items()
    ]
    result = []
    for (key, calls), account, reading in zip(
        groups.items(), accounts, read_accounts(accounts, elsewhere), strict=True
    ):
        _, root, *_ = key
        at = int(np.flatnonzero(members == root)[0]) if root >= 0 else -1
        made = int(found.iterations[grid[0, calls]].sum())
        if reading.open:
            carried.note(IN_PLACE if reading.parts < len(members) else NOT_IN_PLACE, made)
        moved = volume(account.operation, at, *account[1:], reading.parts)
        known = counted is not None and account.operation in OF_PAIRS
        if counted and known:
            where = f"communicator {found.communicator[grid[0, 0]]}, collective {calls[0]}"
            moved = counted.matrix(grid[:, calls[0]])
            check_received(moved, account.received, counted.name, where)
            carried.note(PAIRS_COUNTED, made)
        elif account.operation in OF_PAIRS and are_ambiguous(*account[1:]):
            between = moved[~np.eye(len(members), dtype=np.bool_)]
            carried.note(SUMS_ONLY, made)
            carried.note(PAIRS_MADE_UP, made * int(np.count_nonzero(between)))
            carried.note(BYTES_MADE_UP, made * int(between.sum()))
        chosen = choose(account.operation, at, *account[1:], algorithms, moved)
        schedule = chosen.schedule
        if known:  # as Open MPI's linear exchange: nothing is sent where there is nothing to send
            schedule = schedule.of(schedule.size > 0)
        result.append((np.array(calls, dtype=np.int64), template_of(schedule)))
        taken = carried.chosen.setdefault(chosen.operation, {})
        taken[chosen.algorithm] = taken.get(chosen.algorithm, 0) + made
    return result


def template_of(schedule: Schedule) -> Template:
    """Operations of every member: each step posts receives, then sends, and waits.

    A member's only message of a step is a blocking operation.
    """
    step = schedule.steps
    sends, posts, takes = (
        member * step + of
        for member, of in (
            (schedule.src, schedule.round),
            (schedule.dst, schedule.posted),
            (schedule.dst, schedule.taken),
        )
    )
    at_once, count = posts == takes, len(sends)
    _, of_step = number_keys(np.concatenate((sends, posts, takes[~at_once])))
    alone = (np.bincount(of_step) == 1)[of_step[: 2 * count]]
    takes_alone, sends_alone = at_once & alone[count:], alone[:count]
    index = np.arange(count)
    waits_taken, waits_sent = index[~takes_alone], index[~sends_alone]
    turn = np.repeat(np.arange(4), [count, count, len(waits_taken), len(waits_sent)])
    of = np.concatenate((index, index, waits_taken, waits_sent))  # message of each row
    taking = turn % 2 == 0
    kind = np.where(
        turn > 1,
        Op.WAIT,
        np.where(
            taking,
            np.where(takes_alone[of], Op.RECV, Op.IRECV),
            np.where(sends_alone[of], Op.SEND, Op.ISEND),
        ),
    )
    when = np.concatenate((posts, sends, takes[waits_taken], sends[waits_sent]))
    order = np.lexsort((turn, when))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    posted = np.where(taking, of, of + count)  # where a row's message was posted, before sorting
    member = np.where(taking, schedule.dst[of], schedule.src[of])[order]
    mode = np.full(len(order), SendMode.STANDARD, dtype=np.uint8)
    mode[schedule.puts & (turn < 2)] = SendMode.PUT
    return Template(
        member=member,
        kind=kind[order].astype(np.int64),
        peer=np.where(turn > 1, -1, np.where(taking, schedule.src[of], schedule.dst[of]))[order],
        size=np.where(turn > 1, 0, schedule.size[of])[order],
        target=np.where(turn > 1, place[posted], -1)[order],
        mode=mode[order],
        worked=_add_work(schedule, member, when[order]),
    )


def program_of_call(chosen: Chosen, members: int) -> Program:
    """Give every rank its part of one collective call, and nothing else, as `lower` would."""
    template = template_of(chosen.schedule)
    names = ("kind", "peer", "size", "target", "mode")
    columns = {"tag": 0, "context": 1} | {name: getattr(template, name) for name in names}
    return with_finishes(
        f"{chosen.operation} by {chosen.algorithm}",
        members,
        template.member,
        columns,
        work=local_work(template.worked, np.arange(len(template.member)) + template.member),
        collectives={1: np.array([Collective[chosen.operation.upper()]], dtype=np.uint8)},
        chosen={chosen.operation: {chosen.algorithm: 1}},
    )


def _add_work(schedule: Schedule, member: Ints, when: Ints) -> Worked:
    """Put work before the member's next row, or behind its last; who has no row does none.

    Puts are prepared, and buffers allocated, before everyone's first row.

    `when` is the step of each row, and the member's number in front of it.
    """
    does = sum(schedule.work[2:]) > 0
    work = Work(*(column[does] for column in schedule.work))
    row = np.searchsorted(when, work.member * schedule.steps + work.step, side="right")
    bounds = np.append(member, -1)
    behind = bounds[row] != work.member
    row = row - behind
    acts = bounds[row] == work.member
    zero = np.zeros_like(row)
    columns = (row, behind, *work[2:], zero, zero, zero)

    who, first = np.unique(member, return_index=True)
    held = schedule.buffers.at(np.isin(schedule.buffers.member, who))
    of = np.searchsorted(who, held.member)
    count = np.bincount(of, minlength=len(who))
    size = np.bincount(of, held.size, len(who)).astype(np.int64)
    none = np.zeros_like(first)
    begun = (first, none > 0, none, none, none, none + schedule.puts, size, count)
    begins = (count > 0) | schedule.puts
    return Worked(*(np.append(a[acts], b[begins]) for a, b in zip(columns, begun, strict=True)))
