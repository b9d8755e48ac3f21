"""Work on untrusted files in a process of its own, so that a crash there does no harm here.

A library in C may crash, loop or ask for all memory on a damaged file, and takes the interpreter
with it. `run_guarded` forks, so that nothing has to be started or imported again: a child works
under limits on memory and on the processor time between two signs of progress, and hands its result
over through a pipe, arrays straight from memory to memory. Cost: the fork, milliseconds, and two
copies of the arrays; memory shared between the two would be slower, as it comes in small pages.

The child never imports, compiles or waits for a lock that another thread may hold: callers of
`run_guarded` prepare what it needs. Where there is no fork, the work is done unguarded.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn, TypeVar

import numpy as np
import psutil

from hopmap.progress import Progress

T = TypeVar("T")

_PIPE = 2**20  # bytes, where the system lets us: fewer turns between the two processes
# Of every process with threads, numpy's own among them; what the child may do is said above.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)


@dataclass(frozen=True)
class Limits:
    """What the child may take."""

    memory: int  # bytes of address space beyond what the process has now
    patience: int  # seconds of a processor between two signs of progress


class Death(Exception):  # noqa: N818 - not an error that users see
    """The child died; `at` is where it last said to be."""

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.at = at


class Line:
    """The child's line to its parent: where it is, and how far."""

    def __init__(self, pipe: Connection, limits: Limits) -> None:
        self._pipe, self._limits = pipe, limits
        self._alive()

    def at(self, place: str) -> None:
        """Say what is being read."""
        self._alive()
        self._pipe.send(("at", place))

    def progress(self, done: int, total: int) -> None:
        """Say how far it is."""
        self._alive()
        self._pipe.send(("progress", done, total))

    def _alive(self) -> None:
        import resource

        seconds = math.ceil(time.process_time()) + self._limits.patience
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        if hard == resource.RLIM_INFINITY or seconds < hard:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def run_guarded(
    works: Sequence[Callable[[Line | None], T]],
    limits: Limits,
    progress: Progress | None = None,
) -> list[T]:
    """Return what these return, each done in a child of its own, at the same time.

    A work takes a `Line` (None where nothing is guarded) and returns something that can be pickled;
    what it raises is raised here. The limits are of each child. `progress` is called with what all
    children together say of it. `Death` is raised if a child crashed, or went beyond a limit. Of
    several that fail, the first in this order is raised.
    """
    if not hasattr(os, "fork"):
        return [work(None) for work in works]
    import resource  # noqa: F401 - for the child; it comes with fork, and not everywhere

    children: list[_Child] = []
    try:
        for work in works:
            children.append(_fork(work, limits, [child.pipe for child in children]))
        waiting = list(children)
        while waiting:
            for pipe in wait([child.pipe for child in waiting]):
                child = next(each for each in children if each.pipe is pipe)
                if not child.hear():
                    waiting.remove(child)
                elif progress is not None and child.has_moved:
                    progress(sum(each.done for each in children), child.total)
                if child.failure is not None:  # earlier ones may fail, too, and are raised then
                    before = children.index(child)
                    waiting = [each for each in waiting if children.index(each) < before]
                    break
        for child in children:
            if child.failure is not None:
                raise child.failure
        return [child.result for child in children]
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child.number, signal.SIGKILL)  # it is done, or its result is not needed
            _wait(child.number)
            child.pipe.close()


@dataclass(eq=False)
class _Child:
    """A process at work: what it has said so far."""

    number: int
    pipe: Connection
    at: str = ""
    done: int = 0
    total: int = 0
    has_moved: bool = False  # with what it said last
    result: Any = None
    failure: BaseException | None = None

    def hear(self) -> bool:
        """Take what it says next; whether it will say more."""
        self.has_moved = False
        try:
            kind, *said = self.pipe.recv()
            if kind == "at":
                self.at = said[0]
            elif kind == "progress":
                self.done, self.total = said
                self.has_moved = True
            elif kind == "error":
                self.failure = said[0]
            else:
                self.result = _receive(self.pipe, *said)
        except EOFError:
            self.failure = Death(_reason(_wait(self.number)), self.at)
        else:
            return kind in ("at", "progress")
        return False


def _fork(work: Callable[[Line | None], T], limits: Limits, others: list[Connection]) -> _Child:
    """Begin a work in a child, which does not keep the lines of `others`."""
    import fcntl

    here, there = Pipe(duplex=False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(there.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
    with there:
        number = os.fork()
        if not number:
            for other in (here, *others):
                other.close()
            _child(work, limits, there)
    return _Child(number, here)


def _child(work: Callable[[Line | None], object], limits: Limits, pipe: Connection) -> NoReturn:
    import resource

    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and ends us
        faulthandler.disable()
        gc.disable()  # it would touch, and so copy, every page that holds an object
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        room = psutil.Process().memory_info().vms + limits.memory
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard == resource.RLIM_INFINITY or room < hard:
            with suppress(ValueError, OSError):  # systems that know no such limit
                resource.setrlimit(resource.RLIMIT_AS, (room, hard))
        try:
            _send(pipe, work(Line(pipe, limits)))
        except BaseException as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None
            pipe.send(("error", error))
    finally:
        os._exit(0)


def _send(pipe: Connection, result: object) -> None:
    arrays: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(result, protocol=5, buffer_callback=arrays.append)
    parts = [array.raw() for array in arrays]
    pipe.send(("done", rest, [part.nbytes for part in parts]))
    for part in parts:
        sent = 0
        while sent < part.nbytes:
            sent += os.write(pipe.fileno(), part[sent:])


def _receive(pipe: Connection, rest: bytes, sizes: list[int]) -> Any:
    parts = [np.empty(size, dtype=np.uint8) for size in sizes]
    for part in parts:
        left = part.data
        while left:
            count = os.readv(pipe.fileno(), [left])
            if not count:
                raise EOFError
            left = left[count:]
    return pickle.loads(rest, buffers=parts)


def _wait(child: int) -> int:
    """Return how the child ended; 0 where it has been waited for."""
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
