"""Results appear whole or not at all: write beside the target, then rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path to write a file to; on success it takes the place of `path`.

    On any exception, Ctrl-C included, what was written is removed and `path` is as it was.

    Raises
    ------
    OSError
        The folder does not exist or cannot be written.
    """
    target = Path(path)
    # The suffix stays last: libraries choose formats by it.
    with _naming(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-", suffix=target.name)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder to fill; on success it takes the place of `path`.

    Raises
    ------
    OSError
        The parent folder does not exist or cannot be written.
    """
    target = Path(path)
    with _naming(target):
        partial = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".partial-{target.name}"))
    try:
        yield partial
        partial.chmod(0o777 & ~_umask())
        if target.is_dir():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".old-{target.name}"))
            target.replace(old)
            partial.replace(target)
            shutil.rmtree(old)
        else:
            partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Let an error name the file that was asked for, not the temporary one beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
