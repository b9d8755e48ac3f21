"""Dotted keys by which scenarios and ``--set`` name parameters: units, ranges, what they mean."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from numbers import Real
from typing import Any, NamedTuple

from hopmap.errors import HopmapError
from hopmap.simulator.collectives.algorithms import ALGORITHMS
from hopmap.simulator.collectives.naming import named
from hopmap.simulator.collectives.schedules import AlgorithmError
from hopmap.simulator.collectives.selection import OPENMPI

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
    """What a dotted key means.

    Attributes
    ----------
    field : str
        Field of `Parameters`; empty for ``collective.*`` and ``energy.*``, which go to
        `Parameters.algorithms` and `Parameters.energy`.
    unit : str
        "bytes/s", "s", "s/byte", "bytes", "J/byte", "W", "1" for a plain number, or "" for one of
        `choices`.
    minimum, maximum : float
        Least and largest value that is allowed; bandwidths, and what is `positive`, must be above
        the least.
    choices : tuple of str
        Allowed words, the default first.
    positive : bool
        Whether 0 is not allowed either.
    summary : str
        What `hopmap list parameters` says.
    """

    field: str
    unit: str
    minimum: float = 0
    choices: tuple[str, ...] = ()
    positive: bool = False
    summary: str = ""
    maximum: float = math.inf


MOST_NOISE = 2  # beyond, 4096 quantiles no longer tell a distribution
MOST_BYTES = 2**60  # with room to add in int64
MOST_CHANNELS = 2**15 - 1  # classes of channels are of 16 bits
MOST_PLACES = 2**31 - 1  # of a channel; of all of a link with room to add in int64

KEYS: Mapping[str, Key] = (
    {
        "overhead.send": Key(
            "overhead_send", "s", summary="time a rank is busy for a message that it sends"
        ),
        "overhead.recv": Key(
            "overhead_recv", "s", summary="time a rank is busy for a message that it receives"
        ),
        "overhead.per_byte": Key(
            "overhead_per_byte",
            "s/byte",
            summary="LogGOPS's O: time a rank is busy for a byte of an eager message, at both ends",
        ),
        "overhead.control": Key(
            "overhead_control",
            "s",
            summary="time to handle a request, a grant or an acknowledgement that has arrived",
        ),
        "overhead.put_latency": Key(
            "overhead_put_latency",
            "s",
            summary="of overhead.recv, time in which a put's target is not busy with it yet",
        ),
        "gap": Key("gap", "s", summary="LogGP's g: time from one message of a rank to its next"),
        "gap_per_byte": Key(
            "gap_per_byte",
            "s/byte",
            summary="LogGP's G: time for every byte but the first at a rank's end point",
        ),
        "eager_limit": Key(
            "eager_limit",
            "bytes",
            summary="messages below leave at once, others wait for their receive",
        ),
        "copy_per_byte": Key(
            "copy_per_byte",
            "s/byte",
            summary="time to copy a byte of a message that comes before its receive, or of a Bsend",
        ),
        "progress": Key(
            "progress",
            "",
            choices=PROGRESS,
            summary="whether ranks answer requests at any time, or not while they compute",
        ),
        "packet_size": Key("packet_size", "bytes", minimum=1, summary="bytes of a full packet"),
        "control_bytes": Key(
            "control_bytes", "bytes", summary="bytes of a rendezvous' request, and of its grant"
        ),
        "injection.bandwidth": Key(
            "injection_bandwidth",
            "bytes/s",
            summary="bandwidth from a node into the network, shared by its ranks",
        ),
        "injection.latency": Key(
            "injection_latency", "s", summary="latency from a node into the network"
        ),
        "ejection.bandwidth": Key(
            "ejection_bandwidth",
            "bytes/s",
            summary="bandwidth from the network into a node, shared by its ranks",
        ),
        "ejection.latency": Key(
            "ejection_latency", "s", summary="latency from the network into a node"
        ),
        "nic": Key(
            "nic",
            "",
            choices=NIC,
            summary="whether messages leave a node one after the other, or ranks and peers in turn",
        ),
        "nic.rails": Key(
            "nic_rails",
            "1",
            minimum=1,
            summary="packets that a node injects at a time, with round_robin and network.buffer 0",
        ),
        "memory.bandwidth": Key(
            "memory_bandwidth",
            "bytes/s",
            summary="bandwidth between ranks of one node, which share it",
        ),
        "memory.latency": Key("memory_latency", "s", summary="latency between ranks of one node"),
        "compute.scale": Key(
            "compute_scale", "1", summary="factor on the recorded computation, 0 leaves it out"
        ),
        "collective.copy_per_byte": Key(
            "collective_copy_per_byte",
            "s/byte",
            summary="time to copy a byte within a collective, such as a member's own block",
        ),
        "collective.reduce_per_byte": Key(
            "collective_reduce_per_byte",
            "s/byte",
            summary="time to add up a byte within a collective",
        ),
        "collective.per_block": Key(
            "collective_per_block",
            "s",
            summary="time besides for a block that is copied by itself within a collective",
        ),
        "collective.before_puts": Key(
            "collective_before_puts",
            "s",
            summary="time in which a member prepares a collective that puts data into memory",
        ),
        "collective.new_per_byte": Key(
            "collective_new_per_byte",
            "s/byte",
            summary="time for a byte of memory that a collective allocates, and has not had before",
        ),
        "collective.new_from": Key(
            "collective_new_from",
            "bytes",
            minimum=1,
            summary="buffers from here on are new memory in every call (glibc's 32 MiB)",
        ),
        "switching": Key(
            "switching",
            "",
            choices=SWITCHING,
            summary="whether a packet moves on with its head or with its tail",
        ),
        "network.buffer": Key(
            "network_buffer",
            "1",
            maximum=MOST_PLACES,
            summary="packets that a virtual channel holds at the end of a link, 0 for any number",
        ),
        "network.virtual_channels": Key(
            "network_virtual_channels",
            "1",
            minimum=1,
            maximum=MOST_CHANNELS,
            summary="of every link, with a buffer each",
        ),
        "network.arbitration": Key(
            "network_arbitration",
            "",
            choices=ARBITRATION,
            summary="whose packet a free link takes: of buffers in turn, or the oldest",
        ),
        "network.flit": Key(
            "network_flit",
            "bytes",
            summary="what has left of a packet when its place can be taken again, 0 for all of it",
        ),
        "network.credit_delay": Key(
            "network_credit_delay",
            "s",
            summary="time besides the link's latency until a freed buffer is known before the link",
        ),
        "network.routing": Key(
            "network_routing",
            "",
            choices=ROUTING,
            summary="by which algorithm packets find their way, as they go",
        ),
        "network.routing_seed": Key(
            "network_routing_seed",
            "1",
            maximum=2**32 - 1,
            summary="what ways and places at random are drawn from",
        ),
        "flow.latency_factor": Key(
            "flow_latency_factor", "1", summary="flow engine: factor on all latencies"
        ),
        "flow.bandwidth_factor": Key(
            "flow_bandwidth_factor",
            "1",
            positive=True,
            summary="flow engine: factor on all bandwidths",
        ),
        "flow.cross_traffic": Key(
            "flow_cross_traffic",
            "1",
            minimum=1,
            summary="flow engine: what a flow takes of a server for every byte moved",
        ),
        "flow.sharing": Key(
            "flow_sharing",
            "",
            choices=SHARING,
            summary="flow engine: equal shares, or smaller ones for longer paths",
        ),
        "flow.weight_s": Key(
            "flow_weight_s", "bytes", summary="flow engine: SimGrid's weight-S, with round_trip"
        ),
        "noise.compute": Key(
            "noise_compute",
            "1",
            maximum=MOST_NOISE,
            summary="relative standard deviation of every computation, 0 for none",
        ),
        "noise.overhead": Key(
            "noise_overhead",
            "1",
            maximum=MOST_NOISE,
            summary="relative standard deviation of every overhead, 0 for none",
        ),
        "noise.start": Key(
            "noise_start", "s", summary="time by which ranks start late, in the mean"
        ),
        "noise.distribution": Key(
            "noise_distribution",
            "",
            choices=DISTRIBUTIONS,
            summary="of the factors on computation and overheads",
        ),
        "noise.seed": Key("noise_seed", "1", maximum=2**32 - 1, summary="what noise is drawn from"),
    }
    | {
        f"energy.link.{quantity}": Key("", unit, summary=MEANS[quantity])
        for quantity, unit in LINK.items()
    }
    | {
        f"energy.node.{quantity}": Key("", unit, summary=MEANS[quantity])
        for quantity, unit in NODE.items()
    }
    | {
        f"collective.{name}": Key("", "", choices=(OPENMPI, *table))
        for name, table in ALGORITHMS.items()
    }
)


ASSUMED = ("control_bytes", "memory.bandwidth", "memory.latency")
"""Keys whose defaults no source confirms; the others are TraceR's, or change nothing."""


def key_of(name: str) -> Key:
    """Return what a dotted key means; "energy.link.KIND.static" is as "energy.link.static".

    Raises
    ------
    ParameterError
        Unknown key.
    """
    words = name.split(".")
    if len(words) == 4 and words[:2] == ["energy", "link"] and words[3] in LINK:
        return KEYS[f"energy.link.{words[3]}"]
    if name not in KEYS:
        raise ParameterError(unknown("parameter", name, KEYS))
    return KEYS[name]


def names_algorithm(key: str) -> bool:
    """Whether a dotted key names the algorithm of a collective."""
    return key.startswith("collective.") and key.removeprefix("collective.") in ALGORITHMS


def check(key: str, value: Any, entry: Key) -> None:
    """Raise `ParameterError` for a value that the key does not take."""
    if entry.choices:
        if value not in entry.choices and not ("(" in str(value) and _is_algorithm(key, value)):
            raise ParameterError(f"{key} {value!r}: expected one of {', '.join(entry.choices)}")
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


def unknown(what: str, name: str, allowed: Collection[str]) -> str:
    """Say that there is nothing of that name, which is near, and what there is."""
    close = get_close_matches(name, allowed, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {what} {name!r}: {hint}expected one of {', '.join(allowed)}"
