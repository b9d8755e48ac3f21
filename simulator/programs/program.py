"""Program: what a replay executes, one list of operations per task.

A rank is one task; each of its non-blocking collectives is a task of its own, which a START
begins and a WAIT joins, so that they go on in the background. Operations stand in one table, the
tasks of rank 0 first. Receives are matched before the run: wildcards were resolved when the
trace was recorded, and what is sent from one rank to another under one tag and context arrives in
order, so that the k-th send meets the k-th receive. What repeats may stand there once, in a loop,
see `unrolling.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints, Ints32
from hopmap.traces import Collective, Traffic
from hopmap.traces.summary import Omission

from .mpi_calls import LETTERS, SendMode

ROOM = 1 << 20  # keys below this, or below twice as many as there are, are marked in a table


def number_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Return the different keys, rising, and the place there of each input key.

    As ``numpy.unique(keys, return_inverse=True)``, but linear where keys are 0 or more and small.
    """
    if len(keys) and keys.min() >= 0 and (top := int(keys.max())) < max(ROOM, 2 * len(keys)):
        occurs = np.zeros(top + 1, dtype=np.bool_)
        occurs[keys] = True
        number = np.cumsum(occurs, dtype=np.int64) - 1
        return np.flatnonzero(occurs).astype(np.int64), number[keys]
    found, place = np.unique(keys, return_inverse=True)
    return found.astype(np.int64), place.reshape(-1).astype(np.int64)


Array = TypeVar("Array", bound="NDArray[Any]")


def kept(method: Callable[[Program], Array]) -> Callable[[Program], Array]:
    """Have a program keep what a method of it returns, read-only."""
    name = f"_{method.__name__}"

    @wraps(method)
    def get(self: Program) -> Array:
        found: Array | None = self.__dict__.get(name)
        if found is None:
            found = method(self)
            found.flags.writeable = False
            object.__setattr__(self, name, found)
        return found

    return get


class Op(IntEnum):
    """What an operation does."""

    FINISH = 0  # last of every task
    SEND = 1
    ISEND = 2
    RECV = 3
    IRECV = 4
    WAIT = 5  # for the ISEND, IRECV or START in row `target`
    START = 6  # begin task `target`
    REPEAT = 7  # end of a loop: go back to row `target` until the rows in between ran `size` times


class LocalWork(NamedTuple):
    """What collectives do with bytes that a rank has, before some rows; rising by row."""

    row: Ints
    # copied, reduced: bytes that are copied, and bytes of results to which others are added
    copied: Ints
    reduced: Ints
    blocks: Ints  # blocks that are copied one by one
    prepared: Ints  # collectives that put data into memory and begin there
    # allocated, buffers: bytes of the buffers that collectives allocate there, and how many these
    # are
    allocated: Ints
    buffers: Ints

    def new_memory(self, least: int) -> Ints:
        """Bytes allocated in buffers of `least` bytes or more; buffers of a row count as equal."""
        return np.where(self.allocated >= self.buffers * least, self.allocated, 0)


class Job(NamedTuple):
    """One of several programs that run side by side, see `jobs.py`."""

    name: str
    first: int  # its ranks are this one and those behind it
    ranks: int
    start: float = 0.0  # when they begin, in seconds
    background: bool = False  # whether it is other jobs' traffic, whose end is not waited for


def no_work() -> LocalWork:
    """Return a table without rows."""
    return LocalWork(*(np.zeros(0, dtype=np.int64) for _ in LocalWork._fields))


