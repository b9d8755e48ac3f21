"""What a command replays: a trace or traffic, placed on a network, with parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from .console import working

if TYPE_CHECKING:
    from hopmap.simulator import Parameters, Program
    from hopmap.topologies import Mapping, Topology
    from hopmap.traces import Folded, Trace
    from hopmap.traces.sources import Source


class Replay(NamedTuple):
    """What to replay, and what to call it.

    Attributes
    ----------
    title : str
        "TRACE by MAPPING on TOPOLOGY".
    calls : Trace, Folded or None
        What the program was lowered from; None of traffic.
    """

    title: str
    program: Program
    network: Topology
    node_of: Mapping
    parameters: Parameters
    calls: Trace | Folded | None


class Unplaced(NamedTuple):
    """What to replay, as soon as somebody says where the ranks sit; see `Replay`."""

    source: Source
    program: Program
    network: Topology
    parameters: Parameters
    calls: Trace | Folded | None


def read_unplaced(
    trace: str,
    topology: str,
    settings: list[str] | None,
    steps: int | None,
    rounds: int | None,
    *,
    written_out: bool = False,
) -> Unplaced:
    """Read what is to be replayed on what; see `read_replay`."""
    from hopmap.simulator import lower, program_of_traffic
    from hopmap.simulator.parameters.settings import check_settings, configure, parse_settings
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.sources import find_source

    network = topology_from_spec(topology)
    given = parse_settings(settings or [])
    check_settings(dict(given), [network])
    network, parameters = configure(network, given)
    source = find_source(trace)
    calls: Trace | Folded | None = None
    with working(f"reading {source.name}"):
        if steps is not None and source.kind != "benchmark":
            raise typer.BadParameter("--steps: only for a benchmark like lu.C.64")
        if source.has_program:
            if rounds is not None:
                raise typer.BadParameter("--rounds: only for traffic, this is a trace")
            calls = source.trace(steps) if written_out else source.calls(steps)
            program = lower(calls, parameters.algorithms)
        else:
            program = program_of_traffic(source.traffic(), rounds=rounds, name=source.name)
    return Unplaced(source, program, network, parameters, calls)


def read_replay(
    trace: str,
    mapping: Path,
    topology: str,
    settings: list[str] | None,
    steps: int | None,
    rounds: int | None,
    *,
    written_out: bool = False,
) -> Replay:
    """Read what ``simulate`` and ``explain`` are given.

    Parameters
    ----------
    written_out : bool
        Whether a benchmark is to be a `Trace`, without loops.

    Raises
    ------
    typer.BadParameter
        Rounds of a trace, steps of anything but a benchmark.
    SettingError, ParameterError, TopologyError, MappingError, TraceError
        What is given makes no sense.
    """
    from hopmap.scenarios.launchers.mapping_files import read_mapping

    run = read_unplaced(trace, topology, settings, steps, rounds, written_out=written_out)
    node_of = read_mapping(mapping, run.network, run.program.ranks)
    title = f"{run.source.name} by {mapping} on {run.network.spec}"
    return Replay(title, run.program, run.network, node_of, run.parameters, run.calls)
