"""Results on disk, in tables of Parquet files.

    DIR/scenario.toml           the scenario as it was run
    DIR/scenario.lock.toml      the same with all that it left open: versions, digests, every run
    DIR/plan.json               its runs in order, what varies in them, the digest of each trace
    DIR/published.csv           published numbers, if the scenario names some
    DIR/runs/part-*.parquet     one row a run: `tables.SCHEMA`, and what varies as ``variant``
    DIR/ranks/part-*.parquet    run_id, and a row a rank: `tables.TABLES`
    DIR/links/part-*.parquet    run_id, and a row a link that carried anything
    DIR/messages/part-*.parquet run_id, and a row a message, where the scenario asks for them
    DIR/traffic/<trace>.npz     who sends how much to whom
    DIR/loose/                  runs that finished since the tables were last gathered
    DIR/earlier/                runs of earlier versions of the scenario, in tables of their own
    DIR/.lock                   on which processes agree who does which run

Every file appears whole or not at all, so that a killed sweep leaves finished runs only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .store_index import index
from .tables import PARTS, SCHEMA, TABLES, StoreError, part_rows, read_loose, read_part, write_loose

if TYPE_CHECKING:
    import pandas as pd


def save_run(folder: Path, row: Mapping[str, Any]) -> None:
    """Write a run's row, after its other tables; columns that are left out are null."""
    write_loose(folder, "runs", row["run_id"], pa.Table.from_pylist([row], SCHEMA))


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

    Parameters
    ----------
    messages, bytes : array_like, shape (links,)
        Of the whole run's traffic, from point to point.
    replayed, busy : array_like, shape (links,), optional
        Bytes of all that was replayed, collectives too and perhaps some time steps only; seconds.

    Links that carry nothing have no row: a few ranks on a large machine use few of its links.
    """
    given = (messages, bytes, replayed, busy)
    carried = [None if each is None else np.asarray(each) for each in given]
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
        for column, field in zip(columns, schema, strict=True)
    ]
    write_loose(folder, name, run_id, pa.table(arrays, schema=schema))


def load_runs(folder: str | Path) -> pd.DataFrame:
    """Return the finished runs of the scenario in its order, one row each.

    Columns are those of SCHEMA and ``variant``, a label of `Plan.variants`.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    plan = read_plan(Path(folder))
    runs: pd.DataFrame = rows_of(Path(folder), plan, plan.runs).to_pandas()
    return runs


def rows_of(folder: Path, plan: Plan, run_ids: Sequence[str]) -> pa.Table:
    """Return the rows of those of some runs that have finished, named as in the plan."""
    wanted = set(run_ids)
    stored = {run_id: each for run_id, each in index(folder).items() if run_id in wanted}
    tables = []
    for run_id in [run_id for run_id, each in stored.items() if each.part is None]:
        if (row := read_loose(folder, "runs", run_id)) is None:
            return rows_of(folder, plan, run_ids)  # another process has gathered it meanwhile
        tables.append(part_rows("runs", run_id, row))
    for path in {each.part for each in stored.values() if each.part is not None}:
        try:
            part = read_part(path, "runs")
        except FileNotFoundError:
            return rows_of(folder, plan, run_ids)
        ids = part["run_id"].to_pylist()
        tables.append(part.filter(pa.array([r in stored and stored[r].part == path for r in ids])))
    rows = pa.concat_tables(tables or [PARTS["runs"].empty_table()])
    place = {run_id: row for row, run_id in enumerate(rows["run_id"].to_pylist())}
    order = [place[run_id] for run_id in run_ids if run_id in place]
    return renamed(rows.take(pa.array(order, pa.int64())), plan)


def renamed(rows: pa.Table, plan: Plan) -> pa.Table:
    """Return rows with the labels and topologies that their runs have in the plan."""
    ids = rows["run_id"].to_pylist()
    names = [("variant", plan.variant_of), ("topology", plan.topology_of)]
    for column, called in names:
        if called:
            label = dict(zip(plan.runs, called, strict=True))
            values = pa.array([label[run_id] for run_id in ids], pa.string())
            rows = rows.set_column(rows.column_names.index(column), column, values)
    return rows


def load_links(folder: str | Path, run_id: str) -> pd.DataFrame:
    """Return what each link carried in a run, one row a link that carried anything.

    Raises
    ------
    StoreError
        No such run.
    """
    return _load(Path(folder), "links", run_id)


def load_ranks(folder: str | Path, run_id: str) -> pd.DataFrame:
    """Return where each rank sat in a run and how it spent its time, one row a rank.

    Raises
    ------
    StoreError
        No such run.
    """
    return _load(Path(folder), "ranks", run_id)


def _load(folder: Path, name: str, run_id: str) -> pd.DataFrame:
    rows = read_loose(folder, name, run_id)
    if rows is None:
        stored = index(folder).get(run_id)
        if stored and stored.part and not stored.error:
            # Parts of all tables hold the same runs and have the same name.
            beside = stored.part.parent.parent / name / stored.part.name
            if beside.exists():
                table = read_part(beside, name)
                rows = table.filter(pc.equal(table["run_id"], run_id)).drop_columns("run_id")
    if rows is None:
        raise StoreError(f"{folder}: no {name} of run {run_id}: expected a finished run's")
    frame: pd.DataFrame = rows.to_pandas()
    return frame


def traffic_path(folder: str | Path, trace: str) -> Path:
    """Return where the traffic of a trace lies."""
    return Path(folder) / "traffic" / f"{trace.replace('/', '_')}.npz"  # stencil:9,1/-1 has one


def save_traffic(folder: Path, trace: str, traffic: Traffic, made_of: str) -> None:
    """Write the traffic of a trace, with what it is made of: `Run.traffic_of`."""
    path = traffic_path(folder, trace)
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {**traffic.metadata, "made_from": made_of}
    files.save_traffic(path, replace(traffic, metadata=metadata))


def has_traffic(folder: Path, trace: str, made_of: str) -> bool:
    """Whether the folder holds what is made of that."""
    try:
        metadata = files.load_metadata(traffic_path(folder, trace))
    except (OSError, TraceError):
        return False
    return metadata.get("made_from") == made_of


def load_traffic(folder: str | Path, trace: str, made_of: str | None = None) -> Traffic:
    """Return the traffic of a trace of the scenario.

    Parameters
    ----------
    made_of : str, optional
        What it has to be made of, see `save_traffic`; anything when left out.

    Raises
    ------
    StoreError
        Not there, or of other files.
    """
    path = traffic_path(folder, trace)
    try:
        traffic = files.load_traffic(path)
    except (OSError, TraceError) as error:
        raise StoreError(f"{path}: cannot be read ({error})") from None
    if made_of is not None and traffic.metadata.get("made_from") != made_of:
        raise StoreError(f"{path}: of other files or by other code: plan the runs again")
    return traffic
