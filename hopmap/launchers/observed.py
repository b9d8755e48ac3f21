"""Where ranks ran, as they or their launcher say it: lines of a log, variables of the environment.

Read are lines of the form ``3 node7`` or ``rank 3 on node7``; what launchers write when they label
the output of ``hostname`` (srun -l, flux run --label-io, mpiexec -l, mpirun --tag-output) or show
their maps (mpirun --display map, --report-bindings, I_MPI_DEBUG=4, MPICH_RANK_REORDER_DISPLAY,
smpirun -map, flux job taskmap --to=hosts); and what xthi and the usual first programs print. Other
lines are passed over, so that a program's own output does not matter.

Sources: Open MPI 4.1 and 5.0, MPICH 5.0, SimGrid 3.32, as they print it; Intel MPI Developer
Reference, I_MPI_DEBUG; HPE, intro_mpi(3); flux-job(1); ARCHER2 documentation, xthi.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hopmap.topologies import MappingError
from hopmap.topologies.readers.hosts import NAME

VARIABLES = (  # of rank and number of ranks; the innermost launcher first
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)
HOST = rf"(?P<host>(?=[\d.]*[A-Za-z]){NAME.pattern})"
RANK = r"(?P<rank>\d{1,9})"
TAG = re.compile(r"\[[^\],]*,(?P<rank>\d{1,9})\](?:\[[^\]]*\])?<std(?:out|err)>:\s*")
LABEL = re.compile(r"(?:\[(\d{1,9})\]|\s*(\d{1,9}):)\s*")
NODE = re.compile(rf"Data for node: {HOST}(?:\s|$)")
TASKS = re.compile(rf"{HOST}:\s*(?P<ranks>\d{{1,9}}(?:-\d{{1,9}})?(?:,\d{{1,9}}(?:-\d{{1,9}})?)*)")
PROCESS = re.compile(rf"(?:Process rank: {RANK}\b|Data for proc: \[[^\],]*,(?P<proc>\d{{1,9}})\])")
SAID = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\[\d+\] MPI startup\(\):\s+{RANK}\s+\d+\s+{HOST}\s",
        rf"\[{HOST}:\d+\]\s+(?:MCW\s+)?[Rr]ank\s+{RANK}\b",
        rf"\b(?:processor|host|node)\s+{HOST},\s+rank\s+{RANK}\b",
        rf"\b[Rr]ank[ :=#]*{RANK}\b.*?\b(?:on|host|node|processor)\b[ :=]*{HOST}",
        rf"\[rank {RANK}\] -> {HOST}",
    )
)
PLAIN = tuple(map(re.compile, (rf"{RANK}[\s,]+{HOST}", rf"{HOST}[\s,]+{RANK}")))

MOST_TASKS = 4096  # on a host

Seen = tuple[int, int, str]  # line, rank, host


@dataclass(frozen=True)
class RankHere:
    """The rank of this process, as its launcher's environment says."""

    rank: int
    ranks: int | None  # in all, where it is known


def read_environment(environment: Mapping[str, str]) -> RankHere:
    """Return rank and number of ranks of this process.

    Raise `MappingError` if no launcher has said them.
    """
    for rank, ranks in VARIABLES:
        if (text := environment.get(rank, "")).isdecimal():
            count = environment.get(ranks, "")
            return RankHere(int(text), int(count) if count.isdecimal() else None)
    known = ", ".join(rank for rank, _ in VARIABLES)
    raise MappingError(f"--live: no rank of a launcher here: expected one of {known}")


def same_host(one: str, other: str) -> bool:
    """Return whether two names are one host's; one of them may lack the domain.

    >>> same_host("node7", "node7.cluster"), same_host("node7.a", "node7.b")
    (True, False)
    """
    short = "." not in one or "." not in other
    return one == other or (short and one.partition(".")[0] == other.partition(".")[0])


