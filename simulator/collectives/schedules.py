"""Schedules: who sends how many bytes to whom, and what members copy, reduce and allocate.

A member goes through steps, which have numbers of its own. In a step it posts receives, then sends,
then waits for the receives that it takes in this step and for its sends, then works: it copies and
reduces. A message carries what its sender held when the sender's step began. Algorithms are
functions that write a schedule.

Buffers are what algorithms allocate in every call, as large as what their sources ask malloc
for: Open MPI, ompi/mca/coll/base/coll_base_*.c, the same in 4.1 and 5.0; for Bine's algorithms and
MPICH's, HLC-Lab/pico, libbine/libbine_*.c. Left out are buffers of a block or a segment next to
one of the whole buffer, and what is put into memory (`Schedule.puts`), which is registered once.
What is not listed allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.errors import HopmapError

from .selection import VARIANT_OF

Done = tuple[int | Ints, Ints, Ints]  # step or steps, members and bytes


class AlgorithmError(HopmapError, ValueError):
    """An algorithm's name or option that means nothing; says what was expected."""


class Work(NamedTuple):
    """What members do with bytes that they have; all of shape (works,)."""

    # step, member: behind the waits of which step of whom
    step: Ints
    member: Ints
    # copied, reduced: bytes that are copied, and bytes of a result to which others are added
    copied: Ints
    reduced: Ints
    blocks: Ints  # blocks that are copied one by one


class Buffers(NamedTuple):
    """Buffers that members allocate for a call, of shape (buffers,)."""

    member: Ints
    size: Ints

    def at(self, which: Bools) -> Buffers:
        """Keep some."""
        return Buffers(self.member[which], self.size[which])


NO_BUFFERS = Buffers(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Schedule(NamedTuple):
    """Messages of one collective, all of shape (messages,), and its work.

    Of a member's messages in a step the first in the list is posted, sent and waited for first.
    """

    round: Ints  # step of the sender
    # src, dst: positions in the communicator
    src: Ints
    dst: Ints
    size: Ints  # bytes
    # posted, taken: steps of the receiver in which the receive is posted, and in which it is waited
    # for
    posted: Ints
    taken: Ints
    work: Work
    puts: bool = False  # whether data go straight into memory, so that no send asks whether it may
    # what members allocate, as `algorithms.schedule_call` adds it to a whole call
    buffers: Buffers = NO_BUFFERS

    def of(self, messages: Ints | Bools) -> Schedule:
        """Keep these messages only, in this order."""
        columns: list[Ints] = [column[messages] for column in self[:6]]
        return Schedule(*columns, self.work, self.puts, self.buffers)  # type: ignore[call-arg, arg-type]

    @property
    def steps(self) -> int:
        """Number from which on steps are free."""
        columns = (self.round, self.taken, self.work.step)
        return 1 + int(max(column.max(initial=-1) for column in columns))


class Algorithm(Protocol):
    """What lists the messages of a collective; options are further arguments by name."""

    def __call__(self, members: int, root: int, volume: Ints, /) -> Schedule:
        """List the messages of so many members."""
        ...


def schedule(
    rounds: Iterable[tuple[Ints, Ints, Ints]],
    copied: Iterable[Done] = (),
    reduced: Iterable[Done] = (),
    blocks: Iterable[Done] = (),
) -> Schedule:
    """Give each round, a tuple (src, dst, size), its number; both sides meet in one step.

    Work behind these rounds is of steps, members and bytes, or how many blocks are copied one by
    one; step -1 is before the first.
    """
    columns = [(np.full(len(src), k), src, dst, size) for k, (src, dst, size) in enumerate(rounds)]
    if not columns:
        columns = [(np.zeros(0, dtype=np.int64),) * 4]
    step, src, dst, size = (
        np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True)
    )
    return Schedule(step, src, dst, size, step, step, work(copied, reduced, blocks))


def work(
    copied: Iterable[Done] = (), reduced: Iterable[Done] = (), blocks: Iterable[Done] = ()
) -> Work:
    """List work from tuples of a step or steps, members and bytes, or how many blocks."""
    parts = [Work(*(np.zeros(0, dtype=np.int64) for _ in Work._fields))]
    for place, rows in enumerate((copied, reduced, blocks)):
        for step, member, size in rows:
            each = [np.zeros_like(member) for _ in range(3)]
            each[place] = np.broadcast_to(size, member.shape)
            parts.append(Work(np.broadcast_to(step, member.shape), member, *each))
    return Work(*(np.concatenate(each).astype(np.int64) for each in zip(*parts, strict=True)))


