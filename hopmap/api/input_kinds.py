"""Tell traces, networks and mappings apart, to name the argument that is in the wrong place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from hopmap.launchers.mapping_files import MappingFile

MappingLike: TypeAlias = "str | Path | MappingFile | ArrayLike"

TRACE, NETWORK, MAPPING = "trace or traffic", "network", "mapping"
# By class name, so that no module has to be imported.
KINDS = dict.fromkeys(("Workload", "Source", "Trace", "Folded", "Program", "Traffic"), TRACE)
KINDS |= dict.fromkeys(("Machine", "Topology"), NETWORK)
LIKE = {
    TRACE: "a path or lu.C.64",
    NETWORK: "torus:4x4x4",
    MAPPING: "a file or a node for each rank",
}


def check_kind(kind: str, value: object) -> None:
    """Raise the error of TRACE, NETWORK or MAPPING for what is plainly of another kind, or none."""
    found = kind_of(value)
    if found == kind or (found is None and isinstance(value, str | Path)):
        return
    from hopmap.topologies import MappingError, TopologyError
    from hopmap.traces import TraceError

    errors = {TRACE: TraceError, NETWORK: TopologyError, MAPPING: MappingError}
    shown = value if isinstance(value, str | Path) else getattr(value, "spec", None)
    what = "" if found is None else f"a {found}, "
    raise errors[kind](
        f"{shown or type(value).__name__}: {what}where a {kind} is expected, like {LIKE[kind]}"
    )


def kind_of(value: object) -> str | None:
    """Return which of the three a value is, None where it may be any, or is none."""
    if type(value).__name__ == "MappingFile":
        return MAPPING
    if isinstance(value, str | Path):
        return _kind_of_file(Path(value)) if _is_there(value) else _kind_of_name(str(value))
    for each in type(value).__mro__:
        if each.__name__ in KINDS and each.__module__.startswith("hopmap."):
            return KINDS[each.__name__]
    placed = isinstance(value, Sequence) or hasattr(value, "__array__")
    return MAPPING if placed else None


def _is_there(name: str | Path) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a name
        return False


def _kind_of_name(name: str) -> str | None:
    from hopmap.topologies import FAMILIES
    from hopmap.traces.sources import is_source_name

    if is_source_name(name):
        return TRACE
    family, colon, _ = name.partition(":")
    return NETWORK if colon and family in FAMILIES else None


def _kind_of_file(path: Path) -> str | None:
    if path.is_dir() or path.suffix == ".otf2":
        return TRACE
    try:
        with path.open(encoding="utf-8") as file:
            lines = [file.readline(4096).strip() for _ in range(8)]
    except (OSError, UnicodeDecodeError):
        lines = []
    table = next((line.replace(" ", "") for line in lines if line and line[0] != "#"), "")
    if lines:
        from hopmap.launchers.formats import MAPPING as COMMENT

        if table == "rank,node" or any(line.startswith(COMMENT) for line in lines):
            return MAPPING
    from hopmap.traces import FORMATS

    known = path.name.lower().endswith(tuple({*FORMATS} - {".csv"}))
    return TRACE if known or table.startswith("src,dst") else None
