"""Files that specs and mappers of a scenario name, wherever they lie.

A mapper is a pipeline, which a mapping in a file may begin: "file:today.csv | bokhari".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from hopmap.launchers.mapping_files import read_mapping
from hopmap.mappers import parse_pipeline
from hopmap.mappers.pipeline import draws
from hopmap.topologies import Mapping, MappingError, Topology
from hopmap.topologies.job import OVER, split
from hopmap.topologies.spec import FILE


def change_paths(spec: str, change: Callable[[str], str]) -> str:
    """Change the paths in a spec: of a network's file, and of the list of a job's hosts."""
    name, colon, words = spec.strip().partition(":")
    if colon and name == "file":
        return f"{FILE}{change(words)}"
    parts = split(words) if colon and name in OVER else None
    if parts is None:
        return spec
    first = change(parts[0]) if name == "job" else parts[0]
    return f"{name}:{first}@{change_paths(parts[1], change)}"


def absolute_in(folder: Path) -> Callable[[str], str]:
    """Return how a path that is relative to a folder becomes absolute."""
    return lambda path: str((folder / path).resolve())


def relative_to(folder: Path) -> Callable[[str], str]:
    """Return how a path is written for a reader who looks from a folder."""
    return lambda path: os.path.relpath(path, folder.resolve())


def split_mapper(mapper: str) -> tuple[Path | None, str]:
    """Split "file:PATH | PIPELINE"; None where no file is named, "" where no pipeline is."""
    if not mapper.startswith(FILE):
        return None, mapper
    path, _, pipeline = mapper.removeprefix(FILE).partition("|")
    return Path(path.strip()), pipeline.strip()


def canonical_mapper(text: str) -> str:
    """Return a mapper in its canonical spelling, without extra spaces."""
    file, pipeline = split_mapper(text.strip())
    stages = parse_pipeline(pipeline) if pipeline or file is None else ()
    words = " | ".join(map(str, stages))
    if file is None:
        return words
    if not file.is_file():
        raise MappingError(f"{text}: no such file: expected a mapping")
    if stages and stages[0].info.initial == "ignored":
        raise MappingError(f"{text}: mapper {stages[0].info.name} ignores an initial mapping")
    return " | ".join(filter(None, (f"{FILE}{file}", words)))


def change_mapper_path(mapper: str, change: Callable[[str], str]) -> str:
    """Change the path of a mapper's file, if it has one."""
    file, pipeline = split_mapper(mapper.strip())
    if file is None:
        return mapper
    return " | ".join(filter(None, (f"{FILE}{change(str(file))}", pipeline)))


def mapping_digest(mapper: str) -> str:
    """Return the hash of a mapper's file; "" without one."""
    file, _ = split_mapper(mapper)
    return "" if file is None else hashlib.blake2b(file.read_bytes(), digest_size=8).hexdigest()


def initial_mapping(
    mapper: str, topology: Topology, usable: Topology, ranks: int
) -> Mapping | None:
    """Read the mapping of a mapper's file; None without one.

    `usable` is the network with the slots that a pipeline may use, which has to begin there.
    """
    file, pipeline = split_mapper(mapper)
    return None if file is None else read_mapping(file, usable if pipeline else topology, ranks)


def is_random(mapper: str) -> bool:
    """Whether another seed may give another mapping."""
    _, pipeline = split_mapper(mapper)
    return bool(pipeline) and draws(parse_pipeline(pipeline))
