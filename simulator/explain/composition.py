"""What a critical path consists of: totals by kind of segment, by server, and by who was in front.

Sums are exact but for rounding: they add up to the makespan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator.result import Result
from hopmap.simulator.server_names import ServerName, server_kinds, server_name
from hopmap.topologies import Topology

from .critical_path import CriticalPath, Segment


@dataclass(frozen=True)
class ServerShare:
    """What the path spends at one server, or at all of a kind, in seconds.

    Attributes
    ----------
    kind, place : str
        See `ServerName`; the place of all is "all".
    serialization, latency, queue, room : float
    behind : list of (int, int, float)
        (source rank, target rank, seconds) of the messages that were served last before the path's
        had its turn, longest first.
    """

    kind: str
    place: str
    serialization: float
    latency: float
    queue: float
    room: float
    behind: list[tuple[int, int, float]]


@dataclass(frozen=True)
class Composition:
    """What a critical path consists of.

    Attributes
    ----------
    seconds : mapping of str to float
        By the name of the `Segment` in lower case; they add up to the makespan.
    control : float
        Of these, what requests and grants of rendezvous take.
    messages : int
        Messages on the path.
    ranks : list of (int, float)
        (rank, seconds) of the ranks that compute or handle messages on the path, longest first.
    kinds, servers : list of ServerShare
        Where messages spend most, by kind of server and by server.
    """

    seconds: dict[str, float]
    control: float
    messages: int
    ranks: list[tuple[int, float]]
    kinds: list[ServerShare]
    servers: list[ServerShare]


def composition(
    path: CriticalPath, result: Result, topology: Topology, *, top: int = 5
) -> Composition:
    """Sum a critical path up; `top` is the most ranks, servers, and rank pairs of each."""
    seconds = path.seconds
    by_kind = np.bincount(path.kind, seconds, max(Segment) + 1)
    of_rank = np.bincount(path.rank[path.rank >= 0], seconds[path.rank >= 0])
    ranks = np.argsort(-of_rank, kind="stable")[:top]
    placed = path.server >= 0
    at_server = np.bincount(path.server[placed], seconds[placed])
    servers = np.argsort(-at_server, kind="stable")[:top]
    kind, names = server_kinds(topology)
    kind_of = np.where(placed, kind[path.server], -1)
    return Composition(
        seconds={kind.name.lower(): float(by_kind[kind]) for kind in Segment},
        control=float(seconds[placed & (path.cargo > 0)].sum()),
        messages=len(np.unique(path.message[placed])),
        ranks=[(rank, float(of_rank[rank])) for rank in ranks.tolist() if of_rank[rank] > 0],
        kinds=sorted(
            (
                _share(path, result, kind_of == k, ServerName(name, "all"), top)
                for k, name in enumerate(names)
                if (kind_of == k).any()
            ),
            key=lambda share: -(share.serialization + share.latency + share.queue + share.room),
        ),
        servers=[
            _share(path, result, path.server == server, server_name(topology, server), top)
            for server in servers.tolist()
            if at_server[server] > 0
        ],
    )


def _share(
    path: CriticalPath, result: Result, here: NDArray[np.bool_], name: ServerName, top: int
) -> ServerShare:
    """Sum the segments up that are `here`."""
    serialization, latency, queue, room = (
        float(path.seconds[here & (path.kind == kind)].sum())
        for kind in (Segment.SERIALIZATION, Segment.LATENCY, Segment.QUEUE, Segment.ROOM)
    )
    behind = _behind(path, result, here & (path.kind == Segment.QUEUE), top)
    return ServerShare(name.kind, name.place, serialization, latency, queue, room, behind)


def _behind(
    path: CriticalPath, result: Result, queued: NDArray[np.bool_], most: int
) -> list[tuple[int, int, float]]:
    """Rank pairs whose packets were served before those of these segments."""
    times = result.message_times
    assert times is not None
    front = path.behind[queued]
    pair = times.source[front].astype(np.int64) * result.ranks + times.target[front]
    pairs, place = np.unique(pair, return_inverse=True)
    seconds = np.bincount(place, path.seconds[queued], len(pairs))
    longest = np.argsort(-seconds, kind="stable")[:most]
    return [(*divmod(int(pairs[k]), result.ranks), float(seconds[k])) for k in longest.tolist()]
