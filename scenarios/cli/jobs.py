"""Several jobs at once, as `simulate` takes and shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import show_bytes, show_seconds

from .arguments import check_options
from .console import left_out_lines, link_lines, print_json, print_table, say, working

if TYPE_CHECKING:
    from hopmap.scenarios.jobs.job_spec import Background, Job
    from hopmap.scenarios.jobs.run import JobsRun
    from hopmap.scenarios.run_files import RunFiles
    from hopmap.simulator import Program
    from hopmap.topologies import Mapping

SHOWN = 5  # pairs of jobs that share links
OPTIONS = (
    *("job", "jobs", "background", "alone", "topology", "engine", "settings"),
    *("otf2", "perfetto", "links", "bins"),
)

JobOption = Annotated[
    list[str] | None,
    typer.Option(
        "--job",
        metavar="TRACE,MAPPING",
        help="A job among others, in place of TRACE and MAPPING; may be repeated. MAPPING is a "
        "file, or contiguous, random-nodes, random-switches (with seed=N) among the free nodes; "
        "or hosts=FILE. Behind it start=2ms, repeat=3, name=NAME, steps=N, rounds=N.",
    ),
]
JobsOption = Annotated[
    Path | None,
    typer.Option("--jobs", help=r"TOML file with tables [\[jobs]] and [\[background]], likewise."),
]
BackgroundOption = Annotated[
    list[str] | None,
    typer.Option(
        "--background",
        metavar="PATTERN:RATE",
        help="Traffic of others beside the jobs, like uniform:5GB/s or incast:20GB/s of every free "
        "node; may be repeated. Behind it size=64KiB, duration=2ms (else until the jobs end), "
        "hosts=FILE, seed=N.",
    ),
]
AloneOption = Annotated[
    bool,
    typer.Option("--alone/--no-alone", help="Replay each job of several alone, too, or not."),
]


def one_run(
    context: typer.Context,
    trace: str | None,
    mapping: Path | None,
    *,
    several: bool,
    has: Sequence[str],
) -> tuple[str, Path] | None:
    """Return trace and mapping of a run, or None where there are several jobs instead.

    Parameters
    ----------
    has : sequence of str
        Options of a run of several jobs, by their names in Python.

    Raises
    ------
    typer.BadParameter
        Both, or neither, or an option that means nothing for several jobs.
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
    job: Sequence[str],
    jobs: Path | None,
    background: Sequence[str],
    topology: str | None,
    *,
    engine: str | None,
    settings: dict[str, str | int | float],
    alone: bool,
    files: RunFiles,
    bins: int | None,
    as_json: bool,
) -> None:
    """Replay jobs at once, and print what each of them has of it."""
    import numpy as np

    from hopmap.scenarios.jobs.job_spec import background_of
    from hopmap.scenarios.jobs.run import simulate_jobs
    from hopmap.scenarios.replays import BINS

    topology, asked, loads = _asked(job, jobs, topology)
    with working("replaying") as progress:
        run = simulate_jobs(
            asked,
            topology,
            background=[*loads, *map(background_of, background)],
            engine=engine,
            settings=settings,
            alone=alone,
            record_operations=files.operations,
            record_links=(bins or BINS) if files.links else 0,
            look_at=files.expect_writable,
            progress=progress,
        )
        result, network = run.result, run.result.network
        assert network is not None
        title = f"{run.program.name} on {network.spec}, engine {result.engine}"
        files.write(None, run.program, result, network, np.concatenate(run.nodes), title)
    if as_json:
        print_json(run.to_dict() | {"algorithms": run.program.chosen})
        return
    _print(run)
    for path in files.paths:
        say(f"written: {path}")


def placed_jobs(
    job: Sequence[str],
    jobs: Path | None,
    topology: str | None,
    settings: dict[str, str | int | float],
) -> tuple[Program, Mapping]:
    """Return all jobs as one program, and the node of every rank."""
    from hopmap.scenarios.given import configured
    from hopmap.scenarios.jobs.co_running import neighbours

    topology, asked, loads = _asked(job, jobs, topology)
    if loads:
        raise typer.BadParameter(f"--jobs {jobs}: [[background]]: expected jobs alone")
    network, _ = configured(topology, settings)
    return neighbours(asked, network, settings)


def _asked(
    job: Sequence[str], jobs: Path | None, topology: str | None
) -> tuple[str, list[Job], list[Background]]:
    """Return the machine, the jobs, and the traffic of others that stands in their file."""
    from hopmap.scenarios.jobs.job_spec import job_of, read_jobs

    if topology is None:
        raise typer.BadParameter("--topology: expected the machine of the jobs")
    listed, loads = read_jobs(jobs) if jobs is not None else ([], [])
    return topology, [*listed, *map(job_of, job)], loads


def _print(run: JobsRun) -> None:
    from hopmap.scenarios.assumed import in_words
    from hopmap.simulator.run_plan import server_name

    result, network = run.result, run.result.network
    assert network is not None
    rests = f"assumed: {in_words(result.assumed)}" if result.assumed else "nothing assumed"
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
        f"all jobs have ended after {show_seconds(run.makespan)} ({rests})",
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
    for line in (*left_out_lines(result.left_out, result.notes), *link_lines(network.kinds)):
        say(line)
