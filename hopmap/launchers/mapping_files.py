"""Mapping files: our CSV; also reads MapLib's format and formats of launchers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hopmap.errors import HopmapWarning
from hopmap.mappers import MAPPERS
from hopmap.topologies import (
    Mapping,
    MappingError,
    Topology,
    TopologyError,
    check_mapping,
    topology_from_spec,
)
from hopmap.topologies.spec import READ
from hopmap.traces.safety.atomic_files import write_text

from . import gpus
from .coordinates import HEADER, WHOLE, read_maplib
from .formats import (
    MAPPING,
    NODES,
    LauncherFile,
    Place,
    commented_names,
    comments,
    get_launcher,
    json_document,
    launcher_file,
    names_comment,
    recognise,
)
from .node_names import same_nodes

FileLike: TypeAlias = "str | Path | MappingFile"


@dataclass(frozen=True)
class MappingFile:
    """A mapping file, which is read once; stands wherever its path does."""

    path: str | Path

    def __str__(self) -> str:
        return str(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        name = str(self)
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            hint = f"; `hopmap map -m {name} --out FILE` writes one" if name in MAPPERS else ""
            raise MappingError(f"{name}: cannot be read as a mapping ({reason}){hint}") from None
        return [line.strip() for line in text.lstrip("\ufeff").splitlines()]


def write_mapping(path: str | Path, node_of: ArrayLike, topology: Topology) -> None:
    """Write the CSV ``rank,node`` below a comment that names the topology, whole or not at all."""
    write_text(path, mapping_text(node_of, topology))


def mapping_text(node_of: ArrayLike, topology: Topology) -> str:
    """Return the text of the CSV ``rank,node`` below comments: topology and node names."""
    lines = [MAPPING + topology.spec]
    if topology.names and not topology.spec.startswith(READ):
        lines += names_comment(NODES, topology.names)
    lines.append("rank,node")
    lines += [f"{rank},{node}" for rank, node in enumerate(np.asarray(node_of))]
    return "\n".join(lines) + "\n"


def network_of(path: FileLike) -> Topology:
    """Return the topology that a mapping file names; it may be a file in another folder."""
    named = _read_spec(_lines(path), str(path))
    if named is None:
        raise MappingError(
            f"{path}: does not name its topology: expected --topology, "
            f"or a first line like {MAPPING}torus:4x4x4"
        )
    try:
        return topology_from_spec(named)
    except TopologyError as error:
        raise MappingError(f"{path} names {error}: -t (--topology) replaces it") from None


def read_host_names(path: FileLike) -> list[str] | None:
    """Return the names of nodes that a launcher's file says in its comments, None without them."""
    return commented_names(comments(_lines(path)), str(path))


def read_mapping(
    path: FileLike,
    topology: Topology,
    ranks: int | None = None,
    *,
    form: str | None = None,
    hosts: Sequence[str] | None = None,
) -> Mapping:
    """Read a mapping: our CSV, MapLib's file, or a launcher's (see `launchers.recognise`).

    A file that names another network is taken all the same, with a `note`: its nodes may be others.
    `form` is the launcher of a file that does not show its own, `hosts` the names of the nodes in
    one whose comments do not say them.
    """
    name = str(path)
    lines = _lines(path)
    maplib = len(lines) > 1 and lines[1].startswith(HEADER.split()[0])
    header = next((line for line in lines if line and not line.startswith("#")), "")
    csv_rows = header.replace(" ", "") == "rank,node"
    if form is None and not maplib and not csv_rows:
        form = recognise(lines, Path(path).name)
    if form is not None:
        places = _launcher_places(form, launcher_file(name, lines, topology, hosts))
    elif maplib:
        places = read_maplib(lines[2:], topology, name)
    else:
        places = _csv_places(lines, name)
    if not places:
        raise MappingError(
            f"{name}: no ranks in it: expected the header rank,node and one row each"
        )
    expected = len(places) if ranks is None else ranks
    if len(places) != expected:
        raise MappingError(f"{name}: places {len(places)} ranks: expected {expected}")
    node_of = np.full(expected, -1, dtype=np.int64)
    for number, rank, node in places:
        where = f"{name}: line {number}" if number else name
        if rank >= expected:
            raise MappingError(f"{where}: rank {rank}: expected ranks 0..{expected - 1}")
        if node_of[rank] >= 0:
            raise MappingError(f"{where}: rank {rank} again: expected ranks 0..{expected - 1} once")
        if not 0 <= node < topology.nodes:
            raise MappingError(
                f"{where}: rank {rank} on node {node}: expected a node of {topology.spec}, "
                f"0..{topology.nodes - 1}"
            )
        node_of[rank] = node
    checked = check_mapping(node_of, topology, ranks, name=name)
    named = _read_spec(lines, name)
    if named is not None and not same_nodes(named, topology):
        warnings.warn(
            f"{name}: mapping for {named}, used on {topology.spec}: "
            "node numbers may mean other nodes",
            HopmapWarning,
            stacklevel=2,
        )
    return checked


def _launcher_places(form: str, file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every rank; on GPUs where its comments say these."""
    places = get_launcher(form).read(file)
    if gpus.KEY not in file.said:
        return places
    wanted = gpus.names_of_ranks(
        {rank: node for _, rank, node in places}, file.nodes, file.said[gpus.KEY], file.name
    )
    return [(number, rank, file.node(gpus.KEY, wanted[rank])) for number, rank, _ in places]


def _read_spec(lines: list[str], name: str) -> str | None:
    """Return the spec that the first line names, or a JSON document's "topology"."""
    first = lines[0] if lines else ""
    if first.startswith(MAPPING):
        return first.removeprefix(MAPPING)
    if first.startswith("{"):
        named = json_document(lines, name).get("topology")
        return named if isinstance(named, str) else None
    return None


def _csv_places(lines: list[str], name: str) -> list[Place]:
    places: list[Place] = []
    header = False
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        row = [cell.strip(' "') for cell in line.split(",")]
        if not header:
            if row != ["rank", "node"]:
                raise MappingError(
                    f"{name}: line {number} is {line[:40]!r}: expected rank,node (if a launcher's: "
                    f"hopmap export {name} --from LAUNCHER --to csv)"
                )
            header = True
            continue
        if len(row) != 2 or not all(map(WHOLE.fullmatch, row)):
            raise MappingError(
                f"{name}: line {number} is {line[:40]!r}: expected two whole numbers, rank,node"
            )
        places.append((number, int(row[0]), int(row[1])))
    return places


def _lines(path: FileLike) -> list[str]:
    return (path if isinstance(path, MappingFile) else MappingFile(path)).lines
