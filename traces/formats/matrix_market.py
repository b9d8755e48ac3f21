"""Reading MatrixMarket files: sparse ("coordinate") and dense ("array") ones, in all symmetries.

scipy's reader takes a third of the time, but takes damage for data: of an integer 7.9 or 7e3 it
reads the 7, of 1.5D3 the 1.5, and columns too many it leaves out. It also reads past the end of a
file that is cut inside an entry, divides by zero on an empty array, and makes room for as many
entries as the first lines announce; a child process would guard against these, not against that.
Source: Boisvert, Pozo and Remington, The Matrix Market exchange formats: initial design, NIST
Internal Report 5935 (1996).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

_BANNER = b"%%matrixmarket"
_SMALLEST = {"coordinate": 4, "array": 2}  # bytes of an entry, its end of line included
# Columns of an entry's value by field, and what mirrors an entry by symmetry.
_FIELDS: Mapping[str, list[tuple[str, type]]] = {
    "pattern": [],
    "integer": [("value", np.int64)],
    "unsigned-integer": [("value", np.uint64)],
    "real": [("value", np.float64)],
    "double": [("value", np.float64)],
    "complex": [("value", np.float64), ("imaginary", np.float64)],
}
_MIRRORS = {
    "general": None,
    "symmetric": np.positive,
    "skew-symmetric": np.negative,
    "hermitian": np.conjugate,
}


class _Header(NamedTuple):
    layout: str
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int


def read_matrix_market(path: str | Path) -> Any:
    """Read a matrix: a scipy.sparse.coo_array or an ndarray, as the file has it.

    Entries on both sides of the diagonal are written out; duplicates stay.
    """
    file = Path(path)
    if not file.is_file():
        raise TraceError(f"{path}: no such file")
    try:
        with file.open("rb") as stream:
            header = _read_header(stream, file.stat().st_size)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no entries at all: said below
                places = [("row", np.int64), ("column", np.int64)]
                types = (places if header.layout == "coordinate" else []) + _FIELDS[header.field]
                table = np.loadtxt(stream, dtype=types, comments="%", ndmin=1)
            return _assemble(header, table)
    except (OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise TraceError(f"{path}: cannot be read as a MatrixMarket matrix: {reason}") from None


def _read_header(stream: BinaryIO, size: int) -> _Header:
    banner = stream.readline(1024).decode("ascii", errors="replace").lower().split()
    allowed: tuple[Mapping[str, Any], ...] = (_SMALLEST, _FIELDS, _MIRRORS)
    good = len(banner) == 5 and banner[:2] == [_BANNER.decode(), "matrix"]
    if not good or any(w not in known for w, known in zip(banner[2:], allowed, strict=True)):
        raise ValueError(
            f"first line {' '.join(banner)[:80]!r}: expected %%MatrixMarket matrix, then "
            + ", ".join("|".join(known) for known in allowed)
        )
    layout, field, symmetry = banner[2:]
    line = b"%"
    while line.startswith(b"%") or (line and not line.strip()):
        line = stream.readline(1024)
    wanted = 3 if layout == "coordinate" else 2
    sizes = [int(size) for size in line.split() if re.fullmatch(rb"[0-9]{1,18}", size)]
    if len(sizes) != wanted or len(line.split()) != wanted:
        what = "rows, columns, entries" if wanted == 3 else "rows, columns"
        raise ValueError(f"sizes {line.decode(errors='replace')[:60]!r}: expected {what}")
    rows, columns = sizes[:2]
    if symmetry != "general" and rows != columns:
        raise ValueError(f"{rows} rows, {columns} columns: expected a square matrix")
    entries = sizes[-1]
    if layout == "array":
        triangle = rows * (rows + 1) // 2 - (rows if symmetry == "skew-symmetric" else 0)
        entries = rows * columns if symmetry == "general" else triangle
    if entries * _SMALLEST[layout] > size + 1:  # the last line may lack its end
        raise ValueError(f"{size} bytes cannot hold the {entries} entries it announces")
    return _Header(layout, field, symmetry, rows, columns, entries)


def _assemble(header: _Header, table: NDArray[Any]) -> Any:
    from scipy import sparse  # slow to import, and few files need it

    if len(table) != header.entries:
        raise ValueError(f"{len(table)} entries: expected {header.entries}, as announced")
    names = table.dtype.names or ()
    value = table["value"] if "value" in names else np.ones(len(table), dtype=np.int64)
    if "imaginary" in names:
        value = value.astype(np.complex128)
        value.imag = table["imaginary"]  # a product with 1j would make infinite ones NaN, aloud
    mirror, shape = _MIRRORS[header.symmetry], (header.rows, header.columns)
    if header.layout == "array":
        if mirror is None:
            return value.reshape(shape, order="F")
        column, row = np.triu_indices(header.rows, header.symmetry == "skew-symmetric")
        matrix = np.zeros(shape, dtype=value.dtype)
        matrix[row, column] = value
        below = row != column
        matrix[column[below], row[below]] = mirror(value[below])
        return matrix
    for name, most in zip(("row", "column"), shape, strict=True):
        bad = np.flatnonzero((table[name] < 1) | (table[name] > most))
        if bad.size:
            entry, number = bad[0] + 1, table[name][bad[0]]
            raise ValueError(f"entry {entry}: {name} {number}: expected 1..{most}")
    row, column = table["row"] - 1, table["column"] - 1
    if mirror is not None:
        off = row != column
        value = np.concatenate((value, mirror(value[off])))
        row, column = (np.concatenate((row, column[off])), np.concatenate((column, row[off])))
    return sparse.coo_array((value, (row, column)), shape=shape)


def read_mtx(file: Path) -> Traffic:
    """Read a matrix of bytes, one message an entry."""
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


def write_mtx(file: Path, traffic: Traffic) -> None:
    """Write a matrix of bytes."""
    from scipy import io, sparse

    shape = (traffic.ranks, traffic.ranks)
    matrix = sparse.coo_array((traffic.bytes, (traffic.src, traffic.dst)), shape=shape)
    io.mmwrite(file, matrix, comment=" bytes from row to column", symmetry="general")
