"""Where a job runs: network, nodes of the job, parameters, and co-running jobs.

The one place where specs, names of nodes and settings become a network and its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hopmap.launchers.mapping_files import MappingFile, network_of, read_mapping
from hopmap.launchers.node_names import restrict_to_hosts
from hopmap.simulator import Parameters
from hopmap.simulator.parameters.keys import names_algorithm
from hopmap.simulator.parameters.settings import (
    SettingError,
    Value,
    algorithms_from,
    check_settings,
    configure,
)
from hopmap.topologies import (
    Mapping,
    MappingError,
    Topology,
    TopologyError,
    check_mapping,
    topology_from_spec,
    with_failures,
    with_room,
)

from .input_kinds import MAPPING, NETWORK, MappingLike, check_kind, kind_of
from .job import Job, JobsError

MachineLike: TypeAlias = "str | Topology | Machine"
Settings: TypeAlias = MappingOf[str, Value]


@dataclass(frozen=True, eq=False)
class Machine:
    """Where a workload runs.

    Attributes
    ----------
    topology : str or Topology, optional
        Like "torus:4x4x4", "dragonfly:2x4x2", "preset:NAME", "file:PATH". That of the mapping when
        left out, where there is one.
    settings : mapping of str to str or float
        Parameters, like ``{"link.bandwidth": "25 Gbit/s"}``; see ``hopmap list parameters``.
    failures : str, optional
        What is down, see `with_failures`.
    names : path or str, optional
        What all nodes are called, in order of their numbers: a file, one a line, or Slurm's list.
    hosts, nodelist : optional
        The nodes that the job has: a file, one host a line; or Slurm's list of them. On a network
        without names, as many as it has nodes, they are what these are called.
    balanced : bool
        Whether every node takes as many ranks as any other that has room, one more at most. Mappers
        fill nodes otherwise, or as few as their objective wants.
    imbalance : float, optional
        For a graph of more vertices than slots: every node takes (1 + imbalance) times its share of
        the vertices at most, 0.03 is 3 %.
    co_running : sequence of Job
        Jobs that are on the machine already. Their nodes are not free, and what they send is on the
        links.

    Raises
    ------
    TopologyError, SettingError, MappingError
        The spec makes no network; an unknown key or quantity; names that do not fit.

    Examples
    --------
    >>> Machine("torus:4x4x4", {"link.latency": "1 us"}).network.nodes
    64
    """

    topology: str | Topology | None = None
    settings: Settings = field(default_factory=dict)
    failures: str | None = None
    names: str | Path | None = None
    hosts: str | Path | None = None
    nodelist: str | None = None
    balanced: bool = False
    imbalance: float | None = None
    co_running: Sequence[Job] = ()

    def __post_init__(self) -> None:
        if self.topology is not None:
            check_kind(NETWORK, self.topology)
        if self.imbalance is not None and (self.balanced or self.co_running):
            other = "balanced" if self.balanced else "co_running"
            raise MappingError(f"imbalance and {other} are mutually exclusive")

    @classmethod
    def of(cls, machine: MachineLike) -> Machine:
        """Return a machine as it is, and anything else with the defaults."""
        if isinstance(machine, Machine):
            return machine
        check_kind(NETWORK, machine)
        return cls(machine)

    @cached_property
    def _configured(self) -> tuple[Topology, Parameters]:
        if self.topology is None:
            raise TopologyError("topology: expected one, like torus:4x4x4")
        plain = self.topology
        network = plain if isinstance(plain, Topology) else topology_from_spec(plain)
        if self.failures is not None:
            network = with_failures(network, self.failures)
        check_settings(self.settings, [network])
        network, parameters = configure(network, tuple(self.settings.items()))
        return restrict_to_hosts(network, self.names, self.hosts, self.nodelist), parameters

    @property
    def network(self) -> Topology:
        """The network, its links as set; ranks may sit on the job's nodes only."""
        return self._configured[0]

    @property
    def parameters(self) -> Parameters:
        """The parameters of the model, as set."""
        return self._configured[1]

    @property
    def is_named(self) -> bool:
        """Whether its nodes have names, at least in the job's host list."""
        return any((self.names, self.hosts, self.nodelist))

    @property
    def has_hosts(self) -> bool:
        """Whether the hosts of a job are listed."""
        return any((self.hosts, self.nodelist))

    @property
    def algorithms(self) -> dict[str, str]:
        """Algorithms of collectives that are set, by operation."""
        chosen = [item for item in self.settings.items() if names_algorithm(item[0])]
        return algorithms_from(tuple(chosen))

    def expect_alone(self, question: str) -> None:
        """Raise `JobsError` if there are co-running jobs, which this question ignores."""
        if self.co_running:
            raise JobsError(
                f"co_running: {question} does not count them: expected map_ranks, or simulate_jobs"
            )

    def free(self, ranks: int) -> Topology:
        """Return the network with the slots that so many ranks need."""
        network = self.network
        if self.imbalance is not None:
            return with_room(network, ranks, self.imbalance)
        return network

    def usable(self, ranks: int) -> Topology:
        """Return the same with the slots that a mapper may fill: an even share if balanced."""
        network = self.free(ranks)
        return network.evenly(ranks) if self.balanced else network

    def mapping(self, mapping: MappingLike, ranks: int | None = None) -> Mapping:
        """Return the node of every rank, checked; see `nodes_of_ranks`."""
        return nodes_of_ranks(mapping, self.network, ranks)


