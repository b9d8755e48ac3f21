"""What a mapping costs: `evaluate`; how long a run takes, and why: `simulate` and `explain`.

`calibrate` fits their parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopmap.errors import expect_between, expect_one_of
from hopmap.progress import Progress
from hopmap.simulator import DEFAULT_ENGINE, ENGINES, ParameterError

from .input_kinds import MappingLike
from .machine import MachineLike, load_mapping
from .outputs import Outputs
from .provenance import with_assumed
from .workload import Workload, WorkloadLike

MOST_DRAWS = 10_000

if TYPE_CHECKING:
    from hopmap.simulator import Explanation, Metrics, Result
    from hopmap.simulator.parameters.calibration import Fit
    from hopmap.simulator.parameters.closed_form import PingPong


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
    place = load_mapping(machine, mapping)  # before anything takes long
    network = place.machine.network
    traffic = workload.traffic(place.machine.algorithms)
    node_of = place.of_ranks(traffic.ranks)
    if draws is not None and place.machine.failures is None:
        raise MetricsError(f"draws {draws}: requires a machine with failures")
    if draws is not None:
        expect_between(MetricsError, f"draws {draws}", draws, 1, MOST_DRAWS)
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
    extrapolate: bool | float = True,
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
    extrapolate : bool or float
        Whether a long run may end once its main loop has settled; `Result.extrapolated` says which
        steps are extrapolated, and how far they may be off. Recorded steps have to repeat exactly.
        A number lets any run end whose error bound is at most that share of the makespan.
    repeat : int
        Additional replays with noise, for the median and interval of `Result.ensemble`. Seeds
        count from "noise.seed". Default levels are 1 % on computation, 10 % on overheads and
        starts that are 1 us late in the mean. The run itself has no noise then.
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
    steady = Steady() if extrapolate else None
    if not isinstance(extrapolate, bool):
        expect_between(ParameterError, f"extrapolate {extrapolate}", extrapolate, 0, 1)
        steady = Steady.within(extrapolate)
    place = load_mapping(machine, mapping)  # before anything takes long
    machine, parameters = place.machine, place.machine.parameters
    program = workload.program(parameters.algorithms)
    node_of = place.of_ranks(program.ranks)
    recording = workload.calls if isinstance(workload.calls, Trace) else None
    outputs.check(program, recording)
    result = replay(
        program,
        machine.network,
        node_of,
        parameters=parameters,
        engine=engine,
        record=outputs.record,
        steady=steady,
        repeat=repeat,
        progress=progress,
    )
    result = with_assumed(result, machine.settings, generated=workload.generated)
    by = "" if place.name == "mapping" else f" by {Path(place.name).name}"
    title = f"{workload.name}{by} on {result.topology}, engine {engine}"
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
    place = load_mapping(machine, mapping)
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


def calibrate(
    pingpong: str | Path | PingPong,
    *,
    hops: int | None = None,
    round_trip: bool = False,
    unit: str | Sequence[str] = (),
) -> Fit:
    """Fit links and end points of the model to measured ping-pongs.

    Parameters
    ----------
    pingpong : path or PingPong
        CSV ``bytes,time_us[,hops]``, or what osu_latency or IMB-MPI1 PingPong printed.
    hops : int
        Links between the nodes, 1 when left out; not of a file with a column of them.
    round_trip : bool
        Whether times are of whole round trips, not of half.
    unit : str or sequence of str
        Units of times and sizes, like "us" and "B", where the file has none.

    Returns
    -------
    Fit
        Its ``parameters`` are what `Machine` takes as settings; seconds, bytes, bytes/s.

    Raises
    ------
    PingPongError, ParameterError
        A file that cannot be read so, or measurements that nothing can be fitted to.
    """
    from hopmap.simulator.parameters.calibration import calibrate as fit
    from hopmap.simulator.parameters.closed_form import PingPong
    from hopmap.simulator.parameters.pingpong_files import read_pingpong

    if isinstance(pingpong, PingPong):
        return fit(pingpong)
    return fit(read_pingpong(pingpong, hops=hops, round_trip=round_trip, unit=unit), str(pingpong))


def check_engine(engine: str) -> None:
    """Raise `ParameterError` for an engine that there is not."""
    expect_one_of(ParameterError, "unknown engine", engine, ENGINES)
