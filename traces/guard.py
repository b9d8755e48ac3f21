"""Work on untrusted files in a process of its own: what it does there harms nobody here.

A library in C may crash, loop or ask for all memory on a damaged file, and takes the interpreter
with it. `guarded` forks, so that nothing has to be started or imported again: the child works under
limits on memory and on the processor time between two signs of progress, and hands its result over
through a file in memory, whose pages become the result's arrays here without a copy. Cost: the fork
and one copy of the arrays, some milliseconds on a small archive.

The child never imports, compiles or waits for a lock that another thread may hold: whoever calls
`guarded` has prepared what it needs. Where there is no fork, the work is done unguarded.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import mmap
import os
import pickle
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any, NoReturn, TypeVar

import numpy as np
import psutil
from numpy.typing import DTypeLike, NDArray

T = TypeVar("T")
_LARGE = 2**21  # bytes of a large page

# Of every process with threads, numpy's own among them; what the child may do is said above.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)


@dataclass(frozen=True)
class Limits:
    """What the child may take.

    Attributes
    ----------
    memory : int
        Bytes of address space beyond what the process has now.
    patience : int
        Seconds of a processor between two signs of progress.
    """

    memory: int
    patience: int


class Death(Exception):  # noqa: N818 - not an error that users see
    """The child died; `at` is where it last said to be."""

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.at = at


class Line:
    """The child's line to its parent: where it is, how far, and memory that both see."""

    def __init__(self, pipe: Connection, limits: Limits, shared: IO[bytes]) -> None:
        self._pipe, self._limits, self._shared = pipe, limits, shared
        self._regions: list[tuple[int, int, int]] = []  # address, bytes, place in the file
        self._end = 0
        self._room_for(1)  # an empty file could not be mapped
        self._alive()

    def empty(self, length: int, kind: DTypeLike) -> NDArray[Any]:
        """Make an array that need not be copied; what is never written takes no memory."""
        size = max(length * np.dtype(kind).itemsize, 1)
        begin = self._room_for(size)
        pages = _large(mmap.mmap(self._shared.fileno(), size, offset=begin))
        array = np.frombuffer(pages, dtype=kind, count=length)
        self._regions.append((array.ctypes.data, size, begin))
        return array

    def hand_over(self, result: object) -> None:
        """Send the result, its arrays through the shared file."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(result, protocol=5, buffer_callback=arrays.append)
        places = [self._place(array.raw()) for array in arrays]
        self._pipe.send(("done", rest, places))

    def _place(self, data: memoryview) -> tuple[int, int]:
        address = np.frombuffer(data, dtype=np.uint8).ctypes.data if data.nbytes else 0
        for start, size, begin in self._regions:
            if start <= address < start + size:
                return begin + address - start, data.nbytes
        begin = self._room_for(data.nbytes)
        self._shared.seek(begin)
        self._shared.write(data)
        return begin, data.nbytes

    def _room_for(self, size: int) -> int:
        unit = _LARGE if size >= _LARGE else mmap.ALLOCATIONGRANULARITY
        begin = -(-self._end // unit) * unit
        self._end = begin + size
        self._shared.truncate(self._end)
        return begin

    def at(self, place: str) -> None:
        """Say what is being read."""
        self._alive()
        self._pipe.send(("at", place))

    def progress(self, done: int, total: int) -> None:
        """Say how far it is."""
        self._alive()
        self._pipe.send(("progress", done, total))

    def _alive(self) -> None:
        seconds = math.ceil(time.process_time()) + self._limits.patience
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY or seconds < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def guarded(
    work: Callable[[Line | None], T],
    limits: Limits,
    progress: Callable[[int, int], None] | None = None,
) -> T:
    """Return what `work` returns, done in a child of this process.

    Parameters
    ----------
    work : callable
        Takes a `Line` (None where nothing is guarded) and returns something that can be pickled.
    limits : Limits
        Of the child.
    progress : callable, optional
        Called with what the child says of its progress.

    Raises
    ------
    Death
        The child crashed, or went beyond a limit.
    Exception
        Whatever `work` raises.
    """
    if not hasattr(os, "fork"):
        return work(None)
    here, there = Pipe(duplex=False)
    with _file_in_memory() as shared, here, there:
        child = os.fork()
        if not child:
            _child(work, limits, there, shared)
        there.close()
        try:
            result, death = _listen(here, shared, progress)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            status = _wait(child)
    if death is not None:
        raise Death(_reason(status), death)
    return result  # type: ignore[no-any-return]


def _listen(
    pipe: Connection, shared: IO[bytes], progress: Callable[[int, int], None] | None
) -> tuple[Any, str | None]:
    """Return the result; or nothing, and where the child was when it died."""
    at = ""
    while True:
        try:
            kind, *said = pipe.recv()
        except EOFError:
            return None, at
        if kind == "at":
            at = said[0]
        elif kind == "progress":
            if progress is not None:
                progress(*said)
        elif kind == "error":
            raise said[0]
        else:
            rest, places = said
            return _unpacked(rest, places, shared), None


def _wait(child: int) -> int:
    """Return how the child ended; 0 where somebody else has waited for it."""
    try:
        return os.waitpid(child, 0)[1]
    except ChildProcessError:
        return 0


def _reason(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return "ended without a word"
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
        return "made no progress"
    return f"died of {signal.Signals(number).name}"


def _child(
    work: Callable[[Line | None], Any], limits: Limits, pipe: Connection, shared: IO[bytes]
) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and ends us
        faulthandler.disable()
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        room = psutil.Process().memory_info().vms + limits.memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or room < hard:
            resource.setrlimit(resource.RLIMIT_AS, (room, hard))
        gc.disable()  # it would touch, and so copy, every page that holds an object
        try:
            line = Line(pipe, limits, shared)
            line.hand_over(work(line))
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            pipe.send(("error", error))
    finally:
        os._exit(0)


def _unpacked(rest: bytes, places: list[tuple[int, int]], shared: IO[bytes]) -> Any:
    # Private pages: nobody else sees what is written to the arrays later.
    view = memoryview(_large(mmap.mmap(shared.fileno(), 0, access=mmap.ACCESS_COPY)))
    return pickle.loads(rest, buffers=[view[at : at + size] for at, size in places])


def _large(pages: mmap.mmap) -> mmap.mmap:
    """Ask for large pages, as numpy does: faults on small ones would cost as much as reading."""
    if hasattr(mmap, "MADV_HUGEPAGE") and len(pages) >= _LARGE:
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _file_in_memory() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("hopmap"), "w+b", buffering=0)
    return tempfile.TemporaryFile()
