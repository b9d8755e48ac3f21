"""Several jobs at once, as `simulate` takes and shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import show_bytes, show_seconds

from .console import print_json, print_table, rests_on, say, say_basis, say_written, working
from .options import MachineOptions, check_options

if TYPE_CHECKING:
    from hopmap.api.job import Background, Job
    from hopmap.api.jobs import JobsRun
    from hopmap.api.machine import Machine
    from hopmap.api.outputs import Outputs

SHOWN = 5  # pairs of jobs that share links
OPTIONS = (
    *("job", "jobs", "background", "alone", "topology", "engine", "sets", "failures", "names"),
    *("otf2", "perfetto", "links", "bins"),
)


@dataclass(frozen=True)
class ListedJobs:
    """Several jobs at once."""

    job: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE,MAPPING",
            help="A job among others, in place of TRACE and MAPPING; may be repeated. MAPPING is a "
            "file, or contiguous, random-nodes, random-switches (with seed=N) among the free "
            "nodes; or hosts=FILE. Behind it start=2ms, repeat=3, name=NAME, steps=N, rounds=N.",
        ),
    ] = None
    jobs: Annotated[
        Path | None,
        typer.Option(help=r"TOML file with tables [\[jobs]] and [\[background]], likewise."),
    ] = None

    @property
    def several(self) -> bool:
        """Whether there are any."""
        return bool(self.job or self.jobs)


@dataclass(frozen=True)
class JobOptions(ListedJobs):
    """The same, beside traffic of others."""

    background: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN:RATE",
            help="Traffic of others beside the jobs, like uniform:5GB/s or incast:20GB/s of every "
            "free node; may be repeated. Behind it size=64KiB, duration=2ms (else until the jobs "
            "end), hosts=FILE, seed=N.",
        ),
    ] = None
    alone: Annotated[
        bool,
        typer.Option("--alone/--no-alone", help="Replay each job of several alone, too, or not."),
    ] = True

    @property
    def several(self) -> bool:
        """Whether there are any."""
        return super().several or bool(self.background)


def one_run(
    context: typer.Context,
    trace: str | None,
    mapping: Path | None,
    *,
    several: bool,
    has: Sequence[str] = OPTIONS,
) -> tuple[str, Path] | None:
    """Return trace and mapping of a run, or None where there are several jobs instead.

    `has` are the options of a run of several jobs, by their names in Python.
    """
    if several:
        check_options(context, "a run of several jobs", has)
        if trace is not None:
            raise typer.BadParameter(f"{trace}: expected --job {trace},MAPPING among other jobs")
        return None
    if trace is None or mapping is None:
        missing = "TRACE" if trace is None else "MAPPING"
        raise typer.BadParameter(f"{missing}: expected TRACE and MAPPING, or --job for several")
    return trace, mapping


def simulate_several(
    options: JobOptions,
    machine: MachineOptions,
    topology: str | None,
    *,
    engine: str,
    outputs: Outputs,
    as_json: bool,
) -> None:
    """Replay jobs at once, and print what each of them has of it."""
    from hopmap.api.job import background_of
    from hopmap.api.jobs import simulate_jobs

    place, several, loads = jobs_in(machine, topology, options)
    with working("replaying") as progress:
        run = simulate_jobs(
            several,
            place,
            background=[*loads, *map(background_of, options.background or ())],
            engine=engine,
            alone=options.alone,
            outputs=outputs,
            progress=progress,
        )
    if as_json:
        print_json(run.to_dict())
        return
    _print(run)
    say_written(*outputs.paths)


def jobs_in(
    machine: MachineOptions, topology: str | None, listed: ListedJobs
) -> tuple[Machine, list[Job], list[Background]]:
    """Return the machine, the jobs, and the traffic of others that stands in their file."""
    from hopmap.api.job import job_of, read_jobs

    if topology is None:
        raise typer.BadParameter("--topology: expected the machine of the jobs")
    jobs, loads = ([], []) if listed.jobs is None else read_jobs(listed.jobs)
    return machine.machine(topology), [*jobs, *map(job_of, listed.job or ())], loads


def _print(run: JobsRun) -> None:
    from hopmap.simulator.run_plan import server_name

    result, network = run.result, run.result.network
    assert network is not None
    print_table(
        ("job", "ranks", "start", "makespan", "alone", "slow-down", "communicating", "waiting"),
        [
            (
                f"{job.name} (until then)" if job.background else job.name,
                job.ranks,
                show_seconds(job.start),
                show_seconds(job.makespan),
                None if alone is None else show_seconds(alone),
                None if slower is None else f"{slower:.3f}",
                show_seconds(job.communicate),
                show_seconds(job.wait),
            )
            for job, alone, slower in zip(run.jobs, run.alone, run.slowdowns, strict=True)
        ],
        title=f"{len(run.jobs)} at once on {network.spec}, engine {result.engine}\n"
        f"all jobs have ended after {show_seconds(run.makespan)} ({rests_on(result.assumed)})",
    )
    say()
    if run.shared:
        print_table(
            ("jobs that share links", "links", "bytes there", "most on", "bytes there"),
            [
                (
                    " and ".join(each.jobs),
                    each.links,
                    " + ".join(map(show_bytes, each.bytes)),
                    server_name(network, each.link).place,
                    " + ".join(map(show_bytes, each.link_bytes)),
                )
                for each in run.shared[:SHOWN]
            ],
        )
        if len(run.shared) > SHOWN:
            say(f"and {len(run.shared) - SHOWN} pairs of jobs more")
    else:
        say("no two of them share a link")
    say_basis(result)
