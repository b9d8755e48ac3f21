"""Calls of MPI and what they did, as other tools list them, put together as a `Trace`.

A reader makes `Calls`, one entry per call of MPI, and `Acts`, one per message, request or
collective in a call. Each call becomes ENTER, its acts, LEAVE. Partners are world ranks by then.

Of collectives `Groups` says who takes part, who is the root, and the bytes of each. Bytes are as
Score-P counts them, from the counts that a call was made with: a `Trace` has the whole operation at
each member, by the table of the simulator's `collectives/volumes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.traces.matching import Messages
from hopmap.traces.trace import (
    NO_OPERATION,
    RECORD_TYPES,
    Collective,
    Kind,
    PairCounts,
    Records,
    Trace,
    TraceError,
    mpi_name,
)

_NOT_READ = {
    "one-sided operations, left out, in": re.compile(
        "r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap"
    ),
    "collectives among neighbours, left out, in": re.compile(r"i?neighbor_\w+"),
}


COLLECTIVES: Mapping[str, Collective] = {
    **{each.name.lower(): each for each in Collective if each < Collective.CREATE_HANDLE},
    **dict.fromkeys(("init", "init_thread", "comm_dup"), Collective.CREATE_HANDLE),
    **dict.fromkeys(("comm_split", "comm_create"), Collective.CREATE_HANDLE),
    **dict.fromkeys(("cart_create", "cart_sub", "graph_create"), Collective.CREATE_HANDLE),
    "finalize": Collective.DESTROY_HANDLE,
}
"""What calls of MPI do that are collective, by `mpi_name`."""


class Calls(NamedTuple):
    """Calls of all ranks, rank after rank, in the order in which they were made."""

    offsets: Ints  # (ranks + 1,): calls of rank r are ``offsets[r]:offsets[r + 1]``
    region: Ints  # (calls,): index into the names of regions
    # (calls,): seconds
    begin: Floats
    end: Floats

    def ranks(self) -> Ints:
        """Rank of each call."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def since_first(self) -> Floats:
        """When each call began, by its rank's clock since the rank's first call."""
        first = np.minimum(self.offsets[:-1], max(len(self.begin) - 1, 0))
        return self.begin - np.repeat(self.begin[first], np.diff(self.offsets))


class Acts(NamedTuple):
    """What calls do; columns as in `Records`, `call` is the entry in `Calls`."""

    call: Ints
    kind: Ints
    peer: Ints
    comm: Ints
    tag: Ints
    operation: Ints
    size: Ints
    received: Ints
    request: Ints


def acts(call: Ints, kind: Any, **columns: Any) -> Acts:
    """List acts; columns that are not named say "does not apply"."""
    blank: dict[str, Any] = dict.fromkeys(Acts._fields, -1) | {"operation": NO_OPERATION}
    values = blank | {"call": call, "kind": kind} | columns
    wide = {key: np.broadcast_to(np.asarray(v, np.int64), len(call)) for key, v in values.items()}
    return Acts(**wide)


def acts_of(messages: Messages) -> tuple[Acts, Acts]:
    """Return what their calls do: what begins there, and what ends there.

    A receive that never completes is left to the program, which says so.
    """
    sends, numbers = messages.sends, np.arange(len(messages.call)) + 1
    blocking = messages.done == messages.call
    about = {
        "peer": messages.peer,
        "comm": messages.comm,
        "tag": messages.tag,
        "size": messages.size,
    }
    receives = ~sends & ~blocking
    kind = np.select((sends & blocking, sends, blocking), (Kind.SEND, Kind.ISEND, Kind.RECV), -1)
    kind[receives] = Kind.IRECV_REQUEST
    known = {key: np.where(receives, -1, column) for key, column in about.items()}
    begun = acts(messages.call, kind, request=np.where(blocking, -1, numbers), **known)
    over = np.flatnonzero(~blocking & (messages.done >= 0))
    values = {key: np.where(sends[over], -1, column[over]) for key, column in about.items()}
    ends = np.where(sends[over], Kind.ISEND_COMPLETE, Kind.IRECV)
    return begun, acts(messages.done[over], ends, request=numbers[over], **values)


