"""Volumes: the bytes that a collective really moves, from what a trace records of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hopmap.traces import Collective

from .in_place import Account, read_accounts

Ints = NDArray[np.int64]


def volume(
    operation: Collective, root: int, sent: Ints, received: Ints, parts: int | None = None
) -> Ints:
    """Bytes that an operation really moves, from what OTF2 records at each member.

    Score-P counts the whole operation at each member, its own part included, over P members; with
    MPI_IN_PLACE the own part is left out:

    ====================  ============================  ===========================  ==============
    operation             recorded at member i          in place                     bytes taken
    ====================  ============================  ===========================  ==============
    bcast                 root sent b P; received b     does not exist               b: most that a
                                                                                     member received
    reduce                sent b; root received b P     root sent 0, received        b: most that a
                                                        b (P - 1)                    member sent
    gather, scatter       b; root b P on the other      root 0, and b (P - 1) on     b, likewise
                          side                          the other
    gatherv, scatterv     its block b_i; root their     root 0, and the others'      b_i; of a root
                          sum on the other side         sum on the other             in place 0
    allreduce, alltoall,  sent = received = b P         sent = received = b (P - 1)  b, by `parts`
    allgather,
    reduce_scatter_block
    allgatherv            sent b_i P; received the      sent b_i (P - 1); received   sent / parts
                          sum of all                    the others' sum
    reduce_scatter        received b_i P; sent the      received b_i (P - 1); sent   received /
                          sum of all                    the others' sum              parts
    alltoallv, alltoallw  sent and received in total    the own block left out       see `share_out`
    scan                  sent b (P - i), received      sent b (P - i - 1),          b: of member 0
                          b (i + 1)                     received b i
    exscan                sent b (P - i - 1),           the same                     b = (sent +
                          received b i                                               received)
                                                                                     / (P - 1)
    ====================  ============================  ===========================  ==============

    Source: Score-P 9.0, src/adapters/mpi/c/scorep_mpi_coll.inc.c.

    Parameters
    ----------
    parts : int, optional
        P, or P - 1 for MPI_IN_PLACE, in `OWN_LEFT_OUT`, as `read_accounts` says for all calls on
        the communicator; when left out, by this call alone.

    Returns
    -------
    ndarray(int64)
        (1,) for whole buffers, (P,) for blocks, (P, P) for pairs.
    """
    members = len(sent)
    if parts is None:
        parts = members
        if members > 1:
            parts = read_accounts([Account(operation, sent, received)])[0].parts
    match operation:
        case Collective.BCAST:
            others = np.delete(received, root) if members > 1 else received
            return np.array([max(others.max(), -(-sent.max() // members))])
        case Collective.REDUCE:
            return np.array([sent.max()])
        case Collective.ALLREDUCE:
            return np.array([-(-sent.max() // parts)])
        case Collective.SCAN:
            return np.array([received[0] or sent[0] // max(members - 1, 1)])
        case Collective.EXSCAN:
            return np.array([((sent + received) // max(members - 1, 1)).max()])
        case Collective.GATHER:
            return np.full(members, sent.max())
        case Collective.SCATTER:
            return np.full(members, received.max())
        case Collective.GATHERV:
            return sent
        case Collective.SCATTERV:
            return received
        case Collective.ALLGATHER | Collective.ALLGATHERV:
            return -(-sent // parts)
        case Collective.REDUCE_SCATTER | Collective.REDUCE_SCATTER_BLOCK:
            return -(-received // parts)
        case Collective.ALLTOALL:
            return np.broadcast_to(-(-sent // parts)[:, None], (members, members))
        case Collective.ALLTOALLV | Collective.ALLTOALLW:
            return share_out(sent, received)
        case _:
            return np.zeros(1, dtype=np.int64)


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
