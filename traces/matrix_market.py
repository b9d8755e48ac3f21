"""MatrixMarket files by scipy's reader, which believes the sizes of their first lines: we do not.

Source: Boisvert, Pozo and Remington, The Matrix Market exchange formats: initial design, NIST
Internal Report 5935 (1996).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .trace import TraceError

_SMALLEST = {"coordinate": 4, "array": 2}  # bytes of an entry, its end of line included


def read_matrix_market(path: str | Path) -> Any:
    """Read a matrix, sparse or dense as the file has it.

    Raises
    ------
    TraceError
        No such file, not MatrixMarket, or fewer entries than its header says.
    """
    from scipy import io  # slow to import, and few files need it

    file = Path(path)
    if not file.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        _expect_room(file)
        return io.mmread(file)
    except TraceError:
        raise
    except (OSError, ValueError, TypeError, EOFError, OverflowError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{path}: cannot be read as a MatrixMarket matrix: {reason}") from None


def _expect_room(file: Path) -> None:
    """Refuse a file that is too short for the entries it announces, before room is made for them.

    A header that makes no sense is left to the reader, whose words on it are good.
    """
    with file.open("rb") as stream:
        banner = stream.readline(1024).split()
        line = stream.readline(1024)
        while line.startswith(b"%") or (line and not line.strip()):
            line = stream.readline(1024)
    layout = banner[2].decode(errors="replace").lower() if len(banner) > 2 else ""
    if not re.fullmatch(rb"\s*(\d{1,18}\s+){1,2}\d{1,18}\s*", line) or layout not in _SMALLEST:
        return
    sizes = [int(word) for word in line.split()]
    entries = sizes[-1]
    if layout == "array":
        entries = sizes[0] * sizes[-1]
        if len(banner) > 4 and banner[4].lower() != b"general":
            entries = sizes[0] * (sizes[0] - 1) // 2  # one triangle, perhaps without its diagonal
    size = file.stat().st_size
    if entries * _SMALLEST[layout] > size + 1:  # the last line may lack its end
        raise TraceError(f"{file}: {size} bytes cannot hold {entries} entries, which it announces")
