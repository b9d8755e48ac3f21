"""Whether a node's number means the same node on two networks, as far as their specs tell."""

from __future__ import annotations

import re

from hopmap.topologies import PRESETS, Topology, TopologyError, topology_from_spec
from hopmap.topologies.readers.files import file_and_name
from hopmap.topologies.spec import FILE

BOXES = ("mesh", "torus", "haec")
OVER = ("failed:", "job:", "nodes:", "names:")
"""What stands before a network and an @, and numbers its nodes as that does."""


def same_nodes(named: str, topology: Topology) -> bool:
    """Return whether a spec differs from a topology's in slots and options at most.

    Parameters
    ----------
    named : str
        The spec that a mapping's file names, as somebody may have written it.
    """
    named, used = _machine(named), _machine(topology.spec)
    files = [spec.startswith(FILE) for spec in (named, used)]
    if any(files):
        return all(files) and _same_file(named.removeprefix(FILE), used.removeprefix(FILE))
    if _shape(named) == _shape(used):
        return True
    try:
        return _shape(_machine(topology_from_spec(named).spec)) == _shape(used)  # torus:04x4
    except TopologyError:
        return False


def _machine(spec: str) -> str:
    """Return the spec of the whole network, without what is down and whose nodes are a job's."""
    while spec.startswith(OVER):
        spec = spec.partition("@")[2]
    return spec


def _shape(spec: str) -> str:
    """Return a spec without slots and options; of a preset, of the network that it is.

    Meshes, tori and HAEC Boxes of the same sizes number their nodes alike.
    """
    family, _, name = re.split("[*,]", spec, maxsplit=1)[0].partition(":")
    if family == "preset" and name in PRESETS:
        return _shape(PRESETS[name].spec)
    return f"{'box' if family in BOXES else family}:{name}"


def _same_file(named: str, used: str) -> bool:
    """Compare two files; only their names where one was named in another folder."""
    (one, part), (other, wanted) = file_and_name(named), file_and_name(used)
    if part != wanted:
        return False
    return one.samefile(other) if one.exists() and other.exists() else one.name == other.name
