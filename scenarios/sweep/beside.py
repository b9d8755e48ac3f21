"""Other jobs beside every run of a sweep: the room that they leave, and a replay among them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from hopmap.scenarios.jobs.asked import Background, Job, read_jobs
from hopmap.scenarios.jobs.neighbours import around, neighbours
from hopmap.scenarios.jobs.run import simulate_jobs
from hopmap.simulator import Program, Result
from hopmap.simulator.parameters.settings import Settings, configure
from hopmap.topologies import Mapping, Topology
from hopmap.traces.sources import open_source

from .inputs import planned_network, unchanged


def others_digest(file: str) -> str:
    """Return the hash of a file of jobs and of the files that it names; "" where there is none.

    Raises
    ------
    JobsError, TraceError, OSError
        A file cannot be read.
    """
    if not file:
        return ""
    jobs, background = read_jobs(file)
    digest = hashlib.blake2b(Path(file).read_bytes(), digest_size=8)
    for job in jobs:
        digest.update(open_source(str(job.trace)).digest().encode())
    places = [job.mapping for job in jobs] + [each.hosts for each in jobs]
    for place in [*places, *(each.hosts for each in background)]:
        if isinstance(place, str) and Path(place).is_file():
            digest.update(Path(place).read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=8)
def room_beside(
    topology: str, network: str, settings: Settings, file: str, digest: str
) -> Topology:
    """Return a network without the nodes of other jobs, and with what they send on its links.

    Parameters
    ----------
    topology, network : str
        See `planned_network`.
    settings : tuple of (str, str or float)
        Parameters of network and model.
    file, digest : str
        The jobs' file and its `others_digest`; "" for no other jobs.

    Raises
    ------
    ScenarioError
        The file is another one by now.
    MappingError, TraceError, ParameterError
        See `simulate_jobs`.
    """
    built, _ = configure(planned_network(topology, network), settings)
    if not file:
        return built

    def read() -> Topology:
        return around(neighbours(read_jobs(file)[0], built, dict(settings)), built)

    return unchanged(file, read, lambda: others_digest(file), digest)


def replay_beside(
    program: Program, node_of: Mapping, topology: Topology, file: str, **how: Any
) -> Result:
    """Replay a program beside the jobs of a file.

    Parameters
    ----------
    node_of : ndarray(int64, shape=(ranks,))
        On nodes that are free, see `room_beside`.
    how
        Engine and settings, see `simulate_jobs`.

    Returns
    -------
    Result
        Of this program's ranks; links and servers as all jobs used them.
    """
    jobs, background = _in_place(file, topology, how["settings"])
    ours = Job(program, mapping=node_of)
    run = simulate_jobs([ours, *jobs], topology, background=background, alone=False, **how)
    own = {
        name: getattr(run.result, name)[: program.ranks]
        for name in ("finish", "compute", "communicate", "wait")
    }
    # Of the energy of all nobody can say whose it is.
    return replace(run.result, makespan=run.jobs[0].makespan, energy=None, **own)


def _in_place(
    file: str, topology: Topology, settings: dict[str, Any]
) -> tuple[list[Job], list[Background]]:
    """Return the jobs of a file on the nodes that they got before anybody else, and background."""
    jobs, background = read_jobs(file)
    others = neighbours(jobs, topology, settings)
    bounds = pairwise(accumulate((job.ranks for job in others.program.jobs), initial=0))
    nodes = [others.node_of[begin:end] for begin, end in bounds]
    placed = [
        replace(job, mapping=each, hosts=None, nodelist=None)
        for job, each in zip(jobs, nodes, strict=True)
    ]
    return placed, background
