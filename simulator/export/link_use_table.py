"""Use of links over time as a table: one Parquet row per link and bin, links in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hopmap.simulator.link_use import LinkUse
from hopmap.topologies import Topology
from hopmap.traces.safety.atomic_files import replacing


def write_link_use(path: str | Path, use: LinkUse, topology: Topology) -> None:
    """Write a table: link, from, to, kind, time_begin, time_end, busy, utilisation.

    Times and `busy` are seconds; `utilisation` is their ratio, the share of the bin.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    links, bins = use.busy.shape
    link = np.repeat(np.arange(links), bins)
    time = np.tile(np.arange(bins) * use.width, links)
    kinds = pa.array([kind.name for kind in topology.kinds], pa.string())
    table = pa.table(
        {
            "link": link,
            "from": topology.link_from[link].astype(np.int64),
            "to": topology.link_to[link].astype(np.int64),
            "kind": kinds.take(pa.array(topology.link_kind[link])),
            "time_begin": time,
            "time_end": time + use.width,
            "busy": use.busy.ravel(),
            "utilisation": use.fraction.ravel(),
        }
    )
    with replacing(path) as partial:
        pq.write_table(table, partial)
