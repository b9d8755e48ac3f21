"""The hosts of an archive's ranks: nodes of its system tree, by their names."""

from __future__ import annotations

import os
from pathlib import Path

from hopmap.traces.safety.guarded_process import Line

from .archive import open_reader, reading_in_shares


def read_hosts(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the name of each rank's node, "" where there is none.

    Raise `TraceError` for an archive that is missing, foreign or damaged.
    """
    (hosts,) = reading_in_shares(path, _read_hosts, None)
    return hosts


def _read_hosts(anchor: Path, _: tuple[int, int], line: Line | None) -> tuple[str, ...]:
    with open_reader(anchor, line) as archive:
        return archive.definitions.hosts
