"""Which algorithm a collective takes: by name, "chain(fanout=4, segment=64 KiB)", or Open MPI's.

When none is named, members and bytes decide as in Open MPI. Traces count bytes, where Open MPI goes
back to another algorithm if there are fewer elements than members: an element is taken to have 8
bytes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from hopmap.arrays import Ints
from hopmap.errors import choice
from hopmap.units import UnitError, parse_quantity

from .openmpi_rules import ANY, DECISIONS
from .schedules import Algorithm, AlgorithmError

OPENMPI = "openmpi"  # the word for this choice, among the names of algorithms
ELEMENT = 8  # bytes
# Where there is less than an element for each member.
_FEW: Mapping[tuple[str, str], str] = {
    ("bcast", "scatter_allgather"): "linear",
    ("allreduce", "ring"): "recursive_doubling",
    ("allreduce", "rabenseifner"): "linear",
    ("reduce", "rabenseifner"): "linear",
}
# Where there is another number of members: Open MPI's functions call each other.
_EVEN_ONLY = {"neighbour_exchange": "ring"}
_POWERS_ONLY = {
    ("allgather", "recursive_doubling"): "bruck",
    ("allgatherv", "recursive_doubling"): "bruck",
}
# What is not Open MPI's and for all multiples of a number; a ring else.
_MULTIPLES = {"bine_folded": 1, "bine_halving_in_turns": 1, "bine_any_even": 2}
# What is not Open MPI's, and for powers of two alone: by algorithm, else by operation.
_INSTEAD = {
    ("bcast", "bine_scatter_allgather"): "scatter_allgather",
    ("bcast", "bine_scatter_allgather_once"): "scatter_allgather",
    ("bcast", "bine_scatter_allgather_blocking"): "scatter_allgather",
    ("reduce", "bine_reduce_scatter_gather"): "rabenseifner",
    ("reduce", "bine_reduce_scatter_gather_copied"): "rabenseifner",
    ("allreduce", "bine_halving"): "rabenseifner",
    ("allreduce", "torus_halving"): "rabenseifner",
    ("allreduce", "torus_doubling"): "recursive_doubling",
}
_FOR_BINE = {
    "bcast": "binomial",
    "reduce": "binomial",
    "gather": "binomial",
    "gatherv": "binomial",
    "scatter": "binomial",
    "scatterv": "binomial",
    "allgather": "bruck",
    "allgatherv": "bruck",
    "alltoall": "bruck",
    "alltoallv": "bruck",
    "alltoallw": "bruck",
    "allreduce": "recursive_doubling",
    "reduce_scatter": "recursive_halving",
    "reduce_scatter_block": "recursive_halving",
}


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
            none = f"{text!r}: option {key!r}: expected none: {name} has no options"
            raise AlgorithmError(choice(f"{text!r}: option", key, known) if known else none)
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


class Row(NamedTuple):
    """An algorithm for fewer than `members` members and fewer than `size` bytes."""

    members: float
    size: float
    algorithm: str


def _rows(by_members: Mapping[float, str]) -> tuple[Row, ...]:
    """Read "<4K ring, bruck" as ring below 4096 bytes, else bruck."""
    rows = []
    for members, line in by_members.items():
        for entry in line.split(", "):
            *bound, algorithm = entry.split()
            rows.append(Row(members, _bytes(bound[0]) if bound else ANY, algorithm))
    return tuple(rows)


def _bytes(bound: str) -> int:
    digits = bound.strip("<KM")
    return int(digits) << {"K": 10, "M": 20}.get(bound[-1], 0)


SELECTION: Mapping[str, tuple[Row, ...]] = {
    operation: _rows(by_members) for operation, by_members in DECISIONS.items()
}


def select(operation: str, members: int, size: int) -> str:
    """Name the algorithm that Open MPI takes.

    Parameters
    ----------
    operation : str
        A key of `SELECTION`.
    size : int
        Bytes that the rules look at, see `size_of`.
    """
    chosen = next(
        row.algorithm for row in SELECTION[operation] if members < row.members and size < row.size
    )
    return suited(operation, enough(operation, chosen, members, size // ELEMENT), members)


def enough(operation: str, algorithm: str, members: int, elements: int) -> str:
    """Return the algorithm, or what replaces it if a buffer has not so many elements."""
    # Rabenseifner's algorithm cuts the buffer for the last power of two.
    needed = 1 << (members.bit_length() - 1) if algorithm == "rabenseifner" else members
    return _FEW.get((operation, algorithm), algorithm) if elements < needed else algorithm


def called(operation: str, algorithm: str, members: int) -> str:
    """Return the algorithm, or the one that Open MPI's function calls for so many members."""
    if members > 1 and members % 2 and algorithm in _EVEN_ONLY:
        return _EVEN_ONLY[algorithm]
    if members & (members - 1):
        return _POWERS_ONLY.get((operation, algorithm), algorithm)
    return algorithm


def suited(operation: str, algorithm: str, members: int) -> str:
    """Return the algorithm, or what replaces it if it is not for so many members."""
    if members & (members - 1) == 0:
        return algorithm
    if algorithm in _MULTIPLES:
        return algorithm if members % _MULTIPLES[algorithm] == 0 else "ring"
    instead = _FOR_BINE[operation] if algorithm.startswith("bine") else algorithm
    instead = _INSTEAD.get((operation, algorithm), instead)
    return called(operation, instead, members)


def size_of(operation: str, volume: Ints) -> int:
    """Bytes that Open MPI's rules look at, from what an operation moves."""
    if operation == "allgatherv":
        return int(volume.sum()) // len(volume)
    if operation == "reduce_scatter":
        return int(volume.sum())
    return int(volume.max(initial=0))
