"""Traffic files: npz, sparse CSV, MapLib's dense CSV, MatrixMarket, METIS and Scotch graphs, .prof.

Only npz, sparse CSV and .prof hold messages *and* bytes. The others hold one weight per pair:

* MatrixMarket, METIS and Scotch: bytes; each entry is one message;
* MapLib's dense CSV: messages in ``X.count.csv``, bytes in ``X.size.csv``; when both stand side by
  side they are read together; with the counts alone a message has one byte, with the sizes alone
  each entry is one message.
"""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hopmap.traces.safety.atomic_files import replacing
from hopmap.traces.sources import FileSource
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

from . import tables

# Formats by the end of the file name, the longer first; what `hopmap list formats` prints.
FORMATS: Mapping[str, str] = {
    ".count.csv": "MapLib's dense matrix of messages, no header",
    ".size.csv": "MapLib's dense matrix of bytes, no header",
    ".npz": "numpy archive of all columns and metadata",
    ".csv": f"sparse table {tables.HEADER}; without messages, one a row",
    ".mtx": "MatrixMarket matrix of bytes, one message an entry",
    ".graph": "METIS graph, edge weights in bytes, both directions added up",
    ".grf": "Scotch graph, edge loads in bytes, both directions added up",
    ".prof": "Open MPI's monitoring, the files of all ranks; only read",
}

# Functions that read and write them; the others stay unloaded.
_READERS = {
    ".count.csv": "tables:read_dense",
    ".size.csv": "tables:read_dense",
    ".npz": "tables:read_npz",
    ".csv": "tables:read_csv",
    ".mtx": "matrix_market:read_mtx",
    ".graph": "graphs:read_metis",
    ".grf": "graphs:read_scotch",
    ".prof": "openmpi_monitoring:read_monitoring",
}
_WRITERS = {
    ".count.csv": "tables:write_dense",
    ".size.csv": "tables:write_dense",
    ".npz": "tables:write_npz",
    ".csv": "tables:write_csv",
    ".mtx": "matrix_market:write_mtx",
    ".graph": "graphs:write_metis",
    ".grf": "graphs:write_scotch",
}

# What numpy, zipfile and Python's numbers raise for files that are not what they seem.
_UNREADABLE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError),
    *(SyntaxError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def load_traffic(path: str | Path) -> Traffic:
    """Read a traffic file, its format chosen by suffix (and, for CSV, by its first line).

    A folder is one of Open MPI's monitoring.
    """
    file = Path(path)
    suffix = ".prof" if file.is_dir() else _suffix(file)
    read: Callable[[Path], Traffic] = resolve_name(f"{__package__}.{_READERS[suffix]}")
    if file.is_dir():
        return read(file)
    if not file.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        return read(file)
    except TraceError:
        raise
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{path}: cannot be read as {FORMATS[suffix]}: {reason}") from None


def load_metadata(path: str | Path) -> dict[str, Any]:
    """Read the metadata of an .npz alone; raises as `load_traffic`."""
    try:
        return tables.read_npz_metadata(Path(path))
    except _UNREADABLE as error:
        raise TraceError(f"{path}: cannot be read as {FORMATS['.npz']}: {error}") from None


def files_of(path: str | Path) -> list[Path]:
    """Return the files that `load_traffic` reads for a path: MapLib's come in pairs."""
    file = Path(path)
    partner = tables.partner_of(file)
    return [file, partner] if partner is not None and partner.is_file() else [file]


def save_traffic(path: str | Path, traffic: Traffic) -> None:
    """Write a traffic file, its format chosen by suffix; it appears whole or not at all.

    A dense format for more than `tables.DENSE_LIMIT` ranks is a `TraceError`.
    """
    file = Path(path)
    suffix = written_suffix(file)
    write: Callable[[Path, Traffic], None] = resolve_name(f"{__package__}.{_WRITERS[suffix]}")
    with replacing(file) as partial:
        write(partial, traffic)


def written_suffix(file: Path, *others: str) -> str:
    """Return the end of a file's name that says its format, perhaps one of `others`."""
    for suffix in (*_WRITERS, *others):
        if file.name.lower().endswith(suffix):
            return suffix
    raise TraceError(f"{file}: expected a name ending in {', '.join((*_WRITERS, *others))}")


def traffic_text(traffic: Traffic) -> str:
    """Return what `save_traffic` writes into a .csv."""
    text = io.StringIO()
    tables.write_csv(text, traffic)
    return text.getvalue()


def _suffix(file: Path) -> str:
    for suffix in FORMATS:
        if file.name.lower().endswith(suffix):
            return suffix
    raise TraceError(f"{file}: unknown kind of traffic file: expected one of {', '.join(FORMATS)}")


class TrafficFileSource(FileSource):
    """A file that says how much is sent, and not in which order."""

    kind = "traffic"
    has_program = False
    has_calls = False
    needs_rounds = True

    def traffic(self) -> Traffic:
        """Read who sends how much to whom."""
        return load_traffic(self.path)

    def files(self) -> list[Path]:
        """Return the file; MapLib's come in pairs."""
        return files_of(self.path)


def open_traffic_file(text: str, _: Path | None) -> TrafficFileSource:
    """Return the source that a file is."""
    return TrafficFileSource(Path(text).stem, Path(text))
