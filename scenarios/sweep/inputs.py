"""Inputs of runs: what a run's id was made from is what the run reads, or the run fails.

Between plan and run a job array may wait for days, and a file may be another one by then. Its
result must not be kept under the id of what was planned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from hopmap.api.workload import Sent, Workload
from hopmap.simulator import Program
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.job import OVER, split
from hopmap.topologies.readers.files import file_and_name
from hopmap.topologies.readers.hosts import text_of
from hopmap.topologies.spec import FILE
from hopmap.traces import Traffic
from hopmap.traces.sources import Source

from . import ScenarioError

T = TypeVar("T")


def network_digest(topology: str) -> str:
    """Return the hash of the files of a topology, and what is meant in them; "" without files."""
    name, _, words = topology.partition(":")
    parts = split(words) if name in OVER else None
    if parts is not None:
        first, machine = parts
        inner = network_digest(machine)
        if name != "job":
            return inner and f"{first}@{inner}"
        hosts = hashlib.blake2b(text_of(first).encode(), digest_size=8).hexdigest()
        return f"{hosts}@{inner or machine}"
    if not topology.startswith(FILE):
        return ""
    path, name = file_and_name(topology.removeprefix(FILE))
    digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    return f"{digest}:{name}" if name else digest


def load_planned_traffic(
    source: Source, digest: str, algorithms: Mapping[str, str] | None = None
) -> Traffic:
    """Read the traffic of the source that had this digest.

    `algorithms` of collectives, by operation, add what they send; None leaves collectives out.
    """

    def read() -> Traffic:
        if algorithms is None:
            return _messages(source, digest).traffic
        return Workload(source).with_collectives(algorithms).traffic

    return require_unchanged(source.name, read, source.digest, digest)


@lru_cache(maxsize=32)
def _messages(source: Source, _digest: str) -> Sent:
    """Read once what decides whether collectives count, and is the traffic if they do not."""
    return Workload(source).messages


@lru_cache(maxsize=4096)
def counts_collectives(source: Source, digest: str, collectives: str) -> bool:
    """Return whether the traffic of the source that has this digest has that of collectives.

    `collectives` is "auto", which reads what is sent, "ignore" or "expand".
    """
    if collectives == "auto" and source.has_collectives:
        return bool(_messages(source, digest).collectives_dominate)
    return collectives == "expand" and source.has_collectives


@lru_cache(maxsize=1)
def load_planned_program(
    source: Source,
    digest: str,
    steps: int | None,
    rounds: int | None,
    algorithms: tuple[tuple[str, str], ...],
) -> Program:
    """Return what is replayed of the source that had this digest; see `load_planned_traffic`."""

    def read() -> Program:
        return Workload(source, steps, rounds).program(dict(algorithms))

    return require_unchanged(source.name, read, source.digest, digest)


@lru_cache(maxsize=2)
def load_planned_network(topology: str, digest: str) -> Topology:
    """Build the topology whose file, if any, had this digest; see `load_planned_traffic`."""
    return require_unchanged(
        topology, lambda: topology_from_spec(topology), lambda: network_digest(topology), digest
    )


def require_unchanged(name: str, read: Callable[[], T], now: Callable[[], str], digest: str) -> T:
    """Return what is read of an input that had this digest."""
    value = read()
    if now() != digest:
        raise ScenarioError(f"{name}: changed since the runs were planned: plan them again")
    return value
