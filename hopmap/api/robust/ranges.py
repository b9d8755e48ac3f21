"""Ranges of a machine's unknown parameters, and the models that are drawn from them.

A range is listed under the dotted key of a parameter, any that ``--set`` takes:

    [ranges]
    "network.buffer" = [0, 1, 4]                       # one of these, all as likely
    "noise.compute" = { between = [0, 0.05] }          # uniform
    "link.*.bandwidth" = { factor = [0.5, 2.0] }       # times what it is; log-uniform
    "overhead.send" = { factor = { measured = [0.9, 1.1], ... } }   # also sourced, assumed

``link.*`` is every kind of link by itself; a factor leaves 0 as it is. Models are a Latin hypercube
(McKay, Beckman, Conover, A comparison of three methods for selecting values of input variables,
Technometrics 21, 1979): of n models every n-th part of each range has one. They are put in an order
in which each is as far as can be from those before it (Gonzalez, Clustering to minimize the maximum
intercluster distance, Theoretical Computer Science 38, 1985), so that the first few of them span
the ranges. Cost: n^2 distances.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from hopmap.api.provenance import model_provenance
from hopmap.arrays import Floats, Ints
from hopmap.simulator import Parameters
from hopmap.simulator.parameters.parameters import KEYS, key_of
from hopmap.simulator.parameters.settings import (
    SettingError,
    Value,
    check_settings,
    configure,
    known_keys,
    normalise,
    toml_document,
    unknown,
)
from hopmap.topologies import Topology, provenance

Settings: TypeAlias = dict[str, Value]
RangesLike: TypeAlias = str | Path | Mapping[str, Any] | None

SHIPPED = Path(__file__).parent / "ranges.toml"
BETWEEN, FACTOR = "between", "factor"
EVERY = "link.*."
_DEFAULTS = Parameters()
SOURCES = ("measured", "sourced", "assumed")
EXPECTED = "a list of values, { between = [least, most] } or { factor = [least, most] }"


class Range(NamedTuple):
    """What a parameter may be: one of some values, between two ends, or its value times those."""

    key: str
    kind: str  # "", "between" or "factor".
    values: tuple[Value, ...]  # All there are, or the ends.
    by_source: Mapping[str, tuple[Value, ...]] = {}  # The ends of a factor, by provenance.


def read_ranges(ranges: RangesLike) -> list[Range]:
    """Return ranges: of a file's table [ranges], of a mapping, or those that come with hopmap."""
    where, table = "ranges", ranges
    if not isinstance(ranges, Mapping):
        where = str(SHIPPED if ranges is None else Path(ranges))
        table = toml_document(where).get("ranges")
    if not isinstance(table, Mapping) or not table:
        raise SettingError(f"{where}: expected a table [ranges] with at least one key")
    return [_range(key, value, where) for key, value in table.items()]


def _range(key: str, spec: Any, location: str) -> Range:
    kind, values = "", spec
    if isinstance(spec, Mapping):
        kind, values = next(iter(spec.items()), ("?", None))
        if len(spec) != 1 or kind not in (BETWEEN, FACTOR):
            raise SettingError(f"{location}: {key}: {dict(spec)}: expected {EXPECTED}")
    if kind == FACTOR and isinstance(values, Mapping):
        if set(values) != set(SOURCES):
            raise SettingError(
                f"{location}: {key}: factor {dict(values)}: expected {', '.join(SOURCES)}"
            )
        ends = {source: _range(key, {FACTOR: values[source]}, location) for source in SOURCES}
        by_source = {source: each.values for source, each in ends.items()}
        return ends["assumed"]._replace(by_source=by_source)
    fine = isinstance(values, Sequence) and not isinstance(values, str) and len(values) > 0
    if not fine or any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in values):
        raise SettingError(f"{location}: {key}: {spec!r}: expected {EXPECTED}")
    return Range(key, kind, tuple(values))


def draw_models(
    ranges: Sequence[Range],
    network: Topology,
    settings: Mapping[str, Value],
    count: int,
    seed: int,
) -> list[Settings]:
    """Draw models: return the settings that each of them adds.

    What is set stays as it is set: only factors are drawn of it. A parameter's values do not depend
    on which others are drawn. Every model has noise of its own, unless ``noise.seed`` is set.
    """
    now, parameters = configure(network, tuple(settings.items()))
    drawn = [r for r in ranges if r.kind == FACTOR or r.key not in settings]
    for each in drawn:
        _check(each, network)
    if not drawn:
        raise SettingError("ranges: all their parameters are set: expected one that is not")
    columns = [
        column for each in drawn for column in _columns(each, now, parameters, frozenset(settings))
    ]
    shares = np.stack([_draw_stratified(count, seed, name) for name, _, _ in columns], axis=1)
    found = []
    for number, row in enumerate(shares[spread_out(shares)]):
        model: Settings = {"noise.seed": number} if "noise.seed" not in settings else {}
        for (_, each, bases), share in zip(columns, row.tolist(), strict=True):
            model.update({key: _at(each, key, base, share) for key, base in bases.items()})
        found.append(model)
    return found