def trace_of(
    name: str,
    calls: Calls,
    parts: Iterable[Acts],
    regions: Sequence[str],
    communicators: Sequence[NDArray[Any]],
    *,
    resolution: float = 1e9,
    ignored: Mapping[str, int] | None = None,
    counts: PairCounts | None = None,
) -> Trace:
    """Build a trace; the acts of a call stand in the order of the parts.

    Times that run backwards within a rank are set to the one before; how many is among `ignored`,
    and so are calls that move data and that no reader lists. More than 2^31 - 1 acts, a tag or
    partner beyond 2^31 are a `TraceError`.
    """
    whole = Acts(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(whole.call, kind="stable")
    whole = Acts(*(column[order] for column in whole))
    for key in ("peer", "tag"):
        column = getattr(whole, key)
        if len(column) and not -(2**31) <= column.min() <= column.max() < 2**31:
            raise TraceError(f"{name}: {key} {column.max()}: expected a number below 2^31")
    count, acting = len(calls.region), len(whole.call)
    if acting >= 2**31:
        raise TraceError(f"{name}: too many records for one trace: take fewer steps")
    before = np.searchsorted(whole.call, np.arange(count + 1))
    enter = 2 * np.arange(count) + before[:-1]
    leave = 2 * np.arange(count) + before[1:] + 1
    at = np.arange(acting) + 2 * whole.call + 1

    kind = np.empty(2 * count + acting, dtype=np.uint8)
    kind[enter], kind[leave], kind[at] = Kind.ENTER, Kind.LEAVE, whole.kind
    ref = np.empty(len(kind), dtype=np.int32)
    ref[enter] = ref[leave] = calls.region
    ref[at] = np.arange(acting)
    begin, end, backwards = _rectify(calls)
    time = np.empty(len(kind))
    time[enter], time[leave] = begin, end
    sends = (whole.kind == Kind.SEND) | (whole.kind == Kind.ISEND)
    starts = sends | (whole.kind == Kind.IRECV_REQUEST) | (whole.kind == Kind.COLLECTIVE_REQUEST)
    # What is begun stands at the call's begin, what ends at its end; in between in order.
    late = np.maximum.accumulate(np.where(starts, -1, np.arange(acting)))
    early = starts & (late < before[whole.call])
    time[at] = np.where(early, begin[whole.call], end[whole.call])
    records_ignored = dict(ignored or {})
    if backwards:
        records_ignored["times that run backwards, set to the one before, in"] = backwards
    words = [mpi_name(region) for region in regions]
    for what, names in _NOT_READ.items():
        mine = [place for place, word in enumerate(words) if names.fullmatch(word)]
        records_ignored[what] = int(np.isin(calls.region, mine).sum())
    events = np.append(enter, len(kind))[calls.offsets]
    columns = {key: getattr(whole, key).astype(kind_) for key, kind_ in RECORD_TYPES.items()}
    return Trace(
        name=name,
        offsets=events,
        kind=kind,
        time=time,
        ref=ref,
        records=Records(**columns),
        regions=tuple(regions),
        communicators=tuple(np.asarray(each, dtype=np.int32) for each in communicators),
        resolution=resolution,
        ignored={key: value for key, value in records_ignored.items() if value},
        counts=counts,
    )


def _rectify(calls: Calls) -> tuple[Floats, Floats, int]:
    """Begins and ends that never decrease within a rank, and how many did."""
    times = np.stack((calls.begin, calls.end), axis=1).ravel()
    raised = times.copy()
    backwards = 0
    falls = np.flatnonzero(times[1:] < times[:-1]) + 1
    # From one rank to the next they may.
    within = np.searchsorted(calls.offsets, falls // 2, side="right") - 1
    for rank in np.unique(within[falls != 2 * calls.offsets[within]]).tolist():
        first, behind = 2 * calls.offsets[rank : rank + 2]
        mine = raised[first:behind]
        np.maximum.accumulate(mine, out=mine)
        backwards += int((mine > times[first:behind]).sum())
    return raised[::2], raised[1::2], backwards


class Groups:
    """Communicators as one process sees them.

    One without `members` is MPI_COMM_SELF. `own` is the world rank of the process, and `where` what
    its calls stand in, for messages of errors. `size` and `place` (communicators,) are the members
    of each, and the rank of the process in it, 0 where it has none.
    """

    def __init__(self, members: Sequence[Ints], own: int, where: object) -> None:
        self.own, self.where = own, where
        groups = [each if len(each) else np.array([own]) for each in members]
        self.size = np.array([len(each) for each in groups])
        self.place = np.array([int((each == own).argmax()) for each in groups])
        self._first = np.concatenate(([0], np.cumsum(self.size)))
        self._world = np.concatenate(groups)

    def world(self, peer: Ints, comm: Ints) -> Ints:
        """World ranks of partners in communicators; below 0 they stay."""
        beyond = np.flatnonzero(peer >= self.size[comm])
        if beyond.size:
            k = int(beyond[0])
            raise TraceError(
                f"{self.where}: partner {peer[k]}: expected a rank below {self.size[comm[k]]}"
            )
        return np.where(peer >= 0, self._world[self._first[comm] + np.maximum(peer, 0)], peer)

    def collectives(
        self,
        call: Ints,
        operation: Collective,
        comm: Ints,
        part: Ints,
        total: Ints,
        root: Ints | None = None,
        wrong: Callable[[int, str], TraceError] | None = None,
    ) -> Acts:
        """List calls of one operation; for `part` and `total` see `collective_bytes`.

        `root` is a rank in the communicator. `wrong` returns the error of the k-th call, from k and
        what was expected of its root.
        """
        size, place = self.size[comm], self.place[comm]
        roots = np.full(len(call), -1) if root is None else root
        strange = np.flatnonzero((roots >= size) | ((roots < 0) & (root is not None)))
        if strange.size:
            k = int(strange[0])
            name, expected = operation.name.lower(), f"a root below {size[k]}"
            raise (
                wrong(k, expected)
                if wrong
                else TraceError(f"{self.where}: {name} with root {roots[k]}: expected {expected}")
            )
        which = np.full(len(call), int(operation))
        is_root = roots == place
        moved = collective_bytes(self.where, which, size, place, is_root, part, total)
        about = dict(zip(("size", "received"), moved, strict=True)) | {"comm": comm}
        peer = self.world(roots, comm)
        return acts(call, Kind.COLLECTIVE_END, peer=peer, operation=int(operation), **about)


_WHOLE = (
    *(Collective.ALLREDUCE, Collective.ALLTOALL, Collective.ALLGATHER),
    Collective.REDUCE_SCATTER_BLOCK,
)


def collective_bytes(
    where: object,
    operation: Ints,
    members: Ints,
    own: Ints,
    is_root: Bools,
    part: Ints,
    total: Ints,
) -> tuple[Ints, Ints]:
    """Return bytes sent and received by each call; columns are (calls,).

    `members` is the size of the communicator, `own` the caller's rank in it. `part` is the caller's
    buffer; where it has a block for each member, one block. `total` of gatherv, scatterv,
    allgatherv and reduce_scatter are bytes of all members; of alltoallv and alltoallw, bytes
    received, `part` being those sent. Bytes below 0, or beyond 2^53 for all members together, are a
    `TraceError`, which says `where`.
    """
    for sizes in (part, total):
        odd = np.flatnonzero((sizes < 0) | (sizes > 2**53 // np.maximum(members, 1)))
        if odd.size:
            raise TraceError(
                f"{where}: {Collective(int(operation[odd[0]])).name.lower()} of {sizes[odd[0]]} "
                f"bytes, {members[odd[0]]} members: expected at least 0, and 2^53 in all at most"
            )
    sent, received = np.zeros_like(part), np.zeros_like(part)

    def of(*operations: Collective) -> Bools:
        return np.isin(operation, operations)

    whole = of(*_WHOLE)
    sent[whole] = received[whole] = (part * members)[whole]
    alone = of(Collective.BCAST, Collective.SCATTER, Collective.SCATTERV)
    received[alone] = part[alone]
    many = np.where(of(Collective.SCATTERV, Collective.GATHERV), total, part * members)
    sent[alone & is_root] = many[alone & is_root]
    alone = of(Collective.REDUCE, Collective.GATHER, Collective.GATHERV)
    sent[alone] = part[alone]
    received[alone & is_root] = many[alone & is_root]
    for which, one, all_ in (
        (of(Collective.ALLGATHERV), sent, received),
        (of(Collective.REDUCE_SCATTER), received, sent),
    ):
        one[which], all_[which] = (part * members)[which], total[which]
    pairs = of(Collective.ALLTOALLV, Collective.ALLTOALLW)
    sent[pairs], received[pairs] = part[pairs], total[pairs]
    scan, exscan = of(Collective.SCAN), of(Collective.EXSCAN)
    sent[scan], received[scan] = (part * (members - own))[scan], (part * (own + 1))[scan]
    sent[exscan], received[exscan] = (part * (members - own - 1))[exscan], (part * own)[exscan]
    return sent, received