@dataclass(frozen=True, eq=False)
class Program:
    """Operations of all tasks; columns have one entry per row, -1 where one does not apply.

    Attributes
    ----------
    name : str
        Where it comes from.
    offsets : ndarray(int64, shape=(tasks + 1,))
        Operations of task s are rows ``offsets[s]:offsets[s + 1]``.
    rank_of : ndarray(int32, shape=(tasks,))
        Rank of each task; not decreasing, the main task of a rank before its others.
    kind : ndarray(uint8)
        `Op`.
    compute : ndarray(float64)
        Seconds of computation before the operation.
    peer, tag, context : ndarray(int32)
        World rank of the partner, tag and context of a message. Contexts below `communicators` are
        communicators; ``communicators + c`` are the collectives on communicator c, and their tag
        says which; ``2 * communicators + w`` are one-sided operations on window w.
    size : ndarray(int64)
        Bytes of a message; iterations of a REPEAT.
    target : ndarray(int64)
        Row that a WAIT waits for, which is the latest that this row began; task that a START
        begins; first row of the body that a REPEAT ends. A WAIT may be for a row of another task
        of its rank that has begun by then, or for a START anywhere there, even before it is begun;
        one at a time waits for a row.
    mode : ndarray(uint8)
        `SendMode` of a SEND or ISEND; of a RECV or IRECV PUT, if it takes puts, or HARDWARE;
        STANDARD if left out.
    work : LocalWork
        What collectives copy and reduce before the operations, in addition to `compute`.
    event : ndarray(int64)
        Event of the trace that each row was lowered from, -1 of a FINISH; empty without a trace.
    communicators : int
        Number of communicators.
    collectives : mapping of int to ndarray(uint8)
        By context, the `Collective` under each tag.
    algorithms : mapping of str to str
        Algorithms of collectives that were asked for.
    chosen : mapping of str to mapping of str to int
        Algorithms that each collective operation took, and in how many calls.
    dropped : mapping of str to int
        Operations of the trace that are left out, counted by reason.
    omitted : tuple of Omission
        What of the trace is left out or treated as something else, `dropped` among it.
    notes : mapping of str to int
        What the trace leaves open, and what was assumed for it, counted.
    jobs : tuple of Job
        What its ranks belong to, where they belong to several programs; else empty.
    """

    name: str
    offsets: Ints
    rank_of: Ints32
    kind: NDArray[np.uint8]
    compute: Floats
    peer: Ints32
    tag: Ints32
    context: Ints32
    size: Ints
    target: Ints
    mode: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    work: LocalWork = field(default_factory=no_work)
    event: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    communicators: int = 1
    collectives: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    algorithms: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    omitted: tuple[Omission, ...] = ()
    notes: Mapping[str, int] = field(default_factory=dict)
    jobs: tuple[Job, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.mode):
            object.__setattr__(self, "mode", np.zeros(len(self.kind), dtype=np.uint8))

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.rank_of)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.rank_of[-1]) + 1 if self.tasks else 0

    @property
    def operations(self) -> int:
        """Number of rows, the FINISH of each task included; those in loops count once."""
        return len(self.kind)

    def main(self) -> Ints:
        """Task of each rank itself, shape (ranks,)."""
        return np.searchsorted(self.rank_of, np.arange(self.ranks)).astype(np.int64)

    def begins(self) -> Floats:
        """When each rank begins, in seconds; shape (ranks,)."""
        if not self.jobs:
            return np.zeros(self.ranks)
        return np.repeat([job.start for job in self.jobs], [job.ranks for job in self.jobs])

    @kept
    def rank_of_row(self) -> Ints32:
        """Rank of each operation."""
        return np.repeat(self.rank_of, np.diff(self.offsets))

    @kept
    def sends(self) -> Ints:
        """Rows that send, in order; without loops, their places here are the message numbers."""
        return np.flatnonzero((self.kind == Op.SEND) | (self.kind == Op.ISEND))

    @kept
    def iterations(self) -> Ints:
        """How often each row runs."""
        times = np.ones(self.operations, dtype=np.int64)
        ends = np.flatnonzero(self.kind == Op.REPEAT)
        task = np.searchsorted(self.offsets, ends, side="right") - 1
        for k, (end, first) in enumerate(
            zip(ends.tolist(), self.offsets[task].tolist(), strict=True)
        ):
            begin, count = int(self.target[end]), int(self.size[end])
            inner = ends[np.searchsorted(ends, begin) : k]
            where = f"{self.name}: loop in rows {begin} to {end}"
            if not first <= begin <= end or (self.target[inner] < begin).any():
                raise ValueError(f"{where}: expected a body in one task, of whole loops")
            if count < 1:
                raise ValueError(f"{where}: runs {count} times: expected at least 1")
            if (self.kind[begin:end] == Op.START).any():
                raise ValueError(f"{where}: begins a task: expected that outside loops")
            # The REPEAT itself is a row of the body.
            times[begin : end + 1] *= count
        return times

    def traffic(self) -> Traffic:
        """Reduce to everything that is sent, collectives included."""
        return self._traffic(self.context >= 0)

    def two_sided_traffic(self) -> Traffic:
        """Reduce to messages and collectives: all but what one-sided operations are made of."""
        return self._traffic(self.context < 2 * self.communicators)

    def one_sided_traffic(self) -> Traffic:
        """Reduce to the bytes that one-sided operations move, without requests and answers of 0."""
        return self._traffic((self.context >= 2 * self.communicators) & (self.size > 0))

    def p2p_traffic(self) -> Traffic:
        """Reduce to what the application itself sends; equal to `traffic_of` of the trace."""
        return self._traffic(self.context < self.communicators)

    def _traffic(self, among: Bools) -> Traffic:
        rows = self.sends()
        rows = rows[among[rows]]
        times = self.iterations()
        return Traffic.from_pairs(
            self.ranks,
            self.rank_of_row()[rows],
            self.peer[rows],
            times[rows],
            self.size[rows] * times[rows],
            name=self.name,
        )

    @kept
    def pair_of_send(self) -> Ints:
        """Sender of each row that sends, times the ranks, plus its receiver."""
        send = self.sends()
        return self.rank_of_row()[send].astype(np.int64) * self.ranks + self.peer[send]

    @kept
    def channels(self) -> Ints:
        """Channel of each row that sends or receives, else -1; channels are numbered from 0.

        A channel is (source, target, tag, context); the k-th send meets the k-th receive of one.
        """
        rows = np.flatnonzero((self.kind >= Op.SEND) & (self.kind <= Op.IRECV))
        own, peer = self.rank_of_row()[rows].astype(np.int64), self.peer[rows].astype(np.int64)
        sending = self.kind[rows] <= Op.ISEND
        tag = self.tag[rows].astype(np.uint32).astype(np.int64)
        width = int(tag.max(initial=0)) + 1
        _, label = number_keys(self.context[rows].astype(np.int64) * width + tag)
        pair = np.where(sending, own * self.ranks + peer, peer * self.ranks + own)
        channels = np.full(self.operations, -1, dtype=np.int64)
        _, channels[rows] = number_keys(pair * (int(label.max(initial=0)) + 1) + label)
        return channels

    def receives(self) -> Ints:
        """Row of the receive that takes each message, -1 where there is none; without loops."""
        sends = self.sends()
        takes = np.flatnonzero((self.kind == Op.RECV) | (self.kind == Op.IRECV))
        channel = self.channels()
        sent, taken = channel[sends], channel[takes]
        by_send, by_take = np.argsort(sent, kind="stable"), np.argsort(taken, kind="stable")
        sent, taken = sent[by_send], taken[by_take]
        place = np.arange(len(sent)) - np.searchsorted(sent, sent)
        match = np.searchsorted(taken, sent) + place
        found = match < np.searchsorted(taken, sent, side="right")
        receives = np.full(len(sends), -1, dtype=np.int64)
        receives[by_send[found]] = takes[by_take[match[found]]]
        return receives

    def serves_memory(self, task: int) -> bool:
        """Whether a task serves the one-sided operations of others."""
        return bool(self.context[self.offsets[task]] >= 2 * self.communicators)

    def _name_task(self, task: int) -> str:
        """Say what a task that a rank begins is."""
        if self.serves_memory(task):
            return "one-sided operations of others"
        rows = slice(self.offsets[task], self.offsets[task + 1] - 1)
        channels = np.unique((self.context[rows], self.tag[rows]), axis=1).T
        channels = channels[channels[:, 0] >= 0]
        collective = len(channels) == 1 and channels[0, 0] >= self.communicators
        return "non-blocking collective" if collective else "what another thread does"

    def describe(self, row: int) -> str:
        """Say in words what the operation in a row does."""
        kind = Op(int(self.kind[row]))
        if kind == Op.WAIT:
            return f"wait for {self.describe(int(self.target[row]))}"
        if kind == Op.START:
            return self._name_task(int(self.target[row]))
        if kind == Op.FINISH:
            return "end of program"
        if kind == Op.REPEAT:
            return f"repeat {self.size[row]} times"
        context, tag = int(self.context[row]), int(self.tag[row])
        where = f"tag {tag}, communicator {context}"
        if context >= 2 * self.communicators:
            where = f"window {context - 2 * self.communicators}, one-sided"
        elif context >= self.communicators:
            calls = self.collectives.get(context)
            name = Collective(int(calls[tag])).name.lower() if calls is not None else "collective"
            where = f"{name}, collective {tag} of communicator {context - self.communicators}"
        way = "to" if kind in (Op.SEND, Op.ISEND) else "from"
        word = _WORD[SendMode(int(self.mode[row]))]
        call = kind.name.lower().replace("send", word)
        return f"{call} {way} rank {self.peer[row]} ({where})"


