"""The plan of a run: program, network and parameters as arrays, all that an engine needs.

Servers are numbered links first (as in the topology), then the injection link of every node, the
ejection links, and the memories.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hopmap.simulator import model
from hopmap.simulator.noise import Noise, noise_of
from hopmap.simulator.numbering import numbered
from hopmap.simulator.parameters.parameters import Parameters
from hopmap.simulator.programs.program import Op, Program, no_work
from hopmap.simulator.programs.unrolling import unrolled, without_loops
from hopmap.topologies import Mapping, Topology

from .routing.routes import Routes, routes_of
from .virtual_channels import Channels, channels_of, no_rings

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RunPlan:
    """What an engine runs.

    Attributes
    ----------
    program : Program
    parameters : Parameters
    noise : Noise
        What the parameters' noise is on this program.
    links : int
        Number of links of the topology, the first servers.
    bandwidth, latency : ndarray(float64, shape=(servers,))
    compute : ndarray(float64, shape=(operations,))
        See `pauses`.
    channel : ndarray(int64, shape=(operations,))
        See `Program.channels`.
    path, back : ndarray(int64, shape=(operations,))
        Of a row that sends, the path of its message, and that of the grant.
    trips : ndarray(int64, shape=(operations,))
        How often each row runs.
    first : ndarray(int64, shape=(strands,))
        Number of the first message of each strand; the others follow in order.
    messages, bytes : int
        Sent in all.
    indptr : ndarray(int64, shape=(paths + 1,))
    servers : ndarray(int64)
        Path p is ``servers[indptr[p]:indptr[p + 1]]``; of a run with `routes`, its first and its
        last server hold, the others are as the topology's own route has them.
    classes : ndarray(int64)
        Of virtual channels, of every entry of `servers`, or ANY; empty where buffers are unbounded.
    lanes : int
        Virtual channels of each class, of which a packet takes the one with most room.
    routes : Routes or None
        How packets find their way, where paths are not fixed.
    channels : Channels or None
        And which virtual channels they take; then `classes` are all 0.
    number_bits, packet_bits : int
        For `model.order_key`.
    """

    program: Program
    parameters: Parameters
    noise: Noise
    links: int
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    compute: NDArray[np.float64]
    channel: Ints
    path: Ints
    back: Ints
    trips: Ints
    first: Ints
    messages: int
    bytes: int
    indptr: Ints
    servers: Ints
    classes: Ints
    lanes: int
    routes: Routes | None
    channels: Channels | None
    number_bits: int
    packet_bits: int

    def again(self, parameters: Parameters) -> RunPlan:
        """Return the same run with the noise of other parameters."""
        noise = noise_of(parameters, self.program)
        return replace(self, parameters=parameters, noise=noise)

    def controls(self, rows: Ints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which of the messages that rows send have a request, and which a grant or an answer."""
        mode, large = (
            self.program.mode[rows],
            self.program.size[rows] >= self.parameters.eager_limit,
        )
        asked = large & ~np.isin(mode, (model.READY, model.PUT, model.HARDWARE))
        return asked, asked | (mode == model.SYNCHRONOUS)

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
        """Place of each strand's first operation among all of them, loops written out."""
        return np.concatenate(([0], np.cumsum(self.trips)))[self.program.offsets[:-1]]


def plan_run(
    program: Program, topology: Topology, node_of: Mapping, parameters: Parameters
) -> RunPlan:
    """Place a program on a network.

    Raises
    ------
    ValueError
        A loop that makes no sense, see `Program.trips`.
    """
    send = program.sends()
    times = program.trips()
    sent = np.concatenate(([0], np.cumsum(times[send])))
    messages = int(sent[-1])

    source = node_of[program.rank_of_row()[send]]
    target = node_of[program.peer[send]]
    pairs = np.concatenate((source * topology.nodes + target, target * topology.nodes + source))
    pairs, path = numbered(pairs)
    indptr, servers = paths(topology, pairs // topology.nodes, pairs % topology.nodes)
    of_row = np.full((2, program.operations), -1, dtype=np.int64)
    of_row[:, send] = path.reshape(2, -1)

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
        trips=times,
        first=sent[np.searchsorted(send, program.offsets[:-1])],
        messages=messages,
        bytes=int((program.size[send] * times[send]).sum()),
        indptr=indptr,
        servers=servers,
        classes=classes,
        lanes=lanes,
        routes=routes,
        channels=channels,
        number_bits=max(messages, program.strands, buffers).bit_length(),
        packet_bits=(largest // parameters.packet_size + 1).bit_length(),
    )


def pauses(program: Program, parameters: Parameters) -> NDArray[np.float64]:
    """Seconds before each operation: computation, scaled, and what collectives do there."""
    seconds = program.compute * parameters.compute_scale
    work = program.work
    copy, reduce = parameters.collective_copy_per_byte, parameters.collective_reduce_per_byte
    if copy or reduce:
        seconds[work.row] += work.copied * copy + work.reduced * reduce
    block, puts = parameters.collective_per_block, parameters.collective_before_puts
    if block or puts:
        seconds[work.row] += work.blocks * block + work.prepared * puts
    if new := parameters.collective_new_per_byte:
        seconds[work.row] += work.new_memory(parameters.collective_new_from) * new
    return seconds


def computed(program: Program, parameters: Parameters) -> Program:
    """Return a program in which everything that takes a rank's time is computation, not scaled."""
    return replace(program, compute=pauses(program, parameters), work=no_work())


def flat(ready: RunPlan) -> RunPlan:
    """Write out the loops of a plan, for engines in which every row runs once.

    Messages keep their numbers, which count them in the order of the rows written out.
    """
    program = ready.program
    if not (program.kind == Op.REPEAT).any():
        return ready
    order = unrolled(program)
    columns = ("compute", "channel", "path", "back")
    return replace(
        ready,
        program=without_loops(program),
        trips=np.ones(len(order), dtype=np.int64),
        **{column: getattr(ready, column)[order] for column in columns},
    )


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


def speeds(
    topology: Topology, parameters: Parameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
