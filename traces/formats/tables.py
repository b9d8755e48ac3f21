"""Tables of traffic: numpy's archives (npz), sparse CSV, and MapLib's dense CSV; and its metadata.

Metadata are JSON whose known keys are what mappers take them for.
"""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hopmap.arrays import Floats
from hopmap.traces.safety.memory import require_memory
from hopmap.traces.trace import TraceError
from hopmap.traces.traffic import Traffic

MOST_DIMENSIONS = 32
_FARTHEST = 10**9


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _all(values: object, good: Callable[[Any], bool]) -> bool:
    return isinstance(values, list) and all(map(good, values))


# Key: what it must be, in words and as a test.
_KNOWN: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "dims": (
        f"1 to {MOST_DIMENSIONS} whole numbers of at least 1",
        lambda dims: _all(dims, lambda d: _is_whole(d, 1)) and 1 <= len(dims) <= MOST_DIMENSIONS,
    ),
    "periodic": ("a list of true and false", lambda p: _all(p, lambda x: isinstance(x, bool))),
    "stencil": (
        "a list of lists of whole numbers",
        lambda s: _all(s, lambda v: _all(v, lambda x: _is_whole(x, -_FARTHEST) and x <= _FARTHEST)),
    ),
    "stencil_bytes": (
        "a list of whole numbers of at least 0",
        lambda sizes: _all(sizes, lambda size: _is_whole(size, 0)),
    ),
}


def read_metadata(text: str, name: str) -> dict[str, Any]:
    """Read the metadata of a traffic file, a JSON object; see `Traffic.metadata`."""
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise TraceError(f"{name}: metadata {text[:60]!r}: expected a JSON object")
    for key, (expected, good) in _KNOWN.items():
        if key in metadata and not good(metadata[key]):
            value = repr(metadata[key])[:60]
            raise TraceError(f"{name}: metadata: {key}: {value}: expected {expected}")
    return metadata


HEADER, WITHOUT_MESSAGES = "src,dst,messages,bytes", "src,dst,bytes"
DENSE_LIMIT = 8192
_COLUMNS = ("ranks", "src", "dst", "messages", "bytes", "metadata")


def read_npz(file: Path) -> Traffic:
    """Read numpy's archive of all columns and metadata."""
    with zipfile.ZipFile(file) as archive:
        data = {name: _read_column(archive, name, file) for name in _COLUMNS}
    ranks = data.pop("ranks")
    if ranks.shape or ranks.dtype.kind not in "iu":
        raise TraceError(f"{file}: ranks {ranks!s:.40}: expected one whole number")
    metadata = read_metadata(str(data.pop("metadata")), str(file))
    return Traffic.from_pairs(int(ranks), **data, metadata=metadata, name=str(file))


def read_npz_metadata(file: Path) -> dict[str, Any]:
    """Read the metadata of numpy's archive alone."""
    with zipfile.ZipFile(file) as archive:
        return read_metadata(str(_read_column(archive, "metadata", file)), str(file))


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


def write_npz(file: Path, traffic: Traffic) -> None:
    """Write numpy's archive of all columns and metadata."""
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


def read_csv(file: Path) -> Traffic:
    """Read a table with a header, or a dense matrix of bytes.

    Without messages each row is one, as in MatrixMarket's files.
    """
    above, first = 0, ""
    with file.open(encoding="utf-8-sig") as stream:
        while not first and (line := stream.readline()):
            above += 1
            first = line.partition("#")[0].translate({ord(" "): "", ord('"'): ""}).strip()
    if first.startswith("src"):
        if first not in (HEADER, WITHOUT_MESSAGES):
            expected = f"{HEADER} or {WITHOUT_MESSAGES}"
            raise TraceError(f"{file}: header {first[:60]!r}: expected {expected}")
        rows = _numbers(file, f"numbers {first}", above)
        if rows.shape[1] != first.count(",") + 1:
            raise TraceError(f"{file}: {rows.shape[1]} columns: expected {first}")
        if first == WITHOUT_MESSAGES:
            rows = np.insert(rows, 2, 1, axis=1)
        named = rows[:, :2]
        ranks = int(named[np.isfinite(named)].max(initial=-1)) + 1
        return Traffic.from_pairs(ranks, *rows.T, name=str(file))
    return read_dense(file)


