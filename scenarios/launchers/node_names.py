"""Names of nodes: a file of hosts, or a list as Slurm writes it, `node[01-32],gpu7`.

Source of the lists: Slurm, scontrol(1), "show hostnames" and "show hostlist".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hopmap.topologies import MappingError, Topology, TopologyError
from hopmap.topologies.readers import hostlist, hosts
from hopmap.topologies.readers.hosts import NAME as NAME


def node_names(
    topology: Topology, file: str | Path | None = None, nodelist: str | None = None
) -> list[str]:
    """Return the name of every node in order of their numbers.

    Without a file or a list, those that the topology's own file gave; else node0, node1, ...

    Raises
    ------
    MappingError
        Both are given, or what is given names more or fewer nodes than there are, or one twice;
        more nodes than a list of Slurm's can name.
    """
    if topology.nodes > hostlist.LIMIT:
        most = f"{hostlist.LIMIT:,} nodes that have names"
        raise MappingError(f"{topology.spec}: {topology.nodes:,} nodes: expected at most {most}")
    if file is None and nodelist is None:
        return list(topology.names) or [f"node{n}" for n in range(topology.nodes)]
    if file is not None and nodelist is not None:
        raise MappingError(f"node list {nodelist}: expected it or the file {file}, not both")
    names = expand(nodelist) if nodelist is not None else read_hosts(file or "")
    check_names(names, topology, str(file) if nodelist is None else f"node list {nodelist[:60]}")
    return names


def nodes_named(
    topology: Topology, file: str | Path | None = None, nodelist: str | None = None
) -> list[int]:
    """Return the numbers of the nodes that a file or a list names: those that a job was given.

    Raises
    ------
    MappingError
        Both are given, or a host that is none of `node_names`.
    """
    if file is not None and nodelist is not None:
        raise MappingError(f"node list {nodelist}: expected it or the file {file}, not both")
    given = expand(nodelist) if nodelist is not None else read_hosts(file or "")
    where = str(file) if nodelist is None else f"node list {nodelist[:60]}"
    try:
        return hosts.nodes_of(topology, given, where)
    except TopologyError as error:
        raise MappingError(str(error)) from None


def check_names(names: Sequence[str], topology: Topology, where: str) -> None:
    """Raise `MappingError` unless there is one name for every node, all different."""
    if len(names) != topology.nodes:
        raise MappingError(
            f"{where}: {len(names)} host names: expected one for each of the {topology.nodes} "
            f"nodes of {topology.spec}, in the order of their numbers"
        )
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise MappingError(f"{where}: host {twice} is named twice: expected another for each node")


def read_hosts(path: str | Path) -> list[str]:
    """Return the hosts of a file, each once, in its order: a list, a hostfile or an alloc.csv.

    Raises
    ------
    MappingError
        Unreadable file, or a line without a host name.
    """
    try:
        return hosts.read_hosts(str(path))
    except TopologyError as error:
        raise MappingError(str(error)) from None


def expand(nodelist: str, where: str = "node list") -> list[str]:
    """Return the names in Slurm's list; the last brackets vary fastest.

    Parameters
    ----------
    where : str
        Where it is from, for the message.

    Raises
    ------
    MappingError
        Not such a list, or one of too many names.

    Examples
    --------
    >>> expand("node[08-10,12],gpu7")
    ['node08', 'node09', 'node10', 'node12', 'gpu7']
    """
    try:
        return hostlist.expand(nodelist)
    except TopologyError as error:
        raise MappingError(f"{where}: {error}") from None


def compress(names: Sequence[str]) -> list[str]:
    """Return names as items of Slurm's list, in their order: runs of numbers become ranges.

    Examples
    --------
    >>> compress(["node08", "node09", "node10", "gpu7"])
    ['node[08-10]', 'gpu7']
    """
    runs: list[list[str]] = []  # prefix, lowest number, highest number
    for name in names:
        match = re.fullmatch(r"(.*?)(\d{1,9})", name)
        prefix, number = (match[1], match[2]) if match else (name, "")
        if runs and number and runs[-1][2]:
            before, low, high = runs[-1]
            if before == prefix and number == f"{int(high) + 1:0{len(low)}d}":
                runs[-1][2] = number
                continue
        runs.append([prefix, number, number])
    return [p + low if low == high else f"{p}[{low}-{high}]" for p, low, high in runs]
