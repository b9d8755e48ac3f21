"""The network of a cluster, from what NVIDIA's topograph writes as a graph in JSON.

``{"instances": [{"id": "n1", "network_layers": ["leaf-a", "spine-a"], "labels": {...}}, ...]}``:
the switches above each node, the closest first. It is read as a tree like Slurm's: topograph's
topology.conf and topology.yaml are read as Slurm's files. Labels, such as the domain of NVLink, are
left out.

Source: NVIDIA/topograph, docs/engines/graph.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hopmap.topologies.topology import Topology, TopologyError

from .slurm import Part, switches_of, tree

_LIKE = '{"id": "n1", "network_layers": ["leaf", "spine"]}'


def is_topograph(text: str) -> bool:
    """Whether a text looks like topograph's graph."""
    return re.match(r'\s*\{\s*"instances"\s*:', text) is not None


def from_topograph(text: str, spec: str, name: str = "") -> Topology:
    """Tree of the switches above every instance."""
    if name:
        raise TopologyError(f"{spec}: #{name} requires a file of Slurm's")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise TopologyError(f"{spec}: {line}expected topograph's graph in JSON") from None
    instances = document.get("instances")
    if not isinstance(instances, list) or not instances:
        raise TopologyError(f"{spec}: instances: expected a list like [{_LIKE}]")
    layers_of: dict[str, list[str]] = {}
    for number, entry in enumerate(instances):
        where = f"{spec}: instance {number}"
        node, layers = _instance(entry, where)
        if node in layers_of:
            raise TopologyError(f"{where}: {node} twice: expected once")
        layers_of[node] = layers
    return from_layers(layers_of, spec)


def from_layers(layers_of: Mapping[str, Sequence[str]], spec: str) -> Topology:
    """Tree of the switches above every node, the closest first."""
    below: dict[str, dict[str, list[str]]] = {}
    above: dict[str, str] = {}
    for node, layers in layers_of.items():
        below.setdefault(layers[0], {}).setdefault("nodes", []).append(node)
        for switch, parent in pairwise(layers):
            if above.setdefault(switch, parent) != parent:
                raise TopologyError(
                    f"{spec}: {node}: switch {switch} is below {above[switch]} and {parent}: "
                    "expected one"
                )
            children = below.setdefault(parent, {}).setdefault("switches", [])
            if switch not in children:
                children.append(switch)
    parts = [
        Part(name, ",".join(of.get("nodes", ())), ",".join(of.get("switches", ())), spec)
        for name, of in below.items()
    ]
    return tree(switches_of(parts), spec)


def _instance(entry: Any, where: str) -> tuple[str, list[str]]:
    name = entry.get("id") if isinstance(entry, dict) else None
    layers = entry.get("network_layers") if isinstance(entry, dict) else None
    words = [name, *layers] if isinstance(layers, list) and layers else [None]
    if not all(isinstance(word, str) and re.fullmatch(r"[\w.-]+", word) for word in words):
        raise TopologyError(f"{where} is {str(entry)[:60]}: expected {_LIKE}")
    return str(name), list(map(str, words[1:]))
