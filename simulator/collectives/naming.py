"""Algorithms by name, with options: "chain(fanout=4, segment=64 KiB)"."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import NamedTuple

from hopmap.units import UnitError, parse_quantity

from .schedules import Algorithm, AlgorithmError


class Option(NamedTuple):
    """Unit and least value of an option; "x" for lengths like 4x4x4."""

    unit: str
    least: int

    @property
    def kind(self) -> str:
        """What a value is."""
        return {"bytes": "bytes", "1": "int"}.get(self.unit, "lengths")


OPTIONS: Mapping[str, Option] = {
    "segment": Option("bytes", 0),
    "fanout": Option("1", 1),
    "radix": Option("1", 2),
    "window": Option("1", 0),
    "ports": Option("1", 1),
    "puts": Option("1", 0),
    "dims": Option("x", 1),
}


class Named(NamedTuple):
    """An algorithm as it was named: its bare name, and the function with its options."""

    name: str
    algorithm: Algorithm


def named(text: str, table: Mapping[str, Callable[..., object]]) -> Named:
    """Read the name of an algorithm, with options if it has some.

    Parameters
    ----------
    text : str
        ``name`` or ``name(option=value, ...)``; bytes with or without a unit.
    table : mapping of str to callable
        The algorithms of the operation, by name; options are their arguments by name alone.

    Raises
    ------
    AlgorithmError
        Unknown name or option, or a value out of range.

    Examples
    --------
    >>> from hopmap.simulator import ALGORITHMS
    >>> named("chain(fanout=4)", ALGORITHMS["bcast"]).name
    'chain'
    """
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", text.strip())
    if match is None or match[1] not in table:
        raise AlgorithmError(f"{text!r}: expected one of {', '.join(table)}")
    name, function = match[1], table[match[1]]
    known = options_of(function)
    given: dict[str, int | tuple[int, ...]] = {}
    for setting in (match[2] or "").split(",") if (match[2] or "").strip() else ():
        key, _, value = (piece.strip() for piece in setting.partition("="))
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            wanted = f"one of {', '.join(known)}" if known else f"none: {name} has no options"
            raise AlgorithmError(f"{text!r}: option {key!r}: {hint}expected {wanted}")
        if key in given:
            raise AlgorithmError(f"{text!r}: option {key} is set twice")
        given[key] = _value(text, key, value)
    return Named(name, partial(function, **given) if given else function)  # type: ignore[arg-type]


def options_of(function: Callable[..., object]) -> dict[str, object]:
    """Return the options of an algorithm with their defaults, lengths that are not given as ""."""
    parameters = inspect.signature(function).parameters.values()
    given = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return {name: "" if default == () else default for name, default in given.items()}


def _value(text: str, key: str, value: str) -> int | tuple[int, ...]:
    option = OPTIONS[key]
    if option.unit == "x":
        if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", value):
            raise AlgorithmError(f"{text!r}: option {key} {value}: expected lengths like 4x4x4")
        return tuple(map(int, value.split("x")))
    try:
        number = parse_quantity(value, option.unit)
    except UnitError as error:
        raise AlgorithmError(f"{text!r}: option {key}: {error}") from None
    if number != int(number) or number < option.least:
        raise AlgorithmError(
            f"{text!r}: option {key} {value}: expected a whole number of at least {option.least}"
        )
    return int(number)
