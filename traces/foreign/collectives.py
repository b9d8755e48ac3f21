"""Collectives of a rank: who takes part, who is the root, and the bytes of each.

Bytes are as Score-P counts them, from the counts that a call was made with: a `Trace` has the whole
operation at each member, by the table of the simulator's `collectives/volumes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hopmap.arrays import Bools, Ints
from hopmap.traces.foreign.trace_builder import Acts, acts
from hopmap.traces.trace import Collective, Kind, TraceError


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
        """List calls of one operation; `part` and `total` are those of `collective_bytes`.

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

    `members` are those of the communicator, `own` the caller's rank in it. `part` is the caller's
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
