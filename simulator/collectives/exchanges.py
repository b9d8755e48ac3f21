"""Collectives without a root in which blocks move and nothing is added up; barriers; scans.

Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations
in MPICH, 2005 (ring, recursive doubling, pairwise); J. Bruck et al., Efficient algorithms for
all-to-all communications, 1997; J. Chen et al., Performance evaluation of allgather algorithms on
terascale Linux cluster with fast Ethernet, 2005 (neighbour exchange); D. Hensgen, R. Finkel,
U. Manber, Two algorithms for barrier synchronization, 1988.
"""

from __future__ import annotations

import numpy as np

from .schedules import Ints, Schedule, edges, masks, schedule


def dissemination(members: int, _root: int, volume: Ints) -> Schedule:
    """Barrier: in round k everyone tells the member 2^k further on."""
    me = np.arange(members)
    size = np.full(members, volume[0])
    return schedule((me, (me + mask) % members, size) for mask in masks(members))


def ring(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: pass on to the next member the block that came in last."""
    me = np.arange(members)
    return schedule(
        (me, (me + 1) % members, volume[(me - k) % members]) for k in range(members - 1)
    )


def bruck(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: send the 2^k blocks held (at the end, those still missing) 2^k members back."""
    me = np.arange(members)
    held = edges(np.tile(volume, 2))
    rounds = []
    for mask in masks(members):
        count = min(mask, members - mask)
        rounds.append((me, (me - mask) % members, held[me + count] - held[me]))
    return schedule(rounds)


def doubling_allgather(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: exchange all that is held with the member whose number differs in bit k.

    For powers of two.
    """
    _expect(members & (members - 1) == 0, "recursive_doubling", members, "a power of two")
    me = np.arange(members)
    before = edges(volume)
    rounds = []
    for mask in masks(members):
        begin = me & -mask
        rounds.append((me, me ^ mask, before[begin + mask] - before[begin]))
    return schedule(rounds)


def neighbour_exchange(members: int, _root: int, volume: Ints) -> Schedule:
    """Allgather: exchange with the left and the right neighbour in turn what came in last.

    First pairs of neighbours share their blocks; from then on two blocks travel at a time. For
    even numbers of members.
    """
    _expect(members % 2 == 0 or members == 1, "neighbour_exchange", members, "an even number")
    me = np.arange(members)
    rounds = [(me, me ^ 1, volume)] if members > 1 else []
    two, held = volume[:-1:2] + volume[1::2], me // 2  # bytes of each pair; the pair to pass on
    for k in range(1, members // 2):
        neighbour = (me + np.where(me % 2 == k % 2, 1, -1)) % members
        rounds.append((me, neighbour, two[held]))
        held = held[neighbour]
    return schedule(rounds)


def pairwise(members: int, _root: int, volume: Ints) -> Schedule:
    """Alltoall: in round k send to the member k further on, receive from k further back."""
    me = np.arange(members)
    return schedule(
        (me, (me + k) % members, volume[me, (me + k) % members]) for k in range(1, members)
    )


def linear_exchange(members: int, _root: int, volume: Ints) -> Schedule:
    """Alltoall: post everything at once."""
    flat = pairwise(members, 0, volume)
    at_once = np.zeros_like(flat.round)
    return flat._replace(round=at_once, posted=at_once, taken=at_once)


def bruck_alltoall(members: int, _root: int, volume: Ints) -> Schedule:
    """Alltoall: in round k send 2^k further on all blocks whose way to go has bit k.

    A block that has d members to go travels the set bits of d, the lowest first.
    """
    me = np.arange(members)
    rounds = []
    for mask in masks(members):
        way = np.flatnonzero(me & mask)
        source = (me[:, None] - way % mask) % members
        size = volume[source, (source + way) % members].sum(axis=1)
        rounds.append((me, (me + mask) % members, size))
    return schedule(rounds)


def chain(members: int, _root: int, volume: Ints) -> Schedule:
    """Scan: each member waits for the one before it."""
    one = volume[:1]
    return schedule((np.array([k]), np.array([k + 1]), one) for k in range(members - 1))


def doubling_scan(members: int, _root: int, volume: Ints) -> Schedule:
    """Scan: in round k send what is known to the member 2^k further on."""
    rounds = []
    for mask in masks(members):
        src = np.arange(members - mask)
        rounds.append((src, src + mask, np.full(len(src), volume[0])))
    return schedule(rounds)


def _expect(suits: bool, name: str, members: int, expected: str) -> None:
    if not suits:
        raise ValueError(f"{name}: {members} members: expected {expected}")
