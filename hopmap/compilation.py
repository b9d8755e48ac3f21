"""numba's decorators as hopmap uses them: compiled code is kept, and never outlives its source.

numba by itself keeps what it compiled beside the source and looks at the time of a function's own
file only, so that a kernel goes on running the old version of another one that was compiled into
it, and a package that cannot be written to is compiled anew in every process. Here all of it lies
in one folder of the user's, ``NUMBA_CACHE_DIR`` or ``hopmap`` in the folder for caches, in a folder
for each module whose name has the digest of the module and of every module of hopmap's that it is
made of. What differs between processors, numba tells apart within. What is not there may have come
with the package, see `carried`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import ccallback, dispatcher, event
from numba.core.caching import CacheImpl, _CacheLocator

from .carried import CarriedCache
from .source_files import PACKAGE, digest_of, sources_of

Function = TypeVar("Function", bound=Callable[..., Any])

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


@contextmanager
def compiling() -> Iterator[list[float]]:
    """List the seconds of every time that numba compiles, or reads what it compiled before."""
    spent: list[float] = []

    class Clock(event.Listener):
        depth, begin = 0, 0.0  # functions are compiled for functions that are being compiled

        def on_start(self, _: object) -> None:
            self.depth += 1
            if self.depth == 1:
                self.begin = time.perf_counter()

        def on_end(self, _: object) -> None:
            self.depth -= 1
            if self.depth == 0:
                spent.append(time.perf_counter() - self.begin)

    with event.install_listener("numba:compiler_lock", Clock()):
        yield spent


class _Waits(event.Listener):
    """What compiling, and reading what was compiled before, has taken of each thread."""

    def __init__(self) -> None:
        self.depth: defaultdict[int, int] = defaultdict(int)
        self.begun: dict[int, tuple[float, float]] = {}
        self.wall: defaultdict[int, float] = defaultdict(float)
        self.cpu: defaultdict[int, float] = defaultdict(float)

    def on_start(self, _: object) -> None:
        thread = threading.get_ident()
        self.depth[thread] += 1
        if self.depth[thread] == 1:
            self.begun[thread] = time.perf_counter(), time.process_time()

    def on_end(self, _: object) -> None:
        thread = threading.get_ident()
        self.depth[thread] -= 1
        if self.depth[thread] == 0:
            wall, cpu = self.begun[thread]
            self.wall[thread] += time.perf_counter() - wall
            self.cpu[thread] += time.process_time() - cpu


@cache
def _waits() -> _Waits:
    listener = _Waits()
    event.register("numba:compiler_lock", listener)  # type: ignore[no-untyped-call]
    return listener


def wall() -> float:
    """Return seconds of a clock that stands while this thread waits for the compiler."""
    waited = _waits().wall[threading.get_ident()]
    return time.perf_counter() - waited


def cpu() -> float:
    """Return seconds of the processor, but for those of the compiler in this thread."""
    waited = _waits().cpu[threading.get_ident()]
    return time.process_time() - waited


@cache
def cache_folder() -> Path:
    """Folder of all that is compiled; one of this process alone where none can be written."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = Path(given or home).expanduser() / "hopmap"
    with suppress(OSError, RuntimeError):  # no such home
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return folder
    own = Path(tempfile.mkdtemp(prefix="hopmap-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


@cache
def folder_of(file: Path) -> Path:
    """Folder of what is compiled from a module as it is now.

    Parameters
    ----------
    file : Path
        A module of hopmap's.
    """
    digest = digest_of(sources_of(file), numba.__version__)
    folder = cache_folder() / f"{_name(file)}-{digest}"
    if folder.is_dir() and time.time() - folder.stat().st_mtime > 86400:
        os.utime(folder)
    return folder


def _name(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


class _Digested(_CacheLocator):
    """Where numba keeps the functions of a module; see the head of this file."""

    def __init__(self, file: Path) -> None:
        self._folder, self._name = folder_of(file), _name(file)

    def ensure_cache_path(self) -> None:
        """Make the folder; those that are long unused go when it is new."""
        if not self._folder.is_dir():
            for other in cache_folder().glob(f"{self._name}-*"):
                if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
                    shutil.rmtree(other, ignore_errors=True)
        super().ensure_cache_path()  # type: ignore[no-untyped-call]

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
for module in (dispatcher, ccallback):
    module.FunctionCache = CarriedCache  # type: ignore[attr-defined]
