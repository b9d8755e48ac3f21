"""What each mapper takes and makes: a table that comes from the registry, not from memory.

Objectives are those that its parameter accepts. What it needs is what its check (`needs`)
says that it raises for. The cost is what its docstring, or its module's, says first.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

from .mapper import MapperInfo
from .objectives import LOAD, OBJECTIVES

ROLES = {"ignored": "constructs", "needed": "refines", "optional": "both"}


class Capabilities(NamedTuple):
    """What a mapper is good for.

    - `role`: "constructs" a mapping, "refines" one, or "both".
    - `objectives`: names that it works for, and "function" for any function of the mapping; empty
      where it has no choice.
    - `weights`: what may weigh a pair, as the type of its parameter; empty where it has none.
    - `needs`: what it has to hold of traffic and network; empty for nothing.
    - `budget`: whether it takes a time budget.
    - `cost`: as its documentation says; empty where that says nothing.
    """

    role: str
    objectives: tuple[str, ...]
    weights: str
    needs: str
    budget: bool
    cost: str


def capabilities(info: MapperInfo) -> Capabilities:
    """Find out what a mapper takes and makes."""
    objectives = [name for name in (*OBJECTIVES, LOAD) if info.takes("objective", name)]
    if objectives and info.takes("objective", len):
        objectives.append("function")
    weights = next((p.type for p in info.parameters if p.name in ("weight", "amount")), "")
    return Capabilities(
        role=ROLES[info.initial],
        objectives=tuple(objectives),
        weights=weights,
        needs=_first(r"unless ([^.]*)", info.needs.__doc__ if info.needs else ""),
        budget=info.has("seconds"),
        cost=_cost(info),
    )


def _cost(info: MapperInfo) -> str:
    """Return the first cost that the documentation names, up to the end of its clause."""
    pattern = r"(\bO\((?:[^()]|\([^()]*\))*\)[^.,;:|()]*)"
    return _first(pattern, info.function.__doc__) or _first(
        pattern, inspect.getdoc(inspect.getmodule(info.function))
    )


def _first(pattern: str, text: str | None) -> str:
    """Return what the pattern's group finds first, in one line; "" where it finds nothing."""
    found = re.search(pattern, text or "")
    return " ".join(found[1].split()) if found else ""
