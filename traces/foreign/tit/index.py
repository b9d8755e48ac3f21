"""Which files a trace has: an index names the ranks' files, or one holds all ranks."""

from __future__ import annotations

import re
from pathlib import Path

from hopmap.traces.foreign.files import read_start, read_whole
from hopmap.traces.trace import TraceError

from .actions import LINE

_INDEX = re.compile(rb"[^\s#:]+")


def is_tit(start: bytes) -> bool:
    """Whether a file that begins like this has actions."""
    lines = [line for line in start.splitlines()[:20] if line.strip() and line[:1] != b"#"]
    return bool(lines) and all(LINE.match(line) for line in lines[: max(len(lines) - 1, 1)])


def files_of_index(index: Path, start: bytes) -> tuple[Path, ...]:
    """Return the files that an index names, or none if this is no index."""
    lines = [line.strip() for line in start.splitlines() if line.strip()]
    if not lines or not all(_INDEX.fullmatch(line) for line in lines[: max(len(lines) - 1, 1)]):
        return ()
    first = _beside(index, lines[0].decode("utf-8", "replace"))
    if first is None or first == index or not is_tit(read_start(first, 1 << 12)):
        return ()
    files = []
    for number, name in enumerate(read_whole(index, 1).decode("utf-8", "replace").split(), 1):
        file = _beside(index, name)
        if file is None:
            raise TraceError(f"{index}: line {number} is {name[:60]!r}: expected a file beside it")
        files.append(file)
    return tuple(files)


def _beside(index: Path, name: str) -> Path | None:
    """File of a name, seen from the index, or from where the program ran if it lies beside it."""
    for place in (index.parent / name, index.parent / Path(name).name):
        try:
            if place.is_file():
                return place
        except OSError:  # no name that a file could have
            continue
    return None
