"""Parameters by dotted key, with units: "link.bandwidth" = "10 GB/s", on topology and model."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from hopmap.errors import HopmapError, HopmapWarning
from hopmap.topologies import Topology, did_you_mean
from hopmap.topologies.topology import AS_LINKS
from hopmap.units import NoUnitError, UnitError, has_unit, require_unit, show_bytes, show_seconds

from .energy import LINK as ENERGY_LINK
from .keys import Key, ParameterError, check, names_algorithm
from .parameters import KEYS, Parameters, key_of, parameters_from

Value: TypeAlias = str | int | float
Settings: TypeAlias = tuple[tuple[str, Value], ...]

LINK_UNITS = {"bandwidth": "bytes/s", "latency": "s"}
DECISION = "network.routing_decision"
OF_BUFFERS = frozenset(
    f"network.{name}" for name in ("virtual_channels", "arbitration", "flit", "credit_delay")
) | {DECISION}
SLOWEST, LONGEST = 1e6, 1.0  # bytes/s and seconds that somebody means who writes no unit


class SettingError(HopmapError, ValueError):
    """A parameter is unknown or its value cannot be understood; names key, value, expected."""


def configure(topology: Topology, settings: Settings) -> tuple[Topology, Parameters]:
    """Apply settings to a topology's links and to the model, over what the topology itself says.

    Keys are in `KEYS`, "link.bandwidth", "link.latency", "link.KIND.bandwidth", ...,
    "energy.link.KIND.static", ...; a text has a unit, a number is in the SI unit. A link kind that
    the topology does not have is left out.
    """
    model: dict[str, Value] = dict(topology.parameters)
    # All links first, one kind afterwards: "link.bandwidth" must not undo "link.optical.bandwidth".
    for key, value in sorted(settings, key=lambda setting: setting[0].count(".")):
        if key.startswith("link."):
            kind, quantity = _link_key(key)
            number = _checked(key, value, Key("", LINK_UNITS[quantity]))
            if kind is None or kind in {k.name for k in topology.kinds}:
                bandwidth, latency = (number if quantity == q else None for q in LINK_UNITS)
                topology = topology.with_links(kind, bandwidth=bandwidth, latency=latency)
            continue
        try:
            entry = key_of(key)
        except ParameterError:
            known = known_keys([topology])
            raise SettingError(unknown(key, known)) from None
        number_or_word = _checked(key, value, entry)
        if key in KEYS or key.split(".")[2] in {k.name for k in topology.kinds}:
            model[key] = number_or_word
    for end in ("injection.bandwidth", "ejection.bandwidth"):
        if model.get(end) == AS_LINKS:
            model[end] = topology.kinds[0].bandwidth
    return topology, parameters_from(model)


def normalise(settings: Settings) -> dict[str, Value]:
    """Return settings that `configure` takes in SI units: what is the same reads the same."""
    normal: dict[str, Value] = {}
    for key, value in sorted(settings):
        if key.startswith("link."):
            normal[key] = _number(key, value, LINK_UNITS[_link_key(key)[1]])
        else:
            entry = key_of(key)
            normal[key] = value if entry.choices else _number(key, value, entry.unit)
    return normal


def without_effect(settings: Mapping[str, Value], engine: str = "") -> Iterator[str]:
    """Say which settings change nothing: of buffers where there are none, and of other engines."""
    unbounded = str(settings.get("network.buffer", 0)).strip() in ("0", "0.0")
    detours = str(settings.get("network.routing", "")).startswith("ugal")
    anyone = str(settings.get("eager_peers", 0)).strip() in ("0", "0.0")
    reasons = {
        "without effect where network.buffer is 0, any number of packets": (
            key for key in settings if unbounded and key in OF_BUFFERS
        ),
        "without effect where network.routing is neither ugal_l nor ugal_g": (
            key for key in settings if key == DECISION and not (detours or unbounded)
        ),
        "without effect where eager_peers is 0, any number": (
            key for key in settings if anyone and key == "eager_limit_beyond"
        ),
        f"without effect on the engine {engine}": (
            key for key in settings if engine not in ("", "flow") and key.startswith("flow.")
        ),
    }
    for reason, keys in reasons.items():
        if idle := ", ".join(keys):
            yield f"{idle}: {reason}"


def check_settings(settings: Mapping[str, Value], topologies: Sequence[Topology]) -> None:
    """Raise an error of `configure` for what is wrong on any of the topologies, or fits none."""
    for topology in topologies:
        configure(topology, tuple(settings.items()))
    for key in settings:
        if key not in (known := known_keys(topologies)):
            raise SettingError(unknown(key, known))
        _warn_of_bare(key, settings[key])


def _warn_of_bare(key: str, value: Value) -> None:
    """Warn of a bandwidth of a few bytes a second, or a time of seconds, written without a unit."""
    unit = LINK_UNITS[_link_key(key)[1]] if key.startswith("link.") else key_of(key).unit
    if unit not in ("bytes/s", "s") or has_unit(value):
        return
    number = _number(key, value, unit)
    if unit == "bytes/s" and 0 < number < SLOWEST:
        means, like = f"{show_bytes(number)}/s", "25GB/s or 200Gbit/s"
    elif unit == "s" and number >= LONGEST:
        means, like = show_seconds(number), "1us"
    else:
        return
    text = f"{key} {value}: without a unit, so {means}: expected one, like {like}"
    warnings.warn(text, HopmapWarning, stacklevel=4)


def parse_settings(texts: Iterable[str]) -> Settings:
    """Read "key=value" words, as ``--set`` takes them, and FILE.toml with a table [parameters].

    Words win over files.
    """
    settings: dict[str, Value] = {}
    words = list(texts)
    files = [word for word in words if "=" not in word and word.endswith(".toml")]
    for word in [word for word in words if word not in files]:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not key or not value:
            raise SettingError(f"--set {word!r}: expected key=value, like link.bandwidth=10GB/s")
        if key in settings:
            raise SettingError(f"--set {key}: repeated: expected once")
        settings[key] = value
    for file in files:
        settings = parameters_in(file) | settings
    return tuple(settings.items())


def parameters_in(file: str) -> dict[str, Value]:
    """Read the table [parameters] of a TOML file."""
    table = toml_document(file).get("parameters")
    if not isinstance(table, dict):
        raise SettingError(f"{file}: no table [parameters]: expected one")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SettingError(f"{file}: {key}: {value!r}: expected a number or a text")
        try:
            normalise(((key, value),))
        except (SettingError, ParameterError) as error:
            raise SettingError(f"{file}: {error}") from None
    return table


class Validated(NamedTuple):
    """What a file of parameters says of how they were held against measured times."""

    file: str
    topologies: tuple[str, ...]  # networks on which they were
    error: float  # median of the relative errors


def read_validated(settings: Iterable[str]) -> list[Validated]:
    """Read the tables [validated] of the files among the words of ``--set``; few have one."""
    found = []
    for file in (word for word in settings if "=" not in word and word.endswith(".toml")):
        table = toml_document(file).get("validated")
        if table is None:
            continue
        specs, error = (table.get(key) for key in ("topologies", "error"))
        if not isinstance(specs, list) or not isinstance(error, int | float):
            raise SettingError(f"{file}: [validated]: expected topologies and error")
        found.append(Validated(file, tuple(map(str, specs)), float(error)))
    return found


def toml_document(file: str) -> dict[str, Any]:
    """Read a TOML file, or raise `SettingError`."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SettingError(f"{file}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{file}: cannot be read as TOML ({error})") from None


