"""Ranks by where processes start: Cray MPICH's MPICH_RANK_ORDER, JSON for mpi4py, torchrun's hosts.

Cray, position -> rank: the inverse of all other formats. The launcher makes positions: it fills the
nodes in its own order, as many on each. The file lists the rank that each position plays, so that
it says where a rank sits only together with the nodes and how many ranks go on each; two comments
keep them. Slurm sorts nodes by name, numbers in names by their values. It ignores the order of
--nodelist (unless a topology plugin ranks the nodes). PALS, under PBS, takes the nodes from a file
of hosts, which is written with the rank order: in order of the nodes' numbers.

JSON and torchrun's hosts are for programs that reorder themselves. A Python file that applies the
mapping is written with each.

JSON: the launcher numbers processes node after node; ``rank_at[p]`` is the rank that process p is
to play (position -> rank), ``node_of[r]`` the node of rank r and ``position_of[r]`` its process
(rank -> node, rank -> position). ``MPI_Comm_split(MPI_COMM_WORLD, 0, rank_at[p], &comm)`` needs no
help from any launcher, where ``reorder`` of MPI_Cart_create mostly does nothing.

torchrun numbers processes host after host, in order of ``--node-rank``, as many on each. A line of
the file is a host, in that order, and the ranks of its processes by ``LOCAL_RANK``. Nodes that are
called HOST-gpuN are the GPUs of a host.

Sources: HPE, intro_mpi(3), "MPICH_RANK_REORDER_METHOD"; grid_order(1); ARCHER2 and LUMI
documentation; Slurm, srun(1), "--nodelist", and src/slurmctld/read_config.c for the order. MPI 4.1,
7.4.2, MPI_COMM_SPLIT: ranks in the new communicator follow the keys. PyTorch, torchrun (Elastic
Launch), "Environment Variables"; torch.distributed, "Environment variable initialization", which
takes ``RANK``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

from hopmap.topologies import MappingError

from .formats import Launch, Launcher, LauncherFile, Place, comment, json_document, names_comment
from .node_names import GPU, NAME, expand, host_of, slurm_order

FILLED, EACH = "filled", "ranks on each"
RANKS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
LINE = re.compile(rf"({NAME.pattern})\s+(\d{{1,9}}(?:,\d{{1,9}})*)")
BEGINS = rf"(?=[A-Za-z]){LINE.pattern}$"

MPI4PY = '''"""comm: MPI.COMM_WORLD with the ranks that {file!r} gives.

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

