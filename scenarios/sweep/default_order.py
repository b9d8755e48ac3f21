"""Which mappers of a sweep end above the default order, from its finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hopmap.api.default_order import compared_objective, describe_excess
from hopmap.api.named_files import split_mapper
from hopmap.mappers import LOAD, parse_pipeline
from hopmap.scenarios.results import store

from .measure import usable_network
from .plan import Run

SHOWN = 10
"""Mappers that are named; of more their number is."""
COLUMNS = {"hop_bytes": "hop_bytes", "hop_messages": "hop_messages", LOAD: "bytes_congestion_max"}


def above_default_order(runs: Sequence[Run], results: Path) -> list[str]:
    """Say of which objective a mapper has more than the default order, a line for each case.

    Of several seeds and variants the best counts.
    """
    table = store.load_results(results).set_index("run_id")
    done = set(table.index[table["error"].isna()])
    cases: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        if run.run_id in done and split_mapper(run.mapper)[1]:
            key = (run.mapper_called or run.mapper, run.trace.name, run.called)
            cases.setdefault(key, []).append(run)
    found: list[str] = []
    for (mapper, trace, topology), same in cases.items():
        run, usable = same[0], usable_network(same[0])
        compared = compared_objective(parse_pipeline(split_mapper(run.mapper)[1]), usable)
        if compared is None:
            continue
        values = table[COLUMNS[compared]].loc[[each.run_id for each in same]]
        node_of = np.asarray(table.at[values.idxmin(), "node_of"], dtype=np.int64)
        traffic = store.load_traffic(results, trace, run.traffic_of)
        usable = usable.evenly(traffic.ranks) if run.spread else usable
        name = f"{mapper} on {trace}, {topology}"
        found.append(describe_excess(name, traffic, usable, node_of, [compared]))
    return [text for text in found if text]


def shorten(lines: Sequence[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    rest = len(lines) - SHOWN
    more = [f"{rest} more mappings are above the default order"] if rest > 0 else []
    return [*lines[:SHOWN], *more]