def nodes_of_ranks(mapping: MappingLike, network: Topology, ranks: int | None = None) -> Mapping:
    """Return the node of every rank, checked; see `read_mapping` and `check_mapping`."""
    check_kind(MAPPING, mapping)
    if isinstance(mapping, str | Path | MappingFile):
        return read_mapping(mapping, network, ranks)
    return check_mapping(mapping, network, ranks)


class Placed(NamedTuple):
    """A machine and a mapping on it, read and checked except for the number of ranks."""

    machine: Machine
    node_of: Mapping
    name: str

    def of_ranks(self, ranks: int) -> Mapping:
        """Return the node of every rank; raise `MappingError` for another number of them."""
        return check_mapping(self.node_of, self.machine.network, ranks, name=self.name)


def load_mapping(machine: MachineLike | MappingLike | None, mapping: MappingLike | None) -> Placed:
    """Read a mapping; the machine is that of the mapping where there is no other.

    A mapping alone may stand in the first place.
    """
    if mapping is None and kind_of(machine) == MAPPING:
        machine, mapping = None, machine
    if mapping is None:
        raise MappingError("mapping: expected one, after the network")
    machine = Machine() if machine is None else Machine.of(machine)  # type: ignore[arg-type]
    check_kind(MAPPING, mapping)
    name = "mapping"
    if isinstance(mapping, str | Path):
        name, mapping = str(mapping), MappingFile(mapping)
    machine = on_network_of(mapping, machine)
    machine.expect_alone("a mapping by itself")
    return Placed(machine, machine.mapping(mapping), name)


def on_network_of(mapping: MappingLike, machine: Machine) -> Machine:
    """Return a machine with a network: its own, or else the one that a mapping names."""
    if machine.topology is not None:
        return machine
    check_kind(MAPPING, mapping)
    own = getattr(mapping, "topology", None)
    if own is None and isinstance(mapping, str | Path | MappingFile):
        own = network_of(mapping)
    if own is None:
        raise MappingError("topology: expected one, an array does not name its own")
    return replace(machine, topology=own)


def topology(spec: str | Topology, settings: Settings | None = None) -> Topology:
    """Build a network, its links as set.

    Parameters
    ----------
    spec : str or Topology
        See `Machine`.
    settings : mapping of str to str or float, optional
        Like ``{"link.bandwidth": "25 Gbit/s"}``: keys that begin with "link.".

    Raises
    ------
    TopologyError, SettingError
        The spec makes no network; an unknown quantity, or a key that only replays have.

    Examples
    --------
    >>> topology("torus:4x4x4").nodes
    64
    """
    for key in settings or {}:
        if not key.startswith("link."):
            raise SettingError(f"{key}: a parameter of replays: expected a key of links, link.*")
    return Machine(spec, settings or {}).network
