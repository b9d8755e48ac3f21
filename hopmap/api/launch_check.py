"""Whether a launch has obeyed a mapping: hosts that ranks ran on, compared with it."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hopmap.launchers.mapping_files import read_mapping
from hopmap.launchers.node_names import host_of, node_names, slurm_order
from hopmap.launchers.observed import RankHere, read_log, same_host
from hopmap.topologies import MappingError

from .exports import machine_of
from .input_kinds import MappingLike
from .machine import MachineLike, nodes_of_ranks

SHOWN = 3  # ranks that a verdict names


class Elsewhere(NamedTuple):
    """A rank that did not run where the mapping has it."""

    rank: int
    expected: str
    found: str


@dataclass(frozen=True)
class LaunchCheck:
    """What a check of a launch found.

    Attributes
    ----------
    ranks : int
        Ranks of the mapping.
    elsewhere : tuple of Elsewhere
        Ranks on another host than the mapping has them on.
    missing : tuple of int
        Ranks of which nothing is known.
    extra : tuple of int
        Ranks that the mapping does not have.
    named : bool
        False if hosts have no names, as in archives of simulated runs: then it is only known which
        ranks share one.
    hint : str
        What order the ranks have instead, if it is a common one.
    """

    ranks: int
    elsewhere: tuple[Elsewhere, ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]
    named: bool = True
    hint: str = ""

    @property
    def obeyed(self) -> bool:
        """Whether every rank ran on the host that the mapping has it on."""
        return not (self.elsewhere or self.missing or self.extra)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``check --json`` prints."""
        return {
            "obeyed": self.obeyed,
            "ranks": self.ranks,
            "elsewhere": [each._asdict() for each in self.elsewhere],
            "missing": list(self.missing),
            "extra": list(self.extra),
            "named": self.named,
            "hint": self.hint,
        }

    @property
    def verdict(self) -> list[str]:
        """Sentences on what was found."""
        if self.obeyed:
            lines = [f"obeyed: {self.ranks} ranks ran where the mapping has them"]
        else:
            lines = [f"not obeyed: {self._counts()}"]
        for rank, expected, found in self.elsewhere[:SHOWN]:
            lines.append(f"rank {rank} ran on {found}: the mapping has it on {expected}")
        if len(self.elsewhere) > SHOWN:
            lines.append(f"and {len(self.elsewhere) - SHOWN} more")
        if self.hint:
            lines.append(self.hint)
        if not self.named:
            lines.append("hosts have no names there: only which ranks share a host was compared")
        return lines

    def _counts(self) -> str:
        parts = []
        if self.elsewhere:
            parts.append(f"{len(self.elsewhere)} of {self.ranks} ranks ran on other hosts")
        for ranks, what in ((self.missing, "not seen"), (self.extra, "not in the mapping")):
            if ranks:
                first = ", ".join(map(str, ranks[:SHOWN]))
                more = f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else ""
                parts.append(f"{what}: rank {first}{more}")
        return "; ".join(parts)


def expected_hosts(mapping: MappingLike, machine: MachineLike | None = None) -> list[str]:
    """Return the host that a mapping has each rank on.

    Raises
    ------
    MappingError
        Nodes that have no names of hosts: a log could not be compared with them.
    """
    _, expected = _known_and_expected(mapping, machine)
    return expected


def _known_and_expected(
    mapping: MappingLike, machine: MachineLike | None
) -> tuple[set[str], list[str]]:
    """Return all hosts of the network, and the one that a mapping has each rank on."""
    place = machine_of(mapping, machine)
    network = place.network
    if not network.names and not place.is_named:
        raise MappingError(
            f"{network.spec}: its nodes have no names: expected --nodelist, --hosts or --names"
        )
    names = [host_of(name) for name in node_names(network)]
    if isinstance(mapping, str | Path):
        node_of = read_mapping(mapping, network, hosts=network.names or None)
    else:
        node_of = nodes_of_ranks(mapping, network, None)
    return set(names), [names[node] for node in node_of]


