"""Results on disk, in tables of Parquet files.

    DIR/scenario.toml           the scenario as it was run
    DIR/scenario.lock.toml      the same with all that it left open: versions, digests, every run
    DIR/plan.json               its runs in order, what varies in them, the digest of each trace
    DIR/published.csv           published numbers, if the scenario names some
    DIR/runs/part-*.parquet     one row a run: `tables.TABLES`
    DIR/ranks/part-*.parquet    a row a rank
    DIR/links/part-*.parquet    a row a link that carried anything
    DIR/messages/part-*.parquet a row a message, where the scenario asks for them
    DIR/traffic/<trace>.npz     who sends how much to whom
    DIR/loose/                  runs that finished since the tables were last gathered
    DIR/earlier/                runs of earlier versions of the scenario, in tables of their own
    DIR/.lock                   on which processes agree who does which run

Every file appears whole or not at all, so that a killed sweep leaves finished runs only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from hopmap.simulator import Result
from hopmap.topologies import Topology
from hopmap.traces import TraceError, Traffic
from hopmap.traces.formats import files

from .plan_file import Plan, read_plan
from .stored_runs import GoneError, index, read_loose, read_runs, write_loose
from .tables import TABLES, StoreError

if TYPE_CHECKING:
    import pandas as pd


def save_run(folder: Path, row: Mapping[str, Any]) -> None:
    """Write a run's row, after its other tables; columns that are left out are null."""
    write_loose(folder, "runs", row["run_id"], pa.Table.from_pylist([row], TABLES["runs"]))


def save_links(
    folder: Path,
    run_id: str,
    topology: Topology,
    messages: ArrayLike,
    bytes: ArrayLike,  # noqa: A002 - the field's own word
    replayed: ArrayLike | None = None,
    busy: ArrayLike | None = None,
) -> None:
    """Write what each link carries of the traffic that was mapped, and what of the replay.

    All have shape (links,): `messages` and `bytes` of the whole run's traffic, from point to point;
    `replayed` bytes of all that was replayed, collectives too and perhaps some time steps only;
    `busy` in seconds. Links that carry nothing have no row: a few ranks on a large machine use few.
    """
    link_columns = (messages, bytes, replayed, busy)
    carried = [None if each is None else np.asarray(each) for each in link_columns]
    used = np.flatnonzero(np.any([each > 0 for each in carried if each is not None], axis=0))
    kinds = pa.array([kind.name for kind in topology.kinds], pa.string())
    columns = [
        used,
        topology.link_from[used],
        topology.link_to[used],
        kinds.take(pa.array(topology.link_kind[used])),
        *(None if each is None else each[used] for each in carried),
    ]
    _save(folder, "links", run_id, columns, len(used))


def save_ranks(folder: Path, run_id: str, node_of: ArrayLike, result: Result | None) -> None:
    """Write where each rank sits, and how it spent its time when replayed."""
    node = np.asarray(node_of)
    times: list[ArrayLike | None] = [None] * 4
    if result is not None:
        times = [result.finish, result.compute, result.communicate, result.wait]
    _save(folder, "ranks", run_id, [np.arange(len(node)), node, *times], len(node))


def save_messages(folder: Path, run_id: str, result: Result) -> None:
    """Write when each message of a replay that recorded them was sent and delivered."""
    times = result.message_times
    assert times is not None
    columns = [times.source, times.target, times.size, times.sent, times.delivered]
    _save(folder, "messages", run_id, columns, len(times.source))


def _save(folder: Path, name: str, run_id: str, columns: Sequence[Any], rows: int) -> None:
    schema = TABLES[name]
    arrays = [
        pa.nulls(rows, field.type)
        if column is None
        else column.cast(field.type)
        if isinstance(column, pa.Array)
        else pa.array(np.asarray(column), field.type)
        for column, field in zip((pa.repeat(run_id, rows), *columns), schema, strict=True)
    ]
    write_loose(folder, name, run_id, pa.table(arrays, schema=schema))


def load_results(folder: str | Path) -> pd.DataFrame:
    """Return the finished runs of a folder of results, a row each, in the scenario's order.

    `docs/how-to/query-results.md` lists the tables of such a folder.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    folder = Path(folder)
    plan = read_plan(folder)
    while True:
        with suppress(GoneError, FileNotFoundError):  # another process has gathered meanwhile
            stored = index(folder)
            done = [run_id for run_id in plan.runs if run_id in stored]
            rows = read_runs(folder, "runs", done, stored) or TABLES["runs"].empty_table()
            frame: pd.DataFrame = rename_rows(rows, plan).to_pandas()
            return frame


def rename_rows(rows: pa.Table, plan: Plan) -> pa.Table:
    """Return rows with the labels and topologies that their runs have in the plan."""
    names = plan.names()
    called = [names[run_id] for run_id in rows["run_id"].to_pylist()]
    variants = pa.array([variant for variant, _ in called], pa.string())
    topologies = pa.array([topology for _, topology in called], pa.string())
    rows = rows.set_column(rows.column_names.index("variant"), "variant", variants)
    topologies = pc.coalesce(topologies, rows["topology"])
    return rows.set_column(rows.column_names.index("topology"), "topology", topologies)


def load_rows(folder: str | Path, name: str, run_id: str) -> pd.DataFrame:
    """Return the rows of a run in a table, "links", "ranks" or "messages"."""
    folder = Path(folder)
    rows = read_loose(folder, name, run_id)
    if rows is None:
        stored = index(folder)
        if run_id in stored and not stored[run_id].error:
            rows = read_runs(folder, name, [run_id], stored)
    if rows is None:
        raise StoreError(f"{folder}: no {name} of run {run_id}: expected a finished run's")
    frame: pd.DataFrame = rows.drop_columns("run_id").to_pandas()
    return frame


def traffic_path(folder: str | Path, trace: str) -> Path:
    """Return where the traffic of a trace lies."""
    return Path(folder) / "traffic" / f"{trace.replace('/', '_')}.npz"  # stencil:9,1/-1 has one


def save_traffic(folder: Path, trace: str, traffic: Traffic, made_of: str) -> None:
    """Write the traffic of a trace, with what it is made of: `Run.traffic_of`."""
    path = traffic_path(folder, trace)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {**traffic.metadata, "source_digest": made_of}
    files.save_traffic(path, replace(traffic, metadata=metadata))


def has_traffic(folder: Path, trace: str, made_of: str) -> bool:
    """Whether the folder holds what is made of that."""
    with suppress(OSError, TraceError):
        return files.load_metadata(traffic_path(folder, trace)).get("source_digest") == made_of
    return False


def load_traffic(folder: str | Path, trace: str, made_of: str | None = None) -> Traffic:
    """Return the traffic of a trace; where `made_of` is said, only of that (`save_traffic`)."""
    path = traffic_path(folder, trace)
    try:
        traffic = files.load_traffic(path)
    except (OSError, TraceError) as error:
        raise StoreError(f"{path}: cannot be read ({error})") from None
    if made_of is not None and traffic.metadata.get("source_digest") != made_of:
        raise StoreError(f"{path}: of other files or by other code: plan the runs again")
    return traffic
