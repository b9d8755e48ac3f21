"""Ranks as actors of Ray: a host a line with its ranks, and Python code that pins actors there.

Ray places actors where there is room, and Ray Train numbers its workers itself. An actor that
stays on a node is asked for by the node's number in the running cluster, which only the program
finds out: the code that is written with the file looks hosts up by name and returns the options of
an actor, with the variables that torch.distributed takes. Nodes that are called HOST-gpuN are the
GPUs of a host; Ray gives an actor any of its free GPUs, so that CUDA_VISIBLE_DEVICES names it.

Source: Ray, ray.util.scheduling_strategies, NodeAffinitySchedulingStrategy; ray.nodes();
PyTorch, torch.distributed, "Environment variable initialization".
"""

from __future__ import annotations

from hopmap.topologies import MappingError

from .formats import Launch, Launcher
from .reordering import ranks_of_hosts, read_processes

ACTORS = '''"""Where the ranks of {file!r} run: Worker.options(**options(rank)).remote().

`ranks` are all ranks. The first host's address is for MASTER_ADDR.
"""

from pathlib import Path

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

text = Path(__file__).with_name({file!r}).read_text(encoding="utf-8").splitlines()
place = {{}}  # of a rank: its host, its number there, and how many are there
for host, own in (line.split() for line in text if line.strip() and not line.startswith("#")):
    for local, rank in enumerate(own.split(",")):
        place[int(rank)] = host.partition(".")[0], local, own.count(",") + 1
ranks = sorted(place)


def nodes():
    """Return the nodes of the cluster that are alive, by the names of their hosts."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    return {{node["NodeManagerHostname"].partition(".")[0]: node for node in alive}}


def options(rank, **others):
    """Return the options of the actor that plays a rank; `others` are more, like num_gpus=1."""
    host, local, many = place[rank]
    known = nodes()
    if host not in known:
        raise SystemExit(f"{{host}} is no node of this cluster: expected one of {{sorted(known)}}")
    variables = {{
        "RANK": str(rank),
        "WORLD_SIZE": str(len(ranks)),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(many),
    }}
    pinned = NodeAffinitySchedulingStrategy(node_id=known[host]["NodeID"], soft=False)
    return {{"scheduling_strategy": pinned, "runtime_env": {{"env_vars": variables}}, **others}}


def master():
    """Return the address of the node of rank 0."""
    return nodes()[place[0][0]]["NodeManagerAddress"]
'''


def write_actors(launch: Launch) -> list[str]:
    """Return a line for each host: its ranks, by their GPUs."""
    lines = []
    for host, placed in ranks_of_hosts(launch).items():
        if [gpu for gpu, _ in placed] != list(range(len(placed))):
            raise MappingError(
                f"ray: ranks on GPUs {', '.join(str(gpu) for gpu, _ in placed)} of {host}: "
                "expected its first ones, since Ray chooses the GPU; json takes any mapping"
            )
        lines.append(f"{host} {','.join(str(rank) for _, rank in placed)}")
    return lines


RAY = Launcher(
    "ray",
    "Ray: hosts with their ranks, with Python code that pins actors there",
    "host -> ranks of its actors",
    "Worker.options(**options(rank, num_gpus=1)).remote()   (driver: from {module} import options)",
    "Ray, NodeAffinitySchedulingStrategy",
    write_actors,
    read_processes,
    on_gpus=True,
    companion="{module}_ray.py",
    companion_text=lambda launch: ACTORS.format(file=launch.file),
)
