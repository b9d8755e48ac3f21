"""Sends and receives as calls list them: who meets whom.

A receive names the partner and the largest size that it takes, and perhaps neither: MPI_ANY_SOURCE
and MPI_ANY_TAG. The k-th send from one rank to another under one tag on a communicator meets the
k-th receive that names these; a receive that leaves something open takes, of the messages to its
rank that no other receive takes, the one that was sent first, by the ranks' own clocks.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints

ANY = -1


class Messages(NamedTuple):
    """One entry per send or receive, in the order in which they were begun, rank after rank."""

    call: Ints  # call that began it
    done: Ints  # call that completed it: the same if it is blocking, -1 if there is none
    sends: Bools
    # World rank of the partner, tag; `ANY` of a receive that leaves it open
    peer: Ints
    tag: Ints
    comm: Ints
    size: Ints


def pair_up(messages: Messages, rank: Ints, time: Floats) -> tuple[Messages, int, int]:
    """Give every receive the partner, tag and size of the message that it takes.

    `rank` is who begins each, `time` when: it orders sends to receives that leave something open.
    Returned are the messages, how many receives left something open and found a message, and how
    many found none, which are left out.
    """
    peer, tag, size = messages.peer.copy(), messages.tag.copy(), messages.size.copy()
    sends = messages.sends
    wild = ~sends & ((peer == ANY) | (tag == ANY))
    to, source = np.where(sends, peer, rank), np.where(sends, rank, peer)
    plain = np.flatnonzero(~wild)
    fields = (to[plain], source[plain], messages.comm[plain], tag[plain])
    order = plain[np.lexsort((plain, ~sends[plain], *fields))]
    fresh = np.ones(len(order), dtype=np.bool_)
    if len(order):
        fresh[1:] = False
        for column in (to, source, messages.comm, tag):
            fresh[1:] |= column[order][1:] != column[order][:-1]
    first = np.flatnonzero(fresh)
    group = np.cumsum(fresh) - 1
    count = np.add.reduceat(sends[order], first) if len(first) else np.zeros(0, dtype=np.int64)
    of_send = sends[order]
    place = np.arange(len(order)) - first[group]
    # Receives stand behind the sends of their group: the k-th meets the k-th.
    turn = place - count[group]
    meets = ~of_send & (turn < count[group])
    taker = order[meets]
    sent = order[first[group[meets]] + turn[meets]]
    size[taker] = size[sent]
    takes = np.bincount(group[~of_send], minlength=len(first))
    left = order[of_send & (place >= takes[group])]

    keep = np.ones(len(peer), dtype=np.bool_)
    found = 0
    if wild.any():
        left = left[np.argsort(time[left], kind="stable")]
        taken = _pair(np.flatnonzero(wild), left, messages, rank)
        for receive, send in taken:
            if send < 0:
                keep[receive] = False
            else:
                peer[receive], tag[receive] = rank[send], tag[send]
                size[receive] = size[send]
                found += 1
    settled = messages._replace(peer=peer, tag=tag, size=size)
    kept: Any = (column[keep] for column in settled)
    return Messages(*kept), found, int((~keep).sum())


def _pair(receives: Ints, sends: Ints, messages: Messages, rank: Ints) -> list[tuple[int, int]]:
    """Pair receives in order with the first of the sends that they could take, or -1."""
    queues: dict[tuple[int, ...], deque[int]] = {}
    columns: Any = (messages.peer[sends], messages.comm[sends], rank[sends], messages.tag[sends])
    for send, to, comm, source, tag in zip(
        sends.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        for each in ((to, comm, ANY, ANY), (to, comm, source, ANY), (to, comm, ANY, tag)):
            queues.setdefault(each, deque()).append(send)
    gone: set[int] = set()
    pairs = []
    columns = (rank[receives], messages.comm[receives])
    columns += messages.peer[receives], messages.tag[receives]
    for receive, *key in zip(receives.tolist(), *(c.tolist() for c in columns), strict=True):
        queue = queues.get(tuple(key), deque())
        while queue and queue[0] in gone:
            queue.popleft()
        send = queue.popleft() if queue else -1
        gone.add(send)
        pairs.append((receive, send))
    return pairs
