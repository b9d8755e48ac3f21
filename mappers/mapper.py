"""What a mapper is, and the table of all of them.

A mapper is a function ``(traffic, topology) -> mapping``. `@mapper` enters it in `MAPPERS`, and
`map_ranks` passes what else it asks for by name, all of it optional:

| argument | is |
|---|---|
| rng | the random numbers of this stage |
| initial | the mapping to start from, never worsened; without a default it is needed |
| progress | whom to tell, see `Progress` |
| stopped | whom to tell why a search ended, see `Stop` |
| seconds, clock | time budget; elapsed seconds (wall) or the processor's (cpu) |
| objective | what to work for, minimised or maximised: a name, or a function of the mapping |

Docstrings of mappers say of these only what is special.

All other arguments are its parameters, which have defaults, and annotations where the default does
not say the type: bool, int, float, str, ``Literal[...]``, each also ``| None``, `Annotated` with
`AtLeast`, and a ``Callable``, which no text can name. ``seconds`` and ``objective`` are parameters
as well. An argument that is a dataclass, like ``stop: Stop``, stands for its fields.
"""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, is_dataclass
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_type_hints

from hopmap.plugins import (
    is_installed,
    load_entry_points,
    load_named,
    load_plugins,
    place_of,
    same_function,
    source_file,
)
from hopmap.topologies import Mapping, MappingError, Topology, did_you_mean
from hopmap.traces import Traffic

from .objectives import Function, LoadName, ObjectiveName
from .options import Seconds, convert, names_of, type_text

MapperFunction: TypeAlias = Callable[..., Mapping]
Needs: TypeAlias = Callable[[str, Traffic, Topology], object]
F = TypeVar("F", bound=MapperFunction)

Initial: TypeAlias = Literal["ignored", "optional", "needed"]

GROUP = "hopmap.mappers"
"""Entry points: a module that enters mappers, or a function to enter under the point's name."""

_PASSED = ("rng", "initial", "progress", "stopped")

AnyObjective: TypeAlias = ObjectiveName | LoadName | Function | None

_KNOWN: dict[str, Any] = {"seconds": Seconds, "objective": AnyObjective}


class Parameter(NamedTuple):
    """A keyword of a mapper: its name, its type as text, and its default."""

    name: str
    type: str
    default: Any


@dataclass(frozen=True)
class MapperInfo:
    """A registered mapper.

    - `summary`: first line of its docstring.
    - `initial`: whether it starts from an initial mapping.
    - `passed`: which of ``rng``, ``initial``, ``progress`` and ``stopped`` it asks for.
    - `groups`: dataclasses by the argument that takes one, like ``stop``: their fields are
      parameters.
    - `hints`: types of the parameters.
    - `presets`: parameters by the name of a publication, for ``preset=NAME``.
    - `needs`: raises `MappingError` for a traffic or a network that it is not made for.
    """

    name: str
    function: MapperFunction
    summary: str
    source: str
    parameters: tuple[Parameter, ...]
    initial: Initial
    passed: tuple[str, ...] = ()
    groups: Table[str, type] = field(default_factory=dict)
    hints: tuple[Any, ...] = ()
    presets: Table[str, Table[str, Any]] = field(default_factory=dict)
    needs: Needs | None = None

    @property
    def needs_initial(self) -> bool:
        """Whether it only refines an initial mapping."""
        return self.initial == "needed"

    def has(self, parameter: str) -> bool:
        """Whether it has a parameter of that name."""
        return any(p.name == parameter for p in self.parameters)

    def takes(self, parameter: str, value: object) -> bool:
        """Whether it has a parameter of that name which may have the value."""
        try:
            self.check(parameter, value)
        except MappingError:
            return False
        return True

    def check(self, name: str, value: object) -> Any:
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
            return convert(value, self.hints[index])
        except ValueError:
            near = did_you_mean(str(value), names_of(self.hints[index]))
            raise MappingError(
                f"mapper {self.name}: {name}={value}{near}: expected {self.parameters[index].type}"
            ) from None

    def run(self, traffic: Traffic, topology: Topology, values: Table[str, Any]) -> Mapping:
        """Map, with the values of all parameters and of what is passed, by name."""
        keywords = dict(values)
        for argument, kind in self.groups.items():
            names = inspect.signature(kind).parameters
            keywords[argument] = kind(**{name: keywords.pop(name) for name in names})
        return self.function(traffic, topology, **keywords)

    def preset(self, name: str) -> Table[str, Any]:
        """Return the parameters of a preset, or raise `MappingError`."""
        if name not in self.presets:
            raise MappingError(
                f"mapper {self.name}: preset={name}{did_you_mean(name, self.presets)}: "
                f"expected {'|'.join(self.presets)}"
            )
        return self.presets[name]


