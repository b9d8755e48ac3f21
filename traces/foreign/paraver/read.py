"""Communication records as messages of the calls that their times lie in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.foreign.recognition import Recording
from hopmap.traces.foreign.text import Fields, read_fields
from hopmap.traces.foreign.trace_builder import Calls, acts_of, trace_of
from hopmap.traces.matching import Messages
from hopmap.traces.trace import Trace, mpi_name

from .records import (
    Head,
    calls_of,
    collectives_of,
    communicators_of,
    events_of,
    head_of,
    is_nameless,
    labels_of,
    own_lines,
    tasks_at,
)


def messages_of(
    fields: Fields, lines: Ints, head: Head, calls: Calls, names: tuple[str, ...]
) -> tuple[Calls, Messages, tuple[str, ...], int, Ints]:
    """Messages with their calls, and where each call stands among these with new ones."""
    what = "a communication of 15 whole numbers"
    source, target = tasks_at(fields, lines, 3, head), tasks_at(fields, lines, 9, head)
    sent, posted, taken = (fields.numbers(lines, at, what) * head.scale for at in (5, 11, 12))
    size, tag = (fields.numbers(lines, at, what) for at in (13, 14))
    fields.refuse(lines, size < 0, "a size >= 0")
    # Logical receives may be recorded later than the physical ones.
    posted = np.minimum(posted, taken)
    by, post, done = (
        _call_at(calls, *at) for at in ((source, sent), (target, posted), (target, taken))
    )
    alone = np.flatnonzero(by < 0), np.flatnonzero((post < 0) | (done < 0))
    before = np.arange(len(calls.region) + 1)
    if len(alone[0]) or len(alone[1]):
        names = (*names, "MPI_Send", "MPI_Recv")
        count = len(calls.region)
        rank = np.concatenate((calls.ranks(), source[alone[0]], target[alone[1]]))
        new = np.repeat([len(names) - 2, len(names) - 1], [len(each) for each in alone])
        region = np.concatenate((calls.region, new))
        begin = np.concatenate((calls.begin, sent[alone[0]], taken[alone[1]]))
        end = np.concatenate((calls.end, begin[count:]))
        order = np.lexsort((np.arange(len(rank)), begin, rank))
        before = np.empty(len(order) + 1, dtype=np.int64)
        before[order], before[-1] = np.arange(len(order)), len(order)
        calls = Calls(
            np.searchsorted(rank[order], np.arange(head.tasks + 1)).astype(np.int64),
            region[order],
            begin[order],
            end[order],
        )
        by[alone[0]] = count + np.arange(len(alone[0]))
        post[alone[1]] = done[alone[1]] = count + len(alone[0]) + np.arange(len(alone[1]))
        by, post, done = before[by], before[post], before[done]
    words = [mpi_name(name) for name in names]
    posts = [bool(re.fullmatch(r"i[bsr]?send|start|startall", word)) for word in words]
    ends = _ends(calls, words, by, np.array(posts, dtype=np.bool_)[calls.region[by]], done)
    call, finish = np.concatenate((by, post)), np.concatenate((ends, done))
    order = np.argsort(call, kind="stable")
    world = np.zeros(2 * len(by), dtype=np.int64)
    sends = np.arange(2 * len(by)) < len(by)
    peers = np.concatenate((target, source))
    columns: Any = (call, finish, sends, peers, np.tile(tag, 2), world, np.tile(size, 2))
    messages = Messages(*(column[order] for column in columns))
    return calls, messages, names, len(alone[0]) + len(alone[1]), before


def _call_at(calls: Calls, rank: Ints, time: Floats) -> Ints:
    """Call of a rank that a time lies in, or -1."""
    found = np.full(len(rank), -1, dtype=np.int64)
    for r in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == r)
        first, behind = calls.offsets[r], calls.offsets[r + 1]
        at = first + np.searchsorted(calls.begin[first:behind], time[mine], side="right") - 1
        good = at >= first
        good[good] = time[mine][good] <= calls.end[at[good]]
        found[mine[good]] = at[good]
    return found


def _ends(calls: Calls, words: list[str], by: Ints, open_: Bools, received: Ints) -> Ints:
    """Call that completes each send: its own, or of a non-blocking one a wait behind it, or -1."""
    done = by.copy()
    waiting = np.flatnonzero(open_)
    done[waiting] = -1
    all_, one = (
        np.array([word in those for word in words], dtype=bool)[calls.region]
        for those in (("waitall", "testall"), ("wait", "waitany", "waitsome"))
    )
    one[received[received >= 0]] = False
    waits = np.flatnonzero(all_ | one)
    ranks = calls.ranks()
    sends = waiting[np.argsort(by[waiting], kind="stable")]
    at = 0
    pending: list[int] = []
    for wait in waits.tolist():
        while at < len(sends) and by[sends[at]] < wait:
            pending.append(int(sends[at]))
            at += 1
        rank = ranks[wait]
        pending = [send for send in pending if ranks[by[send]] == rank]
        if pending:
            over = len(pending) if all_[wait] else 1
            done[pending[:over]] = wait
            pending = pending[over:]
    return done


class ParaverSource(Recording):
    """A file of Paraver."""

    tool = "paraver"
    about = "Paraver's .prv, with its .pcf if there is one"
    is_one_file = True

    @staticmethod
    def matches(_: Path, start: bytes) -> bool:
        """Whether a file that begins like this is a trace."""
        return start.startswith(b"#Paraver")

    def calls(self) -> Trace:
        """Read the file."""
        return read_paraver(self.files(), self.name)


def read_paraver(files: list[Path], name: str) -> Trace:
    """Read a trace."""
    from hopmap.traces.foreign.text_kernels import EMPTY, INTEGER

    fields = read_fields(files[0], ":")
    first = fields.lines[:-1]
    kinds, values = fields.kinds[first], fields.values[first]
    number = np.where(kinds == INTEGER, values, 0)
    letters = np.frombuffer(fields.text, dtype=np.uint8)[
        np.minimum(fields.begins[first], max(len(fields.text) - 1, 0))
    ]
    head = head_of(fields, number)
    blank = (kinds == EMPTY) & (fields.counts == 1)
    groups = (letters == ord("c")) & ~blank
    known = (letters == ord("#")) | (letters == ord("i")) | groups | blank
    odd = np.flatnonzero(~known & ((number < 1) | (number > 3)))
    if odd.size:
        raise fields.wrong(int(odd[0]), "a record of kind 1, 2 or 3, c, i or #")
    if not fields.text.endswith(b"\n"):
        raise fields.wrong(len(first) - 1, "a whole line, which ends: the trace is cut")
    members, alias = communicators_of(fields, np.flatnonzero(groups), head)
    lines, others = own_lines(fields, np.flatnonzero(number == 2), head, 8)
    events, skipped = events_of(fields, lines, head)
    calls, names, first_event, unended = calls_of(events, head, labels_of(files[0]))
    talks, foreign = own_lines(fields, np.flatnonzero(number == 3), head, 15)
    calls, messages, names, outside, before = messages_of(fields, talks, head, calls, names)
    collective, rootless, immediate = collectives_of(
        calls, before[: len(first_event)], first_event, names, events, members, alias, files[0]
    )
    ignored = {
        "state": int((number == 1).sum()),
        "event": skipped,
        "event and communication of other applications": others + foreign,
        "calls that do not end, in": unended,
        "communications outside of calls, in": outside,
        "collectives without a recorded root (first member used),": rootless,
        "non-blocking collectives (treated as blocking), in": immediate,
        "calls that no .pcf names, left out, in": int(
            np.isin(calls.region, [k for k, word in enumerate(names) if is_nameless(word)]).sum()
        ),
    }
    communicators = [np.arange(head.tasks), np.zeros(0, dtype=np.int64), *members]
    return trace_of(
        name, calls, (*acts_of(messages), collective), names, communicators, ignored=ignored
    )
