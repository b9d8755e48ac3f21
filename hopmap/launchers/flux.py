"""Flux: a hostfile for its task map, and the task map itself.

Line k is the host of task k, as for Slurm; Flux takes the file as it is, without comments. The file
says where tasks of the job's hosts go, not which hosts the job gets: ``--requires`` does that. A
task map of RFC 34 says the same in numbers of the job's nodes, as blocks of four: first node,
nodes, tasks on each, repetitions.

Sources: Flux, flux-run(1), "--taskmap" and "--requires", and src/shell/taskmap/hostfile.c; Flux RFC
34, "Flux Task Map"; flux-framework/flux-core, NEWS.md (0.61: hostfiles; 0.75: tasks as many as
the map says on each node) and #7495; flux-framework/flux-coral2#125 and #128.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from .formats import Launch, Launcher
from .hostfiles import read_hosts, write_hosts

Block = tuple[int, int, int, int]  # first node, nodes, tasks on each, repetitions
LONGEST = 400  # characters of a task map that a note shows


def encode_taskmap(nodes: Sequence[int]) -> list[Block]:
    """Return the task map of RFC 34 that gives the node of each task."""
    rows: list[tuple[int, int, int]] = []
    for node, tasks in groupby(nodes):
        each = sum(1 for _ in tasks)
        first, count, before = rows[-1] if rows else (0, 0, 0)
        if rows and node == first + count and each == before:
            rows[-1] = (first, count + 1, each)
        else:
            rows.append((node, 1, each))
    return [(*row, sum(1 for _ in same)) for row, same in groupby(rows)]


def note_taskmap(launch: Launch) -> list[str]:
    """Say which task map gives the mapping without a file, and when Cray MPICH bears it."""
    used, places = np.unique(launch.node_of, return_inverse=True)
    blocks = encode_taskmap(places.tolist())
    ranks_on = np.bincount(places)
    is_even = ranks_on.min() == ranks_on.max()
    if is_even and len(blocks) == 1 and blocks[0][3] == 1:
        scheme = "block"
    elif is_even and len(blocks) == 1:
        scheme = f"cyclic:{blocks[0][2]}"
    else:
        scheme = f"manual:{json.dumps(blocks, separators=(',', ':'))}"
    notes = []
    if len(scheme) <= LONGEST:
        notes.append(
            f"without the file: -o taskmap='{scheme}', if Flux numbers the job's {len(used)} hosts "
            "in this order"
        )
    if scheme != "block":
        notes.append(
            "with Cray MPICH it needs a flux-coral2 of March 2024 or newer: before, MPI_Init hangs "
            "(flux-coral2#125)"
        )
    return notes


FLUX = Launcher(
    "flux",
    "Flux hostfile for its task map",
    "rank -> node: line r is the host of rank r",
    "flux run --nodes={nodes} --ntasks={ranks} --requires=hosts:{nodelist} "
    "-o taskmap=hostfile:{file} ./a.out   (--dry-run prints the jobspec)",
    "Flux, flux-run(1), --taskmap",
    write_hosts,
    read_hosts,
    commented=False,
    threaded="flux run --nodes={nodes} --ntasks={ranks} --cores-per-task={threads} "
    "--env=OMP_NUM_THREADS={threads} --requires=hosts:{nodelist} -o taskmap=hostfile:{file} "
    "./a.out   (--dry-run prints the jobspec)",
    notes=note_taskmap,
)
