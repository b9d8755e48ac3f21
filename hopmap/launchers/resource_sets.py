"""jsrun's explicit resource file (ERF), rank -> host and CPUs, for Summit, Sierra and their kind.

    cpu_index_using: logical
    rank: 0: { hostname: node7; cpu: {0-3} }

A CPU is a hardware thread. Logical numbers leave out the cores that the system keeps for itself;
they count four for a core, since POWER9 runs with SMT4 unless a job asks for less. ``host: 3``
in place of a name is the third node of the job; hopmap reads that, and writes names.

Sources: IBM, Job Step Manager, "Explicit Resource File (ERF) format"; OLCF, ERF-CPU-Indexing.
"""

from __future__ import annotations

import re
from itertools import chain

import numpy as np

from hopmap.arrays import equals_before

from .binding import note_cores, seats_on
from .formats import Launch, Launcher, LauncherFile, Place
from .node_names import NAME

SMT = 4  # hardware threads of a core
PREAMBLE = ("cpu_index_using: logical", "overlapping_rs: warn")
SYMBOL = (
    r"(?:app\s+\d+|cpu_index_using|overlapping_rs|launch_distribution"
    r"|(?:skip_missing|oversubscribe)_(?:cpu|gpu|mem))\s*:"
)
RUNS = r"\d{1,9}(?:\s*-\s*\d{1,9})?"
LINE = re.compile(
    rf"rank\s*:\s*\{{?\s*({RUNS}(?:\s*,\s*{RUNS})*)\s*\}}?\s*:\s*"
    rf"\{{\s*(host|hostname)\s*:\s*({NAME.pattern})\s*;\s*cpu\s*:.*\}}\s*(?::\s*app\s+\d+)?"
)


def write_resource_sets(launch: Launch) -> list[str]:
    """Return the preamble and a line for every rank, with its hardware threads."""
    node_of = launch.node_of
    ranks_on = np.bincount(node_of)
    seats = {
        ranks: seats_on(ranks, launch.threads or 1, launch.node) for ranks in set(ranks_on.tolist())
    }
    lines = list(PREAMBLE)
    for rank, (node, turn) in enumerate(zip(node_of, equals_before(node_of), strict=True)):
        cores = seats[ranks_on[node]][turn].cores
        cpus = ",".join(f"{core * SMT}-{core * SMT + SMT - 1}" for core in cores)
        lines.append(f"rank: {rank}: {{ hostname: {launch.hosts[node]}; cpu: {{{cpus}}} }}")
    return lines


def read_resource_sets(file: LauncherFile) -> list[Place]:
    """Return line, rank and node of every rank."""
    places: list[Place] = []
    slots = int(file.topology.slots.sum())
    for number, line in file.lines:
        match = LINE.fullmatch(line)
        if match is None:
            if not re.match(SYMBOL, line):
                file.wrong(number, "rank: N: { hostname: HOST; cpu: {CPUS} }")
            continue
        node = _node(file, number, match[2], match[3])
        runs = [[int(end) for end in run.split("-")] for run in match[1].split(",")]
        if sum(run[-1] - run[0] + 1 for run in runs) > slots:
            file.wrong(number, f"{slots} ranks at most on {file.topology.spec}")
        ranks = chain.from_iterable(range(run[0], run[-1] + 1) for run in runs)
        places += [(number, rank, node) for rank in ranks]
    return places


def _node(file: LauncherFile, number: int, key: str, host: str) -> int:
    """Return the node that a line names, or whose number in the job it gives, from 1 on."""
    if key == "hostname":
        return file.node(f"line {number}", host)
    if not re.fullmatch(r"[1-9]\d{0,8}", host) or int(host) > file.topology.nodes:
        file.wrong(number, f"a host from 1 to {file.topology.nodes}")
    return int(host) - 1


def note_cpus(launch: Launch) -> list[str]:
    """Say by which rule ranks get their CPUs."""
    smt = f"numbers of CPUs count {SMT} hardware threads a core: let the job run with SMT{SMT}"
    return [*note_cores(launch), smt]


JSRUN = Launcher(
    "jsrun",
    "jsrun's explicit resource file (ERF)",
    "rank -> node: a line says host and hardware threads of a rank",
    "jsrun --erf_input {file} ./a.out",
    "IBM, Job Step Manager, Explicit Resource File",
    write_resource_sets,
    read_resource_sets,
    rf"rank\s*:|{SYMBOL}",
    commented=False,
    threaded="OMP_NUM_THREADS={threads} jsrun --erf_input {file} ./a.out",
    binds=True,
    notes=note_cpus,
)
