"""Results appear whole or not at all: write next to the target, then rename."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path to write a file to; on success it takes the place of `path`.

    On any exception, Ctrl-C included, what was written is removed and `path` is as it was. A link
    stays, and what it leads to is replaced. Devices and pipes stay: the file is copied into them.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    stays = target.exists() and not target.is_file()
    # The suffix stays last: libraries choose formats by it.
    place = Path(tempfile.gettempdir(), target.name) if stays else target
    partial = _partial_path(place, f"{secrets.token_hex(4)}{target.name}")
    try:  # from before there is anything: Ctrl-C may come at any time
        with _name_target(target, partial):
            partial.touch(exist_ok=False)
            yield partial
            if not stays:
                partial.replace(target)
                return
            with partial.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a file of text in UTF-8."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yield an empty folder to fill; on success it takes the place of `path`."""
    target = Path(path)
    partial = _partial_path(target, f"{target.name}{secrets.token_hex(4)}")
    try:
        with _name_target(target, partial):
            partial.mkdir()
            yield partial
            if target.is_dir():
                old = target.with_name(f".old-{target.name}{secrets.token_hex(4)}")
                target.replace(old)
                partial.replace(target)
                shutil.rmtree(old)
            else:
                partial.replace(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _partial_path(target: Path, name: str) -> Path:
    return target.parent / f".partial-{name}"


@contextmanager
def _name_target(target: Path, partial: Path) -> Iterator[None]:
    """Let an error name the requested file, not the temporary one next to it, nor none at all."""
    try:
        yield
    except OSError as error:
        named = error.filename
        of_another = named is not None and not str(named).startswith(str(partial))
        if error.errno is None or of_another:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from None
