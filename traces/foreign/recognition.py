"""Which trace of another tool a path is: files are recognised by content, not by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from hopmap.plugins import Table
from hopmap.traces.sources import FileSource
from hopmap.traces.trace import TraceError

from .text import read_start

START = 1 << 16  # bytes of a file that are looked at

TOOLS = {
    "chakra": "chakra.read:ChakraSource",
    "dumpi": "dumpi.read:DumpiSource",
    "liballprof": "liballprof.read:LiballprofSource",
    "goal": "goal.read:GoalSource",
    "paraver": "paraver.read:ParaverSource",
    "tit": "tit.read:TitSource",
}
"""Classes of sources, by the tool that wrote them."""

_NUMBERED = re.compile(r"(|.*\D)\d+(\D*)", re.DOTALL)  # around the last number of a name


@dataclass(frozen=True)
class Recording(FileSource):
    """A trace of another tool."""

    kind = "recording"
    is_recorded = True
    tool: ClassVar[str]  # its name in `TOOLS`
    about: ClassVar[str]  # what its files are, in a line
    # Whether a file is a whole trace; else it is of a rank, or an index
    is_one_file: ClassVar[bool] = False
    # Whether lines name their ranks, so that a file of any name may be of all ranks
    names_ranks: ClassVar[bool] = False

    @staticmethod
    def matches(file: Path, start: bytes) -> bool:
        """Whether a file that begins like this is of the tool."""
        raise NotImplementedError

    @staticmethod
    def is_index(_: Path) -> bool:
        """Whether a file of the tool names the files of all ranks."""
        return False

    @staticmethod
    def files_of_index(index: Path) -> tuple[Path, ...]:
        """Return the files that an index names."""
        raise NotImplementedError

    def files(self) -> list[Path]:
        """Files of the trace, in order of ranks."""
        found = recording_of(self.path)
        if found is None:
            raise TraceError(f"{self.path}: is no trace any more: expected one of another tool")
        return list(found.files)


class Found(NamedTuple):
    """A trace that was found: its class, a short name, and its files in order of ranks."""

    tool: type[Recording]
    name: str
    files: tuple[Path, ...]


def open_recording(path: str, _: Path | None) -> Recording | None:
    """Return the source that a file or folder is, if it is a trace of another tool."""
    found = recording_of(Path(path))
    return None if found is None else found.tool(found.name, Path(path))


@cache
def tools() -> dict[str, type[Recording]]:
    """Return the classes of all tools, in the order in which they are tried."""
    return dict(Table(__package__, TOOLS))


def recording_of(path: Path) -> Found | None:
    """Say what a file or folder is, if it is a trace of another tool."""
    if path.is_file():
        tool = _tool_of(path)
        if tool is None:
            return None
        files = _files(tool, path)
        return Found(tool, _base_name(path) if len(files) > 1 else path.stem, files)
    if not path.is_dir():
        return None
    by_tool: dict[type[Recording], list[Path]] = {}
    for file in sorted(entry for entry in path.iterdir() if entry.is_file()):
        tool = _tool_of(file)
        if tool is not None:
            by_tool.setdefault(tool, []).append(file)
    if not by_tool:
        return None
    if len(by_tool) > 1:
        firsts = sorted((tool.tool, files[0].name) for tool, files in by_tool.items())
        some = ", ".join(f"{name} ({tool})" for tool, name in firsts)
        raise TraceError(f"{path}: traces of {len(by_tool)} kinds: {some}: expected one of them")
    ((tool, present),) = by_tool.items()
    if tool.is_one_file and len(present) > 1:
        raise TraceError(
            f"{path}: {present[0].name} and {present[1].name}: expected one trace, or the file's "
            "name"
        )
    indexes = [file for file in present if tool.is_index(file)]
    if len(indexes) > 1:
        raise TraceError(f"{path}: {indexes[0].name} and {indexes[1].name}: expected one trace")
    files = _files(tool, (indexes or present)[0])
    known = {file.resolve() for file in (*files, *indexes)}
    others = [file for file in present if file.resolve() not in known]
    if others:
        raise TraceError(f"{path}: {files[0].name} and {others[0].name}: expected one trace")
    return Found(tool, path.resolve().name, files)


def _tool_of(file: Path) -> type[Recording] | None:
    start = read_start(file, START)
    return next((tool for tool in tools().values() if tool.matches(file, start)), None)


def _base_name(path: Path) -> str:
    """Name without suffix and without the number of the rank, which is the last."""
    match = _NUMBERED.fullmatch(path.stem)
    return "".join(match.groups() if match else "").strip("-_.") or path.stem


def _files(tool: type[Recording], file: Path) -> tuple[Path, ...]:
    """Return all files of the trace that a file belongs to, in order of ranks."""
    if tool.is_one_file:
        return (file,)
    return tool.files_of_index(file) if tool.is_index(file) else _of_ranks(file, tool)


def _of_ranks(file: Path, tool: type[Recording]) -> tuple[Path, ...]:
    """Files of the same folder that differ from one in the last number of their names."""
    match = _NUMBERED.fullmatch(file.name)
    if match is None:
        return (file,)
    head, tail = match.groups()
    pattern = re.compile(re.escape(head) + r"(\d+)" + re.escape(tail))
    found: dict[int, Path] = {}
    for other in sorted(file.parent.iterdir()):
        match = pattern.fullmatch(other.name)
        if match is None or not other.is_file():
            continue
        number = int(match[1])
        if number in found:
            raise TraceError(f"{other}: {found[number].name} is of the same rank: expected one")
        if _tool_of(other) is not tool:
            raise TraceError(f"{other}: is not {tool.about}: expected the file of rank {number}")
        found[number] = other
    if tool.names_ranks and len(found) == 1:
        return (file,)
    missing = next(rank for rank in range(len(found) + 1) if rank not in found)
    if missing < len(found):
        raise TraceError(
            f"{file.parent}: {head}{missing}{tail} is missing: expected files of ranks 0 to "
            f"{max(found)}"
        )
    return tuple(found[rank] for rank in range(len(found)))
