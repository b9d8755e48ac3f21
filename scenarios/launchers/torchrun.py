"""torchrun: the ranks that each host's processes are to play, and the lines of Python that say so.

torchrun numbers processes host after host, in order of ``--node-rank``, as many on each. A line of
the file is a host, in that order, and the ranks of its processes by ``LOCAL_RANK``. Nodes that are
called HOST-gpuN are the GPUs of a host.

Source: PyTorch, torchrun (Elastic Launch), "Environment Variables"; torch.distributed, "Environment
variable initialization", which takes ``RANK``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopmap.topologies import MappingError, Topology

from .node_names import NAME
from .text import LauncherFile, Place

GPU = re.compile(r"(.+)-gpu(\d{1,4})")
LINE = re.compile(rf"({NAME.pattern})\s+(\d{{1,9}}(?:,\d{{1,9}})*)")
BEGINS = rf"(?=[A-Za-z]){LINE.pattern}$"

SNIPPET = '''"""RANK of this process as {file!r} gives it: imported before torch.distributed.

Start torchrun on the hosts of the file, --node-rank 0 on the first, with as many processes on
each as its lines have ranks.
"""

import os
import socket
from pathlib import Path

text = Path(__file__).with_name({file!r}).read_text(encoding="utf-8").splitlines()
hosts = [line.split() for line in text if line.strip() and not line.startswith("#")]
node, local = int(os.environ["GROUP_RANK"]), int(os.environ["LOCAL_RANK"])
ranks = [names[1].split(",") for names in hosts]
if int(os.environ["WORLD_SIZE"]) != sum(map(len, ranks)):
    raise SystemExit(f"{{os.environ['WORLD_SIZE']}} processes: expected {{sum(map(len, ranks))}}")
here = socket.gethostname().partition(".")[0]
known = [names[0].partition(".")[0] for names in hosts]  # or node0, node1, ...
if here in known and here != known[node]:
    raise SystemExit(f"--node-rank {{node}} is {{here}}: expected {{known[node]}}")
os.environ["RANK"] = ranks[node][local]
'''


def host_of(name: str) -> str:
    """Return the host of a node, which may be one of its GPUs."""
    gpu = GPU.fullmatch(name)
    return gpu[1] if gpu else name


def write_processes(
    node_of: NDArray[np.int64], _topology: Topology, hosts: Sequence[str]
) -> list[str]:
    """Return a line for each host.

    Raises
    ------
    MappingError
        Hosts with unlike numbers of ranks, or a host of which only other GPUs than the first ones
        are used.
    """
    ranks_on: dict[str, list[tuple[int, int]]] = {}
    order = np.argsort(node_of, kind="stable")
    for rank in order.tolist():
        name = hosts[node_of[rank]]
        gpu = GPU.fullmatch(name)
        placed = ranks_on.setdefault(host_of(name), [])
        placed.append((int(gpu[2]) if gpu else len(placed), rank))
    each = max(map(len, ranks_on.values()))
    lines = []
    for host, placed in ranks_on.items():
        placed.sort()
        if [local for local, _ in placed] != list(range(each)):
            raise MappingError(
                f"torchrun: {len(placed)} ranks on {host}, on GPUs "
                f"{', '.join(str(local) for local, _ in placed)}: expected as many on every host, "
                f"here {each}, from the first GPU on; json takes any mapping"
            )
        lines.append(f"{host} {','.join(str(rank) for _, rank in placed)}")
    return lines


def read_processes(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every process."""
    places = []
    for number, line in file.lines:
        match = LINE.fullmatch(line)
        if match is None:
            file.wrong(number, "HOST RANK,RANK,...")
        gpus = f"{match[1]}-gpu0" in file.nodes
        for local, rank in enumerate(match[2].split(",")):
            name = f"{match[1]}-gpu{local}" if gpus else match[1]
            places.append((number, int(rank), file.node(f"line {number}", name)))
    return places