def without_packets(model: Settings) -> Settings:
    """Return a model without the parameters of buffers and routes, which only packets know."""
    return {key: value for key, value in model.items() if not key.startswith("network.")}


def _check(each: Range, network: Topology) -> None:
    """Raise an error for a key that is unknown here, or a value that it does not take."""
    for values in each.by_source.values():
        _check(each._replace(values=values, by_source={}), network)
    key = each.key.replace(EVERY, "link.")
    if key not in (known := known_keys([network])):
        raise SettingError(f"ranges: {unknown(each.key, known)}")
    if each.kind != FACTOR:
        for value in each.values:
            check_settings({key: value}, [network])
    if not each.kind:
        return
    if not key.startswith("link.") and key_of(key).choices:
        raise SettingError(f"ranges: {key}: expected a list of words")
    ends = _ends(each, key)
    if len(ends) != 2 or not 0 <= ends[0] <= ends[1] < math.inf:
        raise SettingError(
            f"ranges: {key}: {each.kind} {list(each.values)}: expected two ends, the least first"
        )
    if each.kind == FACTOR and not ends[0] > 0:
        raise SettingError(f"ranges: {key}: factor {each.values[0]}: expected more than 0")


def _ends(each: Range, key: str) -> list[float]:
    if each.kind == BETWEEN:
        return [float(normalise(((key, value),))[key]) for value in each.values]
    if any(isinstance(value, str) for value in each.values):
        raise SettingError(f"ranges: {key}: factor {list(each.values)}: expected plain numbers")
    return [float(value) for value in each.values]


def _columns(
    each: Range, now: Topology, parameters: Parameters, settings: Collection[str]
) -> Iterator[tuple[str, Range, dict[str, Value | None]]]:
    """Yield what is drawn for a range: a name, and the keys that it sets with their values now."""
    if not each.key.startswith("link."):
        field = key_of(each.key).field
        if each.kind == FACTOR and not field:
            raise SettingError(f"ranges: {each.key}: factor: expected values")
        ends = _by_source(each, model_provenance(each.key, now, settings))
        yield each.key, ends, {each.key: getattr(parameters, field) if field else None}
        return
    of = each.key.removeprefix("link.").rpartition(".")[0]
    quantity = each.key.rpartition(".")[2]
    bases: dict[str, Value | None] = {}
    for kind in now.kinds:
        if of not in ("", "*", kind.name):
            continue
        key = f"link.{quantity}" if kind.name == "link" else f"link.{kind.name}.{quantity}"
        bases[key] = getattr(kind, quantity)
        if of == "*":
            source = provenance(kind.sources[quantity == "latency"])
            yield key, _by_source(each, source), {key: bases[key]}
    if of != "*":
        yield each.key, each, bases


def _by_source(each: Range, source: str) -> Range:
    """Return a range with the ends for a value from this source."""
    return each._replace(values=each.by_source.get(source, each.values))


def _at(each: Range, key: str, base: Value | None, share: float) -> Value:
    """Return the value at a share of a range, from 0 to less than 1."""
    if not each.kind:
        return each.values[int(share * len(each.values))]
    low, high = _ends(each, key)
    if each.kind == BETWEEN:
        value = low + share * (high - low)
    else:
        value = float(base or 0) * low * (high / low) ** share
    whole = key in KEYS and isinstance(getattr(_DEFAULTS, KEYS[key].field, None), int)
    return round(value) if whole else value


def _draw_stratified(count: int, seed: int, key: str) -> Floats:
    """Draw one number from each of so many equal parts of 0 to 1, in any order."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, crc32(key.encode())]))
    return np.asarray((rng.permutation(count) + rng.random(count)) / count)


def spread_out(points: Floats) -> Ints:
    """Return points in an order in which each is as far as can be from all before it.

    The first is the one that is farthest from the mean; points are rows.
    """
    order = [int(np.linalg.norm(points - points.mean(axis=0), axis=1).argmax())]
    near = np.full(len(points), np.inf)
    for _ in range(1, len(points)):
        near = np.minimum(near, np.linalg.norm(points - points[order[-1]], axis=1))
        near[order] = -1.0
        order.append(int(near.argmax()))
    return np.array(order, dtype=np.int64)
