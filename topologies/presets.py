"""Machines by name: shape, link speeds and network interfaces, each field with where it is from.

`presets.toml` has them. A node has one slot, or as many as it has hosts; ``preset:NAME*S`` says
otherwise. Parameters are the model's defaults on that topology; scenarios and --set go before. A
switch's delay is charged to its links: all of it on those between switches, half on node links.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .topology import LinkKind, Topology, check_size, check_slots


class Figure(NamedTuple):
    """A number in SI units, or a parameter that is a word, and where it is from."""

    value: Any
    source: str


@dataclass(frozen=True)
class Preset:
    """A machine: the topology that it is, and where that is from.

    Its links are in the order of the topology's kinds, or by dimension; parameters of the model by
    key ("injection.bandwidth").
    """

    name: str
    summary: str
    spec: str
    source: str
    links: tuple[LinkKind, ...]
    of_axis: dict[int, int]  # place of the kind of each dimension of a torus, where they differ
    parameters: dict[str, Figure]

    def fields(self) -> list[tuple[str, str | float, str]]:
        """Name, value in SI units and source of every field."""
        rows: list[tuple[str, str | float, str]] = [("topology", self.spec, self.source)]
        for links in self.links:
            prefix = "link" if len(self.links) == 1 else f"link.{links.name}"
            for quantity, source in zip(("bandwidth", "latency"), links.sources, strict=True):
                rows.append((f"{prefix}.{quantity}", getattr(links, quantity), source))
        return rows + [(key, *figure) for key, figure in self.parameters.items()]


def _preset(name: str, entry: dict[str, Any]) -> Preset:
    links: list[LinkKind] = []
    of_axis: dict[int, int] = {}
    for kind, of in entry.pop("links").items():
        of_axis |= dict.fromkeys(of.get("axes", ()), len(links))
        speeds, sources = zip(of["bandwidth"], of["latency"], strict=True)
        links.append(LinkKind(kind, *speeds, sources))
    spec, source = entry.pop("topology")
    summary, interface = entry.pop("summary"), entry.pop("interface", {})
    parameters: dict[str, Figure] = {}
    if "nic" in entry:
        parameters["nic"] = Figure(*entry.pop("nic"))
    for end in ("injection", "ejection"):
        parameters |= {f"{end}.{key}": Figure(*figure) for key, figure in interface.items()}
    for key, value in entry.items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        parameters |= {f"{key}.{part}".rstrip("."): Figure(*figure) for part, figure in parts}
    return Preset(name, summary, spec, source, tuple(links), of_axis, parameters)


_FILE = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
PRESETS = {name: _preset(name, entry) for name, entry in tomllib.loads(_FILE).items()}


def preset(name: str, build: Callable[[str], Topology], *, slots: int | None = None) -> Topology:
    """Topology of a preset."""
    chosen = PRESETS[name]
    plain = build(chosen.spec)
    if slots is not None:
        check_slots(f"preset {name}", slots)
        check_size(f"preset {name}", nodes=0, links=0, slots=plain.nodes * slots)
    link_kind = plain.link_kind
    if chosen.of_axis:
        moved = plain.coords[plain.link_from] != plain.coords[plain.link_to]
        places = [chosen.of_axis[axis] for axis in range(len(plain.dims))]
        by_axis = np.array(places, dtype=np.uint8)
        link_kind = by_axis[moved.argmax(axis=1)]
    return replace(
        plain,
        spec=f"preset:{name}" + ("" if slots is None else f"*{slots}"),
        slots=plain.slots if slots is None else np.full_like(plain.slots, slots),
        link_kind=link_kind,
        kinds=chosen.links,
        parameters={key: figure.value for key, figure in chosen.parameters.items()},
    )
