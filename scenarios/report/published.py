"""Published numbers beside ours, in the convention of the published tool and in ours."""

from __future__ import annotations

from typing import Any

from hopmap.scenarios.quantities import MISSING, change, count
from hopmap.scenarios.studies.published import PARTS, Row, compared
from hopmap.scenarios.studies.study import Study

from .tables import Cell, whole


def published_tables(study: Study) -> list[dict[str, Any]]:
    """Set published IeNPC beside ours in both conventions; one table a trace, same cells marked."""
    tables = []
    for trace in study.traces():
        groups = compared(study, trace)
        rows = [row for group in groups for row in group.rows]
        if not rows:
            continue
        tables.append(
            {
                "trace": trace,
                "groups": [
                    {"topology": group.case.where, "rows": [_cells(row) for row in group.rows]}
                    for group in groups
                ],
                "same": sum(sum(row.same) for row in rows),
                "numbers": sum(value is not None for row in rows for value in row.paper),
                "mesh": any(group.case.topology.startswith("mesh:") for group in groups),
                "reasons": any(row.reason for row in rows),
            }
        )
    return tables


def _cells(row: Row) -> list[Cell]:
    """Return the mapper, three cells for each of `PARTS`, and why they differ."""
    other = row.ours if row.ours.casefold() != row.mapper.casefold() else ""
    cells = [Cell(row.mapper, row.mapper, other)]
    for part in range(len(PARTS)):
        value, maplib = row.paper[part], row.maplib[part]
        cells.append(Cell(count(value), value))
        if not row.ours:
            cells += [Cell("not run"), Cell(MISSING)]
            continue
        if row.same[part]:
            cells.append(Cell(f"✓ {count(maplib)}", maplib, look="same"))
        else:
            cells.append(Cell(count(maplib), maplib, change(maplib, value)))
        cells.append(Cell(whole(row.hopmap[part]), row.hopmap[part]))
    return [*cells, Cell(row.reason)]
