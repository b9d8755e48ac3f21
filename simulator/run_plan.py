"""The plan of a run: program, network and parameters as arrays, all that an engine needs.

Servers are numbered links first (as in the topology), then the injection link of every node, the
ejection links, and the memories; `server_name` says what a number stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program, no_work, number_keys
from hopmap.simulator.programs.unrolling import unroll, without_loops
from hopmap.topologies import Mapping, Topology

from . import model
from .noise import Noise, noise_of
from .routes import Channels, Routes, channels_of, no_rings, routes_of

ENDS = ("injection", "ejection", "memory")


@dataclass(frozen=True, eq=False)
class RunPlan:
    """What an engine runs."""

    program: Program
    parameters: Parameters
    noise: Noise  # what the parameters' noise is on this program
    links: int  # number of links of the topology, the first servers
    # bandwidth, latency: shape (servers,)
    bandwidth: Floats
    latency: Floats
    compute: Floats  # shape (operations,): see `pauses`
    channel: Ints  # shape (operations,): see `Program.channels`
    # path, back: shape (operations,): of a row that sends, the path of its message, and that of the
    # grant
    path: Ints
    back: Ints
    iterations: Ints  # shape (operations,): how often each row runs
    # shape (tasks,): number of the first message of each task; the others follow in order
    first: Ints
    # messages, bytes: sent in all
    messages: int
    bytes: int
    indptr: Ints  # shape (paths + 1,)
    # path p is ``servers[indptr[p]:indptr[p + 1]]``; of a run with `routes`, its first and its last
    # server hold, the others are as the topology's own route has them
    servers: Ints
    # of virtual channels, of every entry of `servers`, or ANY; empty where buffers are unbounded
    classes: Ints
    lanes: int  # virtual channels of each class, of which a packet takes the one with most room
    routes: Routes | None  # how packets find their way, where paths are not fixed
    channels: Channels | None  # and which virtual channels they take; then `classes` are all 0
    # number_bits, packet_bits: for `model.order_key`
    number_bits: int
    packet_bits: int

    def order_key(self, kind: int, number: int, packet: int = 0) -> int:
        """Rank of an event among events of one instant, see `model.order_key`."""
        return model.order_key(kind, number, packet, self.number_bits, self.packet_bits)

    def again(self, parameters: Parameters) -> RunPlan:
        """Return the same run with the noise of other parameters."""
        noise = noise_of(parameters, self.program)
        return replace(self, parameters=parameters, noise=noise)

    def controls(self, rows: Ints) -> tuple[Bools, Bools]:
        """Which of the messages that rows send have a request, and which a grant or an answer."""
        mode = self.program.mode[rows]
        large = self.program.size[rows] >= self.parameters.eager_limit
        requests = large & ~np.isin(mode, (model.READY, model.PUT, model.HARDWARE))
        requests |= mode == model.RENDEZVOUS
        return requests, requests | (mode == model.SYNCHRONOUS)

    @property
    def injection(self) -> range:
        """Servers that are injection links."""
        nodes = (len(self.bandwidth) - self.links) // 3
        return range(self.links, self.links + nodes)

    def ends(self) -> tuple[Ints, Ints]:
        """Nodes at which each path begins and ends; of a path within a node, anything."""
        first, last = self.servers[self.indptr[:-1]], self.servers[self.indptr[1:] - 1]
        return first - self.links, last - self.links - len(self.injection)

    def first_entry(self) -> Ints:
        """Place of each task's first operation among all of them, loops written out."""
        return np.concatenate(([0], np.cumsum(self.iterations)))[self.program.offsets[:-1]]


