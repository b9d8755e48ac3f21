"""Runs on disk: each in files of its own as it finishes, later gathered in parts of tables.

What a run found lies in ``DIR/loose/<run_id>.<table>.arrow`` until it is gathered (`gather.py`).
The row of the table "runs" is written last: where it is, all of the run is.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hopmap.traces.safety.atomic_files import replacing

from .tables import TABLES, StoreError


class GoneError(Exception):
    """Another process has gathered, or planned, in the meantime."""


def part_files(folder: Path, name: str) -> list[Path]:
    """Return the files of a gathered table."""
    return sorted((folder / name).glob("part-*.parquet"))


def loose_path(folder: Path, name: str, run_id: str) -> Path:
    """Return where a run's rows of a table lie until they are gathered; never out of there."""
    return folder / "loose" / f"{run_id.replace('/', '_')}.{name}.arrow"


def write_loose(folder: Path, name: str, run_id: str, rows: pa.Table) -> None:
    """Write a run's rows of a table; SIGTERM, which stops workers, waits until it is done."""
    (folder / "loose").mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        deaf_to_sigterm(),
        replacing(loose_path(folder, name, run_id)) as partial,
        pa.ipc.new_file(str(partial), rows.schema, options=options) as file,
    ):
        file.write_table(rows)


@contextmanager
def deaf_to_sigterm() -> Iterator[None]:
    """Put SIGTERM off, also where it comes to another thread, such as one of numpy's."""
    came: list[int] = []
    try:
        with handling(signal.SIGTERM, lambda number, _: came.append(number)):
            yield
    finally:
        if came:
            os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def handling(number: signal.Signals, handler: Any) -> Iterator[None]:
    """Handle a signal by `handler`; only the main thread can, so not Dask's workers."""
    try:
        before = signal.signal(number, handler)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before or signal.SIG_DFL)


def read_loose(folder: Path, name: str, run_id: str) -> pa.Table | None:
    """Return a run's rows of a table; None if they are not there, or were damaged.

    Columns that another version did not write are null.
    """
    try:
        with pa.OSFile(str(loose_path(folder, name, run_id))) as source:
            rows = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid):
        return None
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in TABLES[name]
    ]
    return pa.table(columns, schema=TABLES[name])


def loose_ids(folder: Path) -> Sequence[str]:
    """Return the runs that are there whole and loose.

    Files that are being written, or were when their process died, begin with a dot.
    """
    return sorted(
        path.name.removesuffix(".runs.arrow")
        for path in (folder / "loose").glob("[!.]*.runs.arrow")
    )


def read_part(
    path: Path, name: str, run_ids: Sequence[str] | None = None, columns: list[str] | None = None
) -> pa.Table:
    """Read the rows of all or some runs from a part of a table.

    Columns that another version did not write are null. Raises `FileNotFoundError` if the part is
    gone, because the table was gathered again.
    """
    some = None if run_ids is None else ds.field("run_id").isin(run_ids)
    try:
        return ds.dataset(path, TABLES[name], format="parquet").to_table(columns, filter=some)
    except pa.ArrowInvalid as error:
        raise StoreError(
            f"{path}: cannot be read ({error}): remove {path.name} of every table, and its runs "
            f"are done again"
        ) from None


class Stored(NamedTuple):
    """A run that the folder holds: its error, if any, and its part of "runs"; None: loose."""

    error: str | None
    part: Path | None


def index(folder: Path) -> dict[str, Stored]:
    """Return every run that the folder holds, by run_id: gathered, earlier or loose.

    Of several the one that did not fail counts, and a loose one before others.
    """
    loose = {run_id: read_loose(folder, "runs", run_id) for run_id in loose_ids(folder)}
    found: dict[str, Stored] = {}  # parts after loose runs, which are gathered and then removed
    try:
        for path in _parts_of_runs(folder):
            found |= {run_id: Stored(error, path) for run_id, error in errors_in(path).items()}
    except FileNotFoundError:  # another process has gathered them again
        return index(folder)
    for run_id, row in loose.items():
        if row is not None and (run_id not in found or found[run_id].error is not None):
            found[run_id] = Stored(row["error"][0].as_py(), None)
    return found


def read_errors(folder: Path) -> dict[str, str | None]:
    """Return the error, or None, of every run that the folder holds, by run_id."""
    return {run_id: stored.error for run_id, stored in sorted(index(folder).items())}


def error_of(folder: Path, run_id: str) -> str | None:
    """Return the error of a run, or None if it did well, without looking at other loose runs.

    Raises `KeyError` for a run that has not finished.
    """
    row = read_loose(folder, "runs", run_id)  # first: a run is gathered before it is not loose
    if row is not None:
        error: str | None = row["error"][0].as_py()
        return error
    try:
        for path in reversed(_parts_of_runs(folder)):
            if run_id in (errors := errors_in(path)):
                return errors[run_id]
    except FileNotFoundError:
        return error_of(folder, run_id)
    raise KeyError(run_id)


def _parts_of_runs(folder: Path) -> list[Path]:
    return [*part_files(folder / "earlier", "runs"), *part_files(folder, "runs")]


@lru_cache(maxsize=4096)
def errors_in(path: Path) -> dict[str, str | None]:
    """Return the error, or None, of every run in a part; its name says what is in it."""
    table = read_part(path, "runs", columns=["run_id", "error"])
    return dict(zip(table["run_id"].to_pylist(), table["error"].to_pylist(), strict=True))


def read_runs(
    folder: Path, name: str, run_ids: Sequence[str], stored: dict[str, Stored]
) -> pa.Table | None:
    """Return the rows of a table of some runs, in their order; None where no run has any.

    Raises `GoneError` or `FileNotFoundError` if another process has gathered since `stored` was
    looked up.
    """
    in_part: defaultdict[Path | None, list[str]] = defaultdict(list)
    for run_id in run_ids:
        in_part[stored[run_id].part].append(run_id)
    tables = []
    for run_id in in_part.pop(None, []):
        rows = read_loose(folder, name, run_id)
        if rows is not None:
            tables.append(rows)
        elif name == "runs":
            raise GoneError
    for part, some in in_part.items():
        assert part is not None
        path = part.parent.parent / name / part.name  # parts of all tables hold the same runs
        if name == "runs" or path.exists():
            tables.append(read_part(path, name, some))
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    place = pc.index_in(rows["run_id"], pa.array(run_ids, pa.string()))
    return rows.take(pc.sort_indices(place)).combine_chunks()  # which keeps the order within a run