ENVIRONMENT = '''"""RANK of this process as {file!r} gives it: imported before torch.distributed.

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


def write_rank_order(launch: Launch) -> list[str]:
    """Return the ranks of one node a line, in Slurm's order of the nodes.

    As many on each node, fewer on the last alone.
    """
    return _rank_order(launch, slurm_order(launch.hosts), "cray")


def write_rank_order_of_hosts(launch: Launch) -> list[str]:
    """Return the ranks of one node a line, in order of the nodes' numbers."""
    return _rank_order(launch, range(len(launch.hosts)), "pals")


def _rank_order(launch: Launch, fills: Sequence[int], name: str) -> list[str]:
    """Return the ranks of one node a line, in the order in which the launcher fills them."""
    node_of, hosts = launch.node_of, launch.hosts
    order = np.array(fills, dtype=np.int64)
    turn = np.argsort(order)[node_of]  # when a rank's node is filled
    filled, ranks_on = np.unique(turn, return_counts=True)
    used = order[filled]
    each = int(ranks_on.max())
    unfilled = np.flatnonzero(ranks_on[:-1] < each)
    if unfilled.size:
        node, other = unfilled[0], ranks_on.argmax()
        raise MappingError(
            f"{name}: {ranks_on[node]} ranks on node {used[node]}, {each} on node "
            f"{used[other]}: expected as many on every node that is used, fewer on the last only, "
            f"since the launcher fills nodes in order; slurm takes any mapping"
        )
    lines = [comment(EACH, str(each)), *names_comment(FILLED, [hosts[node] for node in used])]
    by_node = np.argsort(turn, kind="stable")
    ends = np.cumsum(ranks_on)[:-1]
    return lines + [",".join(map(str, ranks)) for ranks in np.split(by_node, ends)]


def read_rank_order(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every position.

    Positions fill the nodes that the comments name, as many on each as they say; without comments
    all nodes in Slurm's order of their names, as many as they have slots.
    """
    return _read_rank_order(file, slurm_order(list(file.nodes)))


def read_rank_order_of_hosts(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every position; without comments nodes fill by number."""
    return _read_rank_order(file, list(range(len(file.nodes))))


def _read_rank_order(file: LauncherFile, filled: list[int]) -> list[Place]:
    if FILLED in file.said:
        filled = [
            file.node(FILLED, host) for host in expand(file.said[FILLED], f"{file.name}: {FILLED}")
        ]
    each = file.said.get(EACH)
    if each is not None and not re.fullmatch(r"[1-9]\d{0,8}", each):
        raise MappingError(f"{file.name}: {EACH}: {each[:40]!r}: expected a whole number")
    sizes = [int(each or file.topology.slots[node]) for node in filled]
    positions = chain.from_iterable(map(repeat, filled, sizes))
    places: list[Place] = []
    for number, line in file.lines:
        for item in line.rstrip(",").split(","):
            match = RANKS.fullmatch(item.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if last < first:
                file.wrong(number, "ranks like 0,1,4-7")
            nodes = [node for _, node in zip(range(first, last + 1), positions, strict=False)]
            if len(nodes) <= last - first:
                file.wrong(number, f"{sum(sizes)} ranks at most on {len(filled)} nodes")
            places += zip(repeat(number), range(first, last + 1), nodes)
    return places


def write_json(launch: Launch) -> list[str]:
    """Return the lines of the JSON document."""
    node_of = launch.node_of
    rank_at = np.argsort(node_of, kind="stable")
    document = {
        "topology": launch.topology.spec,
        "node_of": node_of.tolist(),
        "host_of": [launch.hosts[node] for node in node_of],
        "rank_at": rank_at.tolist(),
        "position_of": np.argsort(rank_at).tolist(),
    }
    parts = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    return ["{", *",\n".join(parts).split("\n"), "}"]


def read_json(file: LauncherFile) -> list[Place]:
    """Return 0 for a line, rank and node of everything in ``node_of``."""
    document = json_document(file.text, file.name)
    nodes = document.get("node_of")
    if not isinstance(nodes, list) or not all(type(node) is int for node in nodes):
        raise MappingError(f"{file.name}: node_of: expected a list of one node number per rank")
    return [(0, rank, node) for rank, node in enumerate(nodes)]


def ranks_of_hosts(launch: Launch) -> dict[str, list[tuple[int, int]]]:
    """Return GPU and rank of each process of every host, by GPU; GPUs without names are counted."""
    ranks_on: dict[str, list[tuple[int, int]]] = {}
    for rank in np.argsort(launch.node_of, kind="stable").tolist():
        name = launch.hosts[launch.node_of[rank]]
        gpu = GPU.fullmatch(name)
        placed = ranks_on.setdefault(host_of(name), [])
        placed.append((int(gpu[2]) if gpu else len(placed), rank))
    return {host: sorted(placed) for host, placed in ranks_on.items()}


def write_processes(launch: Launch) -> list[str]:
    """Return a line for each host: as many ranks on each, on its first GPUs."""
    ranks_on = ranks_of_hosts(launch)
    each = max(map(len, ranks_on.values()))
    lines = []
    for host, placed in ranks_on.items():
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


CRAY = Launcher(
    "cray",
    "Cray MPICH rank order",
    "position -> rank, the inverse of rank -> node: places in order of names of nodes",
    "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun --nodes={nodes} "
    "--nodelist={nodelist} --ntasks={ranks} --ntasks-per-node={each} --distribution=block{pack} "
    "./a.out",
    "HPE, intro_mpi(3) and grid_order(1); ARCHER2 and LUMI documentation",
    write_rank_order,
    read_rank_order,
    called="MPICH_RANK_ORDER",
    threaded="OMP_NUM_THREADS={threads} MPICH_RANK_REORDER_METHOD=3 "
    "MPICH_RANK_REORDER_FILE={file} srun --nodes={nodes} --nodelist={nodelist} --ntasks={ranks} "
    "--ntasks-per-node={each} --cpus-per-task={threads} --distribution=block{pack} ./a.out",
)
PALS = Launcher(
    "pals",
    "Cray MPICH rank order for PALS (PBS), with its file of hosts",
    "position -> rank, the inverse of rank -> node: places in order of the hosts' file",
    "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} mpiexec -n {ranks} --ppn {each} "
    "--hostfile {stem}_hosts.txt ./a.out",
    "HPE, intro_mpi(3) and PALS, mpiexec(1)",
    write_rank_order_of_hosts,
    read_rank_order_of_hosts,
    companion="{stem}_hosts.txt",
    companion_text=lambda launch: "".join(
        f"{launch.hosts[node]}\n" for node in np.unique(launch.node_of)
    ),
    threaded="OMP_NUM_THREADS={threads} MPICH_RANK_REORDER_METHOD=3 "
    "MPICH_RANK_REORDER_FILE={file} mpiexec -n {ranks} --ppn {each} --depth {threads} "
    "--cpu-bind depth --hostfile {stem}_hosts.txt ./a.out",
)
PLAN = Launcher(
    "json",
    "JSON in both directions, with mpi4py code that applies it",
    "rank -> node is node_of, position -> rank is rank_at",
    "from {module} import comm   (C: MPI_Comm_split(MPI_COMM_WORLD, 0, rank_at[process], &comm))",
    "MPI 4.1, MPI_COMM_SPLIT",
    write_json,
    read_json,
    r"\{",
    commented=False,
    named=False,
    on_gpus=True,
    companion="{module}_mpi4py.py",
    companion_text=lambda launch: MPI4PY.format(file=launch.file),
)
TORCHRUN = Launcher(
    "torchrun",
    "torchrun: hosts with their ranks, with Python code that applies them",
    "host -> ranks of its processes, by LOCAL_RANK; hosts by --node-rank",
    "torchrun --nnodes={hosts} --nproc-per-node={processes} --node-rank=K ... train.py   "
    "(train.py begins with: import {module})",
    "PyTorch, torchrun, environment variables",
    write_processes,
    read_processes,
    BEGINS,
    on_gpus=True,
    companion="{module}_torchrun.py",
    companion_text=lambda launch: ENVIRONMENT.format(file=launch.file),
    threaded="OMP_NUM_THREADS={threads} torchrun --nnodes={hosts} --nproc-per-node={processes} "
    "--node-rank=K ... train.py   (train.py begins with: import {module})",
)
