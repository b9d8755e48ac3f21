"""Gather loose runs into tables of a few Parquet files each.

A part holds up to RUNS_A_PART runs, in the plan's order, under the same name in every table; the
name has the part's number and a digest of what is in it. So tables depend on the plan and on what
has finished, not on how often a sweep was stopped, except for `TIMES`; and nothing is overwritten.

New parts are written first, the table "runs" last; then the others are removed, then loose files,
the files of "runs" first: as long as a run's row is there, so are its other tables. Killed in
between, it leaves runs twice. `store` reads one of the two, and the next call removes the other.

Nothing is removed that has not been found again in a part, whether or not other processes run:
on file systems without locks they gather, too.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from hopmap.traces.safety.atomic_files import replacing

from .claims import claim, has_locks
from .plan_file import Plan, read_plan
from .store import rename_rows
from .stored_runs import (
    GoneError,
    Stored,
    errors_in,
    index,
    loose_ids,
    loose_path,
    part_files,
    read_loose,
    read_runs,
)

RUNS_A_PART = 256
WRITTEN = ("messages", "links", "ranks", "runs")  # the last one tells that a part is there
DEAD = 600.0
"""Seconds after which a file that is still being written has lost its process."""


def gather(folder: Path) -> None:
    """Make the tables hold exactly the plan's finished runs.

    Runs that the plan no longer has go to the tables in ``earlier/``.
    """
    with claim(folder, "gather", wait=True):
        while True:
            with suppress(GoneError, FileNotFoundError):
                _gather(folder)
                return


def _gather(folder: Path) -> None:
    plan, stored = read_plan(folder), index(folder)
    _set_aside(folder, plan, stored)
    runs = [run_id for run_id in plan.runs if run_id in stored]
    parts, names = {}, plan.names()
    for first in range(0, len(runs), RUNS_A_PART):
        some = runs[first : first + RUNS_A_PART]
        what = [(run_id, stored[run_id].error, *names[run_id]) for run_id in some]
        digest = hashlib.blake2b(json.dumps(what).encode(), digest_size=6).hexdigest()
        parts[f"part-{first // RUNS_A_PART:05}-{digest}.parquet"] = some
    for name, some in parts.items():
        if not (folder / "runs" / name).exists():
            _write(folder, folder, plan, stored, name, some)
    if read_plan(folder) != plan:
        raise GoneError
    kept = _runs_in(path for path in part_files(folder, "runs") if path.name in parts)
    aside = _runs_in(part_files(folder / "earlier", "runs"))
    _remove_parts(folder, parts, plan, kept | aside)
    _remove_loose(folder, stored, kept)
    _remove_earlier(folder, kept)
    _remove_dead(folder)


def _runs_in(parts: Iterable[Path]) -> set[str]:
    return {run_id for path in parts for run_id in errors_in(path)}


def _set_aside(folder: Path, plan: Plan, stored: dict[str, Stored]) -> None:
    """Keep what the tables hold beyond the plan; those that failed need not be kept."""
    planned = set(plan.runs)
    kept = _runs_in(part_files(folder / "earlier", "runs"))
    runs = [
        run_id
        for path in part_files(folder, "runs")
        for run_id, error in errors_in(path).items()
        if run_id not in planned | kept and error is None
    ]
    if runs:
        digest = hashlib.blake2b(json.dumps(runs).encode(), digest_size=6).hexdigest()
        _write(folder, folder / "earlier", None, stored, f"part-{digest}.parquet", runs)


def _write(
    folder: Path,
    target: Path,
    plan: Plan | None,
    stored: dict[str, Stored],
    name: str,
    runs: Sequence[str],
) -> None:
    """Write a part of every table; a run that failed has its row only."""
    if not stored.keys() >= set(runs):
        raise GoneError
    well = [run_id for run_id in runs if stored[run_id].error is None]
    for table in WRITTEN:
        rows = read_runs(folder, table, runs if table == "runs" else well, stored)
        if rows is None:
            continue
        if table == "runs" and plan is not None:
            rows = rename_rows(rows, plan)
        (target / table).mkdir(parents=True, exist_ok=True)
        with replacing(target / table / name) as partial:
            pq.write_table(rows, partial, compression="zstd")


def _remove_parts(folder: Path, parts: Container[str], plan: Plan, kept_ids: set[str]) -> None:
    """Remove parts of former calls, all of whose runs are kept elsewhere or are not wanted."""
    planned = set(plan.runs)
    for path in part_files(folder, "runs"):
        if path.name in parts:
            continue
        errors = errors_in(path)
        if all(run in kept_ids or (run not in planned and errors[run]) for run in errors):
            _remove([path, *(folder / table / path.name for table in WRITTEN)])
    abandoned = _find_abandoned(folder)
    for table in WRITTEN:  # whose runs never came
        alone = [p for p in part_files(folder, table) if not (folder / "runs" / p.name).exists()]
        _remove(filter(abandoned, alone))


def _remove_loose(folder: Path, stored: dict[str, Stored], kept_ids: set[str]) -> None:
    for run_id in kept_ids.intersection(loose_ids(folder)):
        error = stored[run_id].error
        row = loose_path(folder, "runs", run_id)
        if error is None:
            _remove([row, *(loose_path(folder, table, run_id) for table in WRITTEN)])
            continue
        with claim(folder, run_id) as mine:  # else it is tried again right now
            now = read_loose(folder, "runs", run_id)
            if mine and now is not None and now["error"][0].as_py() == error:
                _remove([row])


def _remove_earlier(folder: Path, kept_ids: set[str]) -> None:
    """Remove what was set aside and is wanted again."""
    for path in part_files(folder / "earlier", "runs"):
        if kept_ids.issuperset(errors_in(path)):
            _remove([path, *(path.parent.parent / table / path.name for table in WRITTEN)])


def _remove_dead(folder: Path) -> None:
    """Remove what killed processes were writing."""
    abandoned = _find_abandoned(folder)
    for place in (folder, folder / "earlier"):
        for table in WRITTEN:
            _remove(filter(abandoned, (place / table).glob(".partial-*")))
    _remove(filter(_is_dead, (folder / "loose").glob(".partial-*")))


def _find_abandoned(folder: Path) -> Callable[[Path], bool]:
    """Return which files have no live writer: all of them, as we hold the claim to gather."""
    return (lambda _: True) if has_locks(folder) else _is_dead


def _is_dead(path: Path) -> bool:
    """Whether a file is so old that its writer must be dead."""
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > DEAD
    return False


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
