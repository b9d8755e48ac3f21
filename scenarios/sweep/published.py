"""A paper's numbers, to be shown beside ours: a CSV file with a row a mapper on a network.

    trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max
    lu.C.64,torus,sweep,90364864,235325,52668,428796

`topology` is a family, whatever its size; lines that begin with # are comments. A number that is
not known is left out. A column `reason` may say why ours differ from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hopmap.scenarios.results.tables import StoreError

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("trace", "topology", "mapper")
PARTS = ("total", "avg", "min", "max")
HEADER = ",".join((*KEYS, *(f"ienpc_{part}" for part in PARTS)))


def read_published(file: Path) -> pd.DataFrame:
    """Read the table.

    Raises
    ------
    StoreError
        Unreadable, or a column of `KEYS` is not there.
    """
    import pandas as pd

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

    Parameters
    ----------
    traces : iterable of str
        Their short names.
    topologies : iterable of str
        Specs.
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