def plan_run(
    program: Program, topology: Topology, node_of: Mapping, parameters: Parameters
) -> RunPlan:
    """Place a program on a network."""
    program = ask_where_crowded(program, parameters)
    send = program.sends()
    times = program.iterations()
    sent = np.concatenate(([0], np.cumsum(times[send])))
    messages = int(sent[-1])

    of_ranks, pair_of = number_keys(program.pair_of_send())
    source, target = node_of[of_ranks // program.ranks], node_of[of_ranks % program.ranks]
    pairs = np.concatenate((source * topology.nodes + target, target * topology.nodes + source))
    pairs, path = number_keys(pairs)
    indptr, servers = paths(topology, pairs // topology.nodes, pairs % topology.nodes)
    of_row = np.full((2, program.operations), -1, dtype=np.int64)
    of_row[:, send] = path.reshape(2, -1)[:, pair_of]

    bandwidth, latency = speeds(topology, parameters)
    routes = routes_of(topology, np.unique(np.concatenate((source, target))), parameters)
    channels, lanes = None, 1
    if routes is None:
        classes, lanes = no_rings(topology, indptr, servers, parameters)
    else:
        classes = np.zeros(len(servers) * bool(parameters.network_buffer), dtype=np.int64)
        channels = channels_of(topology, routes, parameters)
    buffers = len(bandwidth) * parameters.network_virtual_channels * bool(len(classes))
    largest = int(program.size[send].max(initial=parameters.control_bytes))
    return RunPlan(
        program=program,
        parameters=parameters,
        noise=noise_of(parameters, program),
        links=topology.links,
        bandwidth=bandwidth,
        latency=latency,
        compute=pauses(program, parameters),
        channel=program.channels(),
        path=of_row[0],
        back=of_row[1],
        iterations=times,
        first=sent[np.searchsorted(send, program.offsets[:-1])],
        messages=messages,
        bytes=int((program.size[send] * times[send]).sum()),
        indptr=indptr,
        servers=servers,
        classes=classes,
        lanes=lanes,
        routes=routes,
        channels=channels,
        number_bits=max(messages, program.tasks, buffers).bit_length(),
        packet_bits=(largest // parameters.packet_size + 1).bit_length(),
    )


def ask_where_crowded(program: Program, parameters: Parameters) -> Program:
    """Let messages of `eager_limit_beyond` and more ask first, to ranks with many senders."""
    if not parameters.eager_peers:
        return program
    target = np.unique(program.pair_of_send()) % program.ranks
    crowded = np.bincount(target, minlength=program.ranks) > parameters.eager_peers
    takes = (program.kind == Op.RECV) | (program.kind == Op.IRECV)
    at_crowded = takes & crowded[program.rank_of_row()]
    send = program.sends()
    at_crowded[send] = crowded[program.peer[send]]
    large = program.size >= parameters.eager_limit_beyond
    asks = at_crowded & large & (program.mode == model.STANDARD)
    return replace(program, mode=np.where(asks, model.RENDEZVOUS, program.mode))


def pauses(program: Program, parameters: Parameters) -> Floats:
    """Seconds before each operation: computation, scaled, and what collectives do there."""
    seconds = program.compute * parameters.compute_scale
    work = program.work
    copy, reduce = parameters.collective_copy_per_byte, parameters.collective_reduce_per_byte
    if copy or reduce:
        seconds[work.row] += work.copied * copy + work.reduced * reduce
    block, puts = parameters.collective_per_block, parameters.collective_put_setup
    if block or puts:
        seconds[work.row] += work.blocks * block + work.prepared * puts
    if new := parameters.collective_fresh_memory_per_byte:
        seconds[work.row] += work.new_memory(parameters.collective_fresh_memory_threshold) * new
    return seconds


def absorb(program: Program, parameters: Parameters) -> Program:
    """Return a program in which everything that takes a rank's time is computation, not scaled."""
    return replace(program, compute=pauses(program, parameters), work=no_work())


def flat(ready: RunPlan) -> RunPlan:
    """Write out the loops of a plan, for engines in which every row runs once.

    Messages keep their numbers, which count them in the order of the rows written out.
    """
    program = ready.program
    if not (program.kind == Op.REPEAT).any():
        return ready
    order = unroll(program)
    columns = ("compute", "channel", "path", "back")
    return replace(
        ready,
        program=without_loops(program),
        iterations=np.ones(len(order), dtype=np.int64),
        **{column: getattr(ready, column)[order] for column in columns},
    )


def with_marks(ready: RunPlan, before: Ints, kept: Bools) -> tuple[RunPlan, Ints]:
    """Put a REPEAT of one iteration before each of these rows, which rise; leave out all not kept.

    Returns also what row each row has become, that behind the last one included.
    """
    program = ready.program
    rows, place = np.flatnonzero(kept), np.append(0, np.cumsum(kept))
    moved: Ints = place + np.cumsum(np.bincount(before, minlength=len(place)))
    target = program.target[rows]
    waits = program.kind[rows] == Op.WAIT
    target[waits] = moved[target[waits]]

    def pick(column: NDArray[Any], value: Any) -> Any:
        return np.insert(column[rows], place[before], np.full(len(before), value, column.dtype))

    columns = {name: pick(getattr(program, name), -1) for name in ("peer", "tag", "context")}
    short = replace(
        program,
        offsets=moved[program.offsets],
        kind=pick(program.kind, Op.REPEAT),
        size=pick(program.size, 1),
        target=np.insert(target, place[before], moved[before] - 1),
        compute=pick(program.compute, 0),
        mode=pick(program.mode, 0),
        work=no_work(),
        event=np.zeros(0, dtype=np.int64),
        **columns,
    )
    filled = {"compute": 0, "channel": -1, "path": -1, "back": -1, "iterations": 1}
    columns = {name: pick(getattr(ready, name), value) for name, value in filled.items()}
    return replace(ready, program=short, **columns), moved


def paths(topology: Topology, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Paths between node pairs: injection, route, ejection; or the memory."""
    links, nodes = topology.links, topology.nodes
    starts, route = topology.routes(source, target)
    away = source != target
    hops = np.diff(starts)
    indptr = np.concatenate(([0], np.cumsum(np.where(away, hops + 2, 1))))
    servers = np.empty(indptr[-1], dtype=np.int64)
    servers[indptr[:-1]] = np.where(away, links + source, links + 2 * nodes + source)
    servers[indptr[1:][away] - 1] = links + nodes + target[away]
    inner = np.arange(len(route)) + np.repeat(indptr[:-1] + 1 - starts[:-1], hops)
    servers[inner] = route
    return indptr, servers


def speeds(topology: Topology, parameters: Parameters) -> tuple[Floats, Floats]:
    """Bandwidth and latency of every server."""
    columns = []
    for quantity in ("bandwidth", "latency"):
        of_kind = np.array([getattr(kind, quantity) for kind in topology.kinds], dtype=np.float64)
        ends = [
            np.full(topology.nodes, getattr(parameters, f"{end}_{quantity}"))
            for end in ("injection", "ejection", "memory")
        ]
        columns.append(np.concatenate((of_kind[topology.link_kind], *ends)))
    return columns[0], columns[1]


class ServerName(NamedTuple):
    """What a server is."""

    kind: str  # kind of a link, like "optical"; or "injection", "ejection", "memory"
    place: str  # "3 -> 4" of a link, "node 3" of the others


def server_name(topology: Topology, server: int) -> ServerName:
    """Name a server."""
    if server < topology.links:
        ends = topology.link_from[server], topology.link_to[server]
        kind = topology.kinds[topology.link_kind[server]].name
        return ServerName(kind, " -> ".join(topology.vertex_name(int(end)) for end in ends))
    end, node = divmod(server - topology.links, topology.nodes)
    return ServerName(ENDS[end], f"node {node}")


def server_kinds(topology: Topology) -> tuple[Ints, tuple[str, ...]]:
    """Return the kind of each server, as a place among the names that come second."""
    links = topology.link_kind.astype(np.int64)
    ends = len(topology.kinds) + np.repeat(np.arange(len(ENDS)), topology.nodes)
    names = (*(kind.name for kind in topology.kinds), *ENDS)
    return np.concatenate((links, ends)), names
