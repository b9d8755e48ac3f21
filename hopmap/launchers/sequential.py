"""Hosts in order: PRRTE's sequential mapper, MPIJobs of Kubernetes, likwid-mpirun.

PRRTE and Open MPI map by ``seq``: line r of the hostfile is the host of rank r. Their mappers but
this one do not keep a hostfile's order. Ranks are not bound to cores.

An MPIJob runs mpirun in a pod of its own, on a hostfile of all worker pods. Another hostfile comes
as a ConfigMap, whose text is the same list under the names of the pods.

likwid-mpirun fills the hosts of its file in order, as many ranks on each. With the machinefile of
Intel MPI that order is kept.

Sources: Open MPI 4.1, mpirun(1), and 5.0, mpirun(1), "--map-by"; kubeflow/mpi-operator,
mpi_job_controller.go, newConfigMap; Kubernetes, ConfigMap; likwid-mpirun.lua,
readHostfileIntelMPI and assignHosts.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from hopmap.topologies import MappingError

from .formats import Launch, Launcher, LauncherFile, Place, comment, content
from .hostfiles import read_hosts, write_hosts
from .node_names import NAME
from .reordering import EACH

CONFIG_MAP = ("apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: hopmap-ranks", "data:")
KEY = "  hostfile: |"
POD = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
MOST_BYTES = 1 << 20  # of a ConfigMap


def write_config_map(launch: Launch) -> list[str]:
    """Return the YAML of a ConfigMap with the pod of every rank."""
    pods = write_hosts(launch)
    if odd := [name for name in pods if not POD.fullmatch(name)]:
        raise MappingError(f"mpijob: {odd[0]!r}: expected names of pods, in lower case")
    if sum(len(name) + 1 for name in pods) > MOST_BYTES:
        raise MappingError(f"mpijob: {len(pods):,} ranks: expected a list of at most 1 MiB")
    return [*CONFIG_MAP, KEY, *(f"    {name}" for name in pods)]


def note_pods(launch: Launch) -> list[str]:
    """Say that names are no names of pods, as an MPIJob calls these."""
    name = launch.used[0]
    if re.search(r"-worker-\d+(\.|$)", name):
        return []
    return [
        f"an MPIJob knows its pods by names like JOB-worker-0.JOB.NAMESPACE.svc, not {name}: give "
        "them with --hosts or --names, in order of the nodes"
    ]


def read_config_map(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every line of the hostfile in a ConfigMap."""
    start = next((n for n, line in file.lines if line == KEY.strip()), None)
    if start is None:
        raise MappingError(f"{file.name}: expected a ConfigMap with {KEY.strip()}")
    return read_hosts(replace(file, lines=[line for line in file.lines if line[0] > start]))


def write_filled(launch: Launch) -> list[str]:
    """Return each host once, in the order of its ranks, which have to be consecutive."""
    node_of = launch.node_of
    starts = np.flatnonzero(np.diff(node_of, prepend=-1))
    each = np.diff(starts, append=len(node_of))
    if len(np.unique(node_of)) < len(starts) or each.min() < each.max():
        raise MappingError(
            "likwid: expected consecutive ranks on each host, as many on every host, since "
            "likwid-mpirun fills one after the other; intel takes any mapping"
        )
    return [comment(EACH, str(each[0])), *(launch.hosts[node_of[start]] for start in starts)]


def read_filled(file: LauncherFile) -> list[Place]:
    """Return line, rank and node: as many ranks on each host as a comment or its slots say."""
    each = file.said.get(EACH)
    if each is not None and not re.fullmatch(r"[1-9]\d{0,8}", each):
        raise MappingError(f"{file.name}: {EACH}: {each[:40]!r}: expected a whole number")
    places: list[Place] = []
    for number, line in file.lines:
        host = content(line).partition(":")[0].strip()
        if not NAME.fullmatch(host):
            file.wrong(number, "HOST or HOST:SLOTS")
        node = file.node(f"line {number}", host)
        ranks = int(each or file.topology.slots[node])
        if len(places) + ranks > file.topology.slots.sum():
            file.wrong(number, f"{file.topology.slots.sum()} ranks at most")
        places += [(number, len(places) + turn, node) for turn in range(ranks)]
    return places


PRRTE = Launcher(
    "prrte",
    "hostfile for the sequential mapper of PRRTE and Open MPI",
    "rank -> node: line r is the host of rank r",
    "mpirun -np {ranks} --hostfile {file} --map-by seq ./a.out   (prterun, prun: the same; Open "
    "MPI 4: mpirun -np {ranks} --hostfile {file} --mca rmaps seq ./a.out)",
    "Open MPI 5.0, mpirun(1), --map-by seq",
    write_hosts,
    read_hosts,
    threaded="mpirun -np {ranks} -x OMP_NUM_THREADS={threads} --hostfile {file} --map-by seq "
    "--bind-to none ./a.out   (Open MPI 4: --mca rmaps seq in place of --map-by seq)",
)
MPIJOB = Launcher(
    "mpijob",
    "ConfigMap with a hostfile for an MPIJob of Kubernetes",
    "rank -> node: line r of the hostfile is the pod of rank r",
    "kubectl apply -f {file}, and in the Launcher, which mounts it as /etc/hopmap: mpirun -np "
    "{ranks} --hostfile /etc/hopmap/hostfile --map-by seq ./a.out   (Open MPI 4: --mca rmaps seq)",
    "kubeflow/mpi-operator, v2beta1; Kubernetes, ConfigMap",
    write_config_map,
    read_config_map,
    r"apiVersion\s*:",
    notes=note_pods,
)
LIKWID = Launcher(
    "likwid",
    "hostfile for likwid-mpirun",
    "host -> its consecutive ranks, in the order of the file",
    "likwid-mpirun -mpi intelmpi -hostfile {file} -np {ranks} -nperdomain N:{each} ./a.out",
    "RRZE-HPC/likwid, likwid-mpirun",
    write_filled,
    read_filled,
    threaded="likwid-mpirun -mpi intelmpi -hostfile {file} -np {ranks} -nperdomain N:{each} "
    "-t {threads} ./a.out",
)
