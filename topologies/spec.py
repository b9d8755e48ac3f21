"""Topology specs as people write them: "torus:4x4x4", "mesh:8x8*2", "haec:4x4x4,ties=parity"."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from .grid import TIES, haec, mesh, torus
from .topology import Topology, TopologyError

FAMILIES: dict[str, Callable[..., Topology]] = {"mesh": mesh, "torus": torus, "haec": haec}


def topology_from_spec(spec: str) -> Topology:
    """Build the topology that a spec names.

    Parameters
    ----------
    spec : str
        ``family:AxBxC``, then ``*S`` for S slots a node, then ``,ties=direct|parity``.

    Raises
    ------
    TopologyError
        Unknown family, sizes that are no whole numbers above 0, unknown options.
    """
    family, colon, rest = spec.strip().partition(":")
    if family not in FAMILIES:
        near = get_close_matches(family, FAMILIES, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise TopologyError(
            f"topology {spec!r}: unknown family {family!r}{hint}; expected one of "
            f"{', '.join(FAMILIES)}, like torus:4x4x4"
        )
    sizes, *options = rest.split(",")
    match = re.fullmatch(r"(\d+(?:x\d+)*)(?:\*(\d+))?", sizes)
    if not colon or match is None:
        raise TopologyError(
            f"topology {spec!r}: sizes {sizes!r}: expected whole numbers joined by x, "
            f"and *S for S slots a node, like {family}:4x4x4 or {family}:4x4x4*2"
        )
    keywords: dict[str, Any] = {"slots": int(match[2] or 1)}
    for option in options:
        key, _, value = option.partition("=")
        if key != "ties" or value not in TIES or family == "mesh":
            expected = "no options" if family == "mesh" else f"ties={'|'.join(TIES)}"
            raise TopologyError(f"topology {spec!r}: option {option!r}: expected {expected}")
        keywords["ties"] = value
    try:
        return FAMILIES[family]([int(d) for d in match[1].split("x")], **keywords)
    except TopologyError as error:
        raise TopologyError(f"topology {spec!r}: {error}") from None
