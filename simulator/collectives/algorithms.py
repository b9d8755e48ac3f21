"""Collective operations as rounds of point-to-point messages, by named algorithms.

What an operation moves is a volume, see `volumes.py`: one whole buffer, a block of bytes per
member, or bytes per pair of members. Reductions take no time themselves. An operation for which no
algorithm is named takes the one that Open MPI would, see `selection.py`. An algorithm's module is
imported when the algorithm is asked for.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints
from hopmap.errors import choice
from hopmap.plugins import Table
from hopmap.traces import Collective
from hopmap.units import UnitError, parse_quantity

from .schedules import (
    Algorithm,
    AlgorithmError,
    Call,
    Schedule,
    buffers_of,
    one_after_another,
    schedule,
)
from .selection import OPENMPI, VARIANT_OF, fallback, resolve, select, size_of, substitute
from .volumes import volume

# By operation, as Open MPI has them; behind these Bine trees, measured on Fugaku and elsewhere, see
# `measured/`.
_PLACES: Mapping[str, Mapping[str, str]] = {
    "barrier": {
        "dissemination": "reductions:dissemination",
        "recursive_doubling": "reductions:doubling_barrier",
        "double_ring": "reductions:double_ring",
        "tree": "reductions:tree_barrier",
        "linear": "reductions:linear_barrier",
    },
    "bcast": {
        "binomial": "broadcasts:binomial_bcast",
        "linear": "broadcasts:linear_bcast",
        "knomial": "broadcasts:knomial_bcast",
        "binary": "broadcasts:binary_bcast",
        "split_binary": "broadcasts:split_binary_bcast",
        "chain": "broadcasts:chain_bcast",
        "pipeline": "broadcasts:pipeline_bcast",
        "scatter_allgather": "broadcasts:scatter_allgather",
        "scatter_allgather_ring": "broadcasts:scatter_allgather_ring",
        "bine": "bine.trees:bine_bcast",
        "bine_increasing": "bine.trees:bine_bcast_increasing",
        "bine_blocking": "bine.trees:bine_bcast_blocking",
        "bine_with_buffer": "bine.trees:bine_bcast_with_buffer",
        "bine_scatter_allgather": "bine.blocks:bine_scatter_then_allgather",
        "bine_at_once": "bine.blocks:bine_bcast_at_once",
        "bine_scatter_allgather_once": "bine.blocks:bine_scatter_allgather_once",
        "bine_scatter_allgather_blocking": "bine.blocks:bine_scatter_allgather_blocking",
    },
    "gather": {
        "binomial": "gathers:binomial_gather",
        "linear": "gathers:linear_gather",
        "linear_sync": "gathers:linear_sync_gather",
        "bine": "bine.blocks:bine_gather",
        "bine_increasing": "bine.blocks:bine_gather_increasing",
        "bine_ranges": "bine.blocks:bine_gather_ranges",
    },
    "scatter": {
        "binomial": "gathers:binomial_scatter",
        "linear": "gathers:linear_scatter",
        "linear_nb": "gathers:linear_nb_scatter",
        "bine": "bine.blocks:bine_scatter",
        "bine_decreasing": "bine.blocks:bine_scatter_decreasing",
        "bine_ranges": "bine.blocks:bine_scatter_ranges",
    },
    "allgather": {
        "bruck": "exchanges:bruck",
        "recursive_doubling": "exchanges:doubling_allgather",
        "neighbour_exchange": "exchanges:neighbour_exchange",
        "ring": "exchanges:ring",
        "sparbit": "exchanges:sparbit",
        "gather_bcast": "algorithms:gather_then_bcast",
        "bine": "bine.exchanges:bine_allgather",
        "bine_sending": "bine.exchanges:bine_allgather_sending",
        "bine_blocks": "bine.exchanges:bine_allgather_blocks",
        "bine_ranges": "bine.exchanges:bine_allgather_ranges",
        "bine_joined": "bine.blocks:bine_allgather_joined",
        "bine_any_even": "bine.blocks:bine_allgather_any_even",
    },
    "alltoall": {
        "pairwise": "exchanges:pairwise",
        "linear": "exchanges:linear_exchange",
        "linear_sync": "exchanges:linear_sync_exchange",
        "bruck": "exchanges:bruck_alltoall",
        "bruck_by_blocks": "exchanges:bruck_alltoall_by_blocks",
        "bine": "bine.exchanges:bine_alltoall",
    },
    "allreduce": {
        "recursive_doubling": "reductions:recursive_doubling",
        "rabenseifner": "reductions:rabenseifner_allreduce",
        "ring": "reductions:ring_allreduce",
        "segmented_ring": "reductions:segmented_ring_allreduce",
        "reduce_bcast": "algorithms:reduce_then_bcast",
        "linear": "reductions:linear_allreduce",
        "allgather_reduce": "algorithms:allgather_then_reduce",
        "bine": "bine.exchanges:bine_allreduce",
        "bine_folded": "bine.exchanges:bine_allreduce_folded",
        "bine_halving": "bine.exchanges:bine_halving_allreduce",
        "bine_halving_in_turns": "bine.exchanges:bine_in_turns",
        "bine_any_even": "bine.blocks:bine_allreduce_any_even",
        "torus_doubling": "bine.exchanges:torus_doubling_allreduce",
        "torus_halving": "bine.exchanges:torus_halving_allreduce",
    },
    "reduce": {
        "binomial": "broadcasts:binomial_reduce",
        "linear": "broadcasts:linear_reduce",
        "binary": "broadcasts:binary_reduce",
        "in_order_binary": "broadcasts:in_order_binary_reduce",
        "chain": "broadcasts:chain_reduce",
        "pipeline": "broadcasts:pipeline_reduce",
        "rabenseifner": "reductions:rabenseifner_reduce",
        "bine": "bine.trees:bine_reduce",
        "bine_reduce_scatter_gather": "bine.blocks:bine_reduce_then_gather",
        "bine_whole": "bine.blocks:bine_reduce_whole",
        "bine_reduce_scatter_gather_copied": "bine.blocks:bine_reduce_scatter_gather_copied",
    },
    "reduce_scatter": {
        "pairwise": "reductions:pairwise_reduce_scatter",
        "recursive_halving": "reductions:halving_reduce_scatter",
        "butterfly": "reductions:butterfly_reduce_scatter",
        "ring": "reductions:ring_reduce_scatter",
        "reduce_scatter": "algorithms:reduce_then_scatterv",
        "bine": "bine.exchanges:bine_reduce_scatter",
        "bine_sending": "bine.blocks:bine_reduce_scatter_sending",
        "bine_any_even": "bine.blocks:bine_reduce_scatter_any_even",
    },
    "scan": {
        "recursive_doubling": "reductions:doubling_scan",
        "linear": "reductions:linear_scan",
    },
    "exscan": {
        "recursive_doubling": "reductions:doubling_exscan",
        "linear": "reductions:linear_exscan",
    },
}
# Where an operation that is like another one nests others than that.
_NESTED: Mapping[str, Mapping[str, str]] = {
    "allgatherv": {"gather_bcast": "algorithms:gatherv_then_bcast"},
    "reduce_scatter_block": {"reduce_scatter": "algorithms:reduce_then_scatter"},
}


ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    operation: Table(__package__, {**places, **_NESTED.get(operation, {})})
    for plain, places in _PLACES.items()
    for operation in (plain, *(name for name in VARIANT_OF if VARIANT_OF[name] == plain))
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


def parse_algorithm(text: str, table: Mapping[str, Callable[..., object]]) -> Named:
    """Read ``name`` or ``name(option=value, ...)``, bytes with or without a unit.

    The table has an operation's algorithms by name; options are their arguments by name alone.
    """
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", text.strip())
    if match is None or match[1] not in table:
        raise AlgorithmError(f"{text!r}: expected one of {', '.join(table)}")
    name, function = match[1], table[match[1]]
    known = options_of(function)
    options: dict[str, int | tuple[int, ...]] = {}
    for setting in (match[2] or "").split(",") if (match[2] or "").strip() else ():
        key, _, value = (piece.strip() for piece in setting.partition("="))
        if key not in known:
            none = f"{text!r}: option {key!r}: expected none: {name} has no options"
            raise AlgorithmError(choice(f"{text!r}: option", key, known) if known else none)
        if key in options:
            raise AlgorithmError(f"{text!r}: option {key} is set twice")
        options[key] = _value(text, key, value)
    return Named(name, partial(function, **options) if options else function)  # type: ignore[arg-type]


def options_of(function: Callable[..., object]) -> dict[str, object]:
    """Return the options of an algorithm with their defaults, "" for lengths without a value."""
    parameters = inspect.signature(function).parameters.values()
    options = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return {name: "" if default == () else default for name, default in options.items()}


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


class Chosen(NamedTuple):
    """Messages of a collective, and the operation and algorithm that they carry out."""

    operation: str
    algorithm: str
    schedule: Schedule


def choose(
    operation: Collective,
    root: int,
    sent: Ints,
    received: Ints,
    algorithms: Mapping[str, str] | None = None,
    moved: Ints | None = None,
) -> Chosen:
    """Choose the algorithm of one collective call, and list its messages.

    Creating, destroying, allocating and freeing handles synchronise: they are barriers. `root` is a
    position, or -1; `sent` and `received` are bytes as recorded at each member, shape (members,).
    `moved` is what is really moved, where more is known of it than this call's record, see
    `volume`. `algorithms` are by operation, where Open MPI's choice is not wanted; one that is not
    for so many members is replaced, see `substitute`.
    """
    name = operation.name.lower()
    if name not in ALGORITHMS:
        name, operation = "barrier", Collective.BARRIER
    members = len(sent)
    if moved is None:
        moved = volume(operation, root, sent, received)
    algorithm = (algorithms or {}).get(name, OPENMPI)
    if algorithm == OPENMPI:
        algorithm = select(name, members, size_of(name, moved))
    return schedule_call(name, algorithm, members, max(root, 0), moved)


def schedule_call(
    operation: str,
    algorithm: str,
    members: int,
    root: int,
    moved: Ints,
    elements: int | None = None,
) -> Chosen:
    """List the messages of one collective call by a named algorithm, see `parse_algorithm`.

    A call with `elements` is what its name says: it is replaced only where Open MPI's function of
    that name calls another, for so few elements of the buffer or so many members. When left out,
    what is not for so many members is replaced, see `substitute`.
    """
    bare, schedule_of = parse_algorithm(algorithm, ALGORITHMS[operation])
    if elements is None:
        instead = substitute(operation, bare, members)
    else:
        instead = resolve(operation, fallback(operation, bare, members, elements), members)
    if instead != bare:
        algorithm, schedule_of = instead, ALGORITHMS[operation][instead]
    listed = schedule_of(members, root, moved)
    buffers = buffers_of(operation, instead, Call(listed, members, root, moved))
    return Chosen(operation, algorithm, listed._replace(buffers=buffers))


# Collectives made of others, for which Open MPI asks its own rules again.


def reduce_then_bcast(members: int, _root: int, moved: Ints, /) -> Schedule:
    """Reduce to the first member and broadcast from there: allreduce_intra_nonoverlapping."""
    return one_after_another(_choose("reduce", members, moved), _choose("bcast", members, moved))


def gather_then_bcast(members: int, _root: int, moved: Ints, /) -> Schedule:
    """Gather to the first member and broadcast from there: allgather_intra_basic_linear."""
    return one_after_another(
        _choose("gather", members, moved),
        _choose("bcast", members, moved.sum(keepdims=True)),
    )


def gatherv_then_bcast(members: int, _root: int, moved: Ints, /) -> Schedule:
    """As for equal blocks, the gather being linear: allgatherv_intra_basic_default."""
    return one_after_another(
        ALGORITHMS["gatherv"]["linear"](members, 0, moved),
        _choose("bcast", members, moved.sum(keepdims=True)),
    )


def allgather_then_reduce(members: int, _root: int, moved: Ints, /) -> Schedule:
    """Allgather all buffers, then add them up: allreduce_intra_allgather_reduce of 6.0."""
    me = np.arange(members)
    gather = _choose("allgather", members, np.full(members, moved[0]))
    add = schedule([], [(0, me, moved)], [(0, me, (members - 1) * moved)])
    return one_after_another(schedule([], [(-1, me, moved)]), gather, add)


def reduce_then_scatterv(members: int, _root: int, moved: Ints, /) -> Schedule:
    """Reduce to the first member, which scatters: reduce_scatter_intra_nonoverlapping."""
    return one_after_another(
        _choose("reduce", members, moved.sum(keepdims=True)),
        ALGORITHMS["scatterv"]["linear"](members, 0, moved),
    )


def reduce_then_scatter(members: int, _root: int, moved: Ints, /) -> Schedule:
    """Reduce to the first member, which scatters: reduce_scatter_block_basic_linear."""
    return one_after_another(
        _choose("reduce", members, moved.sum(keepdims=True)),
        _choose("scatter", members, moved),
    )


def _choose(operation: str, members: int, moved: Ints) -> Schedule:
    name = select(operation, members, size_of(operation, moved))
    return ALGORITHMS[operation][name](members, 0, moved)
