"""Values to vary: what a scenario's [[vary]] tables mean on a topology.

The keys of one table go together, first values with first values (zip); tables are crossed
(product). What a topology does not have, such as wireless links on a mesh, is not varied on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from hopmap.simulator.parameters.settings import (
    SettingError,
    Settings,
    Value,
    check_settings,
    known_keys,
)
from hopmap.topologies import Topology


class Axis(NamedTuple):
    """One thing that varies.

    Attributes
    ----------
    name : str
        What reports call it.
    labels : sequence of str
        What reports call its points.
    parameters : mapping of str to sequence
        One value for each point.
    """

    name: str
    labels: Sequence[str]
    parameters: Mapping[str, Sequence[Value]]


class Variant(NamedTuple):
    """A point of the product: its label, empty where nothing varies, and its parameters."""

    label: str
    settings: Settings


def axis(
    name: str | None, labels: Sequence[str] | None, parameters: Mapping[str, Sequence[Value]]
) -> Axis:
    """Check a table and give it the names that it lacks.

    Raises
    ------
    SettingError
        Lists of different lengths, or a label or point twice.
    """
    name = name or ", ".join(parameters)
    lengths = {key: len(values) for key, values in parameters.items()}
    points = next(iter(lengths.values()))
    for key, length in lengths.items():
        if length != points:
            raise SettingError(f"{key}: {length} values: expected {points}, as many as the others")
    values = list(zip(*parameters.values(), strict=True))
    if labels is None:
        labels = [", ".join(map(str, point)) for point in values]
    if len(labels) != points:
        raise SettingError(f"labels: {len(labels)} of them: expected {points}, one for each value")
    for listed in (list(labels), values):
        seen = set()
        for item in listed:
            if item in seen:
                raise SettingError(f"{name}: {item!r} is listed twice: expected once")
            seen.add(item)
    return Axis(name, tuple(labels), parameters)


def variants(axes: Iterable[Axis], fixed: Mapping[str, Value], topology: Topology) -> list[Variant]:
    """Cross the axes that concern a topology, the first slowest.

    Parameters
    ----------
    fixed : mapping
        Parameters that do not vary; an axis wins over them.
    """
    known = set(known_keys([topology]))
    choices = []
    for each in axes:
        kept = [key for key in each.parameters if key in known]
        points = [
            (f"{each.name} {label}", tuple((key, each.parameters[key][place]) for key in kept))
            for place, label in enumerate(each.labels)
        ]
        if kept:
            choices.append(points)
    return [
        Variant(
            ", ".join(label for label, _ in point),
            tuple(sorted({**fixed, **dict(s for _, some in point for s in some)}.items())),
        )
        for point in product(*choices)
    ]


def count_variants(axes: Iterable[Axis], topology: Topology) -> int:
    """Return how many `variants` there are, without making them."""
    known = set(known_keys([topology]))
    return prod(len(each.labels) for each in axes if not known.isdisjoint(each.parameters))


def check_axes(
    axes: Sequence[Axis], fixed: Mapping[str, Value], topologies: Sequence[Topology]
) -> None:
    """Raise an error for what is wrong with any value on any topology, or fits none."""
    seen: set[str] = set()
    for each in axes:
        for key in each.parameters:
            if key in seen:
                raise SettingError(f"{key}: varied twice: expected once")
            seen.add(key)
        _check_points(each, topologies)
        for point in zip(*each.parameters.values(), strict=True):
            check_settings({**fixed, **dict(zip(each.parameters, point, strict=True))}, topologies)


def _check_points(varied: Axis, topologies: Sequence[Topology]) -> None:
    """Raise an error where points that differ are the same on a topology that lacks some keys."""
    for topology in topologies:
        known = set(known_keys([topology]))
        kept = [values for key, values in varied.parameters.items() if key in known]
        points = list(zip(*kept, strict=True))
        if len(set(points)) < len(points):
            lacking = ", ".join(key for key in varied.parameters if key not in known)
            raise SettingError(
                f"{varied.name}: two of its points are one on {topology.spec}, which has no "
                f"{lacking}: expected points that differ there, too, or another scenario for it"
            )
