"""Tables of measured collectives: CSV with a row for a collective, an algorithm and a size.

Required columns: ``collective, algorithm, buffer_bytes, median_ns``. Optional columns:
``nodes, tasks_per_node`` (else all of the network, one rank a node), ``mpi,
gpu_aware``, as in the public data of PICO (arXiv 2508.16809). All others are left alone.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Bools, Floats, Ints
from hopmap.errors import HopmapError

NEEDED = ("collective", "algorithm", "buffer_bytes", "median_ns")
MOST_BYTES = 2**50
MOST_RANKS = 2**24


class MeasuredError(HopmapError, ValueError):
    """A file of measured collectives cannot be used; names file, line, value and expected."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured collective calls, one entry each."""

    # collective, algorithm: as the files name them
    collective: tuple[str, ...]
    algorithm: tuple[str, ...]
    size: Ints  # bytes of the whole buffer
    time: Floats  # seconds of one call
    # nodes, tasks: nodes, 0 where the file does not say, and ranks on each
    nodes: Ints
    tasks: Ints
    on_gpu: Bools  # whether buffers were in the memory of GPUs
    changed: Bools  # whether the MPI was not what its name says: "custom..."
    file: Ints  # place of each entry's file in `files`
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.size)

    def part(self, which: NDArray[Any]) -> Measured:
        """Keep some entries, by place or mask."""
        places = np.arange(len(self))[which].tolist()

        def select(column: Any) -> Any:
            return tuple(column[k] for k in places) if type(column) is tuple else column[places]

        columns = (field.name for field in fields(self) if field.name != "files")
        return replace(self, **{name: select(getattr(self, name)) for name in columns})

    def cells(self) -> Ints:
        """Return the number of each entry's cell; what differs in algorithm alone is one."""
        rows = zip(
            self.file.tolist(), self.collective, self.size.tolist(), self.nodes.tolist(),
            self.tasks.tolist(), self.on_gpu.tolist(), strict=True,
        )  # fmt: skip
        numbers: dict[tuple[object, ...], int] = {}
        return np.array([numbers.setdefault(row, len(numbers)) for row in rows], dtype=np.int64)


def is_measured(path: str | Path) -> bool:
    """Whether a file's head names columns of measured collectives, one misspelt perhaps."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            head = next(csv.reader(stream), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False  # reading it reports the error
    return len(set(NEEDED) & {name.strip() for name in head}) > 1


def read_measured(paths: Sequence[str | Path]) -> Measured:
    """Read files of measured collectives."""
    rows = [(place, row) for place, path in enumerate(paths) for row in _rows(path)]
    collective, algorithm, size, time, nodes, tasks, on_gpu, changed = (
        zip(*(row for _, row in rows), strict=True) if rows else ((),) * 8
    )
    return Measured(
        collective=tuple(map(str, collective)),
        algorithm=tuple(map(str, algorithm)),
        size=np.array(size, dtype=np.int64),
        time=np.array(time, dtype=np.float64),
        nodes=np.array(nodes, dtype=np.int64),
        tasks=np.array(tasks, dtype=np.int64),
        on_gpu=np.array(on_gpu, dtype=np.bool_),
        changed=np.array(changed, dtype=np.bool_),
        file=np.array([place for place, _ in rows], dtype=np.int64),
        files=tuple(map(str, paths)),
    )


Row = tuple[str, str, int, float, int, int, bool, bool]


def _rows(path: str | Path) -> list[Row]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            names = reader.fieldnames or []
            for column in NEEDED:
                if column not in names:
                    header = ",".join(names)[:80]
                    raise MeasuredError(
                        f"{path}: header {header}: no column {column!r}: expected "
                        f"{','.join(NEEDED)}"
                    )
            rows = [_row(row, f"{path}: line {reader.line_num}") for row in reader]
    except OSError as error:
        raise MeasuredError(f"{path}: cannot be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise MeasuredError(f"{path}: cannot be read as CSV ({error})") from None
    if not rows:
        raise MeasuredError(f"{path}: no rows: expected measured collectives")
    return rows


def _row(row: Mapping[str, Any], place: str) -> Row:
    if row.get("median_ns") is None:
        raise MeasuredError(f"{place}: too few values: expected one for every column")
    return (
        str(row["collective"]).strip().lower(),
        str(row["algorithm"]).strip(),
        int(_number(row, "buffer_bytes", place, 0, MOST_BYTES, whole=True)),
        _number(row, "median_ns", place, 0, math.inf) * 1e-9,
        int(_number(row, "nodes", place, 1, MOST_RANKS, whole=True)) if _has(row, "nodes") else 0,
        int(_number(row, "tasks_per_node", place, 1, MOST_RANKS, whole=True))
        if _has(row, "tasks_per_node")
        else 1,
        str(row.get("gpu_aware") or "no").strip().lower() == "yes",
        str(row.get("mpi") or "").strip().lower().startswith("custom"),
    )


def _has(row: Mapping[str, Any], key: str) -> bool:
    return str(row.get(key) or "").strip() != ""


def _number(
    row: Mapping[str, Any], key: str, place: str, least: float, most: float, *, whole: bool = False
) -> float:
    """Read a number; sizes may be written as 32.0, times must be above `least`."""
    try:
        value = float(row[key])
    except (TypeError, ValueError):
        value = math.nan
    above = value >= least if whole else value > least
    if math.isfinite(value) and above and value <= most and (not whole or value == int(value)):
        return value
    kind = f"a whole number from {least:g}" if whole else f"a number above {least:g}"
    raise MeasuredError(f"{place}: {key} {row[key]!r}: expected {kind}")
