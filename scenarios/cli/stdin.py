"""`-` as an argument: what stands on stdin, kept in a file as long as the command runs."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TypeVar

import typer

Given = TypeVar("Given", str, Path)
BEGINS = {b"PK": ".npz", b"%%MatrixMarket": ".mtx"}


def from_stdin(given: Given) -> Given:
    """Return the file of what stdin holds for ``-``, and all else as it is."""
    if str(given) != "-":
        return given
    if _folder.cache_info().currsize:
        raise typer.BadParameter("-: given twice: expected stdin for one argument")
    content = sys.stdin.buffer.read()
    suffix = next((end for start, end in BEGINS.items() if content.startswith(start)), ".csv")
    file = _folder() / f"stdin{suffix}"
    file.write_bytes(content)
    return type(given)(file)


def readable(line: str) -> str:
    """Return a message with ``-`` for the file that stands for it."""
    if not _folder.cache_info().currsize:
        return line
    for suffix in (*BEGINS.values(), ".csv"):
        line = line.replace(str(_folder() / f"stdin{suffix}"), "-")
    return line


def forget() -> None:
    """Let the next command read stdin anew."""
    _folder.cache_clear()


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hopmap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
