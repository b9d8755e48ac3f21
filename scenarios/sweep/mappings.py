"""Mappers of a scenario: pipelines, which a mapping in a file may begin: "file:today.csv"."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hopmap.mappers import parse_pipeline
from hopmap.mappers.pipeline import draws
from hopmap.scenarios.launchers.mapping_files import read_mapping
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.topologies.spec import FILE


def in_file(mapper: str) -> tuple[Path | None, str]:
    """Split "file:PATH | PIPELINE"; None where no file is named, "" where no pipeline is."""
    if not mapper.startswith(FILE):
        return None, mapper
    path, _, pipeline = mapper.removeprefix(FILE).partition("|")
    return Path(path.strip()), pipeline.strip()


def canonical_mapper(text: str) -> str:
    """Return a mapper as it is always written, whatever its spaces.

    Raises
    ------
    MappingError
        See `parse_pipeline`; a file that is not there, or a pipeline that would ignore it.
    """
    file, pipeline = in_file(text.strip())
    stages = parse_pipeline(pipeline) if pipeline or file is None else ()
    words = " | ".join(map(str, stages))
    if file is None:
        return words
    if not file.is_file():
        raise MappingError(f"{text}: no such file: expected a mapping")
    if stages and stages[0].info.initial == "ignored":
        raise MappingError(f"{text}: {stages[0].info.name} starts from no mapping")
    return " | ".join(filter(None, (f"{FILE}{file}", words)))


def mapping_beside(mapper: str, folder: Path) -> str:
    """Make the file of a mapper, if it has one, relative to a folder."""
    file, pipeline = in_file(mapper.strip())
    if file is None:
        return mapper
    return " | ".join(filter(None, (f"{FILE}{(folder / file).resolve()}", pipeline)))


def called(mapper: str, folder: Path) -> str:
    """Return what tables and reports call a mapper: a file by its place beside the scenario."""
    file, pipeline = in_file(mapper)
    if file is None:
        return mapper
    place = os.path.relpath(file, folder.resolve())
    return " | ".join(filter(None, (f"{FILE}{place}", pipeline)))


def mapping_digest(mapper: str) -> str:
    """Return the hash of a mapper's file; "" without one.

    Raises
    ------
    OSError
        It cannot be read.
    """
    file, _ = in_file(mapper)
    return "" if file is None else hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def placed_in_file(mapper: str, topology: Topology, room: Topology, ranks: int) -> Mapping | None:
    """Read the mapping of a mapper's file; None without one.

    Parameters
    ----------
    room : Topology
        The network with the slots that a pipeline may use, which has to begin there.

    Raises
    ------
    MappingError
        Unreadable, or not of such ranks on such nodes.
    """
    file, pipeline = in_file(mapper)
    return None if file is None else read_mapping(file, room if pipeline else topology, ranks)


def is_drawn(mapper: str) -> bool:
    """Whether another seed may give another mapping."""
    _, pipeline = in_file(mapper)
    return bool(pipeline) and draws(parse_pipeline(pipeline))
