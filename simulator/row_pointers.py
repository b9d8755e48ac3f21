"""Rows of a table in compiled code, by pointer instead of by array.

An array that compiled code passes on or takes out of a tuple is reference-counted each time, which
costs more than an event of the replay does. A record is a bare pointer. The owner of a table must
keep it alive, and the index is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, overload, type_callable

from hopmap.compilation import NO_WRAPPERS

wide: Any = np.int64
"""Of a number from a narrower column, so that a function is compiled for one type of it only."""


def first_records(tables: Any) -> Any:
    """Return a named tuple of tables, none of them empty, as kernels take it: row 0 of each."""
    rows = (first_records(t) if isinstance(t, tuple) else t[0] for t in tables)
    return type(tables)(*rows)


def nth(first: Any, index: int) -> Any:
    """Row `index` of the table whose row 0 is `first`."""
    return first.base[index]


def prefetch(first: Any, index: int) -> None:
    """Bring row `index` of a table into the cache, as `nth` will need it."""


def by_columns(
    column: str,
    there: Callable[..., Any],
    elsewhere: Callable[..., Any],
    without: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """Return a function of a run, `there` if its packets or messages have a column, or `elsewhere`.

    Which one is known by the types of both tables when code is compiled: a run has nothing in it of
    what its parameters leave out. With a column of `without` it is `elsewhere`, too.
    """

    def holds(columns: Collection[str]) -> bool:
        return column in columns and not any(other in columns for other in without)

    def either(run: Any, *arguments: Any) -> Any:
        columns = {*run.packets.dtype.names, *run.messages.dtype.names}
        return (there if holds(columns) else elsewhere)(run, *arguments)

    def choose(run: Any, *_arguments: Any) -> Callable[..., Any]:
        packets, messages = (run.types[run.fields.index(name)] for name in ("packets", "messages"))
        return there if holds({*packets.fields, *messages.fields}) else elsewhere

    overload(either, jit_options=NO_WRAPPERS, strict=False)(choose)
    return either


@type_callable(prefetch)
def _type_prefetch(_context: Any) -> Any:
    return lambda _first, _index: types.none


@lower_builtin(prefetch, types.Record, types.Integer)  # type: ignore[no-untyped-call]
def _lower_prefetch(
    context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any
) -> ir.Value:
    row = builder.bitcast(
        _lower_nth(context, builder, signature, arguments), ir.IntType(8).as_pointer()
    )
    word = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [row.type, word, word, word])
    name = "llvm.prefetch.p0"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [row, word(1), word(3), word(1)])
    return context.get_dummy_value()


@type_callable(nth)
def _type_nth(_context: Any) -> Any:
    def result(first: Any, index: Any) -> Any:
        fits = isinstance(first, types.Record) and isinstance(index, types.Integer)
        return first if fits else None

    return result


@lower_builtin(nth, types.Record, types.Integer)  # type: ignore[no-untyped-call]
def _lower_nth(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> ir.Value:
    pointer, index = arguments
    return builder.gep(pointer, [context.cast(builder, index, signature.args[1], types.intp)])