def merge(*parts: Schedule) -> Schedule:
    """Join schedules, their steps being the same."""
    joined = [np.concatenate(columns) for columns in zip(*(p[:6] for p in parts), strict=True)]
    done = Work(*(np.concatenate(each) for each in zip(*(p.work for p in parts), strict=True)))
    puts = any(part.puts for part in parts)
    return Schedule(*joined, done, puts)  # type: ignore[call-arg, arg-type]


def one_after_another(*parts: Schedule) -> Schedule:
    """Begin each schedule in the step after the last of the one before."""
    begin, numbered = 0, []
    for part in parts:
        numbered.append(
            part._replace(
                round=part.round + begin,
                posted=part.posted + begin,
                taken=part.taken + begin,
                work=part.work._replace(step=part.work.step + begin),
            )
        )
        begin += part.steps
    return merge(*numbered)


def renumber(plan: Schedule, member: Ints) -> Schedule:
    """Put ``member[i]`` in the place of i."""
    of = plan.work
    return plan._replace(
        src=member[plan.src], dst=member[plan.dst], work=of._replace(member=member[of.member])
    )


def rotate(plan: Schedule, members: int, root: int) -> Schedule:
    """Put the root in the place of member 0, and all others behind it in turn."""
    return renumber(plan, (np.arange(members) + root) % members)


def fold_members(members: int, total: int) -> tuple[Schedule, Ints]:
    """Fold members 0, 2, 4, ... into 1, 3, 5, ... until a power of two is left; return who is."""
    extra = members - (1 << (members.bit_length() - 1))
    even, size = np.arange(0, 2 * extra, 2), np.full(extra, total)
    active = np.concatenate((even + 1, np.arange(2 * extra, members)))
    return schedule(
        [(even, even + 1, size)] if extra else [], reduced=[(0, even + 1, size)]
    ), active


def require(suits: bool, name: str, members: int, expected: str) -> None:
    """Raise `AlgorithmError` if an algorithm is not for so many members."""
    if not suits:
        raise AlgorithmError(f"{name}: {members} members: expected {expected}")


def masks(members: int) -> list[int]:
    """1, 2, 4, ... below the number of members."""
    return [1 << k for k in range((members - 1).bit_length())]


def cut(total: int, parts: int) -> Ints:
    """Cut a buffer into blocks that differ by one byte at most, the longer ones first."""
    return total // parts + (np.arange(parts) < total % parts)


