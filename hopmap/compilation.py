"""numba's decorators as hopmap uses them: compiled code is kept, and never outlives its source.

numba by itself keeps what it compiled beside the source and looks at the time of a function's own
file only, so that a kernel goes on running the old version of another one that was compiled into
it, and a package that cannot be written to is compiled anew in every process. Here all of it lies
in one folder of the user's, ``NUMBA_CACHE_DIR`` or ``hopmap`` in the folder for caches, in a folder
for each module whose name has the digest of the module and of every module of hopmap's that it is
made of. What differs between processors, numba tells apart within.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core.caching import CacheImpl, _CacheLocator

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
IMPORT = re.compile(rb"^from (\.?)([\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
UNUSED_DAYS = 30
"""After how many days what no version has used is removed."""


@overload
def njit(signature: str = ..., /, **options: Any) -> Callable[[Function], Function]: ...


@overload
def njit(function: Function, /) -> Function: ...


def njit(signature_or_function: Any = None, /, **options: Any) -> Any:
    """`numba.njit` that keeps what it compiles, unless ``cache=False`` is said."""
    return numba.njit(signature_or_function, **({"cache": True} | options))


def cfunc(signature: Any) -> Any:
    """`numba.cfunc` that keeps what it compiles."""
    return numba.cfunc(signature, cache=True)


@cache
def cache_folder() -> Path:
    """Folder of all that is compiled; one of this process alone where none can be written."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = Path(given or home).expanduser() / "hopmap"
    with suppress(OSError, RuntimeError):  # no such home
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="hopmap-"))


def sources_of(file: Path) -> list[Path]:
    """Return the files of a module and of all that it imports of hopmap's as it loads, sorted.

    Names that a package hands on are not followed: compiled modules import from where things are
    defined (a test sees to it).
    """
    found, ahead = {file}, [file]
    while ahead:
        new = set(_imported(ahead.pop())) - found
        found |= new
        ahead += new
    return sorted(found)


@cache
def _read(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path) -> list[Path]:
    found = []
    for dot, module, *names in IMPORT.findall(_read(file).partition(b"\n\n\n")[0]):  # the head
        if dot or module.startswith(b"hopmap"):
            target = file.parent if dot else PACKAGE.parent
            target = target.joinpath(*module.decode().split("."))
            if (alone := target.with_suffix(".py")).is_file():
                found.append(alone)
            else:
                words = re.findall(rb"\w+", b"".join(names))
                modules = (target / f"{word.decode()}.py" for word in words)
                found += [path for path in modules if path.is_file()]
    return found


@cache
def folder_of(file: Path) -> Path:
    """Folder of what is compiled from a module as it is now; those long unused go when it is new.

    Parameters
    ----------
    file : Path
        A module of hopmap's.
    """
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sources_of(file):
        digest.update(_read(source) + b"\0")
    name = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    folder = cache_folder() / f"{name}-{digest.hexdigest()}"
    if not folder.is_dir():
        for other in cache_folder().glob(f"{name}-*"):
            if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
    elif time.time() - folder.stat().st_mtime > 86400:
        os.utime(folder)
    return folder


class _Digested(_CacheLocator):
    """Where numba keeps the functions of a module; see the head of this file."""

    def __init__(self, file: Path) -> None:
        self._folder = folder_of(file)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> None:
        return None

    @classmethod
    def from_function(cls, _function: object, file: str) -> _Digested | None:
        path = Path(file)
        return cls(path) if path.is_relative_to(PACKAGE) and path.is_file() else None


CacheImpl._locator_classes.insert(0, _Digested)  # type: ignore[arg-type]
