"""Types of a mapper's parameters: as text for people, and values of theirs from text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin


@dataclass(frozen=True)
class AtLeast:
    """Annotation of a parameter with a lowest allowed value."""

    least: float


Count: TypeAlias = Annotated[int, AtLeast(1)]
CountOrZero: TypeAlias = Annotated[int, AtLeast(0)]
NonNegative: TypeAlias = Annotated[float, AtLeast(0)]
Seconds: TypeAlias = NonNegative | None


def names_of(hint: Any) -> list[str]:
    """Return the names that a type allows: "first" and "last"; none of a number."""
    if get_origin(hint) in (Union, UnionType):
        return [name for part in get_args(hint) for name in names_of(part)]
    return list(map(str, get_args(hint))) if get_origin(hint) is Literal else []


def type_text(hint: Any) -> str:
    """Return a type as the command line shows it: "int >= 1", "first|last", "float or none"."""
    if hint is NoneType:
        return "none"
    if get_origin(hint) in (Union, UnionType):
        others = [type_text(part) for part in get_args(hint) if get_origin(part) is not Literal]
        names = "|".join(names_of(hint))
        return " or ".join([names, *others] if names else others)
    if get_origin(hint) is Literal:
        return "|".join(names_of(hint))
    if get_origin(hint) is Callable:
        return "a function"
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        least = [f" >= {extra.least:g}" for extra in extras if isinstance(extra, AtLeast)]
        return type_text(base) + "".join(least)
    return str(getattr(hint, "__name__", hint))


def convert(value: object, hint: Any) -> Any:
    """Return the value as the annotated type, or raise ValueError."""
    text = str(value).strip()
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            try:
                return convert(value, part)
            except ValueError:
                continue
        raise ValueError
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        number = convert(value, base)
        if any(isinstance(e, AtLeast) and not number >= e.least for e in extras):
            raise ValueError
        return number
    if get_origin(hint) is Callable:
        if callable(value):
            return value
        raise ValueError
    if hint is NoneType:
        known: dict[str, Any] = {"none": None}
    elif hint is bool:
        known = {"true": True, "false": False}
    elif get_origin(hint) is Literal:
        known = {str(choice): choice for choice in get_args(hint)}
    elif hint is str:
        return text
    elif hint in (int, float) and not isinstance(value, bool):
        return hint(text) if isinstance(value, str) else _number(value, hint)
    else:
        raise ValueError
    key = text if get_origin(hint) is Literal else text.lower()
    if key not in known:
        raise ValueError
    return known[key]


def _number(value: Any, kind: type) -> Any:
    """Return a number as int or float without losing a fraction."""
    try:
        number = kind(value)
    except TypeError:
        raise ValueError from None
    if number != value:
        raise ValueError
    return number
