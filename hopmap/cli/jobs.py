"""Options of several jobs at once, as simulate and explain take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import MachineOptions, check_options

if TYPE_CHECKING:
    from hopmap.api.job import Background, Job
    from hopmap.api.machine import Machine


@dataclass(frozen=True)
class ListedJobs:
    """Several jobs at once."""

    job: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE,MAPPING",
            help="A job, in place of TRACE and MAPPING; may be repeated. MAPPING is a file, or "
            "contiguous, random-nodes, random-switches (with seed=N) among the free nodes; or "
            "hosts=FILE. Options follow: start=2ms, repeat=3, name=NAME, steps=N, rounds=N.",
        ),
    ] = None
    jobs: Annotated[
        Path | None,
        typer.Option(help=r"TOML file with tables [\[jobs]] and [\[background]]."),
    ] = None

    @property
    def several(self) -> bool:
        """Whether there are any."""
        return bool(self.job or self.jobs)


def one_run(
    context: typer.Context,
    trace: str | None,
    mapping: Path | None,
    *,
    several: bool,
    has: Sequence[str],
) -> tuple[str, Path] | None:
    """Return trace and mapping of a run, or None where there are several jobs instead.

    `has` are the options of a run of several jobs, by their names in Python.
    """
    if several:
        check_options(context, "a run of several jobs", has)
        if trace is not None:
            job = f"--job {trace},{mapping or 'MAPPING'}"
            raise typer.BadParameter(f"{trace}: among other jobs or traffic: expected {job}")
        return None
    if trace is None or mapping is None:
        missing = "TRACE" if trace is None else "MAPPING"
        raise typer.BadParameter(f"{missing}: expected TRACE and MAPPING, or --job for several")
    return trace, mapping


def jobs_in(
    machine: MachineOptions, topology: str | None, options: ListedJobs, engine: str = ""
) -> tuple[Machine, list[Job], list[Background]]:
    """Return the machine, the jobs, and the traffic of others that stands in their file."""
    from hopmap.api.job import job_of, read_jobs

    if topology is None:
        raise typer.BadParameter("--topology: expected the machine of the jobs")
    jobs, loads = ([], []) if options.jobs is None else read_jobs(options.jobs)
    return machine.machine(topology, engine), [*jobs, *map(job_of, options.job or ())], loads
