"""A mapping for codes that reorder themselves: JSON, and the lines of mpi4py that apply it.

The launcher numbers processes node after node; ``rank_at[p]`` is the rank that process p is to play
(position -> rank), ``node_of[r]`` the node of rank r and ``position_of[r]`` its process (rank ->
node, rank -> position). ``MPI_Comm_split(MPI_COMM_WORLD, 0, rank_at[p], &comm)`` needs no help from
any launcher, where ``reorder`` of MPI_Cart_create mostly does nothing.

Source: MPI 4.1, 7.4.2, MPI_COMM_SPLIT: ranks in the new communicator follow the keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import MappingError, Topology

from .text import LauncherFile, Place

SNIPPET = '''"""comm: MPI.COMM_WORLD with the ranks that {file!r} gives.

Start a process for each rank, node after node, as many on each as the mapping puts there.
"""

import json
from pathlib import Path

from mpi4py import MPI

plan = json.loads(Path(__file__).with_name({file!r}).read_text(encoding="utf-8"))
rank_at, node_of = plan["rank_at"], plan["node_of"]  # process -> rank, rank -> node
world = MPI.COMM_WORLD
if world.size != len(rank_at):
    raise SystemExit(f"{{world.size}} processes: expected {{len(rank_at)}}")
here = world.Split_type(MPI.COMM_TYPE_SHARED).size
if world.allreduce(here != node_of.count(node_of[rank_at[world.rank]])):
    raise SystemExit("nodes have not the processes that are expected: start them node after node")
host = MPI.Get_processor_name().partition(".")[0]
hosts = [name.partition(".")[0] for name in plan["host_of"]]  # rank -> host, or node0, node1, ...
if world.allreduce(host in hosts) and world.allreduce(host != hosts[rank_at[world.rank]]):
    raise SystemExit("hosts come in another order than in the file: export with --nodelist")
comm = world.Split(key=rank_at[world.rank])
'''


def write_json(node_of: NDArray[np.int64], topology: Topology, hosts: Sequence[str]) -> list[str]:
    """Return the lines of the JSON document."""
    rank_at = np.argsort(node_of, kind="stable")
    position_of = np.empty_like(rank_at)
    position_of[rank_at] = np.arange(len(rank_at))
    document = {
        "topology": topology.spec,
        "node_of": node_of.tolist(),
        "host_of": [hosts[node] for node in node_of],
        "rank_at": rank_at.tolist(),
        "position_of": position_of.tolist(),
    }
    parts = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    return ["{", *",\n".join(parts).split("\n"), "}"]


def read_json(file: LauncherFile) -> list[Place]:
    """Return 0 for a line, rank and node of everything in ``node_of``."""
    document = document_of("\n".join(file.text), file.name)
    nodes = document.get("node_of")
    if not isinstance(nodes, list) or not all(type(node) is int for node in nodes):
        raise MappingError(f"{file.name}: node_of: expected a list of one node number per rank")
    return [(0, rank, node) for rank, node in enumerate(nodes)]


def document_of(text: str, name: str) -> dict[str, object]:
    """Return the object that a JSON document is."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise MappingError(f"{name}: {line}expected a JSON object with node_of") from None
    if not isinstance(document, dict):
        raise MappingError(f"{name}: expected a JSON object with node_of")
    return document
