"""Names of nodes, a file of hosts or Slurm's list `node[01-32],gpu7`; and what their numbers mean.

Source of the lists: Slurm, scontrol(1), "show hostnames" and "show hostlist".
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hopmap.errors import HopmapWarning
from hopmap.topologies import (
    PRESETS,
    MappingError,
    Topology,
    TopologyError,
    topology_from_spec,
)
from hopmap.topologies.placement import spec_with_slots
from hopmap.topologies.readers import hosts as host_files
from hopmap.topologies.readers.files import file_and_name
from hopmap.topologies.readers.hosts import LIMIT
from hopmap.topologies.readers.hosts import NAME as NAME
from hopmap.topologies.readers.hosts import compress as compress
from hopmap.topologies.readers.hosts import nodes_of as numbers_of
from hopmap.topologies.spec import FILE, READ

GPU = re.compile(r"(.+)-gpu(\d{1,4})")  # of a host


def node_names(topology: Topology) -> list[str]:
    """Return the name of every node in order of their numbers; node0, node1, ... without any.

    Raise `MappingError` for more nodes than a list of Slurm's can name.
    """
    if topology.nodes > LIMIT:
        most = f"{LIMIT:,} nodes that have names"
        raise MappingError(f"{topology.spec}: {topology.nodes:,} nodes: expected at most {most}")
    return list(topology.names) or [f"node{n}" for n in range(topology.nodes)]


def restrict_to_hosts(
    topology: Topology,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
) -> Topology:
    """Return a network with its nodes called as the machine calls them, ranks on the job's alone.

    Unlike `spec_of`, it takes networks that no spec makes, and keeps the spec that others know.
    `names` is what all nodes are called, in order of their numbers: a file, one a line, or Slurm's
    list. `hosts` is a file, one a line, `nodelist` Slurm's list of the nodes that the job has. On a
    network without names, as many as it has nodes, they are what these are called, in order. Where
    the file counts slots, these are the job's, and the spec says so as far as specs can.
    """
    if names is not None:
        is_file = isinstance(names, Path) or Path(names).exists()
        topology = _rename(topology, *_hosts(names, None if is_file else str(names), "names"))
    if hosts is None and nodelist is None:
        return topology
    if hosts is not None and nodelist is not None:
        raise MappingError("hosts and nodelist are mutually exclusive")
    job_hosts, where = _hosts(hosts, nodelist, "node list")
    try:
        numbers_of(topology, job_hosts, where)
    except TopologyError as error:
        if not topology.names and len(job_hosts) == topology.nodes:
            topology = _rename(topology, job_hosts, where)
            if sum(f"node{n}" in job_hosts for n in range(topology.nodes)) > topology.nodes // 2:
                warnings.warn(
                    f"{where}: taken as the names of all nodes in their order, as {error}",
                    HopmapWarning,
                    stacklevel=4,
                )
        else:
            hint = "" if topology.spec.startswith(READ) else "; --names tells what they are called"
            raise MappingError(f"{error}{hint}") from None
    try:
        if nodelist is not None:
            host_files.expect_distinct(job_hosts, where)
        slots = host_files.read_slots(str(hosts)) if hosts is not None else {}
        network = host_files.restrict(topology, job_hosts, slots, where)
        order = np.array(numbers_of(topology, job_hosts, where), dtype=np.int64)
    except TopologyError as error:
        raise MappingError(str(error)) from None
    spec = spec_with_slots(topology.spec, network.slots) if slots else None
    return replace(network, spec=spec or topology.spec, order=order)


def _hosts(file: str | Path | None, nodelist: str | None, label: str) -> tuple[list[str], str]:
    """Return the hosts of a file, or of Slurm's list, and what to call it."""
    if nodelist is not None:
        return expand(nodelist, label), f"{label} {nodelist[:60]}"
    return read_hosts(file or ""), str(file)


def _rename(topology: Topology, names: Sequence[str], location: str) -> Topology:
    check_names(names, topology, location)
    return replace(topology, names=tuple(names))


def host_of(name: str) -> str:
    """Return the host of a node, which may be one of its GPUs."""
    gpu = GPU.fullmatch(name)
    return gpu[1] if gpu else name


def check_names(names: Sequence[str], topology: Topology, location: str) -> None:
    """Raise `MappingError` unless there is one name for every node, all different."""
    if len(names) != topology.nodes:
        raise MappingError(
            f"{location}: {len(names)} host names: expected one for each of the {topology.nodes} "
            f"nodes of {topology.spec}, in the order of their numbers"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise MappingError(
            f"{location}: host {twice} is named twice: expected another for each node"
        )


def read_hosts(path: str | Path) -> list[str]:
    """Return the hosts of a file, each once, in its order: a list, a hostfile or an alloc.csv."""
    try:
        return host_files.read_hosts(str(path))
    except TopologyError as error:
        raise MappingError(str(error)) from None


def expand(nodelist: str, location: str = "node list") -> list[str]:
    """Return the names in Slurm's list; the last brackets vary fastest.

    >>> expand("node[08-10,12],gpu7")
    ['node08', 'node09', 'node10', 'node12', 'gpu7']
    """
    try:
        return host_files.expand(nodelist)
    except TopologyError as error:
        raise MappingError(f"{location}: {error}") from None


def slurm_order(hosts: Sequence[str]) -> list[int]:
    """Return the nodes in the order in which Slurm fills them: by name, numbers by their values."""

    def by_value(node: int) -> list[str | tuple[int, str]]:
        parts = re.split(r"(\d+)", hosts[node])
        parts[1::2] = (number.lstrip("0") for number in parts[1::2])
        return [(len(part), part) if k % 2 else part for k, part in enumerate(parts)]

    return sorted(range(len(hosts)), key=by_value)


BOXES = ("mesh", "torus", "haec")
OVER = ("failed:", "job:", "nodes:", "names:")
"""What stands before a network and an @, and numbers its nodes as that does."""


def same_nodes(named: str, topology: Topology) -> bool:
    """Return whether somebody's spec differs from a topology's in slots and options at most."""
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

    Meshes, tori and HAEC Boxes of the same sizes number their nodes the same way.
    """
    family, _, name = re.split("[*,]", spec, maxsplit=1)[0].partition(":")
    if family == "preset" and name in PRESETS:
        return _shape(PRESETS[name].spec)
    return f"{'box' if family in BOXES else family}:{name}"


def _same_file(named: str, spec: str) -> bool:
    """Compare two files; only their names where one was named in another folder."""
    (one, part), (other, wanted) = file_and_name(named), file_and_name(spec)
    if part != wanted:
        return False
    return one.samefile(other) if one.exists() and other.exists() else one.name == other.name
