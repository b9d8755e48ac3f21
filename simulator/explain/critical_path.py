"""The critical path: from the end of the last rank back to the beginning, without a hole.

A rank that waited goes on when a message arrives, or has left; the path goes on from there, over
the servers that the message crossed, to the rank that sent it. So nothing on the path waits for
another rank: where a rank waits, the path is elsewhere. What is left of waiting are queues, at
servers and at LogGP's end points, and, where buffers are finite, waiting for room behind a link.
Segments follow one another to the last bit, and add up to the makespan.

One replay says when operations ran and messages arrived, a second one, of which the hops of the
messages on the path are kept, where those spent their time. Runs are deterministic.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopmap.arrays import Bools, Floats, Ints, Ints8, Ints32, Table
from hopmap.simulator.explain import critical_path_kernels as kernels
from hopmap.simulator.noise import expect_no_noise
from hopmap.simulator.packets.compiled_engine import watch
from hopmap.simulator.parameters.keys import ParameterError, expect_fixed_routes
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.mpi_calls import SendMode
from hopmap.simulator.programs.program import Op, Program
from hopmap.simulator.result import Result
from hopmap.simulator.run_plan import RunPlan, ServerName, plan_run, server_kinds, server_name
from hopmap.topologies import Topology, check_mapping

from .critical_path_kernels import Replayed

ENGINES_OF_PACKETS = ("simpy", "compiled")


SEGMENT = np.dtype(
    [
        ("begin", np.float64),
        ("end", np.float64),
        ("task", np.int64),
        ("message", np.int64),
        ("server", np.int64),
        ("behind", np.int64),
        ("kind", np.uint8),
        ("cargo", np.int8),
    ],
    align=True,
)


class Segment(IntEnum):
    """What a stretch of the critical path is."""

    COMPUTE = kernels.COMPUTE
    SEND_OVERHEAD = kernels.SEND_OVERHEAD
    RECV_OVERHEAD = kernels.RECV_OVERHEAD
    END_POINT = kernels.END_POINT  # LogGP's: own bytes, and messages of the rank before
    SERIALIZATION = kernels.SERIALIZATION  # a server takes bytes / bandwidth
    LATENCY = kernels.LATENCY
    QUEUE = kernels.QUEUE  # packets of other messages are served first
    ROOM = kernels.ROOM  # the link is idle, but there is no room behind it, or others are in front
    JOB_START = kernels.JOB_START  # the rank's job has not begun


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """Segments in order of time, of which each begins where the one before ends; shape (segments,).

    The rank is that of computation, overheads and end points; the message, as in `MessageTimes`,
    that of all else and of end points; the server, see `server_name`, where it is served, travels
    or queues; `behind`, of a QUEUE, the message whose packet was served last before. -1 is none.
    """

    kind: NDArray[np.uint8]  # `Segment`
    begin: Floats
    end: Floats
    rank: Ints32
    message: Ints
    cargo: Ints8  # 0: a message's data, 1: its request, 2: its grant, 3: its acknowledgement
    server: Ints
    behind: Ints

    @property
    def seconds(self) -> Floats:
        """Length of each segment."""
        return self.end - self.begin


def critical_path(
    result: Result,
    program: Program,
    topology: Topology,
    node_of: ArrayLike,
    *,
    parameters: Parameters | None = None,
) -> CriticalPath:
    """Follow a replay back from its end.

    Parameters
    ----------
    result : Result
        Of an engine of packets, with its operations, and of all that follows.
    """
    nodes = check_mapping(node_of, topology, program.ranks)
    return path_of(plan_run(program, topology, nodes, parameters or Parameters()), result)


def path_of(ready: RunPlan, result: Result) -> CriticalPath:
    """Follow a replay of a plan back from its end, see `critical_path`."""
    expect_no_noise(ready.parameters, "the critical path is of a run")
    expect_fixed_routes(ready.parameters.network_routing, "the critical path is of a run")
    if result.operations is None or result.engine not in ENGINES_OF_PACKETS:
        raise ParameterError(
            f"critical path of a replay by {result.engine}: expected one by "
            f"{' or '.join(ENGINES_OF_PACKETS)}, with Record(operations=True)"
        )
    if ready.parameters.progress == "calls":
        raise ParameterError(
            "critical path with progress calls: expected asynchronous, where no message waits for "
            "a rank that computes"
        )
    replayed = _replayed(ready, result)
    last = replayed.last[ready.program.main()[result.finish.argmax()]] if result.ranks else -1
    coarse = np.empty(0, dtype=SEGMENT)
    if last >= 0:
        coarse = np.empty(kernels.walk_operations(replayed, last, coarse), dtype=SEGMENT)
        kernels.walk_operations(replayed, last, coarse)
    fine = _divided(ready, coarse)[::-1]
    rank = np.where(fine["task"] < 0, -1, ready.program.rank_of[fine["task"]])
    names = ("kind", "begin", "end", "message", "cargo", "server", "behind")
    return CriticalPath(rank=rank.astype(np.int32), **{name: fine[name].copy() for name in names})


def _replayed(ready: RunPlan, result: Result) -> Replayed:
    program, operations, times = ready.program, result.operations, result.message_times
    assert operations is not None
    assert times is not None
    kind = program.kind[operations.row]
    entries = np.arange(len(kind))
    sends = (kind == Op.SEND) | (kind == Op.ISEND)
    takes = ((kind == Op.RECV) | (kind == Op.IRECV)) & (operations.message >= 0)
    send, receive = np.full((2, len(times.sent)), -1, dtype=np.int64)
    send[operations.message[sends]] = entries[sends]
    receive[operations.message[takes]] = entries[takes]
    joins = np.where(kind == Op.START, program.target[operations.row], -1)
    begun_by = np.full(program.tasks, -1, dtype=np.int64)
    begun_by[joins[kind == Op.START]] = entries[kind == Op.START]
    names = ("sent", "requested", "granted", "departed", "delivered")
    times_of_messages = {name: getattr(times, name) for name in names}
    return Replayed(
        kind=kind,
        **{name: getattr(operations, name) for name in ("begin", "ready", "woken", "end")},
        **{name: getattr(operations, name) for name in ("task", "awaited", "message")},
        joins=joins,
        **times_of_messages,
        acknowledged=(program.mode[operations.row[sends]] == SendMode.SYNCHRONOUS)
        & (times.size < ready.parameters.eager_limit),
        send=send,
        receive=receive,
        begun_by=begun_by,
        last=np.flatnonzero(np.diff(operations.task, append=program.tasks)),
    )


def _divided(ready: RunPlan, coarse: Table) -> Table:
    """Divide the journeys of messages by what happened to their packets at each server."""
    journeys = (coarse["kind"] == kernels.TRANSIT) | (coarse["kind"] == kernels.DISPATCH)
    hops = watch(ready, np.unique(coarse["message"][journeys]))
    label = hops["message"] * 4 + hops["cargo"]
    # Hops of one packet stand in order already.
    hops = hops[np.lexsort((hops["packet"], label))]
    label.sort()
    wanted = coarse["message"] * 4 + coarse["cargo"]
    first = np.searchsorted(label, wanted)
    packets = np.zeros(len(coarse), dtype=np.int64)
    ends = np.searchsorted(label, wanted, side="right")
    packets[journeys] = hops["packet"][ends[journeys] - 1] + 1
    length = (ends - first) // np.maximum(packets, 1)
    late = hops["end"] > hops["start"] + hops["size"] / ready.bandwidth[hops["server"]]
    given = coarse, hops, late, first, length, packets
    rules = ready.parameters.switching == "cut_through", ready.parameters.network_buffer > 0
    fine = np.empty(0, dtype=SEGMENT)
    fine = np.empty(kernels.walk_hops(*given, *rules, fine), dtype=SEGMENT)
    kernels.walk_hops(*given, *rules, fine)
    return fine


@dataclass(frozen=True)
class ServerShare:
    """What the path spends at one server, or at all of a kind, in seconds."""

    # kind, place: see `ServerName`; the place of all is "all"
    kind: str
    place: str
    serialization: float
    latency: float
    queue: float
    room: float
    # (source rank, target rank, seconds) of the messages that were served last before the path's
    # had its turn, longest first
    behind: list[tuple[int, int, float]]


@dataclass(frozen=True)
class Composition:
    """What a critical path consists of."""

    seconds: dict[str, float]  # by `Segment` in lower case; they add up to the makespan
    control: float  # of these, what requests and grants of rendezvous take
    messages: int  # on the path
    # (rank, seconds) of the ranks that compute or handle messages on the path, longest first
    ranks: list[tuple[int, float]]
    # kinds, servers: where messages spend most, by kind of server and by server
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
    path: CriticalPath, result: Result, here: Bools, name: ServerName, top: int
) -> ServerShare:
    """Sum the segments up that are `here`."""
    serialization, latency, queue, room = (
        float(path.seconds[here & (path.kind == kind)].sum())
        for kind in (Segment.SERIALIZATION, Segment.LATENCY, Segment.QUEUE, Segment.ROOM)
    )
    behind = _behind(path, result, here & (path.kind == Segment.QUEUE), top)
    return ServerShare(name.kind, name.place, serialization, latency, queue, room, behind)


def _behind(
    path: CriticalPath, result: Result, queued: Bools, most: int
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