def equal_blocks(total: int, parts: int) -> Ints:
    """Cut a buffer into blocks of ``ceil(whole / parts)`` bytes, as far as it reaches."""
    length = -(-total // parts)
    return np.clip(total - length * np.arange(parts), 0, length)


def segments(total: int, segment: int) -> Ints:
    """Cut a buffer into segments of so many bytes, the last one what is left; 0: into one."""
    if segment <= 0 or segment >= total:
        return np.array([total])
    count = -(-total // segment)
    size = np.full(count, segment)
    size[-1] = total - segment * (count - 1)
    return size


def edges(blocks: Ints) -> Ints:
    """Bytes before each block, and in the end of all, shape (blocks + 1,)."""
    return np.concatenate(([0], np.cumsum(blocks)))


class Call(NamedTuple):
    """A call: its messages, and what it was made of."""

    schedule: Schedule
    members: int
    root: int
    volume: Ints


Allocation = Callable[[Call], Buffers]


def buffers_of(operation: str, algorithm: str, call: Call) -> Buffers:
    """List what members allocate in a call by an algorithm, both keys of `ALGORITHMS`."""
    allocation = ALLOCATED.get(VARIANT_OF.get(operation, operation), {}).get(algorithm)
    return NO_BUFFERS if allocation is None or call.schedule.puts else allocation(call)


def _buffers(size: Ints | int, members: int, count: int) -> Buffers:
    sizes = np.broadcast_to(size, members)
    return Buffers(np.tile(np.arange(members), count), np.tile(sizes, count))


def _wholes(count: int) -> Allocation:
    """As many buffers as large as all that a member has, on everyone."""
    return lambda call: _buffers(
        call.volume.sum(axis=-1 if call.volume.ndim == 2 else None), call.members, count
    )


def _largest_message(count: int) -> Allocation:
    """As many buffers as large as the largest message, on everyone."""
    return lambda call: _buffers(call.schedule.size.max(initial=0), call.members, count)


def _of_root(call: Call) -> Buffers:
    """Give the root a whole buffer."""
    found = _wholes(1)(call)
    return found.at(found.member == call.root)


def _buffers_except_root(call: Call) -> Buffers:
    """Give everyone but the root a whole buffer."""
    found = _wholes(1)(call)
    return found.at(found.member != call.root)


def _own_and_others(call: Call) -> Buffers:
    """Give everyone a whole buffer, and everyone but the root another."""
    parts = _wholes(1)(call), _buffers_except_root(call)
    return Buffers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _in_tree(last: bool = False) -> Allocation:
    """On who has children and is no root what is added up; on both what comes in, from two at most.

    With `last`, the last member is the root of the tree, and passes the result on.
    """

    def allocation(call: Call) -> Buffers:
        plan, members, root, volume = call
        passes_on = last and root != members - 1
        edges, messages = np.unique(plan.src * members + plan.dst, return_counts=True)
        inside = (edges != (members - 1) * members + root) | (not passes_on)
        children = np.bincount(edges[inside] % members, minlength=members)
        incoming = np.minimum(children, 2) if messages[inside].max(initial=1) == 1 else 0
        count = (children > 0) + incoming  # else segments come in
        count[root] -= children[root] > 0 and not passes_on
        member = np.repeat(np.arange(members), count)
        return Buffers(member, np.full(len(member), volume[0]))

    return allocation


def _blocks_behind(call: Call) -> Buffers:
    """As large as the blocks behind each member, which Bruck's allgather puts into order."""
    behind = call.volume.sum() - np.cumsum(call.volume)[:-1]
    return Buffers(np.arange(1, call.members), behind)


def _inner_wholes(call: Call) -> Buffers:
    """Give who passes on what comes a whole buffer; a root only if it is not the first."""
    inner = np.unique(call.schedule.dst)
    inner = inner[(inner != call.root) | (call.root > 0)]
    return Buffers(inner, np.full(len(inner), call.volume.sum()))


def _forwarding(call: Call) -> Buffers:
    """As large as what is received to pass on; whole on a root that is not the first."""
    plan = call.schedule
    received = np.bincount(plan.dst, plan.size, call.members).astype(np.int64)
    received[call.root] = call.volume.sum() if call.root > 0 else 0
    inner = np.intersect1d(plan.src, np.flatnonzero(received))
    return Buffers(inner, received[inner])


ALLOCATED: Mapping[str, Mapping[str, Allocation]] = {
    "gather": {
        "binomial": _inner_wholes,
        **dict.fromkeys(("bine", "bine_increasing", "bine_ranges"), _buffers_except_root),
    },
    "scatter": dict.fromkeys(("binomial", "bine", "bine_decreasing", "bine_ranges"), _forwarding),
    "allgather": {"bruck": _blocks_behind},
    "alltoall": {
        **dict.fromkeys(("bruck", "bine"), _wholes(1)),
        "bruck_by_blocks": _wholes(2),  # one, and two halves
    },
    "allreduce": {
        **dict.fromkeys(("recursive_doubling", "rabenseifner"), _wholes(1)),
        **dict.fromkeys(("bine", "bine_folded", "bine_halving", "bine_any_even"), _wholes(1)),
        **dict.fromkeys(("ring", "segmented_ring", "bine_halving_in_turns"), _largest_message(2)),
        "linear": _of_root,
    },
    "reduce": {
        **dict.fromkeys(("binomial", "binary", "chain", "pipeline"), _in_tree()),
        "in_order_binary": _in_tree(last=True),
        "linear": _of_root,
        **dict.fromkeys(("rabenseifner", "bine", "bine_whole"), _own_and_others),
        "bine_reduce_scatter_gather": _own_and_others,
        "bine_reduce_scatter_gather_copied": _own_and_others,
    },
    "reduce_scatter": {
        **dict.fromkeys(("recursive_halving", "butterfly"), _wholes(2)),
        **dict.fromkeys(("bine", "bine_sending", "bine_any_even"), _wholes(2)),
        "ring": _wholes(1),
        "pairwise": _largest_message(1),
        "reduce_scatter": _of_root,
    },
    "scan": {"recursive_doubling": _wholes(2)},
    "exscan": {"recursive_doubling": _wholes(2)},
}
