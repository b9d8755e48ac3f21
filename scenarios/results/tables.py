"""The columns of the result tables, and each table's file of one run.

What a run found lies in ``DIR/loose/<run_id>.<table>.arrow`` until it is gathered (`gather.py`).
The row of the table "runs" is written last: where it is, all of the run is.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hopmap.errors import HopmapError
from hopmap.traces.safety.atomic_files import replacing

METRICS = (
    *(f"ienpc_{part}" for part in ("total", "avg", "min", "max")),
    "ienlc_total",
    "ianlc_total",
    "ieplc_total",
    "dilation_avg",
    "dilation_max",
    "congestion_max",
    "ianlc_max",
    "off_node_total",
    "off_node_max",
)
_INT, _REAL = pa.int64(), pa.float64()


def _metric_fields() -> list[tuple[str, pa.DataType]]:
    def kind(name: str) -> pa.DataType:
        return _REAL if name.endswith("_avg") else _INT

    names = [f"{m}_{metric}" for m in ("messages", "bytes") for metric in METRICS]
    # Null where nothing like it was published: on networks without coordinates, on huge ones.
    names += [f"maplib_{m}_{metric}" for m in ("messages", "bytes") for metric in METRICS[:4]]
    return [(name, kind(name)) for name in names]


SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("trace", pa.string()),
        ("topology", pa.string()),
        ("mapper", pa.string()),
        ("seed", _INT),
        ("parameters", pa.string()),  # those that the scenario sets, a JSON object in SI units
        ("ranks", _INT),
        ("nodes", _INT),
        ("mapping_seconds", _REAL),
        ("node_of", pa.list_(pa.int32())),
        ("hop_messages", _INT),
        ("hop_bytes", _INT),
        *_metric_fields(),
        ("link_seconds_total", _REAL),  # bytes / bandwidth, over all links
        ("link_seconds_max", _REAL),  # and of the link that is longest at it
        ("engine", pa.string()),
        ("makespan", _REAL),
        ("makespan_median", _REAL),  # of repeats with noise, and what encloses it with 95 %
        ("makespan_low", _REAL),
        ("makespan_high", _REAL),
        ("makespans", pa.list_(_REAL)),  # one for each seed of noise, the same seeds in all runs
        ("makespan_free", _REAL),  # on a network that takes no time: no mapping makes it shorter
        ("slowdown", _REAL),  # makespan beside other jobs / without; null where there are none
        ("compute", _REAL),  # means over ranks, seconds
        ("communicate", _REAL),
        ("wait", _REAL),
        ("energy", _REAL),  # joules, null where no parameter of it is set
        ("energy_transfer", _REAL),  # what of it the bytes on links cost
        ("replayed_hop_bytes", _INT),  # as hop_bytes and bytes_congestion_max, but of all that was
        ("replayed_congestion_max", _INT),  # replayed, so with what collectives send
        ("replay_seconds", _REAL),
        ("replay_error", _REAL),  # bound, of the makespan; null where all steps were replayed
        ("events", _INT),
        ("left_out", pa.string()),  # of the trace by the replay: a JSON list of `LeftOut`
        ("error", pa.string()),
    ]
)
TIMES = ("mapping_seconds", "replay_seconds")
"""Columns of "runs" that differ from machine to machine; all else is the same for the same run."""

TABLES = {
    "runs": SCHEMA,
    "ranks": pa.schema(
        [
            ("rank", _INT),
            ("node", _INT),
            ("finish", _REAL),  # seconds, null where nothing was replayed, as the next three
            ("compute", _REAL),
            ("communicate", _REAL),
            ("wait", _REAL),
        ]
    ),
    "links": pa.schema(
        [
            ("link", _INT),
            ("from", _INT),
            ("to", _INT),
            ("kind", pa.string()),
            ("messages", _INT),
            ("bytes", _INT),
            ("replayed_bytes", _INT),  # as in "runs"; null where nothing was replayed, as busy
            ("busy", _REAL),  # seconds
        ]
    ),
    "messages": pa.schema(
        [
            ("source", _INT),  # ranks
            ("target", _INT),
            ("bytes", _INT),
            ("sent", _REAL),  # seconds
            ("delivered", _REAL),
        ]
    ),
}
_VARIANT = 3  # the column's place in gathered rows
PARTS = {
    "runs": SCHEMA.insert(_VARIANT, pa.field("variant", pa.string())),
    **{
        name: TABLES[name].insert(0, pa.field("run_id", pa.string()))
        for name in ("ranks", "links", "messages")
    },
}
"""Columns of the gathered tables."""


class StoreError(HopmapError, ValueError):
    """A folder does not hold results; the message names it."""


def part_files(folder: Path, name: str) -> list[Path]:
    """Return the files of a gathered table."""
    return sorted((folder / name).glob("part-*.parquet"))


def part_rows(name: str, run_id: str, rows: pa.Table) -> pa.Table:
    """Return a run's rows with the columns of the gathered table; unknown ones are null."""
    if name != "runs":
        rows = rows.add_column(0, "run_id", pa.array([run_id] * len(rows), pa.string()))
    return conform(rows, PARTS[name])


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table, perhaps another version's, with exactly the columns of a schema."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def loose_path(folder: Path, name: str, run_id: str) -> Path:
    """Return where a run's rows of a table lie until they are gathered."""
    return folder / "loose" / f"{run_id}.{name}.arrow"


def write_loose(folder: Path, name: str, run_id: str, rows: pa.Table) -> None:
    """Write a run's rows of a table; SIGTERM, by which workers are told to leave, waits for it."""
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
        before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    except ValueError:  # not the main thread, as in a worker of Dask, which nobody terminates
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        if came:
            os.kill(os.getpid(), signal.SIGTERM)


def read_loose(folder: Path, name: str, run_id: str) -> pa.Table | None:
    """Return a run's rows of a table; None if they are not there, or were damaged."""
    try:
        with pa.OSFile(str(loose_path(folder, name, run_id))) as source:
            return pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid):
        return None


def loose_ids(folder: Path) -> Sequence[str]:
    """Return the runs that are there whole and loose.

    Files that are being written, or were when their process died, begin with a dot.
    """
    return sorted(
        path.name.removesuffix(".runs.arrow")
        for path in (folder / "loose").glob("[!.]*.runs.arrow")
    )


def read_part(path: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a part of a table.

    Raises
    ------
    StoreError
        Damaged.
    FileNotFoundError
        Gone: it was gathered anew.
    """
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns)
    except pa.ArrowInvalid as error:
        raise StoreError(
            f"{path}: cannot be read ({error}): remove {path.name} of every table, and its runs "
            f"are done again"
        ) from None
    return table if columns else conform(table, PARTS[name])
