"""Work on untrusted files in a process of its own: what it does there harms nobody here.

A library in C may crash, loop or ask for all memory on a damaged file, and takes the interpreter
with it. `guarded` forks, so that nothing has to be started or imported again: the child works under
limits on memory and on the processor time between two signs of progress, and hands its result over
through a pipe, arrays straight from memory to memory. Cost: the fork, milliseconds, and two copies
of the arrays; memory shared between the two would be slower, since it comes in small pages.

The child never imports, compiles or waits for a lock that another thread may hold: whoever calls
`guarded` has prepared what it needs. Where there is no fork, the work is done unguarded.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
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


def guarded(
    work: Callable[[Line | None], T],
    limits: Limits,
    progress: Progress | None = None,
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
    import fcntl  # these two come with fork, and not everywhere
    import resource  # noqa: F401 - for the child

    here, there = Pipe(duplex=False)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(there.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
    with here, there:
        child = os.fork()
        if not child:
            _child(work, limits, there)
        there.close()
        at = ""
        try:
            while True:
                kind, *said = here.recv()
                if kind == "at":
                    at = said[0]
                elif kind == "progress":
                    if progress is not None:
                        progress(*said)
                elif kind == "error":
                    raise said[0]
                else:
                    return _received(here, *said)  # type: ignore[no-any-return]
        except EOFError:
            raise Death(_reason(_wait(child)), at) from None
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)  # it has said all, or nobody listens any more
            _wait(child)


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


def _received(pipe: Connection, rest: bytes, sizes: list[int]) -> Any:
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
