"""Which runs a folder of results holds, wherever they are: gathered, of earlier plans, or loose."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .tables import loose_ids, part_files, read_loose, read_part


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
    except FileNotFoundError:  # another process has gathered them anew
        return index(folder)
    for run_id, row in loose.items():
        if row is not None and (run_id not in found or found[run_id].error is not None):
            found[run_id] = Stored(_text(row["error"][0].as_py()), None)
    return found


def finished(folder: Path) -> dict[str, str | None]:
    """Return the error, or None, of every run that the folder holds, by run_id."""
    return {run_id: stored.error for run_id, stored in sorted(index(folder).items())}


def error_of(folder: Path, run_id: str) -> str | None:
    """Return the error of a run, or None if it did well, without looking at other loose runs.

    Raises
    ------
    KeyError
        The run has not finished.
    """
    row = read_loose(folder, "runs", run_id)  # first: a run is gathered before it is not loose
    if row is not None:
        return _text(row["error"][0].as_py())
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


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
