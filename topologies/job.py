"""A job on a machine: the network, with ranks on the hosts that the job has.

``job:HOSTS@SPEC`` takes the hosts of a file (`readers/hosts.py`); ``names:LIST@SPEC`` says what the
nodes of a network are called that has no names of its own, as Slurm's list in order of their
numbers: ``job:alloc.csv@names:nid[005000-007975]@dragonfly:4x31x17x24``. ``nodes:LIST@SPEC``
is a job on the hosts of such a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from .readers.files import file_and_name
from .readers.hosts import expand, expect_distinct, nodes_of, read_hosts, read_slots, restrict
from .topology import Topology, TopologyError

Build = Callable[[str], Topology]
OVER = ("job", "names", "nodes")
"""Words before something, @ and the spec of a machine."""


def job(hosts: str, machine: str, build: Build) -> Topology:
    """Network of a machine with ranks on the hosts of a file alone, in the order of its list."""
    network = _machine(machine, _stamp(machine), build)
    spec = f"job:{hosts}@{machine}"
    return _restrict(network, read_hosts(hosts), read_slots(hosts), spec, hosts)


def restrict_to_list(names: str, machine: str, build: Build) -> Topology:
    """Network of a machine with ranks on the hosts of Slurm's list alone, in its order."""
    network = _machine(machine, _stamp(machine), build)
    spec = f"nodes:{names}@{machine}"
    hosts, location = expand(names), f"nodes {names[:60]}"
    expect_distinct(hosts, location)
    return _restrict(network, hosts, {}, spec, location)


def _restrict(
    network: Topology, hosts: list[str], slots: dict[str, int], spec: str, location: str
) -> Topology:
    order = np.array(nodes_of(network, hosts, location), dtype=np.int64)
    return replace(restrict(network, hosts, slots, location), spec=spec, order=order)


def name_nodes(names: str, machine: str, build: Build) -> Topology:
    """Network whose nodes are called as Slurm's list says, in order of their numbers."""
    network = build(machine)
    called = expand(names)
    if len(called) != network.nodes:
        raise TopologyError(
            f"names {names[:60]}: {len(called)} of them: expected one for each of the "
            f"{network.nodes} nodes of {network.spec}"
        )
    expect_distinct(called, f"names {names[:60]}")
    return replace(network, spec=f"names:{names}@{network.spec}", names=tuple(called))


def split(words: str) -> tuple[str, str] | None:
    """Split A@SPEC at the first sign; None where one part is missing."""
    first, mark, spec = words.partition("@")
    return (first, spec) if mark and first and ":" in spec else None


def _stamp(spec: str) -> tuple[int, ...]:
    """Return what changes when the file of a network does."""
    inner = spec.rpartition("@file:")[2] if "@file:" in spec else spec.removeprefix("file:")
    if inner == spec:
        return ()
    try:
        status = file_and_name(inner)[0].stat()
    except OSError:
        return ()  # reading it reports the error
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=2)
def _machine(spec: str, _stamp: tuple[int, ...], build: Build) -> Topology:
    """Jobs of one machine share its links."""
    return build(spec)
