"""Rows of a table in compiled code, by pointer instead of by array.

An array that compiled code passes on or takes out of a tuple is reference-counted each time, which
costs more than an event of the replay does. A record is a bare pointer. The owner of a table must
keep it alive, and nobody checks the index.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

wide: Any = np.int64
"""Of a number from a narrower column, so that a function is compiled for one type of it only."""


def first_records(tables: Any) -> Any:
    """Return a named tuple of tables, none of them empty, as kernels take it: row 0 of each."""
    rows = (first_records(t) if isinstance(t, tuple) else t[0] for t in tables)
    return type(tables)(*rows)


def nth(first: Any, index: int) -> Any:
    """Row `index` of the table whose row 0 is `first`."""
    return first.base[index]


def fields_of(tables: Any, name: str) -> Collection[str]:
    """Columns of one of the tables of a type of run, when code is compiled."""
    fields: Collection[str] = tables.types[tables.fields.index(name)].fields
    return fields


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
