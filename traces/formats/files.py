"""Traffic files: npz, sparse CSV, MapLib's dense CSV, MatrixMarket, METIS and Scotch graphs, .prof.

Only npz, sparse CSV and .prof hold messages *and* bytes. The others hold one weight per pair:

* MatrixMarket, METIS and Scotch: bytes; each entry is one message;
* MapLib's dense CSV: messages in ``X.count.csv``, bytes in ``X.size.csv``; when both stand side by
  side they are read together; with the counts alone a message has one byte, with the sizes alone
  each entry is one message.
"""

from __future__ import annotations

import json
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.safety.atomic_files import replacing
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

from .matrix_market import read_matrix_market
from .metadata import read_metadata
from .metis import read_metis, write_metis
from .openmpi_monitoring import profiles, read_monitoring
from .scotch import read_scotch, write_scotch

HEADER = "src,dst,messages,bytes"

# Formats by the end of the file name, the longer first; what `hopmap list formats` prints.
FORMATS: Mapping[str, str] = {
    ".count.csv": "MapLib's dense matrix of messages, no header",
    ".size.csv": "MapLib's dense matrix of bytes, no header",
    ".npz": "numpy archive of all columns and metadata",
    ".csv": f"sparse table {HEADER}",
    ".mtx": "MatrixMarket matrix of bytes, one message an entry",
    ".graph": "METIS graph, edge weights in bytes, both directions added up",
    ".grf": "Scotch graph, edge loads in bytes, both directions added up",
    ".prof": "Open MPI's monitoring, the files of all ranks; only read",
}

