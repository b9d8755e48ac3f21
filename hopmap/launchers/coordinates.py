"""Files of coordinates: Fugaku's vcoordfile, Blue Gene's map file, MapLib's mapping.

Fugaku and Blue Gene, rank -> node: line r holds the coordinates of rank r's node, x first:
``(1,0,3)`` on Fugaku, in the logical box of one to three dimensions that the job asks for (with
``tofud:job=4x4x4,order=YZX``, too, along X, Y and Z); ``1 0 3 0`` on Blue Gene, the last number
counting the ranks of a node (three coordinates and that on L and P, five on Q). Neither is
documented to know comments.

MapLib: a line for every node in use, with its coordinates and its ranks, sorted by x, then y, then
z, below the mapper's name:

    sweep
    x_coord y_coord z_coord number_of_processes process_id(s)
    0 0 0 2 0 1

Sources: RIKEN, Fugaku User's Guide, "Rank assignment"; LLNL/rubik, which writes Blue Gene's;
unibas-dmi-hpc/MapLib, mapper/mapping.py, and the mappings in its repository.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hopmap.arrays import Ints, equals_before
from hopmap.topologies import MappingError, Topology

from .formats import Launch, Launcher, LauncherFile, Place

LOGICAL = 3  # dimensions of a job on Fugaku
JOB = re.compile(r"tofud:job=(\d+(?:x\d+)*)(?:[^,]*)(?:,order=([XYZ]+))?")
HEADER = "x_coord y_coord z_coord number_of_processes process_id(s)"
WHOLE = re.compile(r"[0-9]{1,18}")


def write_vcoords(launch: Launch) -> list[str]:
    """Return ``(x,y,z)`` for every rank, in a job's box of up to three dimensions."""
    places = _job_box(launch.topology, "fugaku").coords[launch.node_of].tolist()
    return [f"({','.join(map(str, place))})" for place in places]


def write_map(launch: Launch) -> list[str]:
    """Return ``x y z t`` for every rank of a box, t counting the ranks of a node."""
    node_of = launch.node_of
    coords = _box(launch.topology, "bluegene").coords
    turns = equals_before(node_of)
    return [
        " ".join(map(str, (*coords[node], turn))) for node, turn in zip(node_of, turns, strict=True)
    ]


