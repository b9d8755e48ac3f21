"""Options of commands on measured times, and how fitted parameters are written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hopmap.units import show_bytes, show_seconds

Allocations = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Hosts of the ranks (rank,host), of all files or of each; else all nodes, in order.",
    ),
]
Ranks = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Leave out calls of more ranks; 0: none."),
]


def show_parameter(key: str, value: float) -> str:
    """Write a fitted parameter for people."""
    if key.endswith("bandwidth"):
        return f"{show_bytes(value)}/s"
    if key.endswith("per_byte"):
        return f"{show_seconds(value * 1e6)}/MB"
    return f"{int(value)} B" if key == "eager_limit" else show_seconds(value)
