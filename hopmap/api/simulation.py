"""What a mapping costs: `evaluate`; how long a run takes, and why: `simulate` and `explain`.

`calibrate` fits their parameters. Those that a replay used and that are assumed, neither measured
nor published, stand with its result: `with_assumed`. `Outputs` are what `simulate` writes about a
run besides its summary: archive, timeline, use of links.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import numpy as np

from hopmap.errors import HopmapError, expect_one_of
from hopmap.progress import Progress
from hopmap.simulator import DEFAULT_ENGINE, ENGINES, ParameterError
from hopmap.simulator.noise import USUAL
from hopmap.simulator.parameters.keys import ASSUMED
from hopmap.topologies import PRESETS, Topology, provenance

from .input_kinds import MappingLike
from .machine import MachineLike, placed
from .workload import Workload, WorkloadLike

if TYPE_CHECKING:
    from hopmap.simulator import Explanation, Metrics, Program, Record, Result
    from hopmap.simulator.parameters.calibration import Fit, PingPong
    from hopmap.traces import Trace

WRITE_FIGURE = "hopmap.figures.link_use:write_link_use_plot"
"""Drawing stands above what is drawn, and is loaded only where a figure is asked for."""
LINK_FILES = (".parquet", ".svg", ".png", ".pdf")
BINS = 256


class OutputError(HopmapError, ValueError):
    """A file that a run cannot be written into."""


@dataclass(frozen=True)
class Outputs:
    """Files to write of a run.

    Attributes
    ----------
    otf2 : path, optional
        An archive, for Vampir.
    perfetto : path, optional
        JSON for ui.perfetto.dev.
    links : sequence of path
        Use of links over time: tables (.parquet) or figures (.svg, .png, .pdf).
    bins : int
        Most time steps of `links`; more than half are used.

    Raises
    ------
    OutputError
        A file for the use of links that is neither a table nor a figure.
    """

    otf2: str | Path | None = None
    perfetto: str | Path | None = None
    links: tuple[str | Path, ...] = ()
    bins: int = BINS

    def __post_init__(self) -> None:
        for path in map(Path, self.links):
            if path.suffix not in LINK_FILES:
                known = ", ".join(LINK_FILES)
                raise OutputError(f"--links {path}: expected a name ending in {known}")

    @property
    def record(self) -> Record:
        """What a replay has to record for them."""
        from hopmap.simulator import Record

        operations = self.otf2 is not None or self.perfetto is not None
        return Record(operations=operations, bins=self.bins if self.links else 0)

    @property
    def paths(self) -> list[Path]:
        """All that is written."""
        return [Path(path) for path in (self.otf2, self.perfetto, *self.links) if path is not None]

    def check_size(self, program: Program) -> None:
        """Raise `ViewerError` for a timeline that is too long for its viewers."""
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import expect_viewable

            expect_viewable(Path(self.perfetto), program)

    def write(self, result: Result, title: str, recording: Trace | None = None) -> None:
        """Write all of it.

        `recording` is what the program was lowered from; without it, the archive has the
        program's operations as calls.
        """
        from hopmap.simulator.link_use import write_link_use

        program, network, node_of = result.program, result.network, result.node_of
        assert program is not None and network is not None and node_of is not None
        if self.otf2 is not None:
            from hopmap.simulator import retimed, trace_of_program
            from hopmap.traces import write_trace

            if recording is None:
                run = trace_of_program(program, result)
            else:
                run = retimed(recording, program, result)
            write_trace(run, Path(self.otf2), node_of=node_of)
        if self.perfetto is not None:
            from hopmap.simulator.export.perfetto import write_perfetto

            write_perfetto(Path(self.perfetto), program, result, network, node_of)
        for path in map(Path, self.links):
            use, makespan = result.link_use, result.makespan
            assert use is not None
            if path.suffix == ".parquet":
                write_link_use(path, use, network)
            else:
                resolve_name(WRITE_FIGURE)(path, use, network, makespan=makespan, title=title)


def evaluate(
    workload: WorkloadLike,
    machine: MachineLike | MappingLike | None = None,
    mapping: MappingLike | None = None,
    *,
    convention: str = "hopmap",
    top: int = 5,
    draws: int | None = None,
) -> Metrics:
    """Measure a mapping: what stays on nodes, what crosses links, how far, how evenly.

    Parameters
    ----------
    workload : Workload, or what it takes
        Who talks to whom: a trace, a benchmark, traffic.
    machine : Machine, str or Topology, optional
        That of the mapping when left out: a file and a `Placement` name theirs.
    mapping : file, array or Placement
    convention : {"hopmap", "maplib"}
        Correct, or as the HAEC thesis published.
    top : int
        Busiest links to find, by the convention "hopmap"; see `Metrics.hot_links`.
    draws : int, optional
        How often to draw failures that are drawn, with the seeds 0, 1, ...; on a machine with
        failures `Metrics.failure_impact` compares with the whole network.
    """
    from hopmap.simulator import MetricsError, hot_links
    from hopmap.simulator import evaluate as measure
    from hopmap.simulator.metrics.failure_impact import failure_impact

    workload = Workload.of(workload)
    place = placed(machine, mapping)  # before anything takes long
    network = place.machine.network
    traffic = workload.traffic(place.machine.algorithms)
    node_of = place.of_ranks(traffic.ranks)
    if draws is not None and place.machine.failures is None:
        raise MetricsError(f"draws {draws}: requires a machine with failures")
    metrics = measure(traffic, network, node_of, convention)
    if convention == "hopmap":
        metrics = replace(metrics, hot_links=hot_links(traffic, network, node_of, top=top))
    if place.machine.failures is not None:
        whole = replace(place.machine, failures=None).network
        impact = failure_impact(traffic, whole, node_of, place.machine.failures, draws)
        metrics = replace(metrics, failure_impact=impact)
    return metrics


def simulate(
    workload: WorkloadLike,
    machine: MachineLike | MappingLike | None = None,
    mapping: MappingLike | None = None,
    *,
    engine: str = DEFAULT_ENGINE,
    extrapolate: bool = True,
    repeat: int = 0,
    outputs: Outputs | None = None,
    progress: Progress | None = None,
) -> Result:
    """Replay a trace, or traffic in rounds, over the network under a mapping.

    Parameters
    ----------
    workload, machine, mapping : see `hopmap.evaluate`
    engine : str
        See ``hopmap list engines``.
    extrapolate : bool
        Whether a long run may end once its main loop has settled; `Result.extrapolated` says which
        steps are extrapolated, and how far they may be off.
    repeat : int
        How often to replay with noise besides, for `Result.ensemble`: median and interval. Seeds
        count from "noise.seed"; levels are those that are set, or 1 % on computation, 10 % on
        overheads and starts that are 1 us late in the mean. The run itself has no noise then.
    outputs : Outputs, optional
        Files to write of the run.

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, ParameterError
        Something makes no sense, or does not fit.
    DeadlockError
        The run gets stuck.
    """
    from hopmap.simulator import Steady
    from hopmap.simulator import simulate as replay
    from hopmap.traces import Trace

    outputs = outputs or Outputs()
    workload = Workload.of(workload)
    if outputs.otf2 is not None:
        workload = replace(workload, loops=False)
    check_engine(engine)
    place = placed(machine, mapping)  # before anything takes long
    machine, parameters = place.machine, place.machine.parameters
    program = workload.program(parameters.algorithms)
    node_of = place.of_ranks(program.ranks)
    outputs.check_size(program)
    result = replay(
        program,
        machine.network,
        node_of,
        parameters=parameters,
        engine=engine,
        record=outputs.record,
        steady=Steady() if extrapolate else None,
        repeat=repeat,
        progress=progress,
    )
    result = with_assumed(result, machine.settings, generated=workload.generated)
    by = "" if place.name == "mapping" else f" by {place.name}"
    title = f"{workload.name}{by} on {result.topology}, engine {engine}"
    recording = workload.calls if isinstance(workload.calls, Trace) else None
    outputs.write(result, title, recording)
    return result


def explain(
    workload: WorkloadLike,
    machine: MachineLike | MappingLike | None = None,
    mapping: MappingLike | None = None,
    *,
    top: int = 5,
    sensitivity: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Say why a run takes as long as it does: critical path, bounds, bottlenecks, sensitivity.

    Parameters
    ----------
    workload, machine, mapping : see `simulate`
    top : int
        Servers and rank pairs to list.
    sensitivity : bool
        Whether to replay with each parameter doubled, too.
    """
    from hopmap.simulator import explain as explain_program

    workload = Workload.of(workload)
    place = placed(machine, mapping)
    program = workload.program(place.machine.parameters.algorithms)
    return explain_program(
        program,
        place.machine.network,
        place.of_ranks(program.ranks),
        parameters=place.machine.parameters,
        top=top,
        sensitivity=sensitivity,
        progress=progress,
    )