DEFINED_IN = {
    "auto": "auto",
    "bisections.multilevel": "multilevel",
    "bisections.recursive_bisection": "recursive_bisection",
    "cartesian.boxes": "factorisation gropp row_major",
    "cartesian.fold": "fold",
    "cartesian.grid_portfolio": "grid_portfolio",
    "cartesian.halvings": "hyperplane kd_tree skewed_kd_tree",
    "cartesian.strips": "squarest_strips stencil_strips",
    "exact.astar": "astar",
    "exact.exact_partition": "exact_partition",
    "exchanges.annealing": "annealing",
    "exchanges.bokhari": "bokhari",
    "exchanges.genetic": "genetic",
    "exchanges.hill_climbing": "descend",
    "exchanges.kl": "kl",
    "exchanges.local_search": "local_search",
    "exchanges.tabu": "tabu",
    "exchanges.timer": "timer",
    "greedy.constructions": (
        "fhgreedy greedy greedy_all_c greedy_min mueller_merbach topo_aware udfs"
    ),
    "greedy.minmd": "minmd",
    "loads.congestion": "congestion relieve",
    "orders.node_orders": (
        "as_allocated by_hostname gray hilbert peano scan identity random random_sampling rcm sweep"
    ),
    "partitions.hierarchical": "bottomup topdown treematch",
    "partitions.integrated": "integrated",
    "partitions.pacmap": "pacmap",
}
"""Module of hopmap's own mappers: each is imported only when one of them is asked for.

Not "module:name", which would make all of them part of the digest of every run
(`hopmap/source_files.py`): a run depends on the mappers of its pipeline.
"""


class Registry(UserDict[str, Any]):
    """Mappers by name; hopmap's own are names of modules until they are used.

    Lists leave out those whose module is not part of this installation.
    """

    def __getitem__(self, name: str) -> MapperInfo:
        """Return a mapper; one of hopmap's own enters itself as its module is imported."""
        if isinstance(module := self.data[name], str):
            load_named(__package__, module)
        info: MapperInfo = self.data[name]
        return info

    def __iter__(self) -> Iterator[str]:
        """Yield the names of those that can be used."""
        for name, found in self.data.items():
            if not isinstance(found, str) or is_installed(__package__, found):
                yield name

    def __len__(self) -> int:
        """Count those that can be used."""
        return sum(1 for _ in self)


MAPPERS = Registry({name: module for module, names in DEFINED_IN.items() for name in names.split()})


def mapper(
    name: str,
    *,
    source: str = "",
    initial: Initial | None = None,
    presets: Table[str, Table[str, Any]] | None = None,
    needs: Needs | None = None,
) -> Callable[[F], F]:
    """Enter the decorated function in `MAPPERS`; it replaces itself where it is defined again.

    Parameters
    ----------
    name : str
        As pipelines write it.
    source : str
        Where the algorithm was published.
    initial : {"ignored", "optional", "needed"}, optional
        Constructors ignore an initial mapping, searches may start from it, refiners need it.
        The default follows from the argument of that name: none, with a default, or without one.
    presets : mapping, optional
        Parameters as a publication set them, by its name, for ``preset=NAME`` in a pipeline.
    needs : callable, optional
        ``needs(name, traffic, topology)`` raises `MappingError` where the mapper would, but in no
        time: so scenarios leave out what cannot be before they begin.

    Raises
    ------
    MappingError
        The name is another function's, or an argument that nothing says the type of.
    """

    def register(function: F) -> F:
        is_loading = f"hopmap.mappers.{MAPPERS.data.get(name)}" == function.__module__
        known = None if is_loading else MAPPERS.get(name)
        if known is not None and not same_function(known.function, function):
            raise MappingError(
                f"two mappers are called {name!r}: {place_of(known.function)} and "
                f"{place_of(function)}: expected a name of its own"
            )
        groups: dict[str, type] = {}
        parameters: list[tuple[inspect.Parameter, Any]] = []  # and a function of the same module
        for argument in _arguments(name, function):
            kind = _group(argument, function)
            if kind is None:
                parameters.append((argument, function))
            else:
                groups[argument.name] = kind
                fields = inspect.signature(kind).parameters.values()
                parameters += [(p, vars(kind)["__init__"]) for p in fields]
        starts: dict[str, Initial] = {
            p.name: "needed" if p.default is p.empty else "optional" for p, _ in parameters
        }
        keywords = [(p, owner) for p, owner in parameters if p.name not in _PASSED]
        hints = tuple(_hint(name, p, owner) for p, owner in keywords)
        MAPPERS[name] = MapperInfo(
            name=name,
            function=function,
            summary=(inspect.getdoc(function) or "").partition("\n")[0],
            source=source,
            parameters=tuple(
                Parameter(p.name, type_text(hint), None if p.default is p.empty else p.default)
                for (p, _), hint in zip(keywords, hints, strict=True)
            ),
            initial=initial or starts.get("initial", "ignored"),
            passed=tuple(p.name for p, _ in parameters if p.name in _PASSED),
            groups=groups,
            hints=hints,
            presets=presets or {},
            needs=needs,
        )
        return function

    return register


