"""Dotted keys by which scenarios and ``--set`` name parameters: units, ranges, what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from hopmap.errors import HopmapError, choice
from hopmap.simulator.collectives.algorithms import ALGORITHMS
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.collectives.selection import OPENMPI, named

from .energy import LINK, MEANS, NODE

SWITCHING = ("cut_through", "store_and_forward")
SHARING = ("equal", "round_trip")
DISTRIBUTIONS = ("lognormal", "gamma")
PROGRESS = ("asynchronous", "calls")
NIC = ("fifo", "round_robin")
ARBITRATION = ("round_robin", "age")
DETERMINISTIC = "deterministic"  # by the topology's own routes
ROUTING = (DETERMINISTIC, "adaptive", "spraying", "valiant", "ugal_l", "ugal_g", "par")


class ParameterError(HopmapError, ValueError):
    """A parameter of a replay is unknown or out of range; names key, value and expected."""


def expect_fixed_routes(routing: str, what: str) -> None:
    """Raise `ParameterError` where routes are chosen on the way, for what knows fixed ones only."""
    if routing != DETERMINISTIC:
        raise ParameterError(
            f"network.routing {routing}: {what} with fixed routes: expected {DETERMINISTIC}"
        )


class Key(NamedTuple):
    """What a dotted key means."""

    # field of `Parameters`; empty for ``collective.*`` and ``energy.*``, which go to
    # `Parameters.algorithms` and `Parameters.energy`
    field: str
    # "bytes/s", "s", "s/byte", "bytes", "J/byte", "W", "1" for a plain number, or "" for one of
    # `choices`
    unit: str
    summary: str = ""  # what `hopmap list parameters` says
    # minimum, maximum: least and largest value that is allowed; bandwidths, and what is `positive`,
    # must be above the least
    minimum: float = 0
    choices: tuple[str, ...] = ()  # allowed words, the default first
    positive: bool = False  # whether 0 is not allowed either
    maximum: float = math.inf


MOST_NOISE = 2  # beyond, 4096 quantiles no longer tell a distribution
MOST_BYTES = 2**60  # with room to add in int64
MOST_CHANNELS = 2**15 - 1  # classes of channels are of 16 bits
MOST_PLACES = 2**31 - 1  # of a channel; of all of a link with room to add in int64

GROUPS = (
    *("overhead", "injection", "ejection", "nic", "memory", "compute", "collective"),
    *("network", "flow", "noise"),
)


def _dotted(field: str) -> str:
    """Key of a field: "overhead.send" of overhead_send, and "packet_size" of itself."""
    group, _, rest = field.partition("_")
    return f"{group}.{rest}" if rest and group in GROUPS else field


_OF_FIELDS = (
    Key("overhead_send", "s", "time a rank is busy for a message that it sends"),
    Key("overhead_recv", "s", "time a rank is busy for a message that it receives"),
    Key(
        "overhead_per_byte",
        "s/byte",
        "LogGOPS's O: time a rank is busy for a byte of an eager message, at both ends",
    ),
    Key(
        "overhead_control",
        "s",
        "time to handle a request, a grant or an acknowledgement that has arrived",
    ),
    Key(
        "overhead_put_latency",
        "s",
        "of overhead.recv, time in which a put's target is not busy with it yet",
    ),
    Key("gap", "s", "LogGP's g: time from one message of a rank to its next"),
    Key(
        "gap_per_byte",
        "s/byte",
        "LogGP's G: time for every byte but the first at a rank's end point",
    ),
    Key("eager_limit", "bytes", "messages below leave at once, others wait for their receive"),
    Key(
        "copy_per_byte",
        "s/byte",
        "time to copy a byte of a message that comes before its receive, or of a Bsend",
    ),
    Key(
        "progress",
        "",
        "whether ranks answer requests at any time, or not while they compute",
        choices=PROGRESS,
    ),
    Key("packet_size", "bytes", "bytes of a full packet", minimum=1),
    Key("control_bytes", "bytes", "bytes of a rendezvous' request, and of its grant"),
    Key(
        "injection_bandwidth",
        "bytes/s",
        "bandwidth from a node into the network, shared by its ranks",
    ),
    Key("injection_latency", "s", "latency from a node into the network"),
    Key(
        "ejection_bandwidth",
        "bytes/s",
        "bandwidth from the network into a node, shared by its ranks",
    ),
    Key("ejection_latency", "s", "latency from the network into a node"),
    Key(
        "nic",
        "",
        "whether messages leave a node one after the other, or ranks and peers in turn",
        choices=NIC,
    ),
    Key(
        "nic_rails",
        "1",
        "packets that a node injects at a time, with round_robin and network.buffer 0",
        minimum=1,
    ),
    Key("memory_bandwidth", "bytes/s", "bandwidth between ranks of one node, which share it"),
    Key("memory_latency", "s", "latency between ranks of one node"),
    Key("compute_scale", "1", "factor on the recorded computation, 0 leaves it out"),
    Key(
        "collective_copy_per_byte",
        "s/byte",
        "time to copy a byte within a collective, such as a member's own block",
    ),
    Key("collective_reduce_per_byte", "s/byte", "time to add up a byte within a collective"),
    Key(
        "collective_per_block",
        "s",
        "time besides for a block that is copied by itself within a collective",
    ),
    Key(
        "collective_before_puts",
        "s",
        "time in which a member prepares a collective that puts data into memory",
    ),
    Key(
        "collective_new_per_byte",
        "s/byte",
        "time for a byte of memory that a collective allocates, and has not had before",
    ),
    Key(
        "collective_new_from",
        "bytes",
        "buffers from here on are new memory in every call (glibc's 32 MiB)",
        minimum=1,
    ),
    Key(
        "switching",
        "",
        "whether a packet moves on with its head or with its tail",
        choices=SWITCHING,
    ),
    Key(
        "network_buffer",
        "1",
        "packets that a virtual channel holds at the end of a link, 0 for any number",
        maximum=MOST_PLACES,
    ),
    Key(
        "network_virtual_channels",
        "1",
        "of every link, with a buffer each",
        minimum=1,
        maximum=MOST_CHANNELS,
    ),
    Key(
        "network_arbitration",
        "",
        "whose packet a free link takes: of buffers in turn, or the oldest",
        choices=ARBITRATION,
    ),
    Key(
        "network_flit",
        "bytes",
        "what has left of a packet when its place can be taken again, 0 for all of it",
    ),
    Key(
        "network_credit_delay",
        "s",
        "time besides the link's latency until a freed buffer is known before the link",
    ),
    Key(
        "network_routing",
        "",
        "by which algorithm packets find their way, as they go",
        choices=ROUTING,
    ),
    Key(
        "network_routing_seed",
        "1",
        "what ways and places at random are drawn from",
        maximum=2**32 - 1,
    ),
    Key("flow_latency_factor", "1", "flow engine: factor on all latencies"),
    Key("flow_bandwidth_factor", "1", "flow engine: factor on all bandwidths", positive=True),
    Key(
        "flow_cross_traffic",
        "1",
        "flow engine: what a flow takes of a server for every byte moved",
        minimum=1,
    ),
    Key(
        "flow_sharing",
        "",
        "flow engine: equal shares, or smaller ones for longer paths",
        choices=SHARING,
    ),
    Key("flow_weight_s", "bytes", "flow engine: SimGrid's weight-S, with round_trip"),
    Key(
        "noise_compute",
        "1",
        "relative standard deviation of every computation, 0 for none",
        maximum=MOST_NOISE,
    ),
    Key(
        "noise_overhead",
        "1",
        "relative standard deviation of every overhead, 0 for none",
        maximum=MOST_NOISE,
    ),
    Key("noise_start", "s", "time by which ranks start late, in the mean"),
    Key(
        "noise_distribution",
        "",
        "of the factors on computation and overheads",
        choices=DISTRIBUTIONS,
    ),
    Key("noise_seed", "1", "what noise is drawn from", maximum=2**32 - 1),
)
KEYS: Mapping[str, Key] = (
    {_dotted(key.field): key for key in _OF_FIELDS}
    | {f"energy.link.{quantity}": Key("", unit, MEANS[quantity]) for quantity, unit in LINK.items()}
    | {f"energy.node.{quantity}": Key("", unit, MEANS[quantity]) for quantity, unit in NODE.items()}
    | {
        f"collective.{name}": Key("", "", choices=(OPENMPI, *table))
        for name, table in ALGORITHMS.items()
    }
)


ASSUMED = ("control_bytes", "memory.bandwidth", "memory.latency")
"""Keys whose defaults no source confirms; the others are TraceR's, or change nothing."""