# Type of a column, and what a FINISH has there.
_COLUMNS: Mapping[str, tuple[type[np.generic], int]] = {
    "kind": (np.uint8, Op.FINISH),
    "compute": (np.float64, 0),
    "peer": (np.int32, -1),
    "tag": (np.int32, -1),
    "context": (np.int32, -1),
    "size": (np.int64, 0),
    "target": (np.int64, -1),
    "mode": (np.uint8, SendMode.STANDARD),
}


def with_finishes(
    name: str, ranks: int, rank: Ints, columns: Mapping[str, NDArray[Any] | int], **more: Any
) -> Program:
    """Give each rank one task: the rows that are its own, rank by rank, and a FINISH behind them.

    `columns` and `more` are fields of `Program`; a target is a place among these rows, or -1.
    """
    row = np.arange(len(rank)) + rank
    offsets = np.searchsorted(rank, np.arange(ranks + 1)) + np.arange(ranks + 1)
    filled: dict[str, Any] = {}
    for column, (kind, missing) in _COLUMNS.items():
        filled[column] = np.full(len(rank) + ranks, missing, dtype=kind)
        filled[column][row] = columns.get(column, missing)
    aims = filled["target"] >= 0
    filled["target"][aims] = row[filled["target"][aims]]
    rank_of = np.arange(ranks, dtype=np.int32)
    return Program(name, offsets.astype(np.int64), rank_of, **filled, **more)


