"""Explaining a run: what its makespan consists of, what bounds it, and what would change it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Bools, Ints
from hopmap.errors import expect_one_of
from hopmap.notebook import ShownMixin
from hopmap.progress import Progress
from hopmap.simulator.operations import Record
from hopmap.simulator.parameters.keys import ParameterError, expect_fixed_routes
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Program
from hopmap.simulator.result import Result
from hopmap.simulator.run_plan import ENDS, ServerName, plan_run, server_kinds, server_name, speeds
from hopmap.simulator.simulate import simulate
from hopmap.simulator.uncertainty import RELEVANCE
from hopmap.topologies import Mapping, Topology, check_mapping
from hopmap.traces import Traffic
from hopmap.units import show_seconds

from .bounds import Bound, bounds_of
from .critical_path import CriticalPath, Segment, critical_path
from .sensitivity import Doubling, double_parameters, free_makespan

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bottleneck:
    """A server, see `ServerName`, and who loads it."""

    kind: str
    place: str
    bytes: int  # of data
    seconds: float  # that they take: bytes / bandwidth
    busy: float  # seconds for which the server was held, requests and grants included
    queued: float  # seconds that all packets together stood in its queue
    # (source rank, target rank, bytes) of the rank pairs behind it, heaviest first
    pairs: list[tuple[int, int, int]]


def bottlenecks(
    result: Result,
    traffic: Traffic,
    topology: Topology,
    node_of: Mapping,
    parameters: Parameters,
    *,
    by: str = "bytes",
    top: int = 5,
    pairs: int = 3,
) -> list[Bottleneck]:
    """Find the servers that hold a run up, by bytes / bandwidth or by the time that packets queued.

    The result is of a replay of that traffic on that topology. Returned are `top` servers at most,
    and `pairs` rank pairs of each; what is 0 is left out.
    """
    load, busy, queued = (
        np.concatenate((links, *(getattr(getattr(result, end), field) for end in ENDS)))
        for links, field in (
            (result.link_bytes, "bytes"),
            (result.link_busy, "busy"),
            (result.link_waited, "waited"),
        )
    )
    seconds = load / speeds(topology, parameters)[0]
    measures = {"bytes": seconds, "queued": queued}
    expect_one_of(ParameterError, "unknown order of bottlenecks", by, measures)
    measure = measures[by]
    order = np.argsort(-measure, kind="stable")[:top]
    return [
        Bottleneck(
            *server_name(topology, server),
            bytes=int(load[server]),
            seconds=float(seconds[server]),
            busy=float(busy[server]),
            queued=float(queued[server]),
            pairs=_pairs(traffic, topology, node_of, server, pairs),
        )
        for server in order[measure[order] > 0].tolist()
    ]


def _pairs(
    traffic: Traffic, topology: Topology, node_of: Mapping, server: int, most: int
) -> list[tuple[int, int, int]]:
    """Rank pairs whose messages cross a server, heaviest first."""
    crosses = _crossing(topology, node_of[traffic.src], node_of[traffic.dst], server)
    behind = np.flatnonzero(crosses & (traffic.bytes > 0))
    behind = behind[np.argsort(-traffic.bytes[behind], kind="stable")][:most]
    columns = traffic.src[behind], traffic.dst[behind], traffic.bytes[behind]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _crossing(topology: Topology, source: Ints, target: Ints, server: int) -> Bools:
    from hopmap.simulator.metrics import load_kernels

    if server < topology.links:
        return np.asarray(load_kernels.pairs_over_link(topology.router, source, target, server))
    end, node = divmod(server - topology.links, topology.nodes)
    away = source != target
    kept = {"injection": away & (source == node), "ejection": away & (target == node)}
    return np.asarray(kept.get(ENDS[end], ~away & (source == node)))


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
                _share_of(path, result, kind_of == k, ServerName(name, "all"), top)
                for k, name in enumerate(names)
                if (kind_of == k).any()
            ),
            key=lambda share: -(share.serialization + share.latency + share.queue + share.room),
        ),
        servers=[
            _share_of(path, result, path.server == server, server_name(topology, server), top)
            for server in servers.tolist()
            if at_server[server] > 0
        ],
    )


def _share_of(
    path: CriticalPath, result: Result, here: Bools, name: ServerName, top: int
) -> ServerShare:
    """Sum the segments up that are `here`."""
    serialization, latency, queue, room = (
        float(path.seconds[here & (path.kind == kind)].sum())
        for kind in (Segment.SERIALIZATION, Segment.LATENCY, Segment.QUEUE, Segment.ROOM)
    )
    behind = _pairs_queued(path, result, here & (path.kind == Segment.QUEUE), top)
    return ServerShare(name.kind, name.place, serialization, latency, queue, room, behind)


def _pairs_queued(
    path: CriticalPath, result: Result, queued: Bools, most: int
) -> list[tuple[int, int, float]]:
    """Rank pairs whose packets were served before the packets of these segments."""
    times = result.message_times
    assert times is not None
    front = path.behind[queued]
    pair = times.source[front].astype(np.int64) * result.ranks + times.target[front]
    pairs, place = np.unique(pair, return_inverse=True)
    seconds = np.bincount(place, path.seconds[queued], len(pairs))
    longest = np.argsort(-seconds, kind="stable")[:most]
    found = zip(pairs[longest].tolist(), seconds[longest].tolist(), strict=True)
    return [(*divmod(pair, result.ranks), taken) for pair, taken in found]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(ShownMixin):
    """Why a run takes as long as it does.

    Attributes
    ----------
    result : Result
        Of the replay, with the times of its operations and messages.
    bounds : dict of str to Bound
        See `lower_bounds`; also "no_contention": a replay in which messages never meet.
    path : Composition
        Of the critical path.
    loaded, queued : list of Bottleneck
        Servers with most bytes / bandwidth, and those at which packets queued longest.
    doublings : list of Doubling
        The makespan with each parameter doubled; empty if it was not asked for.
    free, default_order : float
        Seconds of the run on a network that takes no time, and of the default order: rank after
        rank on slot after slot.
    """

    result: Result
    bounds: dict[str, Bound]
    path: Composition
    loaded: list[Bottleneck]
    queued: list[Bottleneck]
    doublings: list[Doubling]
    free: float
    default_order: float

    @property
    def network_share(self) -> float:
        """Share of the run that the network decides, and with it the mapping."""
        makespan = self.result.makespan
        return max(0.0, 1 - self.free / makespan) if makespan > 0 else 0.0

    @property
    def verdict(self) -> str:
        """One sentence: what another mapping may gain at most, and what this one has gained."""
        makespan, share = self.result.makespan, self.network_share
        if share < RELEVANCE:
            return (
                f"placement makes no practical difference: {100 * (1 - share):.1f} % of the run is "
                "computing and overhead"
            )
        most = show_seconds(makespan - self.free)
        gain = self.default_order - makespan
        if abs(gain) < RELEVANCE * self.default_order:
            against = "no practical difference from the default order"
        else:
            against = (
                f"{show_seconds(abs(gain))} ({100 * abs(gain) / self.default_order:.1f} %) "
                f"{'shorter' if gain > 0 else 'longer'} than the default order"
            )
        return (
            f"{100 * share:.1f} % of the run depends on the network: no mapping can save more than "
            f"{most}; {against}"
        )

    def __repr__(self) -> str:
        most = max(self.path.seconds, key=lambda kind: self.path.seconds[kind], default="nothing")
        return f"<Explanation of {self.result!r}: most of its critical path is {most}>"

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each part of the critical path: seconds, and share of the makespan."""
        import pandas as pd

        frame = pd.DataFrame({"seconds": self.path.seconds})
        return frame.assign(share=frame["seconds"] / (self.result.makespan or 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Return what ``explain --json`` prints."""
        return self.result.to_dict() | {
            "verdict": self.verdict,
            "network_share": self.network_share,
            "makespan_ideal_network": self.free,
            "makespan_default_order": self.default_order,
            "bounds": {name: bound._asdict() for name, bound in self.bounds.items()},
            "critical_path": asdict(self.path),
            "loaded": [asdict(server) for server in self.loaded],
            "queued": [asdict(server) for server in self.queued],
            "sensitivity": [asdict(doubling) for doubling in self.doublings],
        }


def explain(
    program: Program,
    topology: Topology,
    node_of: ArrayLike,
    *,
    parameters: Parameters | None = None,
    top: int = 5,
    sensitivity: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Replay a program, with the compiled engine, and say why it takes as long as it does.

    `top` servers and rank pairs are listed. If `sensitivity`, the program is replayed with each
    parameter doubled; `progress` is called with the replays done and those to come in all.
    """
    parameters = parameters or Parameters()
    expect_fixed_routes(parameters.network_routing, "explain takes a run")
    nodes = check_mapping(node_of, topology, program.ranks)
    # What contention delays may leave an end point to what then is earlier, need not be copied,
    # or find a rank that no longer computes. Alone, a message has no turns to take.
    without = replace(
        parameters,
        gap=0.0,
        gap_per_byte=0.0,
        copy_per_byte=0.0,
        progress="asynchronous",
        nic="fifo",
        nic_rails=1,
        network_buffer=0,
    )
    alone = simulate(program, topology, nodes, parameters=without, engine="analytic")
    ready = plan_run(program, topology, nodes, parameters)
    bounds = {**bounds_of(ready, topology)}
    bounds["no_contention"] = Bound(alone.makespan, f"rank {int(alone.finish.argmax())}")
    kept = Record(operations=True)
    result = simulate(
        program, topology, nodes, parameters=parameters, engine="compiled", record=kept
    )
    slots = np.repeat(np.arange(topology.nodes), topology.slots)[: program.ranks]
    default = (
        result
        if (slots == nodes).all()
        else simulate(program, topology, slots, parameters=parameters, engine="compiled")
    )
    path = critical_path(ready, result)
    traffic = program.traffic()
    loaded, queued = (
        bottlenecks(result, traffic, topology, nodes, parameters, by=by, top=top)
        for by in ("bytes", "queued")
    )
    return Explanation(
        result=result,
        bounds=bounds,
        path=composition(path, result, topology, top=top),
        loaded=loaded,
        queued=queued,
        doublings=double_parameters(program, topology, nodes, parameters, progress=progress)
        if sensitivity
        else [],
        free=free_makespan(program, topology, nodes, parameters),
        default_order=default.makespan,
    )