def calibrate(pingpong: str | Path | PingPong, *, hops: int = 1, round_trip: bool = False) -> Fit:
    """Fit links and end points of the model to measured ping-pongs.

    Parameters
    ----------
    pingpong : path or PingPong
        CSV ``size,time[,hops]``, or what osu_latency or IMB-MPI1 PingPong printed.
    hops : int
        Links between the nodes if the file has no such column.
    round_trip : bool
        Whether times are of whole round trips, not of half.

    Returns
    -------
    Fit
        Its ``parameters`` are what `Machine` takes as settings; seconds, bytes, bytes/s.

    Raises
    ------
    PingPongError, ParameterError
        A file that cannot be read so, or measurements that nothing can be fitted to.
    """
    from hopmap.simulator.parameters.calibration import PingPong
    from hopmap.simulator.parameters.calibration import calibrate as fit
    from hopmap.simulator.parameters.pingpong_files import read_pingpong

    if isinstance(pingpong, PingPong):
        return fit(pingpong)
    return fit(read_pingpong(pingpong, hops=hops, round_trip=round_trip), str(pingpong))


def check_engine(engine: str) -> None:
    """Raise `ParameterError` for an engine that there is not."""
    expect_one_of(ParameterError, "unknown engine", engine, ENGINES)


def with_assumed(result: Result, settings: Collection[str], *, generated: bool) -> Result:
    """Return a result that names the parameters that the run used and that are assumed, by key.

    `settings` are keys that the user has set. Where a run is `generated`, its rate of computation
    is assumed, too: "compute.scale".
    """
    network = result.network
    assert network is not None
    computes = generated and bool(result.compute.any()) and "compute.scale" not in settings
    # levels of an ensemble that are the usual ones, apart from what has a source
    levels = {key.replace("_", ".") for key in USUAL}
    usual = result.ensemble is not None and levels.isdisjoint(settings)
    assumed = [
        *(["compute.scale"] if computes else []),
        *_links(result, network),
        *(key for key in _ends(result, network) if key not in settings),
        *(("noise.overhead", "noise.start") if usual else ()),
    ]
    return replace(result, assumed=assumed)


