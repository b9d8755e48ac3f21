"""Results on disk: one Parquet row a run, the loads of its links, and each trace's traffic.

    DIR/scenario.toml             the scenario as it was run
    DIR/plan.json                 its runs in order, what varies in them, the digest of each trace
    DIR/published.csv             published numbers, if the scenario names some
    DIR/runs/<run_id>.parquet     one row, see SCHEMA
    DIR/links/<run_id>.parquet    link, from, to, kind, messages, bytes, busy
    DIR/traffic/<trace>.npz       who sends how much to whom

Every file appears whole or not at all, so that a killed sweep leaves finished runs only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from ..topologies import Topology
from ..traces import TraceError, Traffic, formats
from ..traces.atomic import replacing

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
    names += [f"maplib_{m}_{metric}" for m in ("messages", "bytes") for metric in METRICS[:4]]
    return [(name, kind(name)) for name in names]


SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("trace", pa.string()),
        ("topology", pa.string()),
        ("mapper", pa.string()),
        ("seed", _INT),
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
        ("compute", _REAL),  # means over ranks, seconds
        ("communicate", _REAL),
        ("wait", _REAL),
        ("energy", _REAL),  # joules, null where no parameter of it is set
        ("energy_transfer", _REAL),  # what of it the bytes on links cost
        ("replayed_hop_bytes", _INT),  # as hop_bytes and bytes_congestion_max, but of all that was
        ("replayed_congestion_max", _INT),  # replayed, so with what collectives send
        ("replay_seconds", _REAL),
        ("events", _INT),
        ("error", pa.string()),
    ]
)


class StoreError(ValueError):
    """A folder does not hold results; the message names it."""


def save_run(folder: Path, row: Mapping[str, Any]) -> None:
    """Write a run's row; columns that are left out are null."""
    _write(folder / "runs" / f"{row['run_id']}.parquet", pa.Table.from_pylist([row], SCHEMA))


def save_links(
    folder: Path,
    run_id: str,
    topology: Topology,
    messages: ArrayLike,
    bytes: ArrayLike,  # noqa: A002 - the field's own word
    busy: ArrayLike | None,
) -> None:
    """Write what each link carries, and for how many seconds it was busy when replayed."""
    names = pa.array([kind.name for kind in topology.kinds])
    seconds = pa.nulls(topology.links, _REAL) if busy is None else pa.array(np.asarray(busy), _REAL)
    table = pa.table(
        {
            "link": pa.array(np.arange(topology.links), _INT),
            "from": pa.array(topology.link_from, _INT),
            "to": pa.array(topology.link_to, _INT),
            "kind": names.take(pa.array(topology.link_kind)),
            "messages": pa.array(np.asarray(messages), _INT),
            "bytes": pa.array(np.asarray(bytes), _INT),
            "busy": seconds,
        }
    )
    _write(folder / "links" / f"{run_id}.parquet", table)


def finished(folder: Path) -> dict[str, str | None]:
    """Return the error, or None, of every run that the folder holds, by run_id.

    Files that are being written, or were when their process died, begin with a dot.
    """
    errors: dict[str, str | None] = {}
    for path in sorted((folder / "runs").glob("[!.]*.parquet")):
        errors[path.stem] = pq.read_table(path, columns=["error"])["error"][0].as_py()
    return errors


def save_plan(
    folder: Path,
    run_ids: Sequence[str],
    digests: Mapping[str, str],
    labels: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write which runs the scenario consists of, in order.

    Parameters
    ----------
    digests : mapping of str to str
        Of each trace.
    labels : sequence of str
        What varies in each run; none where nothing does.
    settings : mapping, optional
        Parameters by label.
    """
    plan = {
        "runs": list(run_ids),
        "traces": dict(digests),
        "variant_of": list(labels),
        "variants": {label: dict(each) for label, each in (settings or {}).items()},
    }
    with replacing(folder / "plan.json") as partial:
        partial.write_text(json.dumps(plan, indent=1) + "\n")


def load_plan(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the runs of the scenario in order and the digest of each trace.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    plan = _plan(folder)
    return list(plan["runs"]), dict(plan["traces"])


def load_variants(folder: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return what varies in each run, by run_id, and the parameters of each such label.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    plan = _plan(folder)
    labels = plan.get("variant_of") or [""] * len(plan["runs"])
    return dict(zip(plan["runs"], labels, strict=True)), dict(plan.get("variants", {}))


def _plan(folder: Path) -> dict[str, Any]:
    try:
        plan = json.loads((Path(folder) / "plan.json").read_text())
        return {**plan, "runs": list(plan["runs"]), "traces": dict(plan["traces"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(f"{folder}: no results there: expected a folder of `hopmap run`") from None


def load_runs(folder: str | Path) -> pd.DataFrame:
    """Return the finished runs of the scenario in its order, one row each.

    Columns are those of SCHEMA and ``variant``, a label of `load_variants`.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    run_ids, _ = load_plan(Path(folder))
    paths = [Path(folder) / "runs" / f"{run_id}.parquet" for run_id in run_ids]
    tables = [pq.read_table(path, schema=SCHEMA) for path in paths if path.exists()]
    runs: pd.DataFrame = pa.concat_tables(tables or [SCHEMA.empty_table()]).to_pandas()
    labels, _ = load_variants(Path(folder))
    runs.insert(3, "variant", runs["run_id"].map(labels).astype(str))
    return runs


def load_links(folder: str | Path, run_id: str) -> pd.DataFrame:
    """Return what each link carried in a run, one row a link.

    Raises
    ------
    StoreError
        No such run.
    """
    path = Path(folder) / "links" / f"{run_id}.parquet"
    if not path.exists():
        raise StoreError(f"{path}: not there: expected the links of a finished run")
    links: pd.DataFrame = pq.read_table(path).to_pandas()
    return links


def traffic_path(folder: str | Path, trace: str) -> Path:
    """Return where the traffic of a trace lies."""
    return Path(folder) / "traffic" / f"{trace.replace('/', '_')}.npz"  # stencil:9,1/-1 has one


def load_traffic(folder: str | Path, trace: str) -> Traffic:
    """Return the traffic of a trace of the scenario.

    Raises
    ------
    StoreError
        Not there.
    """
    path = traffic_path(folder, trace)
    try:
        return formats.load_traffic(path)
    except (OSError, TraceError) as error:
        raise StoreError(f"{path}: cannot be read ({error})") from None


def _write(path: Path, table: pa.Table) -> None:
    with replacing(path) as partial:
        pq.write_table(table, partial, compression="zstd")