def read_log(
    lines: Sequence[str], name: str, hosts: Collection[str] = (), ranks: int = 0
) -> dict[int, str]:
    """Return the host of each rank that a log has.

    `hosts` are known ones. Lines like ``3: node7``, which may be anything, count for these as long
    as there are any, and for other hosts where nothing speaks against it (see `_strangers`).
    `ranks` is how many are expected.

    Raise `MappingError` for a log without ranks, or one that has a rank in two places.
    """
    known = {host.partition(".")[0] for host in hosts}
    for form in (_maps, _sentences, _tasks, _labels, _plain):
        seen = list(form(lines))
        if form in (_labels, _plain):
            certain = [each for each in seen if each[2].partition(".")[0] in known]
            seen = certain + _strangers(seen, certain, ranks) if certain else seen
        if seen:
            return _once(seen, name)
    raise MappingError(
        f"{name}: no ranks with their hosts: expected lines like '3 node7' or 'rank 3 on node7', "
        "or what srun -l hostname, mpirun --display map and others print"
    )


def _strangers(seen: Sequence[Seen], certain: Sequence[Seen], ranks: int) -> list[Seen]:
    """Return lines of ranks on hosts that are not known, rather than of a program's own output.

    Such a host has a digit in its name. None counts if a rank has two of them, or one in addition
    to a known host; nor a rank beyond those expected, unless all ranks before it are there.
    """
    others = [each for each in seen if each not in certain and re.search(r"\d", each[2])]
    places = {(rank, host) for _, rank, host in others}
    apart = {rank for rank, _ in places}
    placed = {rank for _, rank, _ in certain}
    if len(apart) < len(places) or apart & placed:
        return []
    end = ranks
    while end in apart | placed:
        end += 1
    return [each for each in others if each[1] < end]


def _once(seen: Sequence[Seen], name: str) -> dict[int, str]:
    host_of: dict[int, tuple[int, str]] = {}
    for number, rank, host in seen:
        line, before = host_of.setdefault(rank, (number, host))
        if before != host:
            raise MappingError(
                f"{name}: line {number}: rank {rank} on {host}: line {line} has it on {before}"
            )
    return {rank: host for rank, (_, host) in sorted(host_of.items())}


def _maps(lines: Sequence[str]) -> Iterator[Seen]:
    """Find nodes and their processes in maps of Open MPI and PRRTE."""
    host = None
    for number, line in enumerate(lines, 1):
        if node := NODE.search(line):
            host = node["host"]
        elif host is not None and (process := PROCESS.search(line)):
            yield number, int(process["rank"] or process["proc"]), host


def _sentences(lines: Sequence[str]) -> Iterator[Seen]:
    """Find lines that say rank and host in words."""
    for number, line in enumerate(lines, 1):
        found = next(filter(None, (pattern.search(line) for pattern in SAID)), None)
        if found:
            yield number, int(found["rank"]), found["host"].rstrip(".")


def _labels(lines: Sequence[str]) -> Iterator[Seen]:
    """Find labels of ranks before the name of a host alone."""
    for number, line in enumerate(lines, 1):
        for pattern in (TAG, LABEL):
            label = pattern.match(line)
            host = label and re.fullmatch(HOST, line[label.end() :].strip())
            if label and host:
                yield number, int(next(filter(None, label.groups()))), host["host"]
                break


def _tasks(lines: Sequence[str]) -> Iterator[Seen]:
    """Find hosts with lists of their ranks."""
    for number, line in enumerate(lines, 1):
        if found := TASKS.fullmatch(line.strip()):
            for run in found["ranks"].split(","):
                first, _, last = run.partition("-")
                ranks = range(int(first), int(last or first) + 1)
                if len(ranks) <= MOST_TASKS:
                    yield from ((number, rank, found["host"]) for rank in ranks)


def _plain(lines: Sequence[str]) -> Iterator[Seen]:
    """Find a rank and a host, or the other way round, behind a label or not."""
    for number, line in enumerate(lines, 1):
        bare = TAG.sub("", line, count=1).strip()
        texts = (bare, LABEL.sub("", bare, count=1))
        found = next(filter(None, (form.fullmatch(text) for text in texts for form in PLAIN)), None)
        if found:
            yield number, int(found["rank"]), found["host"]