def read_vcoords(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every line."""
    box = _job_box(file.topology, file.name)
    blank = re.compile(r"\(\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\)")
    places = []
    for rank, (number, line) in enumerate(file.lines):
        match = blank.fullmatch(line)
        place = match[1].split(",") if match else []
        places.append((number, rank, _node(file, number, place, box)))
    return places


def read_map(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every line."""
    box = _box(file.topology, file.name)
    places = []
    first: dict[tuple[int, int], int] = {}
    for rank, (number, line) in enumerate(file.lines):
        *place, last = line.split()
        if not re.fullmatch(r"\d{1,9}", last):
            file.wrong(number, f"{len(box.dims)} coordinates and a rank's number on its node")
        node = _node(file, number, place, box)
        if (node, int(last)) in first:
            file.wrong(number, f"another place than line {first[node, int(last)]}")
        first[node, int(last)] = number
        places.append((number, rank, node))
    return places


def _node(file: LauncherFile, number: int, place: Sequence[str], box: _Box) -> int:
    """Return the node at the coordinates that a line gives."""
    numeric = all(re.fullmatch(r"\s*\d{1,9}\s*", coordinate) for coordinate in place)
    inside = numeric and len(place) == len(box.dims)
    if not inside or any(int(x) >= d for x, d in zip(place, box.dims, strict=True)):
        first, last = (" ".join(map(str, box.coords[node])) for node in (0, box.nodes - 1))
        file.wrong(number, f"a node from {first} to {last}")
    by_speed = [int(place[axis]) for axis in box.axes]
    return int(np.ravel_multi_index(by_speed, [box.dims[axis] for axis in box.axes], order="F"))


class _Box(NamedTuple):
    """Nodes that are numbered along one axis after the other."""

    dims: tuple[int, ...]
    axes: tuple[int, ...]  # first the one along which nodes are numbered first

    @property
    def nodes(self) -> int:
        return prod(self.dims)

    @property
    def coords(self) -> Ints:
        """Coordinates of each node, shape (nodes, dimensions)."""
        by_speed = [self.dims[axis] for axis in self.axes]
        along = np.unravel_index(np.arange(self.nodes), by_speed, order="F")
        return np.stack([along[self.axes.index(axis)] for axis in range(len(self.dims))], axis=1)


def _job_box(topology: Topology, name: str) -> _Box:
    """Return the box of a job on Fugaku: that of ``tofud:job=4x4x4``, or a mesh or torus."""
    job = JOB.match(topology.spec.rpartition("@")[2])
    if job is None:
        return _box(topology, name, LOGICAL)
    dims = tuple(map(int, job[1].split("x")))
    return _Box(dims, tuple(map("XYZ".index, job[2] or "XYZ"[: len(dims)])))


def _box(topology: Topology, name: str, most: int = 6) -> _Box:
    """Return the box of a mesh or torus."""
    dims = topology.dims
    if not 1 <= len(dims) <= most:
        has = f"{len(dims)} dimensions" if dims else "no coordinates"
        raise MappingError(
            f"{name}: {topology.spec} has {has}: expected a mesh or torus of 1 to {most} dimensions"
        )
    return _Box(tuple(dims), tuple(range(len(dims))))


def maplib_text(node_of: ArrayLike, topology: Topology) -> str:
    """Return the file's text, "hopmap" in place of a mapper's name."""
    _expect_three("--to maplib", topology)
    places = np.asarray(node_of)
    lines = ["hopmap", HEADER]
    for node in sorted(np.unique(places).tolist(), key=lambda node: topology.coords[node].tolist()):
        ranks = np.flatnonzero(places == node)
        lines.append(" ".join(map(str, (*topology.coords[node], len(ranks), *ranks))))
    return "\n".join(lines) + "\n"


def read_maplib(lines: Sequence[str], topology: Topology, name: str) -> list[Place]:
    """Return number, rank and node of what stands in the lines below the header."""
    _expect_three(name, topology)
    dims = topology.dims
    places: list[Place] = []
    for number, line in enumerate(lines, 3):
        cells = line.split()
        if not cells:
            continue
        whole = len(cells) > 3 and all(map(WHOLE.fullmatch, cells))
        if not whole or len(cells) != 4 + int(cells[3]):
            raise MappingError(
                f"{name}: line {number} is {line[:40]!r}: expected x y z count and count ranks"
            )
        x, y, z, _, *ranks = map(int, cells)
        if not (x < dims[0] and y < dims[1] and z < dims[2]):
            raise MappingError(
                f"{name}: line {number}: node ({x}, {y}, {z}) is not in {topology.spec}"
            )
        places += [(number, rank, (z * dims[1] + y) * dims[0] + x) for rank in ranks]
    return places


def _expect_three(name: str, topology: Topology) -> None:
    if len(topology.dims) != 3:
        raise MappingError(f"{name}: MapLib mappings are three-dimensional, {topology.spec} is not")


FUGAKU = Launcher(
    "fugaku",
    "Fugaku and FX1000 vcoordfile",
    "rank -> node: line r is (x,y,z) of rank r",
    "mpiexec -n {ranks} --vcoordfile {file} ./a.out",
    "RIKEN, Fugaku User's Guide, Rank assignment",
    write_vcoords,
    read_vcoords,
    r"\(\s*\d",
    commented=False,
    named=False,
    threaded="OMP_NUM_THREADS={threads} mpiexec -n {ranks} --vcoordfile {file} ./a.out",
)
BLUEGENE = Launcher(
    "bluegene",
    "Blue Gene map file",
    "rank -> node: line r is x y z t of rank r",
    "runjob --np {ranks} --ranks-per-node {each} --mapping {file} : ./a.out",
    "as LLNL/rubik writes it",
    write_map,
    read_map,
    r"\d+(\s+\d+)+$",
    commented=False,
    named=False,
    threaded="runjob --np {ranks} --ranks-per-node {each} --envs OMP_NUM_THREADS={threads} "
    "--mapping {file} : ./a.out",
)
