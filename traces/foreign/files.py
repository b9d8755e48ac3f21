"""Files of other tools, read whole; what cannot fit in memory is refused before."""

from __future__ import annotations

from pathlib import Path

from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import TraceError


def read_whole(file: Path, per_byte: int) -> bytes:
    """Read a file.

    Parameters
    ----------
    per_byte : int
        Bytes of memory that a byte of it takes at least, once it is understood.

    Raises
    ------
    TraceError
        It cannot be read.
    OutOfMemoryError
        It does not fit.
    """
    try:
        size = file.stat().st_size
        require_memory(per_byte * size, f"{file}: {size:,} bytes", "take fewer ranks or steps")
        return file.read_bytes()
    except OSError as error:
        raise TraceError(f"{file}: cannot be read ({error.strerror})") from None


def read_start(file: Path, size: int) -> bytes:
    """Read the first bytes of a file.

    Raises
    ------
    TraceError
        It cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return stream.read(size)
    except OSError as error:
        raise TraceError(f"{file}: cannot be read ({error.strerror})") from None
