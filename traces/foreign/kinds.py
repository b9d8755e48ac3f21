"""Which trace of another tool a path is: files are told by what is in them, not by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hopmap.traces.trace import Trace, TraceError

from .dumpi.meta import files_of_meta, is_meta
from .dumpi.rank import is_dumpi
from .dumpi.read import read_dumpi
from .files import read_start
from .goal.read import is_goal
from .liballprof.lines import is_liballprof
from .liballprof.read import read_liballprof
from .paraver.header import is_paraver
from .paraver.read import read_paraver
from .tit.index import files_of_index, is_tit
from .tit.read import read_tit

START = 1 << 16  # bytes of a file that are looked at

KINDS: Mapping[str, str] = {
    "dumpi": "DUMPI's binary files, one a rank, and their meta file",
    "liballprof": "liballprof's text, one file a rank",
    "goal": "GOAL schedules, text or LogGOPSim's binary",
    "paraver": "Paraver's .prv, with its .pcf if there is one",
    "tit": "SimGrid's time-independent traces, an index or the files that it names",
}
"""Kinds of traces of other tools; what `hopmap list formats` prints."""

_IS: Mapping[str, Callable[[bytes], bool]] = {
    "dumpi": lambda start: is_dumpi(start) or is_meta(start),
    "goal": is_goal,
    "liballprof": is_liballprof,
    "paraver": is_paraver,
    "tit": is_tit,
}
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Recording:
    """A trace of another tool: its kind, a short name, and its files in order of ranks."""

    kind: str
    name: str
    files: tuple[Path, ...]


def recording_of(path: Path) -> Recording | None:
    """Say what a file or folder is, if it is a trace of another tool.

    Raises
    ------
    TraceError
        Files of several kinds in a folder, several traces, or ranks that are missing.
    """
    if path.is_file():
        kind = _kind_of(path)
        if kind is None:
            return None
        whole = _files(kind, path)
        return Recording(kind, _short(path) if len(whole) > 1 else path.stem, whole)
    if not path.is_dir():
        return None
    kinds: dict[str, list[Path]] = {}
    for file in sorted(entry for entry in path.iterdir() if entry.is_file()):
        kind = _kind_of(file)
        if kind is not None:
            kinds.setdefault(kind, []).append(file)
    if not kinds:
        return None
    if len(kinds) > 1:
        some = ", ".join(f"{files[0].name} ({kind})" for kind, files in sorted(kinds.items()))
        raise TraceError(f"{path}: traces of {len(kinds)} kinds: {some}: expected one of them")
    ((kind, files),) = kinds.items()
    if kind in _ONE_FILE and len(files) > 1:
        raise TraceError(
            f"{path}: {files[0].name} and {files[1].name}: expected one trace, or the file's name"
        )
    metas = [file for file in files if file.suffix == ".meta"]
    if kind == "tit":
        metas = [file for file in files if files_of_index(file, read_start(file, START))]
    if len(metas) > 1:
        raise TraceError(f"{path}: {metas[0].name} and {metas[1].name}: expected one trace")
    whole = _files(kind, (metas or files)[0])
    mine = {file.resolve() for file in (*whole, *metas)}
    others = [file for file in files if file.resolve() not in mine]
    if others:
        raise TraceError(f"{path}: {others[0].name} beside {whole[0].name}: expected one trace")
    return Recording(kind, path.resolve().name, whole)


_ONE_FILE = ("goal", "paraver")


def read_recording(recording: Recording) -> Trace:
    """Read what every rank does; a schedule is none of calls, see `goal`."""
    return _READERS[recording.kind](list(recording.files), str(recording.name))


def _kind_of(file: Path) -> str | None:
    start = read_start(file, START)
    kind = next((kind for kind, matches in _IS.items() if matches(start)), None)
    return "tit" if kind is None and files_of_index(file, start) else kind


def _short(path: Path) -> str:
    """Name without suffix and without the number of the rank, which is the last."""
    numbers = list(_NUMBER.finditer(path.stem))
    if not numbers:
        return path.stem
    name = path.stem[: numbers[-1].start()] + path.stem[numbers[-1].end() :]
    return name.strip("-_.") or path.stem


def _files(kind: str, file: Path) -> tuple[Path, ...]:
    """Return all files of the trace that a file belongs to, in order of ranks."""
    if kind in _ONE_FILE:
        return (file,)
    if kind == "tit":
        return files_of_index(file, read_start(file, START)) or _of_ranks(file, kind)
    if kind == "dumpi" and file.suffix == ".meta":
        return files_of_meta(file)
    return _of_ranks(file, kind)


def _of_ranks(file: Path, kind: str) -> tuple[Path, ...]:
    """Files beside one that differ from it in the last number of their names."""
    numbers = list(_NUMBER.finditer(file.name))
    if not numbers:
        return (file,)
    head, tail = file.name[: numbers[-1].start()], file.name[numbers[-1].end() :]
    pattern = re.compile(re.escape(head) + r"(\d+)" + re.escape(tail))
    found: dict[int, Path] = {}
    for other in sorted(file.parent.iterdir()):
        match = pattern.fullmatch(other.name)
        if match is None or not other.is_file():
            continue
        number = int(match[1])
        if number in found:
            raise TraceError(f"{other}: {found[number].name} is of the same rank: expected one")
        if _kind_of(other) != kind:
            raise TraceError(f"{other}: is not {KINDS[kind]}: expected the file of rank {number}")
        found[number] = other
    if kind == "tit" and len(found) == 1:  # its lines name their ranks, its name something else
        return (file,)
    missing = next(rank for rank in range(len(found) + 1) if rank not in found)
    if missing < len(found):
        raise TraceError(
            f"{file.parent}: {head}{missing}{tail} is missing: expected files of ranks 0 to "
            f"{max(found)}"
        )
    return tuple(found[rank] for rank in range(len(found)))


_READERS: Mapping[str, Callable[[list[Path], str], Trace]] = {
    "dumpi": read_dumpi,
    "liballprof": read_liballprof,
    "paraver": read_paraver,
    "tit": read_tit,
}
