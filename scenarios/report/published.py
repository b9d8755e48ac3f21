"""Published numbers beside ours, in the convention of the published tool and in ours."""

from __future__ import annotations

from typing import Any

import pandas as pd

from hopmap.scenarios.quantities import MISSING, change, count
from hopmap.scenarios.study.study import Case, Entry, Study, number
from hopmap.scenarios.sweep.published import KEYS, PARTS

from .tables import Cell, whole


def published_tables(study: Study) -> list[dict[str, Any]]:
    """Set published IeNPC beside ours in both conventions; one table a trace, same cells marked."""
    if study.published is None:
        return []
    theirs = study.published
    keys = {key: theirs[key].astype(str).str.strip().str.casefold() for key in KEYS}
    tables = []
    for trace in study.traces():
        groups, same, numbers, wrong = [], 0, 0, False
        for case in study.cases_of(trace):
            family = case.topology.split(":")[0]
            ours = []
            listed = (keys["trace"] == trace.casefold()) & (keys["topology"] == family.casefold())
            for _, paper in theirs[listed].iterrows():
                cells, matches = _published_row(case, paper)
                ours.append(cells)
                same += matches
                numbers += len(PARTS)
                wrong |= family == "mesh"
            if ours:
                groups.append({"topology": case.where, "rows": ours})
        if groups:
            tables.append(
                {"trace": trace, "groups": groups, "same": same, "numbers": numbers, "mesh": wrong}
            )
    return tables


def _published_row(case: Case, paper: pd.Series[Any]) -> tuple[list[Cell], int]:
    name = str(paper["mapper"]).strip()
    entry = _entry_of(case, name)
    other = entry.mapper if entry is not None and entry.mapper.casefold() != name.casefold() else ""
    cells, matches = [Cell(name, name, other)], 0
    run = None
    if entry is not None:
        # of several seeds, the one with the fewest hops: what the papers call the best
        order = entry.runs["messages_ienpc_total"].dropna().to_numpy().argsort(kind="stable")
        run = entry.runs.iloc[int(order[0])] if len(order) else None
    for part in PARTS:
        value = number(paper.get(f"ienpc_{part}"))
        cells.append(Cell(count(value), value))
        if run is None:
            cells += [Cell("not run"), Cell(MISSING)]
            continue
        maplib = number(run.get(f"maplib_messages_ienpc_{part}"))
        if value is not None and maplib is not None and int(maplib) == int(value):
            matches += 1
            cells.append(Cell(f"✓ {count(maplib)}", maplib, look="same"))
        else:
            cells.append(Cell(count(maplib), maplib, change(maplib, value)))
        hopmap = number(run.get(f"messages_ienpc_{part}"))
        cells.append(Cell(whole(hopmap), hopmap))
    return cells, matches


def _entry_of(case: Case, name: str) -> Entry | None:
    """Return the mapper of that name, or the first of that name with parameters."""
    for bare in (False, True):
        for entry in case.entries:
            ours = entry.mapper.partition("(")[0] if bare else entry.mapper
            if ours.strip().casefold() == name.casefold() and not (bare and "|" in entry.mapper):
                return entry
    return None
