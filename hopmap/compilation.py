"""numba's decorators as hopmap uses them: compiled code is kept, and never outlives its source.

numba caches compiled code next to the source, and checks the time stamp of that one file. A kernel
would keep running the old version of a function from another file. Here each module has a cache
folder whose name holds the digest of the module and of all that it imports from hopmap. All folders
lie in ``NUMBA_CACHE_DIR``, or in ``hopmap`` in the user's folder for caches. numba itself
tells processors and its own versions apart.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import config, event
from numba.extending import register_jitable

from .source_files import PACKAGE, digest_of, sources_of

Function = TypeVar("Function", bound=Callable[..., Any])

NO_C_WRAPPER: Any = {"no_cfunc_wrapper": True}
NO_WRAPPERS: Any = {"no_cpython_wrapper": True} | NO_C_WRAPPER
"""Options of functions that only kernels call; wrappers cost most of compiling a small function."""

_ONE_THREAD = threading.RLock()

UNUSED_DAYS = 30
"""Days after which the cache folder of an unused version is removed."""


def njit(function: Function) -> Function:
    """Compile a kernel that Python calls; it keeps what it compiles in its module's folder.

    Other threads may run meanwhile.
    """
    with _caching_in(_folder_of(Path(function.__code__.co_filename))):
        compiled: Function = numba.njit(cache=True, nogil=True, **NO_C_WRAPPER)(function)
    return compiled


@overload
def subroutine(function: Function, /) -> Function: ...


@overload
def subroutine(**options: Any) -> Callable[[Function], Function]: ...


def subroutine(function: Any = None, /, **options: Any) -> Any:
    """Compile a function into the kernels that call it, without a wrapper for Python.

    It returns the function itself, which runs as plain Python where Python calls it; without a
    function, a decorator. Options are the options of `numba.njit`, such as ``forceinline``.
    """
    if function is None:
        return lambda function: subroutine(function, **options)
    return register_jitable(**NO_WRAPPERS | options)(function)


@cache
def callback(signature: Any, function: Callable[..., Any]) -> Any:
    """Compile a function for C, which calls it at its `address`; it is kept, as `njit` does."""
    with _caching_in(_folder_of(Path(function.__code__.co_filename))):
        return numba.cfunc(signature, cache=True)(function)


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Tell numba a cache folder; it reads the setting when a function is decorated.

    One thread at a time, so that each restores what stood there before.
    """
    with _ONE_THREAD:
        before = config.CACHE_DIR  # type: ignore[attr-defined]
        config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            config.CACHE_DIR = before  # type: ignore[attr-defined]


class _Waits(event.Listener, threading.local):
    """What compiling, and reading what was compiled before, has taken of this thread."""

    depth, wall, cpu, begin = 0, 0.0, 0.0, (0.0, 0.0)

    def on_start(self, _: object) -> None:
        self.depth += 1
        if self.depth == 1:  # functions are compiled for functions that are being compiled
            self.begin = time.perf_counter(), time.process_time()

    def on_end(self, _: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.wall += time.perf_counter() - self.begin[0]
            self.cpu += time.process_time() - self.begin[1]


@cache
def _waits() -> _Waits:
    listener = _Waits()
    event.register("numba:compiler_lock", listener)  # type: ignore[no-untyped-call]
    return listener


def wall() -> float:
    """Return seconds of a clock that stands while this thread waits for the compiler."""
    return time.perf_counter() - _waits().wall


def cpu() -> float:
    """Return CPU seconds of the process, without the compiler's in this thread."""
    return time.process_time() - _waits().cpu


@cache
def cache_folder() -> Path:
    """Return the folder of all compiled code; a temporary one where none can be written."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    folder = Path(chosen or home).expanduser() / "hopmap"
    with suppress(OSError, RuntimeError):  # no such home
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return folder
    own = Path(tempfile.mkdtemp(prefix="hopmap-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


@cache
def _folder_of(module: Path) -> Path:
    """Return the cache folder of a module as it is now."""
    inside = module.is_relative_to(PACKAGE)
    name = ".".join(module.relative_to(PACKAGE).with_suffix("").parts) if inside else module.stem
    folder = cache_folder() / f"{name}-{digest_of(sources_of(module), numba.__version__)}"
    if not folder.is_dir():
        _remove_unused(name)
    elif time.time() - folder.stat().st_mtime > 86400:
        os.utime(folder)
    return folder


def _remove_unused(name: str) -> None:
    """Remove the folders of a module's older versions that were not used for long."""
    for other in cache_folder().glob(f"{name}-*"):
        if time.time() - other.stat().st_mtime > UNUSED_DAYS * 86400:
            shutil.rmtree(other, ignore_errors=True)