def algorithms_from(settings: Settings) -> dict[str, str]:
    """Algorithms by collective operation, where nothing else is to be set."""
    known = known_keys([])
    for key, _ in settings:
        if key not in known:
            raise SettingError(unknown(key, known))
        if not names_algorithm(key):
            raise SettingError(
                f"{key} changes no traffic: expected an algorithm, like collective.bcast=binomial"
            )
    return dict(parameters_from(dict(settings)).algorithms)


def known_keys(topologies: Iterable[Topology]) -> list[str]:
    """All keys that make sense on these topologies."""
    kinds = dict.fromkeys(kind.name for topology in topologies for kind in topology.kinds)
    prefixes = ["link", *(f"link.{kind}" for kind in kinds if kind != "link")]
    links = [f"{prefix}.{q}" for prefix in prefixes for q in LINK_UNITS]
    energy = [f"energy.{prefix}.{q}" for prefix in prefixes[1:] for q in ENERGY_LINK]
    return links + energy + list(KEYS)


def _link_key(key: str) -> tuple[str | None, str]:
    _, *kind, quantity = key.split(".")
    if len(kind) > 1 or quantity not in LINK_UNITS:
        keys = [f"{prefix}.{q}" for prefix in ("link", "link.KIND") for q in LINK_UNITS]
        raise SettingError(unknown(key, keys))
    return (kind[0] if kind else None), quantity


def _checked(key: str, value: Value, entry: Key) -> Any:
    """Return a value in its SI unit, or a word; an error says it in the unit of the input."""
    number_or_word = value if entry.choices else _number(key, value, entry.unit)
    try:
        check(key, number_or_word, entry)
    except ParameterError as error:
        said = str(error).replace(f"{key} {number_or_word}", f"{key} {value}", 1)
        raise SettingError(said) from None
    return number_or_word


def _number(key: str, value: Value, unit: str) -> float:
    try:
        return require_unit(value, unit)
    except NoUnitError as error:
        raise SettingError(f"{key}={error}") from None
    except UnitError as error:
        raise SettingError(f"{key}: {error}") from None


def unknown(key: str, known: Sequence[str]) -> str:
    """Say that a key is unknown, and which is near."""
    return f"unknown parameter {key!r}{did_you_mean(key, known)}: see `hopmap list parameters`"
