"""Keys of parameters: what one means, see `parameters.py`, and which values it takes."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

from hopmap.errors import HopmapError, choice
from hopmap.simulator.collectives.algorithms import ALGORITHMS, parse_algorithm
from hopmap.simulator.collectives.schedules import AlgorithmError

DISTRIBUTIONS = ("lognormal", "gamma")
DETERMINISTIC = "deterministic"  # by the topology's own routes
ROUTING = (DETERMINISTIC, "adaptive", "spraying", "valiant", "ugal_l", "ugal_g", "par")


class ParameterError(HopmapError, ValueError):
    """A parameter of a replay is unknown or out of range; names key, value and expected."""


def expect_fixed_routes(routing: str, user: str) -> None:
    """Raise `ParameterError` where routes are chosen on the way, for what knows fixed ones only."""
    if routing != DETERMINISTIC:
        raise ParameterError(
            f"network.routing {routing}: {user} with fixed routes: expected {DETERMINISTIC}"
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
MOST_CHANNELS = 2**15 - 1  # classes of channels are of 16 bits
MOST = {"s": 1e6, "1": 1e12, "bytes": 2**60}
"""By unit: later a float no longer tells a nanosecond; bytes add up in int64."""
SLOWEST = 1e-3  # bytes/s
MOST_PLACES = 2**31 - 1  # of a channel; of all of a link with room to add in int64

ASSUMED = ("control_bytes", "memory.bandwidth", "memory.latency")
"""Keys whose defaults no source confirms."""
TRACER = (
    *("overhead.send", "overhead.recv", "injection.bandwidth", "injection.latency"),
    *("ejection.bandwidth", "ejection.latency", "eager_limit", "packet_size"),
)
"""Keys with the defaults of TraceR's generic torus; all other defaults change nothing."""


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
    least = max(entry.minimum, SLOWEST if entry.unit == "bytes/s" else 0)
    most = min(entry.maximum, MOST.get(entry.unit, math.inf))
    for bad, said, limit in ((number > most, "most", most), (number < least, "least", least)):
        if bad:
            limits = f"expected at {said} {limit:.10g} {entry.unit}".removesuffix(" 1")
            raise ParameterError(f"{key} {value}: {limits}")


def _is_algorithm(key: str, text: str) -> bool:
    """Whether a key takes algorithms; an error if it does and this is none of them."""
    table = ALGORITHMS.get(key.removeprefix("collective."))
    try:
        return table is not None and bool(parse_algorithm(text, table))
    except AlgorithmError as error:
        raise ParameterError(f"{key} {error}") from None
