"""How a launcher gives its processes the recorder's library, and what a recording came to.

That is an archive or counts, and all that is not in them, in words.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hopmap.traces.formats.files import save_traffic
from hopmap.traces.otf2.write import write_trace
from hopmap.traces.trace import Collective, SharedCores, TraceError
from hopmap.traces.traffic import Traffic

from .build import Built, RecorderError
from .merge import cores_of, hosts_of, names_of, trace_of
from .raw import Process, read_processes

_SAYS = {
    "openmpi": re.compile(r"Open MPI|OpenRTE|Open RTE|PRRTE|prterun"),
    "hydra": re.compile(r"HYDRA|Intel\(R\) MPI", re.IGNORECASE),
}
_LAUNCHERS = re.compile(r"(mpirun|mpiexec|prterun|orterun)([.-]\w+)?")


def launcher_of(words: Sequence[str]) -> str:
    """Whose launcher a command begins with: "openmpi", "hydra" (MPICH's), "slurm" or ""."""
    name = Path(words[0]).name
    if name == "srun":
        return "slurm"
    if not _LAUNCHERS.fullmatch(name) or shutil.which(words[0]) is None:
        return ""
    done = subprocess.run([words[0], "--version"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return next((kind for kind, pattern in _SAYS.items() if pattern.search(said)), "")


def find_compiler(words: Sequence[str]) -> str:
    """Return the mpicc of a launcher's folder with its suffix, or the first on the path."""
    found, name = shutil.which(words[0]), Path(words[0]).name
    match = _LAUNCHERS.fullmatch(name)
    if found is not None and match is not None:
        for ending in (match[2] or "", ""):
            compiler = Path(found).with_name(f"mpicc{ending}")
            if os.access(compiler, os.X_OK):
                return str(compiler)
    return "mpicc"


def with_library(
    words: Sequence[str], built: Built, settings: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return a command that records, and what is new in its environment.

    `words` are the user's command, `settings` what the library has to know, by variables' names. In
    `environment`, ours, something may be preloaded already: that stays before the recorder.
    """
    kind = launcher_of(words)
    if (kind, built.mpi) in (("openmpi", "mpich"), ("hydra", "openmpi")):
        raise RecorderError(
            f"{words[0]}: of {'Open MPI' if kind == 'openmpi' else 'MPICH'}, and the library is "
            f"for {built.mpi}: expected --mpicc of the same MPI"
        )
    before = [environment["LD_PRELOAD"]] if environment.get("LD_PRELOAD") else []
    values = {"LD_PRELOAD": ":".join([*before, str(built.path)]), **settings}
    first, rest = words[0], list(words[1:])
    match kind:
        case "openmpi":
            flags = [word for name, value in values.items() for word in ("-x", f"{name}={value}")]
        case "hydra":
            flags = [word for name, value in values.items() for word in ("-genv", name, value)]
        case "slurm":
            if any(word.startswith("--export") for word in rest):
                raise RecorderError(
                    "srun --export: reserved for hopmap: expected the variables in the environment"
                )
            flags = ["--export=" + ",".join(["ALL", *(f"{n}={v}" for n, v in values.items())])]
        case _:
            return [first, *rest], values
    return [first, *flags, *rest], {}


def as_line(words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Write a command for a shell."""
    before = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    return " ".join([*before, shlex.join(words)])


_SOME = 4  # ranks that are named
_SAID = {
    "merged_polls": "polls in vain that became one with those before them",
    "calls_while_off": "calls not recorded, as MPI_Pcontrol had switched recording off",
    "foreign_messages": "messages to or from processes outside of MPI_COMM_WORLD: not recorded",
    "foreign_collectives": "collectives with such processes: recorded as calls only",
    "foreign_communicators": "communicators with such processes",
    "unknown_requests": "completions of requests whose beginning was not seen: not recorded",
    "freed_requests": "requests freed before they were complete: their completion is not known",
    "uncounted_pairs": "persistent alltoallv: who sends how much to whom is not recorded",
    "lost_regions": "regions of MPI_Pcontrol beyond 64 within each other or 1024 names",
    "one_sided": "one-sided operations: not in the counts of a profile",
    "one_sided_bytes": "bytes that they moved",
    "failed_calls": "calls that MPI answered with an error: recorded as calls only",
}


def finish(folder: Path, out: Path) -> tuple[str, ...]:
    """Make an archive, or of a profile a file of traffic, from what processes left in a folder.

    Returned is what is not in it, or not as it was, one line each.
    """
    processes = read_processes(folder)
    if processes[0].header["profile"]:
        save_traffic(out, _traffic(folder, processes, out.stem))
    else:
        hosts, cores = hosts_of(processes), cores_of(processes)
        trace, nodes = trace_of(processes, str(out)), names_of(processes)
        write_trace(trace, out, node_of=hosts, cores=cores, nodes=nodes)
    return tuple(_find_missing(processes))


def is_profile(folder: Path) -> bool:
    """Whether a folder holds counts instead of calls."""
    return any(folder.glob("*.matrix"))


def collectives_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Add up the calls by all ranks and the bytes sent, of each collective of a profile."""
    processes = read_processes(folder)
    totals = sum(
        np.stack([each.header["collectives"][key] for key in ("calls", "sent")]).astype(np.int64)
        for each in processes
    )
    return {
        each.name.lower(): (int(calls), int(sent))
        for each, calls, sent in zip(Collective, *np.asarray(totals), strict=True)
        if calls and each < Collective.CREATE_HANDLE
    }


def _traffic(folder: Path, processes: Sequence[Process], name: str) -> Traffic:
    ranks = len(processes)
    rows = []
    for rank in range(ranks):
        file = folder / f"{rank}.matrix"
        counts = np.fromfile(file, dtype=np.uint64) if file.is_file() else np.zeros(0)
        if counts.size != 2 * ranks:
            raise TraceError(f"{file}: {counts.size} numbers, expected {2 * ranks}")
        messages, size = counts.astype(np.int64).reshape(ranks, 2).T
        peers = np.flatnonzero(messages)
        rows.append((np.full(len(peers), rank), peers, messages[peers], size[peers]))
    src, dst, sent, sizes = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Traffic.from_pairs(ranks, src, dst, sent, sizes, name=name)


def _find_missing(processes: Sequence[Process]) -> list[str]:
    lines = []
    for code, how in ((0, "without MPI_Finalize"), (2, "by MPI_Abort")):
        ended = [
            (rank, each.names.regions.get(int(each.header["open"])))
            for rank, each in enumerate(processes)
            if each.header["finished"] == code
        ]
        if ended:
            some = ", ".join(
                f"{rank} in {region}" if region and not code else str(rank)
                for rank, region in ended[:_SOME]
            )
            more = f" and {len(ended) - _SOME} more" if len(ended) > _SOME else ""
            lines.append(f"ended {how}: rank {some}{more}; what was recorded until then is kept")
    failed = [rank for rank, each in enumerate(processes) if each.header["finished"] < 0]
    if failed:
        lines.append(f"recording ended early, as files could not be written: rank {failed[0]}")
    alone = [rank for rank, each in enumerate(processes) if each.header["clocks"] < 2]
    if alone and len({each.header["host"] for each in processes}) > 1:
        lines.append("clocks were compared at the start only")
    ranks, cores = np.bincount(hosts_of(processes)), cores_of(processes)
    most = int(np.argmax(ranks / np.maximum(cores, 1)))
    if ranks[most] > cores[most] > 0 and not processes[0].header["profile"]:
        lines.append(f"{SharedCores(int(ranks[most]), int(cores[most]))}")
    for key, what in _SAID.items():
        number = sum(each.counts[key] for each in processes)
        if number:
            lines.append(f"{number:,} {what}")
    return lines
