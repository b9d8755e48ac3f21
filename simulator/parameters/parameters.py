"""Parameters of a replay, and the dotted keys by which scenarios and ``--set`` name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopmap.errors import expect_one_of
from hopmap.simulator.collectives.algorithms import ALGORITHMS
from hopmap.simulator.collectives.selection import OPENMPI

from .energy import LINK, MEANS, NODE
from .keys import (
    DISTRIBUTIONS,
    MOST_CHANNELS,
    MOST_NOISE,
    MOST_PLACES,
    ROUTING,
    Key,
    ParameterError,
    check,
)

GROUPS = (
    *("overhead", "injection", "ejection", "nic", "memory", "compute", "collective"),
    *("network", "flow", "noise"),
)


def _number(default: float, unit: str, summary: str, **limits: float) -> Any:
    """Declare a parameter that is a number; for what is said of it see `Key`."""
    return field(default=default, metadata={"unit": unit, "summary": summary, **limits})


def _word(choices: tuple[str, ...], summary: str) -> Any:
    """Declare a parameter that is a word, the first of these by default."""
    about = {"unit": "", "summary": summary, "choices": choices}
    return field(default=choices[0], metadata=about)


@dataclass(frozen=True)
class Parameters:
    """End points, packets and collectives; links belong to the `Topology`.

    The defaults are TraceR's for a generic torus (hpcgroup/TraceR, examples/conf/torus.conf),
    memory apart, which is assumed. Each field stands with its default, its unit and what it means,
    as ``hopmap list parameters`` prints them; "overhead.send" is its key in files, see `KEYS`.
    """

    overhead_send: float = _number(200e-9, "s", "time a rank is busy for a message that it sends")
    overhead_recv: float = _number(
        200e-9, "s", "time a rank is busy for a message that it receives"
    )
    overhead_per_byte: float = _number(
        0.0,
        "s/byte",
        "LogGOPS's O: time a rank is busy for a byte of an eager message, at both ends",
    )
    overhead_control: float = _number(
        0.0, "s", "time to handle a request, a grant or an acknowledgement that has arrived"
    )
    # its target notices a put so late, and is busy with it for so much less
    overhead_put_latency: float = _number(
        0.0, "s", "of overhead.recv, time in which a put's target is not busy with it yet"
    )
    # from the last byte of a message, at a rank's end point, before the network
    gap: float = _number(0.0, "s", "LogGP's g: time from one message of a rank to its next")
    gap_per_byte: float = _number(
        0.0, "s/byte", "LogGP's G: time for every byte but the first at a rank's end point"
    )
    eager_limit: int = _number(
        64000, "bytes", "messages below leave at once, others wait for their receive"
    )
    # as where a library has large buffers for so many peers (Fujitsu MPI: max_fastmode_procs)
    eager_peers: int = _number(
        0, "1", "senders for whose messages up to eager_limit a rank has room, 0: any number"
    )
    eager_limit_beyond: int = _number(
        2048, "bytes", "eager_limit of messages to a rank with more senders than eager_peers"
    )
    # as where data leave from the user's buffer (Open MPI: a BTL that sends in place)
    eager_completion: float = _number(
        0.0, "s", "time after its last byte has left until an eager send is over, 0: over at once"
    )
    copy_per_byte: float = _number(
        0.0,
        "s/byte",
        "time to copy a byte of a message that comes before its receive, or of a Bsend",
    )
    progress: str = _word(
        ("asynchronous", "in_mpi_calls"),
        "whether ranks answer requests at any time, or not while they compute",
    )
    packet_size: int = _number(8192, "bytes", "bytes of a full packet", minimum=1)
    control_bytes: int = _number(0, "bytes", "bytes of a rendezvous' request, and of its grant")
    injection_bandwidth: float = _number(
        24e9, "bytes/s", "bandwidth from a node into the network, shared by its ranks"
    )
    injection_latency: float = _number(200e-9, "s", "latency from a node into the network")
    ejection_bandwidth: float = _number(
        24e9, "bytes/s", "bandwidth from the network into a node, shared by its ranks"
    )
    ejection_latency: float = _number(200e-9, "s", "latency from the network into a node")
    # round_robin: control messages go first, then ranks in turn, and of a rank its peers
    nic: str = _word(
        ("fifo", "round_robin"),
        "whether messages leave a node one after the other, or ranks and peers in turn",
    )
    # each at the injection bandwidth
    nic_rails: int = _number(
        1,
        "1",
        "packets that a node injects at a time, with round_robin and network.buffer 0",
        minimum=1,
    )
    memory_bandwidth: float = _number(
        20e9, "bytes/s", "bandwidth between ranks of one node, which share it"
    )
    memory_latency: float = _number(200e-9, "s", "latency between ranks of one node")
    compute_scale: float = _number(1.0, "1", "factor on the recorded computation, 0 leaves it out")
    # what members of a collective do is not scaled by `compute_scale`
    collective_copy_per_byte: float = _number(
        0.0, "s/byte", "time to copy a byte within a collective, such as a member's own block"
    )
    # for every byte of a result to which a member adds others
    collective_reduce_per_byte: float = _number(
        0.0, "s/byte", "time to add up a byte within a collective"
    )
    collective_per_block: float = _number(
        0.0, "s", "extra time for a block that is copied by itself within a collective"
    )
    collective_put_setup: float = _number(
        0.0, "s", "time in which a member prepares a collective that puts data into memory"
    )
    collective_fresh_memory_per_byte: float = _number(
        0.0,
        "s/byte",
        "time for a byte of memory that a collective allocates, and has not had before",
    )
    # smaller ones are memory that was there before
    collective_fresh_memory_threshold: int = _number(
        32 * 2**20,
        "bytes",
        "buffers from here on are new memory in every call (glibc's 32 MiB)",
        minimum=1,
    )
    switching: str = _word(
        ("cut_through", "store_and_forward"),
        "whether a packet moves on with its head or with its tail",
    )
    network_buffer: int = _number(
        0,
        "1",
        "packets that a virtual channel holds at the end of a link, 0 for any number",
        maximum=MOST_PLACES,
    )
    network_virtual_channels: int = _number(
        1, "1", "of every link, with a buffer each", minimum=1, maximum=MOST_CHANNELS
    )
    # the oldest has been in the network for longest
    network_arbitration: str = _word(
        ("round_robin", "age"), "whose packet a free link takes: of buffers in turn, or the oldest"
    )
    # as in wormhole routers, where the next packet follows flit by flit
    network_flit: int = _number(
        0, "bytes", "what has left of a packet when its place can be taken again, 0 for all of it"
    )
    network_credit_delay: float = _number(
        0.0, "s", "time after the link's latency until the link before knows of a freed buffer"
    )
    # see `simulator/routes.py`; deterministic: by the topology's own routes
    network_routing: str = _word(ROUTING, "by which algorithm packets find their way, as they go")
    # BookSim2 looks routes up one hop ahead
    network_routing_decision: str = _word(
        ("in_router", "one_hop_ahead"),
        "where UGAL decides: first in a router's buffer, or before the packet leaves for it",
    )
    # the same seed gives the same draws for a packet of a message
    network_routing_seed: int = _number(
        0, "1", "what ways and places at random are drawn from", maximum=2**32 - 1
    )
    flow_latency_factor: float = _number(1.0, "1", "flow engine: factor on all latencies")
    flow_bandwidth_factor: float = _number(
        1.0, "1", "flow engine: factor on all bandwidths", positive=True
    )
    flow_cross_traffic: float = _number(
        1.0, "1", "flow engine: what a flow takes of a server for every byte moved", minimum=1
    )
    # round_trip: the longer the latency of a flow's path, the smaller its share
    flow_sharing: str = _word(
        ("equal", "round_trip"), "flow engine: equal shares, or smaller ones for longer paths"
    )
    # divided by its bandwidth it counts as latency of every server
    flow_weight_s: float = _number(0.0, "bytes", "flow engine: SimGrid's weight-S, with round_trip")
    noise_compute: float = _number(
        0.0, "1", "relative standard deviation of every computation, 0 for none", maximum=MOST_NOISE
    )
    noise_overhead: float = _number(
        0.0, "1", "relative standard deviation of every overhead, 0 for none", maximum=MOST_NOISE
    )
    # exponentially distributed
    noise_start: float = _number(0.0, "s", "time by which ranks start late, in the mean")
    noise_distribution: str = _word(DISTRIBUTIONS, "of the factors on computation and overheads")
    # the same seed gives the same draws for every mapping
    noise_seed: int = _number(0, "1", "what noise is drawn from", maximum=2**32 - 1)
    # by operation, of `ALGORITHMS`, where Open MPI's choice by members and bytes is not wanted;
    # with options if it has some, "chain(fanout=4)"
    algorithms: Mapping[str, str] = field(default_factory=dict)
    # figures of `energy.energy_of`, by key without the leading "energy."; none, no energy
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
            expect_one_of(ParameterError, "unknown collective", operation, ALGORITHMS)
            check(f"collective.{operation}", algorithm, KEYS[f"collective.{operation}"])
        for name, figure in self.energy.items():
            check(f"energy.{name}", figure, key_of(f"energy.{name}"))


def _key_of(name: str) -> str:
    """Key of a field: "overhead.send" of overhead_send, and "packet_size" of itself."""
    group, _, rest = name.partition("_")
    return f"{group}.{rest}" if rest and group in GROUPS else name


KEYS: Mapping[str, Key] = (
    {_key_of(f.name): Key(f.name, **f.metadata) for f in fields(Parameters) if f.metadata}
    | {f"energy.link.{quantity}": Key("", unit, MEANS[quantity]) for quantity, unit in LINK.items()}
    | {f"energy.node.{quantity}": Key("", unit, MEANS[quantity]) for quantity, unit in NODE.items()}
    | {
        f"collective.{name}": Key("", "", choices=(OPENMPI, *table))
        for name, table in ALGORITHMS.items()
    }
)


def key_of(name: str) -> Key:
    """Return what a dotted key means; "energy.link.KIND.static" is as "energy.link.static"."""
    words = name.split(".")
    if len(words) == 4 and words[:2] == ["energy", "link"] and words[3] in LINK:
        return KEYS[f"energy.link.{words[3]}"]
    expect_one_of(ParameterError, "unknown parameter", name, KEYS)
    return KEYS[name]


def parameters_from(settings: Mapping[str, Any]) -> Parameters:
    """Build `Parameters` from dotted keys, in the unit of each; the others keep their defaults."""
    whole = {f.name for f in fields(Parameters) if f.type == "int"}
    values: dict[str, Any] = {}
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
            values[entry.field] = int(value)
        else:
            values[entry.field] = value if entry.choices else float(value)
    return Parameters(**values, algorithms=algorithms, energy=energy)