_WORD = {mode: f"{letter}send" for letter, mode in LETTERS.items()} | {
    SendMode.PUT: "put",
    SendMode.HARDWARE: "answer",
    SendMode.RENDEZVOUS: "send",
}
_WORDS = {"recv": (Op.RECV, SendMode.STANDARD), "irecv": (Op.IRECV, SendMode.STANDARD)} | {
    f"{prefix}{letter}send": (kind, mode)
    for letter, mode in LETTERS.items()
    for prefix, kind in (("", Op.SEND), ("i", Op.ISEND))
}


def program_of(name: str, tasks: Sequence[Sequence[tuple[Any, ...]]]) -> Program:
    """Write a program by hand, one list of operations per rank.

    They are ``("compute", seconds)``, ``("send" | "isend" | "recv" | "irecv", peer, bytes[,
    tag])``, "bsend", "issend", ... likewise in other modes, ``("wait", k)``, k being the place in
    the same list of the operation to wait for, or ``("repeat", times, operations)``.

    Examples
    --------
    >>> program = program_of("ping", [[("send", 1, 100)], [("recv", 0, 100)]])
    >>> program.traffic().bytes
    array([100])
    """
    rows: list[tuple[int, float, int, int, int, int, int]] = []
    offsets = [0]
    for operations in tasks:
        pause = _write(rows, operations, 0.0)
        rows.append((Op.FINISH, pause, -1, -1, 0, -1, 0))
        offsets.append(len(rows))
    columns = zip(*rows, strict=True) if rows else ((),) * 7
    kind, compute, peers, tags, sizes, targets, modes = columns
    return Program(
        name=name,
        offsets=np.array(offsets, dtype=np.int64),
        rank_of=np.arange(len(tasks), dtype=np.int32),
        kind=np.array(kind, dtype=np.uint8),
        compute=np.array(compute, dtype=np.float64),
        peer=np.array(peers, dtype=np.int32),
        tag=np.array(tags, dtype=np.int32),
        context=np.where(np.array(peers) >= 0, 0, -1).astype(np.int32),
        size=np.array(sizes, dtype=np.int64),
        target=np.array(targets, dtype=np.int64),
        mode=np.array(modes, dtype=np.uint8),
    )


def _write(
    rows: list[tuple[int, float, int, int, int, int, int]],
    operations: Sequence[tuple[Any, ...]],
    pause: float,
) -> float:
    """Append the rows of a list of operations; return the computation behind the last."""
    row_of = {}
    for k, (word, *arguments) in enumerate(operations):
        row_of[k] = len(rows)
        if word == "compute":
            pause += arguments[0]
            continue
        if word == "repeat":
            times, body = arguments
            # What comes before the loop is not repeated: a loop of one iteration carries it.
            if pause > 0:
                rows.append((Op.REPEAT, pause, -1, -1, 1, len(rows), 0))
            begin = len(rows)
            rows.append((Op.REPEAT, _write(rows, body, 0.0), -1, -1, times, begin, 0))
        elif word == "wait":
            rows.append((Op.WAIT, pause, -1, -1, 0, row_of[arguments[0]], 0))
        else:
            peer, size, tag = (*arguments, 0)[:3]
            kind, mode = _WORDS[word]
            rows.append((kind, pause, peer, tag, size, -1, mode))
        pause = 0.0
    return pause
