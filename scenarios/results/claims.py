"""Who does what, among processes that share a folder: advisory locks on bytes of one empty file.

A claim is a lock on one byte of ``DIR/.lock``, at a place that the name of the work gives. The
kernel drops it when the process ends, however it ends, so that nothing goes stale and no claim has
to be cleaned up. NFS 4 and parallel file systems that are mounted with locks carry it to other
hosts. Where there are no locks every claim is granted: work may be done twice, with one result.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
PROBED = 1 << 62
"""A place of the file that no claim has."""
WAIT = 0.1
"""Seconds between looks at work that another process does."""


@contextmanager
def claim(folder: Path, name: str, *, wait: bool = False) -> Iterator[bool]:
    """Claim some work for as long as the block lasts; yield whether it is ours.

    The processes share the folder, which has to be there. Threads of one process do not exclude
    each other. With `wait`, wait for a process that has the work, until it is ours.
    """
    file = _lock_file(folder)
    place = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 2
    while not (mine := _lock(file, place)) and wait:
        time.sleep(WAIT)
    try:
        yield mine
    finally:
        if mine:
            _lock(file, place, fcntl.LOCK_UN)


def has_locks(folder: Path) -> bool:
    """Whether claims exclude anybody on this file system."""
    try:
        fcntl.lockf(_lock_file(folder), fcntl.LOCK_SH | fcntl.LOCK_NB, 1, PROBED)
    except OSError as error:
        return error.errno not in NO_LOCKS
    return True


def _lock(file: int, place: int, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> bool:
    try:
        fcntl.lockf(file, how, 1, place)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True


def _lock_file(folder: Path) -> int:
    path = folder.resolve() / ".lock"
    with suppress(FileNotFoundError):
        file = _open(path)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    _open.cache_clear()  # the folder was removed and made again
    return _open(path)


@cache
def _open(path: Path) -> int:
    """Open a file for good: closing any of its descriptors would drop all locks of a process."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
