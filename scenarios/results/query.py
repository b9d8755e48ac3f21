"""SQL on a folder of results, by DuckDB."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.errors import HopmapError, HopmapWarning, needs

from .gather import gather
from .plan_file import read_plan
from .stored_runs import loose_ids, part_files
from .tables import TABLES

_MESSAGES = re.compile(r"\b(from|join)\s+messages\b", flags=re.IGNORECASE)


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
        except duckdb.Error as error:
            # Another process may have gathered, and removed parts that we were reading.
            if all(path.exists() for paths in parts.values() for path in paths):
                raise QueryError(f"query: {_reason(str(error))}") from None
        else:
            if not parts["messages"] and _MESSAGES.search(sql):
                warnings.warn(
                    "messages were not recorded: expected messages = true in [replay]",
                    HopmapWarning,
                    stacklevel=2,
                )
            return answer


def _reason(message: str) -> str:
    """Return DuckDB's message, with the names it suggests, without the statement and its caret."""
    lines = message.partition("\n\nLINE ")[0].splitlines()
    return " ".join(line.strip() for line in lines if line.strip())


def _answer(parts: Mapping[str, Sequence[Path]], sql: str) -> Answer:
    import duckdb

    with duckdb.connect() as connection:
        for name, paths in parts.items():
            if paths:
                listed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
                connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}])")
            else:
                connection.register(name, TABLES[name].empty_table())
        answer = connection.execute(sql)
        if answer is None:
            raise QueryError("query: no SQL: expected a statement, like FROM runs")
        return Answer([name for name, *_ in answer.description or []], answer.fetchall())