def _arguments(name: str, function: MapperFunction) -> list[inspect.Parameter]:
    """Return what a mapper asks for in addition to traffic and topology."""
    parameters = inspect.signature(function).parameters.values()
    single = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    by_place = [p for p in single[:2] if p.kind is not p.KEYWORD_ONLY]
    if len(by_place) < 2 or any(p.kind is p.POSITIONAL_ONLY for p in single[2:]):
        raise MappingError(
            f"mapper {name}: expected a function of traffic and topology, and of more by name only "
            f"if at all, not {place_of(function)}{inspect.signature(function)}"
        )
    return single[2:]


def _group(argument: inspect.Parameter, function: MapperFunction) -> type | None:
    """Return the dataclass that an argument is; its fields are parameters of the mapper."""
    names = getattr(inspect.unwrap(function), "__globals__", {})
    said = argument.annotation
    kind = names.get(said) if isinstance(said, str) else said
    return kind if isinstance(kind, type) and is_dataclass(kind) else None


def _hint(name: str, parameter: inspect.Parameter, function: Callable[..., Any]) -> Any:
    """Return the type of a parameter: as annotated, else that of its default."""
    said = f"mapper {name}: parameter {parameter.name}"
    known = _KNOWN.get(parameter.name)
    if parameter.default is parameter.empty and known is None:
        raise MappingError(f"{said}: expected a default, like {parameter.name}=1")
    why = "no annotation"
    if parameter.annotation is not parameter.empty:
        annotated: Any = SimpleNamespace(__annotations__={"it": parameter.annotation})
        names = getattr(inspect.unwrap(function), "__globals__", {})
        try:
            return get_type_hints(annotated, names, include_extras=True)["it"]
        except Exception as error:  # evaluating the annotation's text may raise anything
            why = f"annotation {parameter.annotation!r} ({type(error).__name__}: {error})"
    if known is not None:
        return known
    if type(parameter.default) not in (bool, int, float, str):
        raise MappingError(
            f"{said}: {why}, default {parameter.default!r}: expected an annotation like int or "
            "Literal['a', 'b'], or a default that is a number, true, false or a text"
        )
    return type(parameter.default)


def all_mappers() -> Registry:
    """Return all mappers, including mappers of plugins and installed packages."""
    load_plugins()
    load_entry_points(GROUP, _enter)
    return MAPPERS


def get_mapper(name: str) -> MapperInfo:
    """Return a mapper; plugins and installed packages are loaded for a name that hopmap has not."""
    if name in MAPPERS:
        return MAPPERS[name]
    known = all_mappers()
    if name not in known:
        near = did_you_mean(name, known) or f": expected one of {', '.join(sorted(known))}"
        raise MappingError(f"unknown mapper {name!r}{near}")
    return known[name]


def mapper_source(name: str) -> str:
    """Return the file that a mapper is defined in; empty where there is none, as in a session."""
    return source_file(get_mapper(name).function)


def _enter(name: str, extension: Any) -> None:
    if callable(extension) and name not in MAPPERS:
        mapper(name)(extension)
