"""Mapping files: our CSV, and MapLib's format read as well."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ..topologies import Mapping, MappingError, Topology, check_mapping
from ..traces.atomic import replacing

COMMENT = "# hopmap mapping on "
_WHOLE = re.compile(r"[0-9]{1,18}")


def write_mapping(path: str | Path, node_of: ArrayLike, topology: Topology) -> None:
    """Write the CSV ``rank,node`` below a comment that names the topology; the file appears whole.

    Raises
    ------
    OSError
        The folder cannot be written.
    """
    lines = [COMMENT + topology.spec, "rank,node"]
    lines += [f"{rank},{node}" for rank, node in enumerate(np.asarray(node_of))]
    with replacing(path) as partial:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")


def named_topology(path: str | Path) -> str:
    """Return the spec that a mapping file's comment names.

    Raises
    ------
    MappingError
        Unreadable file, or no such comment.
    """
    first = _lines(path)[:1]
    if not first or not first[0].startswith(COMMENT):
        raise MappingError(
            f"{path}: does not name its topology: expected --topology, "
            f"or a first line like {COMMENT}torus:4x4x4"
        )
    return first[0].removeprefix(COMMENT)


def read_mapping(path: str | Path, topology: Topology, ranks: int | None = None) -> Mapping:
    """Read a mapping: our CSV ``rank,node``, or MapLib's ``x_coord y_coord z_coord ...`` file.

    Raises
    ------
    MappingError
        Unreadable or foreign file, a rank missing or listed twice, and all of `check_mapping`.
    """
    name = str(path)
    lines = _lines(path)
    if len(lines) > 1 and lines[1].startswith("x_coord"):
        places = _maplib_places(lines[2:], topology, name)
    else:
        places = _csv_places(lines, name)
    if not places:
        raise MappingError(
            f"{name}: no ranks in it: expected the header rank,node and one row each"
        )
    listed = np.array([rank for rank, _ in places])
    expected = len(places) if ranks is None else ranks
    if len(places) != expected:
        raise MappingError(f"{name}: places {len(places)} ranks: expected {expected}")
    if listed.max() >= expected:
        raise MappingError(f"{name}: rank {listed.max()}: expected ranks 0..{expected - 1}")
    counts = np.bincount(listed, minlength=expected)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        raise MappingError(
            f"{name}: rank {wrong[0]} is listed {counts[wrong[0]]} times: expected once"
            f" (ranks 0..{expected - 1})"
        )
    node_of = np.empty(expected, dtype=np.int64)
    node_of[listed] = [node for _, node in places]
    return check_mapping(node_of, topology, ranks, name=name)


def read_hosts(path: str | Path) -> list[str]:
    """Read names of hosts, in order of node numbers, with white space between them.

    Raises
    ------
    MappingError
        Unreadable file.
    """
    return " ".join(_lines(path, "a list of hosts")).split()


def _lines(path: str | Path, what: str = "a mapping") -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise MappingError(f"{path}: cannot be read as {what} ({reason})") from None
    return [line.strip() for line in text.lstrip("\ufeff").splitlines()]


def _csv_places(lines: list[str], name: str) -> list[tuple[int, int]]:
    places = []
    header = False
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        row = [cell.strip(' "') for cell in line.split(",")]
        if not header:
            if row != ["rank", "node"]:
                raise MappingError(f"{name}: line {number} is {line[:40]!r}: expected rank,node")
            header = True
            continue
        if len(row) != 2 or not all(map(_WHOLE.fullmatch, row)):
            raise MappingError(
                f"{name}: line {number} is {line[:40]!r}: expected two whole numbers, rank,node"
            )
        places.append((int(row[0]), int(row[1])))
    return places


def _maplib_places(lines: list[str], topology: Topology, name: str) -> list[tuple[int, int]]:
    dims = topology.dims
    if len(dims) != 3:
        raise MappingError(f"{name}: MapLib mappings are three-dimensional, {topology.spec} is not")
    places = []
    for number, line in enumerate(lines, 3):
        cells = line.split()
        if not cells:
            continue
        whole = len(cells) > 3 and all(map(_WHOLE.fullmatch, cells))
        if not whole or len(cells) != 4 + int(cells[3]):
            raise MappingError(
                f"{name}: line {number} is {line[:40]!r}: expected x y z count and count ranks"
            )
        x, y, z, _, *ranks = map(int, cells)
        if not (x < dims[0] and y < dims[1] and z < dims[2]):
            raise MappingError(
                f"{name}: line {number}: node ({x}, {y}, {z}) is not in {topology.spec}"
            )
        places += [(rank, (z * dims[1] + y) * dims[0] + x) for rank in ranks]
    return places
