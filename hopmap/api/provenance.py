"""Parameters that a replay used and that are assumed: neither measured nor published."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hopmap.simulator.noise import USUAL
from hopmap.simulator.parameters.keys import ASSUMED
from hopmap.topologies import PRESETS, Topology, provenance
from hopmap.topologies.topology import DEFAULT

if TYPE_CHECKING:
    from hopmap.simulator import Result


def with_assumed(result: Result, settings: Collection[str], *, generated: bool) -> Result:
    """Return a result that names the parameters that the run used and that are assumed, by key.

    `settings` are keys that the user has set. Where a run is `generated`, its rate of computation
    is assumed, too: "compute.scale".
    """
    network = result.network
    assert network is not None
    computes = generated and bool(result.compute.any()) and "compute.scale" not in settings
    # levels of an ensemble that are the usual ones, apart from what has a source
    levels = {key.replace("_", ".") for key in USUAL}
    usual = result.ensemble is not None and levels.isdisjoint(settings)
    assumed = [
        *(["compute.scale"] if computes else []),
        *_links(result, network),
        *(key for key in _ends(result, network) if key not in settings),
        *(("noise.overhead", "noise.start") if usual else ()),
    ]
    return replace(result, assumed=assumed)


def _links(result: Result, network: Topology) -> Iterator[str]:
    """Yield the assumed parameters of links that carried anything, even an empty message."""
    carried = (result.link_messages > 0) | (result.link_busy > 0)  # busy with requests and grants
    used = np.unique(network.link_kind[carried])
    for kind in (network.kinds[place] for place in used.tolist()):
        prefix = "link" if len(network.kinds) == 1 else f"link.{kind.name}"
        for quantity, source in zip(("bandwidth", "latency"), kind.sources, strict=True):
            if provenance(source) == "assumed":
                yield f"{prefix}.{quantity}"


def _ends(result: Result, network: Topology) -> Iterator[str]:
    """Yield the assumed parameters of the model, from the machine's preset or by default."""
    sources = _preset_sources(network)
    used = {"control_bytes": result.controls > 0, "memory": bool(result.memory.messages.any())}
    for key in dict.fromkeys((*ASSUMED, *network.parameters)):
        source = sources.get(key, "assumed" if key in ASSUMED else "")
        if provenance(source) == "assumed" and used.get(key.partition(".")[0], True):
            yield key


def model_provenance(key: str, network: Topology, settings: Collection[str]) -> str:
    """Return where a parameter of the model is from: "measured", "sourced" or "assumed".

    What the user sets is sourced. Defaults are assumed: their sources are of other machines.
    """
    return "sourced" if key in settings else provenance(_preset_sources(network).get(key, DEFAULT))


def _preset_sources(network: Topology) -> dict[str, str]:
    """Return the sources of a preset's parameters of the model, by key."""
    machine = PRESETS.get(network.spec.removeprefix("preset:").partition("*")[0])
    return {} if machine is None else {k: f.source for k, f in machine.parameters.items()}


def format_keys(keys: Sequence[str]) -> str:
    """Write keys in one line: "link.*, memory.latency" where both of a link are among them."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        prefix, _, name = key.rpartition(".")
        groups.setdefault(prefix or name, []).append(key)
    words = [f"{prefix}.*" if len(group) > 1 else group[0] for prefix, group in groups.items()]
    return ", ".join(words)
