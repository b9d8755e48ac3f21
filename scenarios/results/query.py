"""SQL on a folder of results, by DuckDB, which sees nothing else.

Who asks may have the query from elsewhere, and the results: DuckDB gets tables that pyarrow reads,
and no way to a file, an extension, the network or a Python variable.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds

from hopmap.errors import HopmapError, HopmapWarning, needs

from .gather import gather
from .plan_file import read_plan
from .stored_runs import loose_ids, part_files
from .tables import TABLES

_MESSAGES = re.compile(r"\b(from|join)\s+messages\b", flags=re.IGNORECASE)

_LOCKED = re.compile("disabled (by|through) configuration|configuration has been locked")


class QueryError(HopmapError, ValueError):
    """A query that DuckDB cannot answer, in its words."""


class Answer(NamedTuple):
    """Names of columns, and rows; none of both where a statement returns nothing."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return what ``query --json`` prints: rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(folder: str | Path, sql: str) -> Answer:
    """Answer a query, in DuckDB's dialect, on the tables runs, ranks, links and messages.

    The folder is what ``hopmap run`` filled, finished or not; runs that finished since are
    gathered first.

    Raises
    ------
    QueryError, StoreError
        DuckDB cannot answer, in its words; the folder holds no results.
    """
    with needs("query", "hopmap query"):
        import duckdb

    folder = Path(folder)
    if not folder.exists() and os.path.isdir(sql):  # noqa: PTH112 of texts too long for a path, too
        raise QueryError(f"{folder}: no folder, but {sql} is: expected the results, then the query")
    read_plan(folder)  # says so when it holds no results
    try:
        gather(folder)
    except PermissionError:  # somebody else's results
        if loose_ids(folder):
            raise
    while True:
        parts = {name: part_files(folder, name) for name in TABLES}
        try:
            answer = _answer(parts, sql)
        except (duckdb.Error, FileNotFoundError) as error:
            # Another process may have gathered, and removed parts that we were reading.
            if all(path.exists() for paths in parts.values() for path in paths):
                raise QueryError(f"query: {_reason(error)}") from None
        else:
            if not parts["messages"] and _MESSAGES.search(sql):
                warnings.warn(
                    "messages were not recorded: expected messages = true in [replay]",
                    HopmapWarning,
                    stacklevel=2,
                )
            return answer


def _reason(error: Exception) -> str:
    """Return DuckDB's message, with the names it suggests, without the statement and its caret."""
    message = str(error).partition("\n\nLINE ")[0]
    words = " ".join(line.strip() for line in message.splitlines() if line.strip())
    if _LOCKED.search(words):
        words = f"expected a query of the results alone: {words}"
    return words


def _answer(parts: Mapping[str, Sequence[Path]], sql: str) -> Answer:
    import duckdb

    with duckdb.connect() as connection:
        for name, paths in parts.items():
            files = [str(path) for path in paths]
            connection.register(name, ds.dataset(files, TABLES[name], format="parquet"))
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        if (count := len(connection.extract_statements(sql))) > 1:
            raise QueryError(f"query: {count} statements: expected one")
        answer = connection.execute(sql)
        if answer is None:
            raise QueryError("query: no SQL: expected a statement, like FROM runs")
        return Answer([name for name, *_ in answer.description or []], answer.fetchall())
