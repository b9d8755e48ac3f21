"""What stands where something else is expected: a mapping for a trace, a trace for a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TRACE, NETWORK, MAPPING = "trace or traffic", "network", "mapping"
KINDS = dict.fromkeys(("Source", "Trace", "Folded", "Program", "Traffic"), TRACE)
KINDS["Topology"] = NETWORK  # by the names of classes, most of which nobody has imported
LIKE = {
    TRACE: "a path or lu.C.64",
    NETWORK: "torus:4x4x4",
    MAPPING: "a file or a node for each rank",
}


def expect(sort: str, given: object) -> None:
    """Raise the error of a sort for what is plainly of another, or of none.

    Parameters
    ----------
    sort : {TRACE, NETWORK, MAPPING}
    """
    found = sort_of(given)
    if found == sort or (found is None and isinstance(given, str | Path)):
        return
    from hopmap.topologies import MappingError, TopologyError
    from hopmap.traces import TraceError

    errors = {TRACE: TraceError, NETWORK: TopologyError, MAPPING: MappingError}
    shown = given if isinstance(given, str | Path) else getattr(given, "spec", None)
    what = "" if found is None else f"a {found}, "
    raise errors[sort](
        f"{shown or type(given).__name__}: {what}where a {sort} is expected, like {LIKE[sort]}"
    )


def sort_of(given: object) -> str | None:
    """Return which of the three something is, None where it may be any, or is none."""
    if isinstance(given, str | Path):
        return _sort_of_file(Path(given)) if _is_there(given) else _sort_of_name(str(given))
    for each in type(given).__mro__:
        if each.__name__ in KINDS and each.__module__.startswith("hopmap."):
            return KINDS[each.__name__]
    placed = isinstance(given, Sequence) or hasattr(given, "__array__")
    return MAPPING if placed else None


def _is_there(name: str | Path) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a name
        return False


def _sort_of_name(name: str) -> str | None:
    from hopmap.topologies import FAMILIES
    from hopmap.traces.sources import is_source_name

    if is_source_name(name):
        return TRACE
    family, colon, _ = name.partition(":")
    return NETWORK if colon and family in FAMILIES else None


def _sort_of_file(path: Path) -> str | None:
    from hopmap.scenarios.launchers.launcher import MAPPING as COMMENT

    if path.is_dir() or path.suffix == ".otf2":
        return TRACE
    try:
        with path.open(encoding="utf-8") as file:
            lines = [file.readline(4096).strip() for _ in range(8)]
    except (OSError, UnicodeDecodeError):
        lines = []
    table = next((line.replace(" ", "") for line in lines if line and line[0] != "#"), "")
    if table == "rank,node" or any(line.startswith(COMMENT) for line in lines):
        return MAPPING
    from hopmap.traces import FORMATS

    known = path.name.lower().endswith(tuple({*FORMATS} - {".csv"}))
    return TRACE if known or table.startswith("src,dst") else None
