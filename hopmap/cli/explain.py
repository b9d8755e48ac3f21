"""The command on why a run takes as long as it does: explain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hopmap.units import show_bytes, show_seconds

from .console import (
    bound_label,
    percent,
    print_json,
    print_table,
    rounds_of_run,
    say,
    say_basis,
    warn_of,
    working,
)
from .jobs import ListedJobs, jobs_in, one_run
from .options import (
    AsJson,
    MachineOptions,
    OptionalMapping,
    OptionalTrace,
    ReplayOptions,
    TopologyOfMapping,
)

if TYPE_CHECKING:
    from hopmap.api.input_kinds import MappingLike
    from hopmap.simulator import Bottleneck, Composition, Doubling, Explanation

SEGMENTS = {
    "compute": "computing",
    "send_overhead": "overhead of sending",
    "recv_overhead": "overhead of receiving",
    "end_point": "end points of ranks",
    "serialization": "bytes / bandwidth",
    "latency": "latency",
    "queue": "queues",
    "room": "waiting for room",
    "job_start": "before its job starts",
}
OF_JOBS = ("job", "jobs", "topology", "sets", "failures", "names", "top", "sensitivity")
SHOWN_PAIRS = 3  # that fit a line


@dataclass(frozen=True)
class ExplainOptions(ReplayOptions):
    """What is replayed, and how much is said of it."""

    top: Annotated[int, typer.Option(min=0, help="Servers to list.")] = 5
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity/--no-sensitivity", help="Also double every parameter.")
    ] = True


def explain(
    context: typer.Context,
    replay: ExplainOptions,
    machine: MachineOptions,
    jobs: ListedJobs,
    trace: OptionalTrace = None,
    mapping: OptionalMapping = None,
    topology: TopologyOfMapping = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run takes so long: its critical path, bounds, bottlenecks, sensitivity."""
    from hopmap.api.simulation import explain as explained
    from hopmap.api.workload import Workload

    one = one_run(context, trace, mapping, several=jobs.several, has=OF_JOBS)
    at: MappingLike
    if one is None:
        place, several, loads = jobs_in(machine, topology, jobs)
        if loads:
            raise typer.BadParameter(f"--jobs {jobs.jobs}: expected no [[background]]")
        from hopmap.api.jobs import place_jobs

        together = place_jobs(several, place)
        workload, at = Workload(together.program), together.node_of
    else:
        workload, at = replay.workload(one[0]), one[1]
        place = machine.machine(topology)
    with working("replaying") as progress:
        found = explained(
            workload, place, at, top=replay.top, sensitivity=replay.sensitivity, progress=progress
        )
    if as_json:
        print_json(found.to_dict())
        return
    warn_of(workload.name, found.result.omitted)
    show_explanation(found, f"{workload.name}{f' by {mapping}' if mapping else ''}")


def show_explanation(found: Explanation, name: str = "") -> None:
    """Print the verdict, bounds, the critical path, servers, and doubled parameters."""
    network, program = found.result.network, found.result.program
    assert network is not None and program is not None
    makespan = found.result.makespan
    rows = [("makespan", makespan)]
    for what, bound in found.bounds.items():
        rows.append((f"  lower bound, {bound_label(what, bound)}", bound.seconds))
    if alone := rounds_of_run(found.result):
        say(f"replayed: {alone}")
    say(found.verdict)
    say()
    print_table(
        ("", f"{found.result.ranks} ranks", "share"),
        [(label, show_seconds(seconds), percent(seconds, makespan)) for label, seconds in rows],
        title=f"{name or program.name} on {network.spec}",
    )
    for each in program.jobs if len(program.jobs) > 1 else ():
        say(f"ranks {each.first} to {each.first + each.ranks - 1}: {each.name}")
    _print_path(makespan, found.path)
    _print_servers("most bytes / bandwidth", makespan, found.loaded)
    _print_servers("most queued", makespan, found.queued)
    if found.doublings:
        _print_doublings(found.doublings)
    say_basis(found.result)


def _print_path(makespan: float, path: Composition) -> None:
    rows = [(SEGMENTS[name], seconds) for name, seconds in path.seconds.items() if seconds > 0]
    if path.control > 0:
        rows.append(("  of it, requests and grants", path.control))
    ranks = ", ".join(f"{rank} ({percent(part, makespan)})" for rank, part in path.ranks)
    say()
    print_table(
        ("critical path", "time", "share"),
        [(name, show_seconds(seconds), percent(seconds, makespan)) for name, seconds in rows],
    )
    say(f"{path.messages:,} messages; ranks {ranks or 'none'}")
    if not path.kinds:
        return
    columns = {"bytes / bw": "serialization", "latency": "latency", "queue": "queue"}
    if path.seconds["room"] > 0:
        columns["room"] = "room"
    say()
    print_table(
        ("path's messages at", "kind", "behind pairs", *columns),
        [
            (
                server.place,
                server.kind,
                _pairs(server.behind),
                *(show_seconds(getattr(server, column)) for column in columns.values()),
            )
            for server in path.kinds + path.servers
        ],
        left=3,
    )


def _print_servers(label: str, makespan: float, servers: list[Bottleneck]) -> None:
    if not servers:
        return
    say()
    print_table(
        (label, "kind", "pairs", "bytes", "bytes / bw", "share", "queued"),
        [
            (
                server.place,
                server.kind,
                _pairs(server.pairs),
                show_bytes(server.bytes),
                show_seconds(server.seconds),
                percent(server.seconds, makespan),
                show_seconds(server.queued),
            )
            for server in servers
        ],
        left=3,
    )


def _print_doublings(doublings: list[Doubling]) -> None:
    say()
    print_table(
        ("doubled", "from", "makespan", "change"),
        [
            (
                doubling.key,
                _value(doubling),
                show_seconds(doubling.makespan),
                f"{round(100 * doubling.change, 2) + 0.0:+.2f} %",  # never -0.00
            )
            for doubling in doublings
        ],
    )


def _value(doubling: Doubling) -> str:
    """Write what was doubled, in its unit."""
    whole, _, per = doubling.unit.partition("/")
    show = {"bytes": show_bytes, "s": show_seconds}.get(whole, "{:g}".format)
    shown = show(doubling.value)
    return f"{shown}/{per}" if per else shown


def _pairs(pairs: Iterable[tuple[int, int, float]]) -> str:
    """Write rank pairs, heaviest first."""
    named = [f"{source}>{target}" for source, target, _ in pairs]
    return ", ".join(named[:SHOWN_PAIRS]) + (", ..." if len(named) > SHOWN_PAIRS else "")