DENSE_LIMIT = 8192
_COLUMNS = ("ranks", "src", "dst", "messages", "bytes", "metadata")
# What numpy, zipfile and Python's numbers raise for files that are not what they seem.
_UNREADABLE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError),
    *(SyntaxError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


def load_traffic(path: str | Path) -> Traffic:
    """Read a traffic file, its format chosen by suffix (and, for CSV, by its first line).

    A folder is one of Open MPI's monitoring.

    Raises
    ------
    TraceError
        Unreadable or foreign file, a matrix that is not square, a negative, fractional or NaN
        entry; the message names file, row and value.
    """
    file = Path(path)
    if file.is_dir():
        return read_monitoring(file)
    suffix = _suffix(file)
    if not file.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        return _READERS[suffix](file)
    except TraceError:
        raise
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{path}: cannot be read as {FORMATS[suffix]}: {reason}") from None


def load_metadata(path: str | Path) -> dict[str, Any]:
    """Read the metadata of an .npz alone; raises as `load_traffic`."""
    file = Path(path)
    try:
        with zipfile.ZipFile(file) as archive:
            return read_metadata(str(_read_column(archive, "metadata", file)), str(file))
    except _UNREADABLE as error:
        raise TraceError(f"{path}: cannot be read as {FORMATS['.npz']}: {error}") from None


def files_of(path: str | Path) -> list[Path]:
    """Return the files that `load_traffic` reads for a path: MapLib's come in pairs."""
    file = Path(path)
    if file.is_dir() or file.suffix == ".prof":
        return profiles(file)
    partner = _partner(file)
    return [file, partner] if partner is not None and partner.is_file() else [file]


def save_traffic(path: str | Path, traffic: Traffic) -> None:
    """Write a traffic file, its format chosen by suffix; it appears whole or not at all.

    Raises
    ------
    TraceError
        Unknown suffix, or a dense format for more than `DENSE_LIMIT` ranks.
    OSError
        The folder cannot be written.
    """
    file = Path(path)
    suffix = _suffix(file)
    if suffix not in _WRITERS:
        raise TraceError(f"{file}: is only read: expected one of {', '.join(_WRITERS)}")
    writer = _WRITERS[suffix]
    with replacing(file) as partial:
        writer(partial, traffic)


def _suffix(file: Path) -> str:
    for suffix in FORMATS:
        if file.name.lower().endswith(suffix):
            return suffix
    raise TraceError(f"{file}: unknown kind of traffic file: expected one of {', '.join(FORMATS)}")


def _read_npz(file: Path) -> Traffic:
    with zipfile.ZipFile(file) as archive:
        data = {name: _read_column(archive, name, file) for name in _COLUMNS}
    ranks = data.pop("ranks")
    if ranks.shape or ranks.dtype.kind not in "iu":
        raise TraceError(f"{file}: ranks {ranks!s:.40}: expected one whole number")
    metadata = read_metadata(str(data.pop("metadata")), str(file))
    return Traffic.from_pairs(int(ranks), **data, metadata=metadata, name=str(file))


def _read_column(archive: zipfile.ZipFile, name: str, file: Path) -> NDArray[Any]:
    """Read one array, after a look at how long it says it is and how long it can be."""
    if f"{name}.npy" not in archive.namelist():
        raise TraceError(f"{file}: no array {name!r}: expected {', '.join(_COLUMNS)}")
    size = archive.getinfo(f"{name}.npy").file_size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of headers that Python 2 wrote
        with archive.open(f"{name}.npy") as stream:
            if np.lib.format.read_magic(stream) == (1, 0):
                shape, _, kind = np.lib.format.read_array_header_1_0(stream)
            else:
                shape, _, kind = np.lib.format.read_array_header_2_0(stream)
        if min(shape, default=0) < 0 or prod(shape) * kind.itemsize > size:
            raise TraceError(f"{file}: array {name!r}: {size} bytes cannot hold the shape {shape}")
        require_memory(size, f"{file}: array {name!r}", "hopmap writes smaller ones")
        with archive.open(f"{name}.npy") as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _write_npz(file: Path, traffic: Traffic) -> None:
    with file.open("wb") as stream:
        np.savez_compressed(
            stream,
            ranks=np.int64(traffic.ranks),
            src=traffic.src,
            dst=traffic.dst,
            messages=traffic.messages,
            bytes=traffic.bytes,
            metadata=np.str_(json.dumps(dict(traffic.metadata), sort_keys=True)),
        )


def _read_csv(file: Path) -> Traffic:
    above, first = 0, ""
    with file.open(encoding="utf-8-sig") as stream:
        while not first and (line := stream.readline()):
            above += 1
            first = line.partition("#")[0].translate({ord(" "): "", ord('"'): ""}).strip()
    if first.startswith("src"):
        if first != HEADER:
            raise TraceError(f"{file}: header {first[:60]!r}: expected {HEADER}")
        rows = _numbers(file, skip=above)
        if rows.shape[1] != 4:
            raise TraceError(f"{file}: {rows.shape[1]} columns: expected {HEADER}")
        named = rows[:, :2]
        ranks = int(named[np.isfinite(named)].max(initial=-1)) + 1
        return Traffic.from_pairs(ranks, *rows.T, name=str(file))
    return _read_dense(file, as_messages=False)


def _read_counts(file: Path) -> Traffic:
    return _read_dense(file, as_messages=True)


def _read_sizes(file: Path) -> Traffic:
    return _read_dense(file, as_messages=False)


def _partner(file: Path) -> Path | None:
    """Return the other file of MapLib's messages and bytes, whether it is there or not."""
    for mine, other in ((".count.csv", ".size.csv"), (".size.csv", ".count.csv")):
        if file.name.lower().endswith(mine):
            return file.with_name(file.name[: -len(mine)] + other)
    return None


def _read_dense(file: Path, *, as_messages: bool) -> Traffic:
    matrix = _square(file)
    partner = _partner(file)
    if partner is not None and partner.is_file():
        second = _square(partner)
        if second.shape != matrix.shape:
            raise TraceError(
                f"{partner}: {len(second)} ranks: expected {len(matrix)} as in {file.name}"
            )
        messages, volume = (matrix, second) if as_messages else (second, matrix)
        src, dst = np.nonzero((messages != 0) | (volume != 0))
        return Traffic.from_pairs(
            len(matrix), src, dst, messages[src, dst], volume[src, dst], name=str(file)
        )
    src, dst = np.nonzero(matrix)
    weight = matrix[src, dst]
    messages = weight if as_messages else np.ones_like(weight)
    return Traffic.from_pairs(len(matrix), src, dst, messages, weight, name=str(file))


def _square(file: Path) -> NDArray[np.float64]:
    matrix = _numbers(file, skip=0)
    if matrix.shape[0] != matrix.shape[1]:
        raise TraceError(
            f"{file}: {matrix.shape[0]} rows of {matrix.shape[1]} columns: expected a square "
            f"matrix, or the header {HEADER}"
        )
    bad = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0) & (matrix == np.floor(matrix))))
    if bad.size:
        row, column = bad[0]
        raise TraceError(
            f"{file}: entry {matrix[row, column]:g} in row {row}, column {column}: "
            f"expected a whole number >= 0"
        )
    return matrix