def key_of(name: str) -> Key:
    """Return what a dotted key means; "energy.link.KIND.static" is as "energy.link.static"."""
    words = name.split(".")
    if len(words) == 4 and words[:2] == ["energy", "link"] and words[3] in LINK:
        return KEYS[f"energy.link.{words[3]}"]
    if name not in KEYS:
        raise ParameterError(choice("unknown parameter", name, KEYS))
    return KEYS[name]


def names_algorithm(key: str) -> bool:
    """Whether a dotted key names the algorithm of a collective."""
    return key.startswith("collective.") and key.removeprefix("collective.") in ALGORITHMS


def check(key: str, value: Any, entry: Key) -> None:
    """Raise `ParameterError` for a value that the key does not take."""
    if entry.choices:
        if value not in entry.choices and not ("(" in str(value) and _is_algorithm(key, value)):
            raise ParameterError(choice(key, value, entry.choices))
        return
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{key} {value!r}: expected a finite number ({entry.unit})")
    if (entry.unit == "bytes/s" or entry.positive) and not number > 0:
        raise ParameterError(f"{key} {value}: expected more than 0 {entry.unit}".removesuffix(" 1"))
    if entry.unit == "bytes" and number > MOST_BYTES:
        raise ParameterError(f"{key} {value}: expected at most {MOST_BYTES} bytes")
    if number > entry.maximum:
        raise ParameterError(f"{key} {value}: expected at most {entry.maximum:.10g}")
    if number < entry.minimum:
        least = f"{entry.minimum:g} {entry.unit}".removesuffix(" 1")
        raise ParameterError(f"{key} {value}: expected at least {least}")


def _is_algorithm(key: str, text: str) -> bool:
    """Whether a key takes algorithms; an error if it does and this is none of them."""
    table = ALGORITHMS.get(key.removeprefix("collective."))
    try:
        return table is not None and bool(named(text, table))
    except AlgorithmError as error:
        raise ParameterError(f"{key} {error}") from None
