"""A paper's numbers compared with ours, from a CSV file with a row a mapper on a network.

    trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max
    lu.C.64,torus,sweep,90364864,235325,52668,428796

`topology` is a family of any size; lines that begin with # are comments. A number that is
not known is left out. A column `reason` may say why ours differ from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from hopmap.report.tables import Cell, Section, whole
from hopmap.scenarios.results.study import PARTS, Case, Entry, Study, number
from hopmap.scenarios.results.tables import StoreError
from hopmap.units import MISSING, change, count

FILE = "published.csv"
KEYS = ("trace", "topology", "mapper")
Numbers = tuple[float | None, ...]
HEADER = ",".join((*KEYS, *(f"ienpc_{part}" for part in PARTS)))


def read_published(file: Path) -> pd.DataFrame:
    """Read the table; columns that are not known are left as they are."""
    try:
        words = dict.fromkeys(KEYS, str)
        table = pd.read_csv(file, comment="#", skipinitialspace=True, dtype=words)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise StoreError(f"{file}: cannot be read as CSV ({reason}): expected {HEADER}") from None
    missing = [key for key in KEYS if key not in table]
    if missing:
        raise StoreError(f"{file}: no column {missing[0]!r}: expected the header {HEADER}")
    table[list(KEYS)] = table[list(KEYS)].fillna("")
    return table


def check_published(file: Path, traces: Iterable[str], topologies: Iterable[str]) -> None:
    """Raise `StoreError` for a table that cannot be read, or is about none of these.

    Traces are short names, topologies specs.
    """
    table = read_published(file)
    names = {name.casefold(): name for name in sorted(traces)}
    families = {spec.partition(":")[0] for spec in topologies}
    about = table[["trace", "topology"]].itertuples(index=False, name=None)
    rows = [(trace.strip(), topology.strip()) for trace, topology in about]
    if not any(t.casefold() in names and n.casefold() in families for t, n in rows):
        first = " on ".join(rows[0]) if rows else "nothing"
        raise StoreError(
            f"{file}: {len(rows)} rows, the first about {first}: expected some about a trace "
            f"({', '.join(names.values())}) and a family ({', '.join(sorted(families))}) of the "
            "scenario"
        )


class Row(NamedTuple):
    """A published row and our best run of that mapper: IeNPC in messages by `PARTS`."""

    mapper: str  # As published.
    ours: str  # Our pipeline, "" where it was not run.
    paper: Numbers
    maplib: Numbers  # By the published tool's walk.
    hopmap: Numbers  # By the routes that messages take.
    reason: str  # Why ours differ, as the file of published numbers says it; "" where none does.

    @property
    def same(self) -> tuple[bool, ...]:
        """Which numbers were published and are ours to the last digit."""
        pairs = zip(self.paper, self.maplib, strict=True)
        return tuple(a is not None and b is not None and int(a) == int(b) for a, b in pairs)


def compare_published(study: Study, trace: str) -> list[tuple[Case, list[Row]]]:
    """Compare published numbers of a trace with ours: topologies that have some, and their rows."""
    if not (study.folder / FILE).is_file():
        return []
    theirs = read_published(study.folder / FILE)
    keys = {key: theirs[key].astype(str).str.strip().str.casefold() for key in KEYS}
    found = []
    for case in study.cases_of(trace):
        family = case.topology.split(":")[0].casefold()
        listed = theirs[(keys["trace"] == trace.casefold()) & (keys["topology"] == family)]
        rows = [_row(case, paper) for _, paper in listed.iterrows()]
        if rows:
            found.append((case, rows))
    return found


def _row(case: Case, paper: pd.Series[Any]) -> Row:
    name = str(paper["mapper"]).strip()
    entry = _entry_of(case, name)
    run: pd.Series[Any] | None = None
    if entry is not None:
        # of several seeds, the one with the fewest hops: what the papers call the best
        order = entry.runs["messages_ienpc_total"].dropna().to_numpy().argsort(kind="stable")
        run = entry.runs.iloc[int(order[0])] if len(order) else None

    def ours(prefix: str) -> Numbers:
        return tuple(
            None if run is None else number(run.get(f"{prefix}messages_ienpc_{part}"))
            for part in PARTS
        )

    row = Row(
        name,
        "" if entry is None or run is None else entry.mapper,
        tuple(number(paper.get(f"ienpc_{part}")) for part in PARTS),
        ours("maplib_"),
        ours(""),
        "",
    )
    said = paper.get("reason")
    return row._replace(reason=said.strip()) if isinstance(said, str) and not all(row.same) else row


def _entry_of(case: Case, name: str) -> Entry | None:
    """Return the mapper of that name, or the first of that name with parameters."""
    for bare in (False, True):
        for entry in case.entries:
            ours = entry.mapper.partition("(")[0] if bare else entry.mapper
            if ours.strip().casefold() == name.casefold() and not (bare and "|" in entry.mapper):
                return entry
    return None


def list_published_tables(study: Study) -> list[dict[str, Any]]:
    """Set published IeNPC next to ours in both conventions: a table a trace, same cells marked."""
    tables = []
    for trace in study.traces():
        groups = compare_published(study, trace)
        rows = [row for _, some in groups for row in some]
        if not rows:
            continue
        tables.append(
            {
                "trace": trace,
                "groups": [
                    {"topology": case.where, "rows": [_cells(row) for row in some]}
                    for case, some in groups
                ],
                "same": sum(sum(row.same) for row in rows),
                "numbers": sum(value is not None for row in rows for value in row.paper),
                "mesh": any(case.topology.startswith("mesh:") for case, _ in groups),
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


PUBLISHED = Section(lambda _, shown: list_published_tables(shown))
