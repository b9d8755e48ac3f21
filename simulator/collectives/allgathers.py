"""Allgathers: every member's block to everyone.

Source: Open MPI, ompi/mca/coll/base/coll_base_allgather.c and coll_base_allgatherv.c, the same in
4.1 and 5.0, `sparbit` in 5.0 alone. A member's own block is copied first. Behind them: R. Thakur,
R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, 2005;
J. Bruck et al., Efficient algorithms for all-to-all communications, 1997; J. Chen et al.,
Performance evaluation of allgather algorithms, 2005; W. Loch, G. Koslovski, Sparbit, 2021.
"""

from __future__ import annotations

import numpy as np

from .schedules import Ints, Schedule, edges, expect, masks, schedule


def ring(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Pass on to the next member the block that came in last: allgather_intra_ring."""
    me = np.arange(members)
    rounds = ((me, (me + 1) % members, volume[(me - k) % members]) for k in range(members - 1))
    return schedule(rounds, [(-1, me, volume)])


def bruck(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Send all that is held 2^k members back: allgather_intra_bruck.

    In the end every member but the first moves all blocks to their places, those from its own on by
    way of another buffer.
    """
    me = np.arange(members)
    held = edges(np.tile(volume, 2))
    rounds = []
    for mask in masks(members):
        count = min(mask, members - mask)
        rounds.append((me, (me - mask) % members, held[me + count] - held[me]))
    from_own = held[members] - held[me]  # blocks 0 .. p - 1 - rank of the buffer
    rotated = np.where(me > 0, held[members] + from_own, 0)
    return schedule(rounds, [(-1, me, volume), (len(rounds), me, rotated)])


def doubling_allgather(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange all that is held with the member whose number differs in bit k.

    For powers of two: allgather_intra_recursivedoubling.
    """
    expect(members & (members - 1) == 0, "recursive_doubling", members, "a power of two")
    me = np.arange(members)
    before = edges(volume)
    rounds = []
    for mask in masks(members):
        begin = me & -mask
        rounds.append((me, me ^ mask, before[begin + mask] - before[begin]))
    return schedule(rounds, [(-1, me, volume)])


def neighbour_exchange(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange with the left and the right neighbour in turn: allgather_intra_neighborexchange.

    First pairs of neighbours share their blocks; from then on two blocks travel at a time. For
    even numbers of members.
    """
    expect(members % 2 == 0 or members == 1, "neighbour_exchange", members, "an even number")
    me = np.arange(members)
    rounds = [(me, me ^ 1, volume)] if members > 1 else []
    two, held = volume[:-1:2] + volume[1::2], me // 2  # bytes of each pair; the pair to pass on
    for k in range(1, members // 2):
        neighbour = (me + np.where(me % 2 == k % 2, 1, -1)) % members
        rounds.append((me, neighbour, two[held]))
        held = held[neighbour]
    return schedule(rounds, [(-1, me, volume)])


def sparbit(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Send each block that is held 2^k further on by itself, longest way first: intra_sparbit."""
    me = np.arange(members)
    levels = (members - 1).bit_length()
    last = (members & -members).bit_length() - 1  # zeros at the end
    ignored = (~(members >> last) | 1) << last
    rounds, held = [], 1
    for mask in reversed(masks(members)):
        count = held - (mask & ignored == mask)
        blocks = [(me - 2 * k * mask) % members for k in range(count)]
        if blocks:
            src = np.tile(me, count)
            rounds.append((src, (src + mask) % members, volume[np.concatenate(blocks)]))
        held += count
    return schedule(rounds, [(-1, me, volume)] if levels else [])
