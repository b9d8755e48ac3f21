"""Allgathers and alltoalls: blocks from every member to every other.

Source: Open MPI, coll_base_allgather.c, coll_base_allgatherv.c, coll_base_alltoall.c and
coll_base_alltoallv.c in ompi/mca/coll/base, the same in 4.1 and 5.0, `sparbit` in 5.0 alone. A
member's own block is copied. Behind them: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of
collective communication operations in MPICH, 2005; J. Bruck et al., Efficient algorithms for
all-to-all communications, 1997; J. Chen et al., Performance evaluation of allgather algorithms,
2005; W. Loch, G. Koslovski, Sparbit, 2021.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints

from .schedules import Done, Schedule, edges, masks, require, schedule, work


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
    require(members & (members - 1) == 0, "recursive_doubling", members, "a power of two")
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
    require(members % 2 == 0 or members == 1, "neighbour_exchange", members, "an even number")
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


def pairwise(members: int, _root: int, volume: Ints, /) -> Schedule:
    """In round k send to the member k further on: alltoall_intra_pairwise, own block last."""
    me = np.arange(members)
    rounds = ((me, (me + k) % members, volume[me, (me + k) % members]) for k in range(1, members))
    return schedule(rounds, [(members, me, volume[me, me])])


def linear_exchange(members: int, root: int, volume: Ints, /) -> Schedule:
    """Post everything at once, receives forwards, sends backwards: alltoall_intra_basic_linear."""
    return linear_sync_exchange(members, root, volume)


def linear_sync_exchange(members: int, _root: int, volume: Ints, /, *, window: int = 0) -> Schedule:
    """As linear, so many at a time: alltoall_intra_linear_sync.

    The C begins the next as soon as any is done; here a batch is done before the next begins.
    """
    me = np.arange(members)
    shift = np.arange(1, members)
    src, k = np.tile(me, members - 1), np.repeat(shift, members)
    dst = (src - k) % members
    step = (k - 1) // window if window else np.zeros_like(k)
    at_once = schedule([(src, dst, volume[src, dst])], [(-1, me, volume[me, me])])
    return at_once._replace(round=step, posted=step, taken=step)


def bruck_alltoall(members: int, _root: int, volume: Ints, /) -> Schedule:
    """In round k send 2^k further on all blocks whose way to go has bit k: alltoall_intra_bruck.

    A block that has d members to go travels the set bits of d, the lowest first. All blocks are
    rotated in the beginning and in the end. What is sent lies scattered: it is packed, unpacked
    into another buffer, and copied back from there.
    """
    me = np.arange(members)
    rounds, copied, blocks = [], [(-1, me, volume.sum(axis=1))], []
    for k, mask in enumerate(masks(members)):
        way = np.flatnonzero(me & mask)
        source = (me[:, None] - way % mask) % members
        size = volume[source, (source + way) % members].sum(axis=1)
        rounds.append((me, (me + mask) % members, size))
        copied += [(k - 1, me, size), (k, (me + mask) % members, 2 * size)]
        blocks += [(k - 1, me, np.array([len(way)])), (k, me, np.array([2 * len(way)]))]
    copied.append((len(rounds), me, volume.sum(axis=0)))
    return schedule(rounds, copied, blocks=[*blocks, (len(rounds), me, np.array([members]))])


def bruck_alltoall_by_blocks(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Bruck's alltoall, every block copied by itself: bruck_alltoall, BRUCK-LOG.

    What is sent is packed, and what comes is copied to where that was.
    """
    plan, me = bruck_alltoall(members, 0, volume), np.arange(members)
    copied: list[Done] = [(-1, me, volume.sum(axis=1))]
    blocks: list[Done] = [(-1, me, np.array([members]))]
    for k, mask in enumerate(masks(members)):
        sent = plan.size[plan.round == k]
        half = np.array([np.count_nonzero(me & mask)])
        copied += [(k - 1, me, sent), (k, (me + mask) % members, sent)]
        blocks += [(k - 1, me, half), (k, me, half)]
    copied.append((plan.steps - 1, me, volume.sum(axis=0)))
    blocks.append((plan.steps - 1, me, np.array([members])))
    return plan._replace(work=work(copied, blocks=blocks))