def _links(result: Result, network: Topology) -> Iterator[str]:
    """Yield those of links that carried anything, if only a message of no bytes."""
    carried = (result.link_messages > 0) | (result.link_busy > 0)  # busy with requests and grants
    used = np.unique(network.link_kind[carried])
    for kind in (network.kinds[place] for place in used.tolist()):
        prefix = "link" if len(network.kinds) == 1 else f"link.{kind.name}"
        for quantity, source in zip(("bandwidth", "latency"), kind.sources, strict=True):
            if provenance(source) == "assumed":
                yield f"{prefix}.{quantity}"


def _ends(result: Result, network: Topology) -> Iterator[str]:
    """Yield those of the model, as the machine has them or else by default."""
    machine = PRESETS.get(network.spec.removeprefix("preset:").partition("*")[0])
    sources = {} if machine is None else {k: f.source for k, f in machine.parameters.items()}
    used = {"control_bytes": result.controls > 0, "memory": bool(result.memory.messages.any())}
    for key in dict.fromkeys((*ASSUMED, *network.parameters)):
        source = sources.get(key, "assumed" if key in ASSUMED else "")
        if provenance(source) == "assumed" and used.get(key.partition(".")[0], True):
            yield key


def format_keys(keys: Sequence[str]) -> str:
    """Write keys in one line: "link.*, memory.latency" where both of a link are among them."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        prefix, _, name = key.rpartition(".")
        groups.setdefault(prefix or name, []).append(key)
    words = [f"{prefix}.*" if len(group) > 1 else group[0] for prefix, group in groups.items()]
    return ", ".join(words)