def check_launch(
    log: str | Path, mapping: MappingLike, machine: MachineLike | None = None
) -> LaunchCheck:
    """Compare where ranks ran with a mapping.

    Parameters
    ----------
    log : path
        What ranks or their launcher printed (see `hopmap.launchers.observed`), or an OTF2 archive.
    mapping : file, array or Placement
    machine : Machine, str or Topology, optional
        If the mapping does not name it, or its nodes.

    Raises
    ------
    MappingError
        No ranks in the log, or nodes that have no names.
    TraceError
        An archive that cannot be read.
    OSError
        A log that cannot be read.
    """
    known, expected = _known_and_expected(mapping, machine)
    path = Path(log)
    if path.is_dir() or path.suffix == ".otf2":
        from hopmap.traces.otf2.hosts import read_hosts

        found = dict(enumerate(read_hosts(path)))
        if any(" " in host or not host for host in found.values()):  # numbers, not names
            return _compare_groups(expected, found)
    else:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            raise MappingError(f"{log}: cannot be read as a log (it is not text)") from None
        found = read_log(lines, str(log), known, len(expected))
    return _compare(expected, found)


def check_rank(here: RankHere, host: str, expected: list[str], name: str) -> tuple[bool, str]:
    """Return whether this process is where a mapping has it, and a line on that."""
    of = "" if here.ranks is None else f" of {here.ranks}"
    said = f"rank {here.rank}{of} on {host}:"
    if here.rank >= len(expected) or here.ranks not in (None, len(expected)):
        return False, f"{said} {name} places {len(expected)} ranks"
    if not same_host(host, expected[here.rank]):
        return False, f"{said} {name} has it on {expected[here.rank]}"
    return True, f"{said} as {name} has it"


def _compare(expected: list[str], found: dict[int, str]) -> LaunchCheck:
    ranks = len(expected)
    seen = [rank for rank in found if rank < ranks]
    elsewhere = tuple(
        Elsewhere(rank, expected[rank], found[rank])
        for rank in seen
        if not same_host(found[rank], expected[rank])
    )
    missing = tuple(rank for rank in range(ranks) if rank not in found)
    extra = tuple(rank for rank in found if rank >= ranks)
    hint = _hint(expected, [found[rank] for rank in range(ranks)]) if not missing else ""
    return LaunchCheck(ranks, elsewhere, missing, extra, hint=hint if elsewhere else "")


def _compare_groups(expected: list[str], found: dict[int, str]) -> LaunchCheck:
    """Compare which ranks share a host: each with the host that most of them were expected on."""
    ranks = len(expected)
    missing = tuple(rank for rank in range(ranks) if rank not in found)
    extra = tuple(rank for rank in found if rank >= ranks)
    seen = [rank for rank in range(ranks) if rank in found]
    pairs = Counter((found[rank], expected[rank]) for rank in seen)
    host_of_group: dict[str, str] = {}
    for (group, host), _ in pairs.most_common():
        if host not in host_of_group.values():
            host_of_group.setdefault(group, host)
    elsewhere = tuple(
        Elsewhere(rank, expected[rank], found[rank])
        for rank in seen
        if host_of_group.get(found[rank]) != expected[rank]
    )
    return LaunchCheck(ranks, elsewhere, missing, extra, named=False)


def _hint(expected: list[str], found: list[str]) -> str:
    """Say which common order the ranks have instead."""
    expected, found = ([host.partition(".")[0] for host in each] for each in (expected, found))
    hosts = len(set(found))
    pairs = set(zip(expected, found, strict=True))
    if hosts < len(found) and len(pairs) == len(set(expected)) == hosts:
        return "ranks that share a host in the mapping do so, but on other hosts"
    by_name = [found[place] for place in slurm_order(found)] == found
    runs = 1 + sum(one != other for one, other in itertools.pairwise(found))
    if by_name or runs == hosts < len(found):
        return "ranks fill one host after the other: the launcher has not used the mapping"
    if all(host == found[rank % hosts] for rank, host in enumerate(found)):
        return "ranks go to the hosts in turn: the launcher has not used the mapping"
    return ""
