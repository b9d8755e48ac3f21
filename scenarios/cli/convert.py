"""The command convert: a run as another simulator reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import AsJson, Sets, TraceArgument, check_out
from .console import print_json, say, working

if TYPE_CHECKING:
    from hopmap.simulator import Parameters, Program
    from hopmap.topologies import Topology as Network

PLATFORM, HOSTS = "platform.xml", "hosts.txt"
SIMULATORS = {
    "simgrid": "SimGrid 3.32: time-independent traces; platform and hosts of a mapping",
    "goal": "LogGOPSim and ATLAHS: one schedule in GOAL, of ranks, whatever the mapping",
}


def convert(
    trace: TraceArgument,
    to: Annotated[str, typer.Option(help="Simulator: simgrid, or goal (LogGOPSim, ATLAHS).")],
    out: Annotated[
        Path, typer.Option(help="Folder to write, of goal a file; what is there is replaced.")
    ],
    mapping: Annotated[
        Path | None, typer.Option(help="Mapping file: writes the platform and the hosts as well.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option("--topology", "-t", help="If the mapping file does not name it.")
    ] = None,
    zone: Annotated[
        str, typer.Option(help="Platform: routes (as hopmap's), or torus (SimGrid's own).")
    ] = "routes",
    settings: Sets = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Time steps of a benchmark, instead of all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a trace as another simulator reads it, collectives as their messages."""
    from hopmap.scenarios.launchers.mapping_files import network_of
    from hopmap.simulator import lower
    from hopmap.simulator.export.simgrid_platform import smpirun_options
    from hopmap.simulator.export.time_independent import INDEX, fill_tit
    from hopmap.simulator.parameters.parameters import unknown
    from hopmap.simulator.parameters.settings import check_settings, configure, parse_settings
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.safety.atomic_files import replacing_folder
    from hopmap.traces.sources import find_source

    if to not in SIMULATORS:
        raise typer.BadParameter(unknown("simulator", to, SIMULATORS))
    check_out(out, folder=to != "goal")
    if to == "goal":
        _write_goal(trace, out, mapping or topology, settings, steps, as_json)
        return
    if mapping is None and (topology is not None or zone != "routes"):
        option = "--topology" if topology is not None else "--zone"
        raise typer.BadParameter(f"{option}: expected --mapping FILE as well")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / INDEX).is_file())):
        raise typer.BadParameter(f"--out {out}: expected a new folder, or one written by convert")
    network = topology_from_spec("mesh:1") if mapping is None else network_of(mapping, topology)
    given = parse_settings(settings or [])
    check_settings(dict(given), [network])
    network, parameters = configure(network, given)
    source = find_source(trace)
    with working(f"reading {source.name}"):
        program = lower(source.calls(steps), parameters.algorithms)
    with working("writing"), replacing_folder(out) as partial:
        if mapping is not None:
            _place(partial, program, network, parameters, mapping, zone)
        fill_tit(partial, program, compute_scale=parameters.compute_scale)
    words = ["smpirun", "-replay", INDEX, "-platform", PLATFORM, "-hostfile", HOSTS]
    command = " ".join((*words, *smpirun_options(parameters)))
    if as_json:
        print_json({"out": str(out), "ranks": program.ranks, "command": command})
        return
    say(f"written: {out}")
    say(f"use it there, with a platform and hosts: {command}")


def _write_goal(
    trace: str,
    out: Path,
    placed: object,
    settings: list[str] | None,
    steps: int | None,
    as_json: bool,
) -> None:
    """Write one file, of any name."""
    from hopmap.simulator import lower
    from hopmap.simulator.export.goal import loggops_options, write_goal
    from hopmap.simulator.parameters.settings import check_settings, configure, parse_settings
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.sources import find_source

    if placed is not None:
        raise typer.BadParameter("--mapping, --topology: expected neither, GOAL has no network")
    network, given = topology_from_spec("mesh:1"), parse_settings(settings or [])
    check_settings(dict(given), [network])
    _, parameters = configure(network, given)
    source = find_source(trace)
    with working(f"reading {source.name}"):
        program = lower(source.calls(steps), parameters.algorithms)
    with working("writing"):
        write_goal(out, program, compute_scale=parameters.compute_scale)
    options = " ".join(loggops_options(parameters))
    command = f"txt2bin -i {out} -o {out}.bin && LogGOPSim -f {out}.bin {options}"
    if as_json:
        print_json({"out": str(out), "ranks": program.ranks, "command": command})
        return
    say(f"written: {out}")
    say(f"use it there: {command}")


def _place(
    folder: Path,
    program: Program,
    network: Network,
    parameters: Parameters,
    mapping: Path,
    zone: str,
) -> None:
    from hopmap.scenarios.launchers.formats import export_mapping
    from hopmap.scenarios.launchers.mapping_files import read_mapping
    from hopmap.simulator.export.simgrid_platform import platform_xml

    node_of = read_mapping(mapping, network, program.ranks)
    with (folder / PLATFORM).open("w", encoding="ascii") as file:
        file.writelines(platform_xml(network, parameters, zone))
    # The platform's names, not those that the network's file may have.
    hosts = export_mapping("simgrid", node_of, network, [f"node{n}" for n in range(network.nodes)])
    (folder / HOSTS).write_text(hosts, encoding="ascii")