def _numbers(file: Path, *, skip: int) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty file is reported below
        rows = np.loadtxt(
            file,
            delimiter=",",
            skiprows=skip,
            ndmin=2,
            dtype=np.float64,
            encoding="utf-8-sig",
            quotechar='"',
        )
    if not rows.size:
        raise TraceError(f"{file}: no rows: expected a matrix, or the header {HEADER} and rows")
    return rows


def _write_csv(file: Path, traffic: Traffic) -> None:
    rows = np.stack([traffic.src, traffic.dst, traffic.messages, traffic.bytes], axis=1)
    named = int(rows[:, :2].max(initial=-1)) + 1
    if named < traffic.ranks:
        # The table has no other way to say that the last rank is there but silent.
        rows = np.vstack([rows, [traffic.ranks - 1, traffic.ranks - 1, 0, 0]])
    np.savetxt(file, rows, fmt="%d", delimiter=",", header=HEADER, comments="")


def _write_dense(file: Path, traffic: Traffic, weight: NDArray[np.int64]) -> None:
    if traffic.ranks > DENSE_LIMIT:
        raise TraceError(
            f"a dense matrix of {traffic.ranks} ranks: expected at most {DENSE_LIMIT}; "
            f"use a sparse format"
        )
    matrix = np.zeros((traffic.ranks, traffic.ranks), dtype=np.int64)
    matrix[traffic.src, traffic.dst] = weight
    np.savetxt(file, matrix, fmt="%d", delimiter=",")


def _write_counts(file: Path, traffic: Traffic) -> None:
    _write_dense(file, traffic, traffic.messages)


def _write_sizes(file: Path, traffic: Traffic) -> None:
    _write_dense(file, traffic, traffic.bytes)


def _read_mtx(file: Path) -> Traffic:
    from scipy import sparse

    matrix = read_matrix_market(file)
    if np.iscomplexobj(matrix.data):
        raise TraceError(f"{file}: complex entries: expected whole numbers >= 0")
    entries = sparse.coo_array(matrix)
    if entries.shape[0] != entries.shape[1]:
        raise TraceError(
            f"{file}: {entries.shape[0]} rows, {entries.shape[1]} columns: expected a square matrix"
        )
    keep = entries.data != 0
    weight = entries.data[keep]
    row, column = entries.coords
    return Traffic.from_pairs(
        int(entries.shape[0]),
        row[keep],
        column[keep],
        np.ones(len(weight), dtype=np.int64),
        weight,
        name=str(file),
    )


def _write_mtx(file: Path, traffic: Traffic) -> None:
    from scipy import io, sparse

    shape = (traffic.ranks, traffic.ranks)
    matrix = sparse.coo_array((traffic.bytes, (traffic.src, traffic.dst)), shape=shape)
    io.mmwrite(file, matrix, comment=" bytes from row to column", symmetry="general")


_READERS: Mapping[str, Callable[[Path], Traffic]] = {
    ".count.csv": _read_counts,
    ".size.csv": _read_sizes,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".mtx": _read_mtx,
    ".graph": read_metis,
    ".grf": read_scotch,
    ".prof": read_monitoring,
}
_WRITERS: Mapping[str, Callable[[Path, Traffic], None]] = {
    ".count.csv": _write_counts,
    ".size.csv": _write_sizes,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".mtx": _write_mtx,
    ".graph": write_metis,
    ".grf": write_scotch,
}
