"""When each operation and message of a replay happened: what engines write down, if asked to.

Engines write down three times of an operation, `OperationTimestamps`, and five of a message. The
rest follows from the program: a task comes to an operation when it leaves the one before, the
k-th send of a channel meets the k-th receive, and a WAIT is for what its row began last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Floats, Ints
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.programs.unrolling import latest, unroll, without_loops


class Record(NamedTuple):
    """What to write down."""

    messages: bool = False  # when each was sent and delivered, see `MessageTimes`
    operations: bool = False  # when each ran, see `Operations`, and the messages
    # in how many bins at most to keep the use of links over time, see `LinkUse`; 0: not. Engines of
    # packets only
    bins: int = 0


NOTHING = Record()


class MessageTimestamps(NamedTuple):
    """Times of each message, shape (messages,) if they are kept; NaN of what did not happen."""

    sent: Any  # the sender posted it
    # requested, granted: its request reached the target's node, and its grant the source's; NaN of
    # eager ones
    requested: Any
    granted: Any
    departed: Any  # its data were handed to the first server
    delivered: Any  # its last byte reached the target's node


class OperationTimestamps(NamedTuple):
    """Times of each operation, task after task in the order in which they ran, loops unrolled."""

    ready: Any  # the computation before it was over
    woken: Any  # what it had to wait for was complete; NaN where it had not to wait
    ended: Any  # the task went on; the next operation begins then


class Operations(NamedTuple):
    """One entry per operation that ran, by task, then in order; loops are written out.

    An operation takes from `begin` to `ready` to compute what stands before it, then (SEND, ISEND)
    the sender's overhead. From then to `woken` it waits, if at all; the receiver's overhead follows
    (RECV, and WAIT of an IRECV) until `end`.

    What ended the wait is of the operation `awaited`: of a receive, the delivery of its `message`;
    of a send, that the last byte of its rendezvous `message` left its first server; of a START, the
    end of the task that it began.
    """

    row: Ints  # of the program
    task: Ints
    # begin, ready, end: when the task came to the operation, had computed, and went on; seconds
    begin: Floats
    ready: Floats
    woken: Floats  # when what the operation waits for was complete; NaN if it already was
    end: Floats
    # entry that began what a WAIT waits for; of SEND and RECV their own entry; -1 of others
    awaited: Ints
    message: Ints  # that it sends or receives, as in `MessageTimes`; -1 if none


def operations_of(program: Program, times: OperationTimestamps) -> Operations:
    """Complete what an engine wrote down about a program."""
    row = unroll(program)
    entries = np.arange(len(row))
    task = np.searchsorted(program.offsets, row, side="right") - 1
    kind, first = program.kind[row], np.flatnonzero(np.diff(task, prepend=-1))

    begin = np.empty(len(row))
    begin[1:] = times.ended[:-1]
    begin[first] = program.begins()[program.rank_of]
    starts = np.flatnonzero(kind == Op.START)
    # All tasks have rows, since they finish: the n-th of `first` is task n's.
    begin[first[program.target[row[starts]]]] = times.ended[starts]

    awaited = np.where((kind == Op.SEND) | (kind == Op.RECV), entries, -1)
    waits = np.flatnonzero(kind == Op.WAIT)
    awaited[waits] = latest(row, waits, program.target[row[waits]])

    flat = without_loops(program)
    sends, receives = flat.sends(), flat.receives()
    message = np.full(len(row), -1, dtype=np.int64)
    message[sends] = np.arange(len(sends))
    taken = receives >= 0
    message[receives[taken]] = np.flatnonzero(taken)
    ready, woken, end = times
    return Operations(row, task, begin, ready, woken, end, awaited, message)
