"""No command changes a file that it reads, and none replaces another one without --force."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

OUTPUTS = ("out", "plot", "otf2", "perfetto", "links", "blocks", "directory")
"""Parameters of commands that name what is written."""
NEVER_FORCED = ("record", "run")
"""Commands that replace nothing: a recording has a name of its own, and results are added to."""

Force = Annotated[
    bool, typer.Option("--force", help="Replace files that exist; never one that is read here.")
]


class _Arguments(NamedTuple):
    """Of the command that runs: the paths that it may read, and --force."""

    inputs: tuple[Path, ...] = ()
    force: bool = False


_ARGUMENTS: ContextVar[_Arguments] = ContextVar("_ARGUMENTS")


@contextmanager
def guard_inputs(values: Mapping[str, Any], force: bool) -> Iterator[None]:
    """Have `expect_free` know a command's arguments while the command runs."""
    written = [path for name in OUTPUTS for path in _words(values.get(name)) if path != "-"]
    places = [Path(path).resolve() for path in written]
    for path, place in zip(written, places, strict=True):
        if places.count(place) > 1:
            raise typer.BadParameter(f"{path}: expected another name for each file to write")
    read = [word for name in values.keys() - {*OUTPUTS} for word in _words(values[name])]
    paths = tuple(path for word in read for path in _files_in(word))
    token = _ARGUMENTS.set(_Arguments(paths, force))
    try:
        yield
    finally:
        _ARGUMENTS.reset(token)


def expect_free(*paths: Path) -> None:
    """Raise `typer.BadParameter` for a path to write that is read, or that exists without --force.

    Devices and pipes may be written to, and an empty folder may be filled.
    """
    arguments = _ARGUMENTS.get(_Arguments())
    for path in filter(_holds_data, paths):
        place = path.resolve()
        for read in arguments.inputs:
            if place == read or read in place.parents or place in read.parents:
                raise typer.BadParameter(f"{path}: is read by this command: expected another name")
        if not arguments.force:
            raise typer.BadParameter(f"{path}: exists: expected a new name, or --force")


def _holds_data(path: Path) -> bool:
    if path.is_dir() and not path.is_symlink():
        return any(path.iterdir())
    return path.is_file() or (path.is_symlink() and not path.exists())


def _words(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [str(each) for each in values if isinstance(each, str | Path)]


def _files_in(word: str) -> Iterator[Path]:
    """Yield the files of an argument such as FILE, TRACE,MAPPING, scaled:64,FILE or hosts=FILE."""
    for part in {word, *re.split(r"[,:=]", word)}:
        path = Path(part)
        try:
            if not part or not path.exists():
                continue
        except OSError:  # too long for a name
            continue
        yield path.resolve()
        if path.suffix == ".otf2" and path.is_file():  # the anchor of an archive
            yield from (path.with_suffix(end).resolve() for end in ("", ".def"))
