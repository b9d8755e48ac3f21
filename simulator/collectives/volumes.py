"""Volumes: the bytes that a collective really moves, from what a trace records of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Collective

Ints = NDArray[np.int64]


def volume(operation: Collective, root: int, sent: Ints, received: Ints) -> Ints:
    """Bytes that an operation really moves, from what OTF2 records at each member.

    OTF2 counts the whole operation at each member, its own part included, over P members:

    ====================  =========================================  ==============================
    operation             recorded at member i                       bytes taken
    ====================  =========================================  ==============================
    bcast                 root sent b P; received b                  b: most that a member received
    reduce                sent b; root received b P                  b: most that a member sent
    allreduce             sent = received = b P                      b = sent / P
    scan, exscan          sent b (P - i), received b (i + 1);        b = (sent + received) / (P + 1)
                          exscan: one less each                      or / (P - 1)
    gather(v)             sent its block                             sent
    scatter(v)            received its block                         received
    allgather(v)          sent its block P times                     sent / P
    reduce_scatter        received its block P times                 received / P
    alltoall(v, w)        sent and received in total                 see `share_out`
    ====================  =========================================  ==============================

    With MPI_IN_PLACE Score-P counts P - 1 parts: a size that P does not divide but P - 1 does is
    read so.

    Returns
    -------
    ndarray(int64)
        (1,) for whole buffers, (P,) for blocks, (P, P) for pairs.
    """
    members = len(sent)
    match operation:
        case Collective.BCAST:
            others = np.delete(received, root) if members > 1 else received
            return np.array([max(others.max(), _part(int(sent.max()), members))])
        case Collective.REDUCE:
            return np.array([sent.max()])
        case Collective.ALLREDUCE:
            return np.array([_parts(sent, members).max()])
        case Collective.SCAN:
            return np.array([_parts(sent + received, members + 1).max()])
        case Collective.EXSCAN:
            return np.array([((sent + received) // max(members - 1, 1)).max()])
        case Collective.GATHER | Collective.GATHERV:
            return sent
        case Collective.SCATTER | Collective.SCATTERV:
            return received
        case Collective.ALLGATHER | Collective.ALLGATHERV:
            return _parts(sent, members)
        case Collective.REDUCE_SCATTER | Collective.REDUCE_SCATTER_BLOCK:
            return _parts(received, members)
        case Collective.ALLTOALL:
            return np.broadcast_to(_parts(sent, members)[:, None], (members, members))
        case Collective.ALLTOALLV | Collective.ALLTOALLW:
            return share_out(sent, received)
        case _:
            return np.zeros(1, dtype=np.int64)


def _part(total: int, members: int) -> int:
    """Divide by P, or by P - 1 if that is what fits."""
    if total % members and members > 1 and total % (members - 1) == 0:
        return total // (members - 1)
    return -(-total // members)


def _parts(totals: Ints, members: int) -> Ints:
    return np.array([_part(int(total), members) for total in totals], dtype=np.int64)


def share_out(sent: Ints, received: Ints) -> Ints:
    """Bytes per pair from each member's totals, which alone are recorded.

    Every pair gets the share sent * received / all, rounded down, as if all members chose their
    targets alike; what is left goes to the first pairs that can take it. Rows and columns then add
    up exactly; totals that do not agree are scaled to what was sent.
    """
    have, want = sent.astype(object), received.astype(object)  # products may pass 2^63
    total, wanted = have.sum(), want.sum()
    if wanted != total:
        # Not one operation's account (sizes of another type map): keep the senders' side.
        want = want * total // wanted if wanted else np.full_like(want, total // len(want))
        want[-1] += total - want.sum()
    if int(have.max(initial=0)) * int(want.max(initial=0)) < 2**63:
        have, want = have.astype(np.int64), want.astype(np.int64)
    pairs: Ints = (have[:, None] * want // max(total, 1)).astype(np.int64)
    rows = (have - pairs.sum(axis=1)).astype(np.int64)
    columns = (want - pairs.sum(axis=0)).astype(np.int64)
    # North-west corner rule: walk both remainders as one staircase.
    ends = np.unique(np.concatenate((np.cumsum(rows), np.cumsum(columns))))
    begins = np.concatenate(([0], ends[:-1]))
    i = np.searchsorted(np.cumsum(rows), begins, side="right")
    j = np.searchsorted(np.cumsum(columns), begins, side="right")
    gives = ends > begins
    pairs[i[gives], j[gives]] += (ends - begins)[gives]
    return pairs
