"""What a mapper is, and the table of all of them.

A mapper is a function ``(traffic, topology, *, rng, initial=None, **parameters) -> mapping``.
`@mapper` enters it in `MAPPERS`; its parameters are its keyword arguments with their annotations:
bool, int, float, str, ``Literal[...]``, each also ``| None``, `Annotated` with `AtLeast`, and a
``Callable``, which no text can name.
Two more keywords are passed by `map_ranks` where the function has them:
``seconds`` (time budget, also a parameter) and ``progress`` (see `Progress`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from hopmap.topologies import Mapping, MappingError, did_you_mean

MapperFunction: TypeAlias = Callable[..., Mapping]
F = TypeVar("F", bound=MapperFunction)

Initial: TypeAlias = Literal["ignored", "optional", "needed"]

_PASSED = ("traffic", "topology", "rng", "initial", "progress")


@dataclass(frozen=True)
class AtLeast:
    """Annotation of a parameter with a lowest allowed value."""

    least: float


Count: TypeAlias = Annotated[int, AtLeast(1)]
CountOrZero: TypeAlias = Annotated[int, AtLeast(0)]
Seconds: TypeAlias = Annotated[float, AtLeast(0)] | None


class Parameter(NamedTuple):
    """A keyword of a mapper: its name, its type as text, and its default."""

    name: str
    type: str
    default: Any


@dataclass(frozen=True)
class MapperInfo:
    """A registered mapper.

    Attributes
    ----------
    name : str
        As it is written in pipelines.
    function : callable
        The mapper.
    summary : str
        First line of its docstring.
    source : str
        Where it was published.
    parameters : tuple of Parameter
        What may be set, in order.
    initial : {"ignored", "optional", "needed"}
        Whether it starts from a given mapping.
    """

    name: str
    function: MapperFunction
    summary: str
    source: str
    parameters: tuple[Parameter, ...]
    initial: Initial
    takes_progress: bool = False
    hints: tuple[Any, ...] = ()

    @property
    def needs_initial(self) -> bool:
        """Whether it only refines a mapping that is given."""
        return self.initial == "needed"

    def has(self, parameter: str) -> bool:
        """Whether it has a parameter of that name."""
        return any(p.name == parameter for p in self.parameters)

    def takes(self, parameter: str, value: object) -> bool:
        """Whether it has a parameter of that name which may have the value."""
        names = [p.name for p in self.parameters]
        if parameter not in names:
            return False
        try:
            _converted(value, self.hints[names.index(parameter)])
        except ValueError:
            return False
        return True

    def checked(self, name: str, value: object) -> Any:
        """Return the value as the parameter's type, or raise `MappingError`.

        A text is read: "8", "1e3", "true", "none", "hop_bytes".
        """
        names = [p.name for p in self.parameters]
        if name not in names:
            has = f"expected one of {', '.join(names)}" if names else "it has no parameters"
            raise MappingError(
                f"mapper {self.name}: unknown parameter {name!r}{did_you_mean(name, names)}; {has}"
            )
        index = names.index(name)
        try:
            return _converted(value, self.hints[index])
        except ValueError:
            raise MappingError(
                f"mapper {self.name}: {name}={value}: expected {self.parameters[index].type}"
            ) from None


MAPPERS: dict[str, MapperInfo] = {}


def mapper(name: str, *, source: str, initial: Initial = "ignored") -> Callable[[F], F]:
    """Enter the decorated function in `MAPPERS`.

    Parameters
    ----------
    name : str
        As pipelines write it.
    source : str
        Where the algorithm was published.
    initial : {"ignored", "optional", "needed"}
        Constructors ignore a given mapping, searches may start from it, refiners need it.

    Raises
    ------
    ValueError
        The name is taken.
    """

    def register(function: F) -> F:
        if name in MAPPERS:
            raise ValueError(
                f"two mappers are called {name!r}: {MAPPERS[name].function.__module__} and "
                f"{function.__module__}"
            )
        hints = get_type_hints(function, include_extras=True)
        keywords = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.KEYWORD_ONLY and p.name not in _PASSED
        ]
        MAPPERS[name] = MapperInfo(
            name=name,
            function=function,
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
            source=source,
            parameters=tuple(Parameter(p.name, _text(hints[p.name]), p.default) for p in keywords),
            initial=initial,
            takes_progress="progress" in hints,
            hints=tuple(hints[p.name] for p in keywords),
        )
        return function

    return register


def _text(hint: Any) -> str:
    """Return a type as the command line shows it: "int >= 1", "first|last", "float or none"."""
    if hint is NoneType:
        return "none"
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_text(part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint)))
    if get_origin(hint) is Callable:
        return "a function"
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        least = [f" >= {extra.least:g}" for extra in extras if isinstance(extra, AtLeast)]
        return _text(base) + "".join(least)
    return str(hint.__name__)


def _converted(value: object, hint: Any) -> Any:
    """Return the value as the annotated type, or raise ValueError."""
    text = str(value).strip()
    if get_origin(hint) in (Union, UnionType):
        for part in get_args(hint):
            try:
                return _converted(value, part)
            except ValueError:
                continue
        raise ValueError
    if get_origin(hint) is Annotated:
        base, *extras = get_args(hint)
        converted = _converted(value, base)
        if any(isinstance(e, AtLeast) and not converted >= e.least for e in extras):
            raise ValueError
        return converted
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
