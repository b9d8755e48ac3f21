"""SQL on a folder of results, by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from .gather import gather
from .plan_file import load_plan
from .tables import PARTS, loose_ids, part_files


class QueryError(ValueError):
    """A query that DuckDB cannot answer, in its words."""


class Answer(NamedTuple):
    """Names of columns, and rows; none of both where a statement returns nothing."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def query(folder: str | Path, sql: str) -> Answer:
    """Answer a query on the tables runs, ranks, links and messages.

    Parameters
    ----------
    folder : str or Path
        What ``hopmap run`` filled, finished or not; runs that finished since are gathered first.
    sql : str
        In DuckDB's dialect.

    Raises
    ------
    StoreError
        The folder holds no results.
    QueryError
        A mistake in the query, or none.
    """
    import duckdb

    folder = Path(folder)
    load_plan(folder)  # says so when it holds no results
    if loose_ids(folder):
        gather(folder)
    with duckdb.connect() as connection:
        for name, schema in PARTS.items():
            files = [str(path) for path in part_files(folder, name)]
            if files:
                listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
                connection.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}])")
            else:
                connection.register(name, schema.empty_table())
        try:
            answer = connection.execute(sql)
            if answer is None:
                raise QueryError("query: no SQL: expected a statement, like FROM runs")
            return Answer([name for name, *_ in answer.description or []], answer.fetchall())
        except duckdb.Error as error:
            raise QueryError(f"query: {str(error).splitlines()[0]}") from None
