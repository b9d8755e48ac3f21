"""Mappings that end above the default order say so, in one sentence wherever mappers run.

Compared is what the last mapper works for: hop-messages or the load of the busiest link, else
hop-bytes, by which cardinality is worth something, too. Functions are not compared: a replay of the
default order takes as long as the search.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from numpy.typing import ArrayLike

from hopmap.errors import AboveDefaultOrderWarning
from hopmap.mappers import LOAD, Function, Stage, default_objective, objective_value
from hopmap.mappers import map_ranks as place
from hopmap.topologies import Topology
from hopmap.traces import Traffic
from hopmap.units import percent

DEFAULT_ORDER = "identity"
"""The mapper that places ranks in launchers' default order."""

BASELINES = (DEFAULT_ORDER, "as_allocated", "sweep", "random")
"""Mappers that others are measured by: default orders, and chance. None is to improve a mapping."""

NEGLIGIBLE = 1e-3
"""Share that a mapping may be above without a word."""

NAMES = {
    "hop_bytes": "hop-bytes",
    "hop_messages": "hop-messages",
    LOAD: "bytes on the busiest link",
}


def compared_objective(
    stages: Sequence[Stage], topology: Topology, objective: str | Function | None = None
) -> str | None:
    """Return what a pipeline is compared by; None for a function, and for baselines.

    `objective` is what its mappers were to work for that have none of their own.
    """
    last = stages[-1]
    if last.info.name in BASELINES:
        return None
    default = next((p.default for p in last.info.parameters if p.name == "objective"), "hop_bytes")
    if objective is not None and last.info.takes("objective", objective):
        default = objective
    named = last.parameters.get("objective", default)
    if named is None:
        named = default_objective(topology)
    if callable(named):
        return None
    return named if named in NAMES else "hop_bytes"


def describe_excess(
    name: str, traffic: Traffic, topology: Topology, node_of: ArrayLike, compared: Sequence[str]
) -> str:
    """Say of which objectives a mapping has more than the default order; "" for none.

    O(pairs * hops) for the busiest link, O(pairs) for the others.
    """
    order, found = place(traffic, topology, DEFAULT_ORDER), list[str]()
    for objective in compared:
        value, default = (
            objective_value(traffic, topology, each, objective) for each in (node_of, order)
        )
        if value > (1 + NEGLIGIBLE) * default:
            share = f"{percent(value / default - 1)} above" if default else "above"
            whose = "its" if found else "the default order's"
            found.append(f"{value:,} {NAMES[objective]} are {share} {whose} {default:,}")
    return f"mapper {name}: {'; '.join(found)}".replace("\u00a0", " ") if found else ""


def warn_above_default_order(
    stages: Sequence[Stage],
    traffic: Traffic,
    topology: Topology,
    node_of: ArrayLike,
    objective: str | Function | None = None,
    also: Sequence[str] = (),
) -> str:
    """Warn of a mapping that is above the default order, and return the text; "" if it is not.

    `also` are more objectives that it is compared by.
    """
    compared = compared_objective(stages, topology, objective)
    if compared is None:
        return ""
    name, objectives = " | ".join(map(str, stages)), list(dict.fromkeys((compared, *also)))
    text = describe_excess(name, traffic, topology, node_of, objectives)
    if text:
        warnings.warn(text, AboveDefaultOrderWarning, stacklevel=3)
    return text
