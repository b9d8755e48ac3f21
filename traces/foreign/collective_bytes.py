"""Bytes of collectives as Score-P counts them, from the counts that a call was made with.

A `Trace` has the whole operation at each member: the table is that of the simulator's
`collectives/volumes.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import Collective, TraceError

Ints = NDArray[np.int64]

_WHOLE = (
    *(Collective.ALLREDUCE, Collective.ALLTOALL, Collective.ALLGATHER),
    Collective.REDUCE_SCATTER_BLOCK,
)


def account(
    where: object,
    operation: Ints,
    members: Ints,
    own: Ints,
    is_root: NDArray[np.bool_],
    part: Ints,
    total: Ints,
) -> tuple[Ints, Ints]:
    """Return bytes sent and received by each call.

    Parameters
    ----------
    where : object
        What the calls stand in, for the message of an error.
    operation : ndarray(int64, shape=(calls,))
        `Collective`.
    members, own : ndarray(int64, shape=(calls,))
        Of the communicator, and the caller's rank in it.
    is_root : ndarray(bool, shape=(calls,))
    part : ndarray(int64, shape=(calls,))
        Bytes of the caller's buffer; where it has a block for each member, of one block.
    total : ndarray(int64, shape=(calls,))
        Of gatherv, scatterv, allgatherv and reduce_scatter, bytes of all members; of alltoallv and
        alltoallw, bytes received, `part` being those sent.

    Raises
    ------
    TraceError
        Bytes below 0, or beyond 2^53 for all members together.
    """
    for sizes in (part, total):
        odd = np.flatnonzero((sizes < 0) | (sizes > 2**53 // np.maximum(members, 1)))
        if odd.size:
            raise TraceError(
                f"{where}: {Collective(int(operation[odd[0]])).name.lower()} of {sizes[odd[0]]} "
                f"bytes, {members[odd[0]]} members: expected at least 0, and 2^53 in all at most"
            )
    sent, received = np.zeros_like(part), np.zeros_like(part)

    def of(*operations: Collective) -> NDArray[np.bool_]:
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
