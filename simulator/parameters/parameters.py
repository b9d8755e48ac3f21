"""Parameters of a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopmap.errors import choice
from hopmap.simulator.collectives.algorithms import ALGORITHMS

from .keys import KEYS, ParameterError, check, key_of


@dataclass(frozen=True)
class Parameters:
    """End points, packets and collectives; links belong to the `Topology`.

    The defaults are TraceR's for a generic torus (hpcgroup/TraceR, examples/conf/torus.conf),
    memory apart, which is assumed.

    Attributes
    ----------
    overhead_send, overhead_recv : float
        Seconds a rank is busy per message sent, and per message received.
    overhead_per_byte : float
        LogGOPS's O: seconds that a rank is busy for every byte of an eager message, as it sends it
        and as it receives it.
    overhead_control : float
        Seconds from the arrival of a request, grant or acknowledgement until it is handled.
    overhead_put_latency : float
        Seconds after which a put's target is told of it; it is busy with a put for so much less.
    gap, gap_per_byte : float
        LogGP's g and G at a rank's end point: seconds from the last byte of a message to the next
        message, and seconds for every byte but the first, before the network.
    eager_limit : int
        Messages below so many bytes leave at once; others wait for their receive.
    copy_per_byte : float
        Seconds that a rank copies a byte of a message that is there before its receive, or that is
        sent in buffered mode.
    progress : {"asynchronous", "calls"}
        Whether a rank answers requests and grants at any time, or not while it computes.
    packet_size : int
        Bytes of a full packet.
    control_bytes : int
        Bytes of a rendezvous' request, and of its grant.
    injection_bandwidth, injection_latency, ejection_bandwidth, ejection_latency : float
        bytes/s and seconds of the links between a node and the network, shared by its ranks.
    nic : {"fifo", "round_robin"}
        Whether packets leave a node in the order in which messages are sent, or control messages
        first, then its ranks in turn, and of a rank its peers.
    nic_rails : int
        Packets that a node injects at a time, each at the injection bandwidth; with "round_robin",
        and unbounded buffers.
    memory_bandwidth, memory_latency : float
        bytes/s and seconds between ranks of one node, which share it.
    compute_scale : float
        Factor on the recorded computation; 0 leaves it out.
    collective_copy_per_byte, collective_reduce_per_byte : float
        Seconds for every byte that a member of a collective copies, and for every byte of a result
        to which it adds others; not scaled.
    collective_per_block : float
        Seconds besides for every block that a member of a collective copies by itself.
    collective_before_puts : float
        Seconds that a member prepares a collective that puts data into memory.
    collective_new_per_byte, collective_new_from : float, int
        Seconds for every byte of a buffer that a collective allocates, if it has so many bytes or
        more: smaller ones are memory that was there before.
    switching : {"cut_through", "store_and_forward"}
        Whether a packet moves on with its head or with its tail.
    network_buffer, network_virtual_channels : int
        Packets that each virtual channel of a link holds where the link ends, 0 for any number, and
        virtual channels of each link.
    network_arbitration : {"round_robin", "age"}
        Whether a link that is free takes a packet of the buffers that wait for it in turn, or the
        packet that has been in the network for longest.
    network_flit : int
        Bytes that a credit is for: a place can be taken again when so much of its packet has left
        (wormhole, where the next packet follows flit by flit); 0: when all of it has.
    network_credit_delay : float
        Seconds, besides the link's latency, until a buffer that has become free is known of at the
        other end of the link.
    network_routing : str
        How packets find their way, one of `ROUTING`, see `simulator/route_choices.py`;
        "deterministic": by the topology's own routes.
    network_routing_seed : int
        The same seed gives the same draws for a packet of a message.
    flow_latency_factor, flow_bandwidth_factor, flow_cross_traffic : float
        Of the flow engine alone: factors on all latencies and bandwidths, and what a flow takes of
        a server for every byte that it moves.
    flow_sharing : {"equal", "round_trip"}
        Of the flow engine alone: whether flows that meet have equal shares, or smaller ones the
        longer their path's latency is.
    flow_weight_s : float
        Of the flow engine alone, with "round_trip": bytes, SimGrid's weight-S; divided by its
        bandwidth it counts as latency of every server.
    noise_compute, noise_overhead : float
        Relative standard deviation of every pause of computation, and of every overhead; 0: none.
    noise_start : float
        Seconds by which ranks start late in the mean, exponentially distributed.
    noise_distribution : {"lognormal", "gamma"}
        Of the factors on pauses.
    noise_seed : int
        The same seed gives the same draws, whatever the mapping.
    energy : mapping of str to float
        Figures of `energy.energy_of`, by key without the leading "energy."; none, no energy.
    algorithms : mapping of str to str
        Algorithm of a collective operation, of `collectives.ALGORITHMS`, where Open MPI's choice by
        members and bytes is not wanted; with options if it has some, "chain(fanout=4)".
    """

    overhead_send: float = 200e-9
    overhead_recv: float = 200e-9
    overhead_per_byte: float = 0.0
    overhead_control: float = 0.0
    overhead_put_latency: float = 0.0
    gap: float = 0.0
    gap_per_byte: float = 0.0
    eager_limit: int = 64000
    copy_per_byte: float = 0.0
    progress: str = "asynchronous"
    packet_size: int = 8192
    control_bytes: int = 0
    injection_bandwidth: float = 24e9
    injection_latency: float = 200e-9
    ejection_bandwidth: float = 24e9
    ejection_latency: float = 200e-9
    nic: str = "fifo"
    nic_rails: int = 1
    memory_bandwidth: float = 20e9
    memory_latency: float = 200e-9
    compute_scale: float = 1.0
    collective_copy_per_byte: float = 0.0
    collective_reduce_per_byte: float = 0.0
    collective_per_block: float = 0.0
    collective_before_puts: float = 0.0
    collective_new_per_byte: float = 0.0
    collective_new_from: int = 32 * 2**20
    switching: str = "cut_through"
    network_buffer: int = 0
    network_virtual_channels: int = 1
    network_arbitration: str = "round_robin"
    network_flit: int = 0
    network_credit_delay: float = 0.0
    network_routing: str = "deterministic"
    network_routing_seed: int = 0
    flow_latency_factor: float = 1.0
    flow_bandwidth_factor: float = 1.0
    flow_cross_traffic: float = 1.0
    flow_sharing: str = "equal"
    flow_weight_s: float = 0.0
    noise_compute: float = 0.0
    noise_overhead: float = 0.0
    noise_start: float = 0.0
    noise_distribution: str = "lognormal"
    noise_seed: int = 0
    algorithms: Mapping[str, str] = field(default_factory=dict)
    energy: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, entry in KEYS.items():
            if entry.field:
                check(key, getattr(self, entry.field), entry)
        if self.nic_rails > 1 and self.nic == "fifo":
            raise ParameterError(f"nic.rails {self.nic_rails}: expected 1 with nic fifo")
        if self.nic_rails > 1 and self.network_buffer:
            raise ParameterError(f"nic.rails {self.nic_rails}: expected 1 with network.buffer")
        for operation, algorithm in self.algorithms.items():
            if operation not in ALGORITHMS:
                raise ParameterError(choice("unknown collective", operation, ALGORITHMS))
            check(f"collective.{operation}", algorithm, KEYS[f"collective.{operation}"])
        for name, figure in self.energy.items():
            check(f"energy.{name}", figure, key_of(f"energy.{name}"))


def parameters_from(settings: Mapping[str, Any]) -> Parameters:
    """Build `Parameters` from dotted keys; what is not named keeps its default.

    Parameters
    ----------
    settings : mapping of str to float, int or str
        Keys that `key_of` knows, numbers in the unit given there.

    Examples
    --------
    >>> parameters_from({"overhead.send": 1e-6, "collective.bcast": "linear"}).algorithms
    {'bcast': 'linear'}
    """
    whole = {f.name for f in fields(Parameters) if f.type == "int"}
    given: dict[str, Any] = {}
    algorithms: dict[str, str] = {}
    energy: dict[str, float] = {}
    for key, value in settings.items():
        entry = key_of(key)
        check(key, value, entry)
        if key.startswith("energy."):
            energy[key.removeprefix("energy.")] = float(value)
        elif not entry.field:
            algorithms[key.removeprefix("collective.")] = value
        elif entry.field in whole:
            if value != int(value):
                of_bytes = " of bytes" * (entry.unit == "bytes")
                raise ParameterError(f"{key} {value}: expected a whole number{of_bytes}")
            given[entry.field] = int(value)
        else:
            given[entry.field] = value if entry.choices else float(value)
    return Parameters(**given, algorithms=algorithms, energy=energy)