def partner_of(file: Path) -> Path | None:
    """Return the other file of MapLib's messages and bytes, whether it is there or not."""
    for mine, other in ((".count.csv", ".size.csv"), (".size.csv", ".count.csv")):
        if file.name.lower().endswith(mine):
            return file.with_name(file.name[: -len(mine)] + other)
    return None


def _has_messages(file: Path) -> bool:
    return file.name.lower().endswith(".count.csv")


def read_dense(file: Path) -> Traffic:
    """Read MapLib's dense matrix of messages or, by any other name, of bytes; and its partner."""
    as_messages = _has_messages(file)
    matrix = _square(file)
    partner = partner_of(file)
    if partner is not None and partner.is_file():
        second = _square(partner)
        if second.shape != matrix.shape:
            raise TraceError(
                f"{partner}: {len(second)} ranks: expected {len(matrix)} as in {file.name}"
            )
        messages, volume = (matrix, second) if as_messages else (second, matrix)
    else:
        messages, volume = (matrix if as_messages else matrix != 0), matrix
    src, dst = np.nonzero((messages != 0) | (volume != 0))
    return Traffic.from_pairs(
        len(matrix), src, dst, messages[src, dst], volume[src, dst], name=str(file)
    )


def _square(file: Path) -> Floats:
    matrix = _numbers(file, f"a matrix of numbers, or the header {HEADER}")
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


def _numbers(file: Path, expected: str, above: int = 0) -> Floats:
    """Read the numbers of a file, below so many lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty file is reported below
        try:
            rows = np.loadtxt(
                file,
                delimiter=",",
                skiprows=above,
                ndmin=2,
                dtype=np.float64,
                encoding="utf-8-sig",
                quotechar='"',
            )
        except ValueError as error:
            reason = " ".join(str(error).split())
            if found := re.search(r"string (.+) to \w+ at row (\d+), column (\d+)", reason):
                reason = f"entry {found[1]} in row {found[2]}, column {int(found[3]) - 1}"
            elif found := re.search(r"changed from \d+ to (\d+) at row (\d+)", reason):
                reason = f"{found[1]} columns in row {int(found[2]) - 1}"
            raise TraceError(f"{file}: {reason}: expected {expected}") from None
    if not rows.size:
        raise TraceError(f"{file}: no rows: expected a matrix, or the header {HEADER} and rows")
    return rows


def write_csv(file: Path | TextIO, traffic: Traffic) -> None:
    """Write a table with a header."""
    rows = np.stack([traffic.src, traffic.dst, traffic.messages, traffic.bytes], axis=1)
    named = int(rows[:, :2].max(initial=-1)) + 1
    if named < traffic.ranks:
        # The table has no other way to say that the last rank is there but silent.
        rows = np.vstack([rows, [traffic.ranks - 1, traffic.ranks - 1, 0, 0]])
    np.savetxt(file, rows, fmt="%d", delimiter=",", header=HEADER, comments="")


def write_dense(file: Path, traffic: Traffic) -> None:
    """Write MapLib's dense matrix of messages or, by its name, of bytes."""
    if traffic.ranks > DENSE_LIMIT:
        raise TraceError(
            f"a dense matrix of {traffic.ranks} ranks: expected at most {DENSE_LIMIT}; "
            f"use a sparse format"
        )
    matrix = np.zeros((traffic.ranks, traffic.ranks), dtype=np.int64)
    matrix[traffic.src, traffic.dst] = traffic.messages if _has_messages(file) else traffic.bytes
    np.savetxt(file, matrix, fmt="%d", delimiter=",")
