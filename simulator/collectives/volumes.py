"""Volumes: the bytes that a collective really moves, from what a trace records of it.

Score-P records bytes, but not which calls used MPI_IN_PLACE. Of P members, it counts P parts in
each account, and P - 1 where MPI_IN_PLACE leaves the own part out. For most operations, the members
that record bytes show which. In operations of `OWN_LEFT_OUT` every member has the same account, P b
or (P - 1) b', and both may be whole; `read_accounts` weighs the two.

Source: Score-P 9.0, src/adapters/mpi/c/scorep_mpi_coll.inc.c; the same since 8.0. Before, allreduce
was counted as if it were never in place (7.1, SCOREP_Mpi_Coll.c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.traces import Collective

EQUAL_BLOCKS = (
    Collective.ALLREDUCE,
    Collective.ALLGATHER,
    Collective.ALLTOALL,
    Collective.REDUCE_SCATTER_BLOCK,
)
OWN_LEFT_OUT = frozenset({*EQUAL_BLOCKS, Collective.ALLGATHERV, Collective.REDUCE_SCATTER})
ELEMENT = 4  # bytes; what is exchanged is in whole elements where that can be
LIKELY = 7  # odds from which a reading is taken that nothing recorded contradicts


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

    `parts` is P, or P - 1 for MPI_IN_PLACE, in `OWN_LEFT_OUT`, as `read_accounts` says for all
    calls on the communicator; when left out, by this call alone. The result has shape (1,) for
    whole buffers, (P,) for blocks, (P, P) for pairs.
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
    targets the same way; what is left goes to the first pairs that can take it. Rows and columns
    then add up exactly; totals that do not agree are scaled to what was sent.
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


class Account(NamedTuple):
    """What the members recorded of one collective, in the order of the communicator."""

    operation: Collective
    sent: Ints
    received: Ints


class Reading(NamedTuple):
    """How an account is read."""

    parts: int  # P, or P - 1 for MPI_IN_PLACE
    # whether the other reading is whole, too, so that this one is only the better founded
    open: bool


def read_accounts(
    accounts: Sequence[Account], elsewhere: Mapping[Collective, bool] | None = None
) -> list[Reading]:
    """Say of the calls on one communicator which were in place.

    1. The account itself, if only one reading is whole in bytes and agrees between members.
    2. Else the other calls of the operation, if all that are decided agree; calls on this
       communicator before calls `elsewhere`.
    3. Else this call and the others on this communicator, where only one reading is whole in
       elements of 4 bytes.
    4. Else without MPI_IN_PLACE, unless chance would have to explain too much: all of n different
       sizes must divide by P - 1 if they were not, or by P if they were in place; factors that
       elements of 8 bytes have anyway are free. In place is taken at odds of 7 to 1, and of 49 to 1
       where other operations on the communicator were not.

    Accounts are all different, and of at least two members. `elsewhere` says whether operations
    were in place on other communicators, see `habits`. Without parts of their own, readings of
    other operations have P.
    """
    own = [_parts_of(account, 1) for account in accounts]
    elements = [
        parts or _parts_of(account, ELEMENT) for parts, account in zip(own, accounts, strict=True)
    ]
    habit = {
        operation: _habit(operation, accounts, own, elements)
        for operation in {account.operation for account in accounts}
    }
    parts = {op: len(accounts[0].sent) - was for op, was in (elsewhere or {}).items()}
    readings = []
    for account, own_parts, in_elements in zip(accounts, own, elements, strict=True):
        if not _counts_parts(account):
            readings.append(Reading(len(account.sent), False))
            continue
        always, mostly = habit[account.operation]
        always = always or parts.get(account.operation, 0)
        readings.append(Reading(own_parts or always or in_elements or mostly, not own_parts))
    return readings


def habits(operation: Ints, sent: Ints, members: Ints) -> dict[Collective, bool]:
    """Say which operations were always in place, or never, wherever the number of bytes tells.

    Columns are the calls of a whole trace, at any rank, with the members of the communicator, at
    least two; shape (calls,).
    """
    fits, fits_in_place = sent % members == 0, sent % (members - 1) == 0
    was: dict[Collective, bool] = {}
    for kind in EQUAL_BLOCKS:
        clear = fits_in_place[(operation == kind) & (fits != fits_in_place)]
        if clear.size and (clear == clear[0]).all():
            was[kind] = bool(clear[0])
    return was


def _counts_parts(account: Account) -> bool:
    return account.operation in OWN_LEFT_OUT and bool(account.sent.any())


def _habit(
    operation: Collective, accounts: Sequence[Account], own: list[int], elements: list[int]
) -> tuple[int, int]:
    """Parts of an operation by rule 2, or 0, and by the rules 3 and 4."""
    members = len(accounts[0].sent)
    same_kind = [k for k, account in enumerate(accounts) if account.operation == operation]
    sizes = sum(not own[k] and _counts_parts(accounts[k]) for k in same_kind)
    others_were_not = members in own
    return _common({own[k] for k in same_kind}), (
        _common({elements[k] for k in same_kind}) or _by_chance(members, sizes, others_were_not)
    )


def _parts_of(account: Account, unit: int) -> int:
    """Parts that an account has if only one reading is whole in these units, else 0."""
    operation, sent, received = account
    members = len(sent)
    if not _counts_parts(account):
        return 0
    # Only without MPI_IN_PLACE does this side have the sum of all blocks at every member.
    if operation == Collective.ALLGATHERV and (received * members != sent.sum()).any():
        return members - 1
    if operation == Collective.REDUCE_SCATTER and (sent * members != received.sum()).any():
        return members - 1
    blocks = received if operation == Collective.REDUCE_SCATTER else sent
    if (blocks != blocks[0]).any():
        return members
    whole = [parts for parts in (members, members - 1) if blocks[0] % (parts * unit) == 0]
    # What neither divides matches no account: it is rounded up.
    return whole[0] if len(whole) == 1 else 0 if whole or unit > 1 else members


def _common(values: set[int]) -> int:
    """Return what all say that say something, else 0."""
    values = values - {0}
    return values.pop() if len(values) == 1 else 0


def _by_chance(members: int, sizes: int, others_were_not: bool) -> int:
    """Weigh two coincidences in `sizes` different sizes."""
    sizes = min(sizes, 8)  # enough for any odds
    without, in_place = ((n // gcd(n, 8)) ** sizes for n in (members - 1, members))
    needed = LIKELY**2 if others_were_not else LIKELY
    return members - 1 if without >= needed * in_place else members
