"""The command simulate: a run, or several jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import joules, show_bytes, show_seconds

from .console import (
    bound_label,
    chosen_rows,
    percent,
    print_json,
    print_table,
    rests_on,
    say,
    say_basis,
    say_written,
    warn_of,
    working,
)
from .jobs import ListedJobs, jobs_in, one_run
from .options import (
    AsJson,
    Engine,
    MachineOptions,
    OptionalMapping,
    OptionalTrace,
    ReplayOptions,
    TopologyOfMapping,
    check_out,
)

if TYPE_CHECKING:
    from hopmap.api.jobs import JobsRun
    from hopmap.api.outputs import Outputs
    from hopmap.simulator import Bound, Result

SHOWN = 5  # pairs of jobs that share links
OF_JOBS = (
    *("job", "jobs", "background", "baseline", "topology", "engine", "sets", "failures", "names"),
    *("otf2", "perfetto", "links", "bins"),
)


@dataclass(frozen=True)
class SimulationOptions(ReplayOptions):
    """How a workload is replayed, and how often."""

    engine: Engine = "compiled"
    extrapolation: Annotated[
        bool,
        typer.Option(
            "--extrapolation/--no-extrapolation",
            help="End a run of over 20 million packet-hops once its main loop has settled, and "
            "extrapolate the other steps with an error bound; or replay all steps.",
        ),
    ] = True
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Extrapolate a run of any length once its error bound is at most this share of "
            "the makespan, like 0.05. Recorded steps need it unless they repeat exactly.",
        ),
    ] = None
    repeat: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Simulate N more times with noise (N >= 6), for a median and its 95 % interval; "
            "see --set noise.compute, noise.overhead, noise.start, noise.seed.",
        ),
    ] = 0


@dataclass(frozen=True)
class OutputOptions:
    """Files to write of a run."""

    otf2: Annotated[
        Path | None, typer.Option(help="OTF2 archive to write: the run, for Vampir.")
    ] = None
    perfetto: Annotated[
        Path | None, typer.Option(help="JSON to write: the run, for ui.perfetto.dev.")
    ] = None
    links: Annotated[
        list[Path] | None,
        typer.Option(
            help="Use of links over time: a table (.parquet) or a figure (.svg, .png, .pdf) to "
            "write; may be repeated."
        ),
    ] = None
    bins: Annotated[
        int | None,
        typer.Option(
            min=1, help="Most time steps of --links, 256 when left out; more than half are used."
        ),
    ] = None

    def files(self) -> Outputs:
        """Return what is to be written, where it can be."""
        from hopmap.api.outputs import Outputs

        if self.bins is not None and not self.links:
            raise typer.BadParameter("--bins requires --links")
        found = Outputs(
            self.otf2, self.perfetto, tuple(self.links or ()), self.bins or Outputs.bins
        )
        check_out(self.otf2, folder=True)
        check_out(self.perfetto, *(self.links or ()))
        return found


@dataclass(frozen=True)
class JobOptions(ListedJobs):
    """Several jobs at once, and background traffic."""

    background: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN:RATE",
            help="Background traffic of other jobs, like uniform:5GB/s or incast:20GB/s of every "
            "free node; may be repeated. Options follow: size=64KiB, duration=2ms (default: until "
            "the jobs end), hosts=FILE, seed=N.",
        ),
    ] = None
    baseline: Annotated[
        bool,
        typer.Option("--baseline/--no-baseline", help="Also replay each job alone, or not."),
    ] = True

    @property
    def several(self) -> bool:
        """Whether there are any."""
        return super().several or bool(self.background)


def simulate(
    context: typer.Context,
    outputs: OutputOptions,
    replay: SimulationOptions,
    machine: MachineOptions,
    jobs: JobOptions,
    trace: OptionalTrace = None,
    mapping: OptionalMapping = None,
    topology: TopologyOfMapping = None,
    as_json: AsJson = False,
) -> None:
    """Replay a trace, or traffic in rounds, over the network under a mapping; or several jobs."""
    from hopmap.api.simulation import check_engine
    from hopmap.api.simulation import simulate as simulated

    if replay.tolerance is not None and not replay.extrapolation:
        raise typer.BadParameter("--tolerance and --no-extrapolation are mutually exclusive")
    files, engine = outputs.files(), replay.engine
    check_engine(engine)
    if (one := one_run(context, trace, mapping, several=jobs.several, has=OF_JOBS)) is None:
        simulate_several(jobs, machine, topology, engine=engine, outputs=files, as_json=as_json)
        return
    trace, mapping = one
    workload, place = replay.workload(trace), machine.machine(topology, engine)
    with working("replaying") as progress:
        result = simulated(
            workload,
            place,
            mapping,
            engine=engine,
            extrapolate=replay.extrapolation if replay.tolerance is None else replay.tolerance,
            repeat=replay.repeat,
            outputs=files,
            progress=progress,
        )
    if as_json:
        print_json(result.to_dict())
        return
    warn_of(workload.name, result.omitted)
    show_result(result, f"{workload.name} by {mapping}", machine.sets or ())
    say_written(*files.paths)


def show_result(result: Result, name: str = "", sets: Sequence[str] = ()) -> None:
    """Print how long a run takes, its bounds, where time goes, and what it rests on."""
    from hopmap.simulator import ENGINES, lower_bounds
    from hopmap.simulator.noise import without_noise

    network, program, node_of = result.network, result.program, result.node_of
    parameters, engine = result.parameters, result.engine
    if network is None or program is None or node_of is None or parameters is None:
        say(repr(result))  # as sweeps keep them
        return
    quiet = without_noise(parameters)
    bounded = result.ensemble is not None or quiet == parameters
    bounds = lower_bounds(program, network, node_of, parameters=quiet) if bounded else {}
    # whether messages share servers that pass no more than their bandwidth
    faster = parameters.flow_bandwidth_factor > 1 or parameters.flow_cross_traffic < 1
    shared = engine != "analytic" and not (engine == "flow" and faster)
    summary = result.to_dict()
    rows: list[tuple[str, object]] = [
        *_extrapolation_rows(result),
        *_bound_rows(bounds, shared=shared),
        ("computing, mean over ranks", show_seconds(float(result.compute.mean()))),
        ("communicating", show_seconds(float(result.communicate.mean()))),
        ("waiting", show_seconds(float(result.wait.mean()))),
        ("messages", summary["messages"]),
        ("bytes", summary["bytes"]),
        *((f"  {name}", calls) for name, calls in chosen_rows(program.chosen)),
        ("busiest link", show_seconds(busiest := summary["links"]["max_busy"])),
        ("  its share of the makespan", percent(busiest, result.makespan) or "-"),
    ]
    if ENGINES[engine].packets:
        rows.append(("packet hops served", summary["events"]))
    rows.append(("replayed in", show_seconds(summary["wall_seconds"])))
    if result.energy is not None:
        rows.insert(-2, ("energy", joules(result.energy.total)))
    repeats = "" if bounded else f", one with noise, of seed {parameters.noise_seed}"
    repeats = repeats if result.ensemble is None else f", {result.ensemble}"
    took = f"makespan {show_seconds(result.makespan)}{repeats} ({rests_on(result)})"
    title = f"{name or program.name} on {network.spec}, engine {engine}\n{took}"
    title += _validation_text(sets, network.spec)
    print_table(("", f"{result.ranks} ranks"), rows, title=title)
    say_basis(result)


def _validation_text(settings: Sequence[str], network: str) -> str:
    """Say how far off measured times the parameters were, and whether on this network."""
    from hopmap.simulator.parameters.settings import read_validated

    lines = []
    for file, topologies, error in read_validated(settings):
        here = "this network" if network in topologies else ", ".join(topologies)
        other = "" if network in topologies else ", not on this network"
        lines.append(f"\nvalidated on {here}: error {100 * error:.1f} % (median; {file}){other}")
    return "".join(lines)


def _extrapolation_rows(result: Result) -> list[tuple[str, object]]:
    """Say which steps were replayed, where that is the question."""
    if result.extrapolated is not None:
        steps, error = str(result.extrapolated).split(", ")
        return [(f"  {steps}", error)]
    return [("  all steps replayed", result.whole)] if result.whole else []


def _bound_rows(bounds: Mapping[str, Bound], *, shared: bool) -> list[tuple[str, object]]:
    """Show the longest rank, and also the largest other bound where messages share servers."""
    other = next((name for name in bounds if name != "rank"), None) if shared else None
    return [
        (f"lower bound, {bound_label(name, bound)}", show_seconds(bound.seconds))
        for name, bound in bounds.items()
        if name in ("rank", other)
    ]


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

    place, several, loads = jobs_in(machine, topology, options, engine)
    with working("replaying") as progress:
        run = simulate_jobs(
            several,
            place,
            background=[*loads, *map(background_of, options.background or ())],
            engine=engine,
            baseline=options.baseline,
            outputs=outputs,
            progress=progress,
        )
    if as_json:
        print_json(run.to_dict())
        return
    show_jobs(run)
    say_written(*outputs.paths)


def show_jobs(run: JobsRun) -> None:
    """Print what each job has of a run, and which links they share."""
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
        f"all jobs have ended after {show_seconds(run.makespan)} ({rests_on(result)})",
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
