"""Metadata of traffic as a file has them: JSON whose known keys are what mappers take them for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hopmap.traces.trace import TraceError

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
    """Read the metadata of a traffic file.

    Parameters
    ----------
    text : str
        A JSON object; see `Traffic.metadata`.
    name : str
        The file, for messages.

    Raises
    ------
    TraceError
        No JSON object, or a key that mappers know with a value that they could not use.
    """
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise TraceError(f"{name}: metadata {text[:60]!r}: expected a JSON object")
    for key, (expected, good) in _KNOWN.items():
        if key in metadata and not good(metadata[key]):
            given = repr(metadata[key])[:60]
            raise TraceError(f"{name}: metadata: {key}: {given}: expected {expected}")
    return metadata
