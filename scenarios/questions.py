"""The questions that hopmap answers: where ranks should sit, what that costs, how long it runs.

Every function takes what `given.py` describes; its parameters are called as on the command line.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path

from hopmap.errors import HopmapWarning
from hopmap.mappers import LOAD, OBJECTIVES, Function, parse_pipeline
from hopmap.mappers import map_ranks as place
from hopmap.mappers.budget import Interrupted
from hopmap.mappers.objectives import objective_value, unknown_objective
from hopmap.mappers.timing import timed_mapping
from hopmap.progress import Progress
from hopmap.scenarios.launchers.node_names import on_job
from hopmap.simulator import (
    DEFAULT_ENGINE,
    ENGINES,
    Explanation,
    Metrics,
    ParameterError,
    Result,
    Steady,
)
from hopmap.simulator import evaluate as measure
from hopmap.simulator import explain as why
from hopmap.simulator import simulate as replay
from hopmap.simulator.parameters.calibration import Fit, PingPong
from hopmap.simulator.parameters.calibration import calibrate as fitted
from hopmap.simulator.parameters.keys import names_algorithm, unknown
from hopmap.simulator.parameters.pingpong_files import read_pingpong
from hopmap.topologies import Mapping, MappingError, Topology, check_mapping
from hopmap.traces import Trace, Traffic

from .assumed import assumed
from .given import (
    Given,
    GivenMapping,
    GivenSettings,
    GivenTopology,
    ReplayInput,
    algorithms_of,
    configured,
    mapping_given,
    name_of,
    on_network,
    replay_given,
    traffic_given,
)
from .mistaken import TRACE, expect
from .placement import Placement
from .run_files import RunFiles
from .simulated_objective import SIMULATED, Simulated

LAUNCHED = "identity"
"""The mapper that places ranks as launchers do when nobody asks."""
BINS = 256
"""Time steps of the use of links, at most, unless told otherwise."""


def map_ranks(
    given: Given,
    topology: GivenTopology,
    mapper: str = "auto",
    *,
    seed: int = 0,
    seconds: float | None = None,
    initial: GivenMapping | None = None,
    objective: str | Function | None = None,
    engine: str | None = None,
    names: str | Path | None = None,
    hosts: str | Path | None = None,
    nodelist: str | None = None,
    spread: bool = False,
    collectives: str = "ignore",
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
    keep_interrupted: bool = False,
    progress: Progress | None = None,
) -> Placement:
    """Place ranks on nodes.

    Parameters
    ----------
    given : str, Path, Source, Trace, Folded, Program or Traffic
        Who talks to whom.
    topology : str or Topology
    mapper : str
        A pipeline, like "minmd | bokhari(jumps=8)"; see ``hopmap list mappers``.
    seed : int
        The same seed gives the same mapping.
    seconds : float, optional
        Time budget of searches.
    initial : mapping, optional
        What the first mapper starts from.
    objective : str or callable, optional
        "hop_bytes", "hop_messages", "cardinality", "max_link_load"; "makespan" or "energy", which
        replay every mapping that is looked at; or a function of the mapping. When left out, each
        mapper's own.
    engine : str, optional
        Of "makespan" and "energy".
    names : path or str, optional
        What all nodes of the machine are called, in order of their numbers: a file, one a line, or
        Slurm's list.
    hosts, nodelist : optional
        A file with the nodes that the job has, one host a line; or Slurm's list of them. On a
        network without names, as many as it has nodes, they are what these are called.
    spread : bool
        Whether every node takes as many ranks as any other that has room, one more at most. All
        mappers fill nodes otherwise, or as few as their objective wants.
    collectives : {"ignore", "expand"}
        Whether to count what collectives send.
    settings : mapping, optional
        Like ``{"link.bandwidth": "25 Gbit/s"}``: of "makespan" and "energy" any parameter, of
        expanded collectives their algorithms.
    steps, rounds : int, optional
        Of "makespan" and "energy"; see `simulate`.
    keep_interrupted : bool
        Whether Ctrl-C in a search ends it with the best mapping so far, and not with
        KeyboardInterrupt; `Placement.interrupted` says so.
    progress : Progress, optional

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, ParameterError
        What is given makes no sense, or does not fit.

    Examples
    --------
    >>> placement = map_ranks("lu.S.16", "torus:4x4", "minmd")
    >>> len(placement)
    16
    """
    expect(TRACE, given)
    pipeline = parse_pipeline(mapper)
    if initial is not None and pipeline[0].info.initial == "ignored":
        raise MappingError(f"initial: {pipeline[0].info.name} starts from no mapping")
    network = on_job(configured(topology)[0], names, hosts, nodelist)
    if initial is not None:
        mapping_given(initial, network, None)  # before anything takes long
    goal: str | Function | None = objective
    if isinstance(objective, str) and objective in SIMULATED:
        expect_engine(engine)
        run = replay_given(given, topology, settings=settings, steps=steps, rounds=rounds)
        network = on_job(run.network, names, hosts, nodelist)
        goal = Simulated(objective, run, engine or DEFAULT_ENGINE)
        if collectives == "expand":
            traffic = run.program.traffic()
        else:
            traffic = traffic_given(given, collectives).traffic
    else:
        given_too = {"engine": engine, "steps": steps, "rounds": rounds}
        for name, value in given_too.items():
            if value is not None:
                raise ParameterError(f"{name} {value}: expected objective makespan with it")
        if isinstance(objective, str) and objective not in (known := (*OBJECTIVES, LOAD)):
            raise unknown_objective(objective, (*known, *SIMULATED))
        for key in settings or {}:
            if not names_algorithm(key):
                raise ParameterError(f"{key}: expected objective makespan with it")
        traffic = traffic_given(given, collectives, algorithms_of(settings)).traffic
    room = network.evenly(traffic.ranks) if spread else network
    start = None if initial is None else mapping_given(initial, network, traffic.ranks)
    interrupted, begin = False, time.perf_counter()
    reasons: list[str] = []
    try:
        node_of, took = timed_mapping(
            traffic,
            room,
            mapper,
            seed=seed,
            seconds=seconds,
            initial=start,
            objective=goal,
            progress=progress,
            stopped=reasons.append,
        )
    except Interrupted as stop:
        if not keep_interrupted:
            raise
        interrupted, took = True, time.perf_counter() - begin
        node_of = check_mapping(stop.mapping, room, traffic.ranks)
    replays = goal.replays if isinstance(goal, Simulated) else 0
    if isinstance(goal, Simulated) and seconds is not None and replays < 2 and not interrupted:
        warnings.warn(
            f"--seconds {seconds:g} was over after {replays or 'no'} replay, so that no other "
            "mapping was tried: expected a longer budget, fewer --steps or a faster --engine",
            HopmapWarning,
            stacklevel=2,
        )
    valued = None
    if goal is not None:
        first = place(traffic, room, "sweep") if start is None else start
        before, after = (_value(goal, traffic, network, each) for each in (first, node_of))
        valued = (objective if isinstance(objective, str) else "function", before, after)
    words = " | ".join(map(str, pipeline))
    launched = place(traffic, room, LAUNCHED)
    return Placement(
        *(name_of(given), node_of, traffic, network, words, took, valued, replays),
        launched=launched,
        interrupted=interrupted,
        stopped=reasons[-1] if reasons else None,
    )


def expect_engine(engine: str | None) -> None:
    """Raise `ParameterError` for an engine that there is not."""
    if engine is not None and engine not in ENGINES:
        raise ParameterError(unknown("engine", engine, ENGINES))


def _value(goal: str | Function, traffic: Traffic, network: Topology, node_of: Mapping) -> float:
    if callable(goal):
        return goal(node_of)
    return objective_value(traffic, network, node_of, goal)


def evaluate(
    given: Given,
    topology: GivenTopology | GivenMapping | None = None,
    mapping: GivenMapping | None = None,
    *,
    convention: str = "hopmap",
    collectives: str = "ignore",
    settings: GivenSettings = None,
) -> Metrics:
    """Measure a mapping: what stays on nodes, what crosses links, how far, how evenly.

    Parameters
    ----------
    given : see `map_ranks`
    topology : str or Topology, optional
        That of the mapping when left out: a file and a `Placement` name theirs.
    mapping : file, array or Placement
    convention : {"hopmap", "maplib"}
        Correct, or as the HAEC thesis published.
    collectives, settings : see `map_ranks`

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, MetricsError
        What is given makes no sense, or does not fit.
    """
    expect(TRACE, given)
    named, mapping = on_network(topology, mapping)
    network, _ = configured(named)
    mapping_given(mapping, network, None)
    algorithms = algorithms_of(settings)
    traffic = traffic_given(given, collectives, algorithms).traffic
    return measure(traffic, network, mapping_given(mapping, network, traffic.ranks), convention)


def simulate(
    given: Given,
    topology: GivenTopology | GivenMapping | None = None,
    mapping: GivenMapping | None = None,
    *,
    engine: str | None = None,
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
    exact: bool = False,
    repeat: int = 0,
    otf2: str | Path | None = None,
    perfetto: str | Path | None = None,
    links: str | Path | tuple[str | Path, ...] = (),
    bins: int = BINS,
    progress: Progress | None = None,
) -> Result:
    """Replay a trace, or traffic in rounds, over the network under a mapping.

    Parameters
    ----------
    given, topology, mapping : see `evaluate`
    engine : str, optional
        "compiled" when left out; see ``hopmap list engines``.
    settings : mapping, optional
        Any parameter; see ``hopmap list parameters``.
    steps : int, optional
        Time steps of a benchmark, instead of all.
    rounds : int, optional
        Rounds in which traffic is sent; see `program_of_source`.
    exact : bool
        Whether to replay all steps of a long run that could be extrapolated from its first ones;
        `Result.extrapolated` says what was, and how far it may be off.
    repeat : int
        How often to replay with noise besides, for `Result.ensemble`: median and interval. Seeds
        count from "noise.seed"; levels are those that are set, or 1 % on computation, 10 % on
        overheads and starts that are 1 us late in the mean. The run itself has no noise then.
    otf2, perfetto : path, optional
        An archive, or JSON for ui.perfetto.dev, to write of the run.
    links : path or several, optional
        Use of links over time to write: a table (.parquet) or a figure (.svg, .png, .pdf).
    bins : int
        Most time steps of `links`; more than half are used.

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, ParameterError
        What is given makes no sense, or does not fit.
    DeadlockError
        The run gets stuck.
    """
    several = links if isinstance(links, tuple) else (links,)
    files = RunFiles(_path(otf2), _path(perfetto), tuple(map(Path, several)))
    files.check()
    expect(TRACE, given)
    expect_engine(engine)
    network, mapping = on_network(topology, mapping)
    mapping_given(mapping, configured(network)[0], None)
    run = replay_given(
        given,
        network,
        settings=settings,
        steps=steps,
        rounds=rounds,
        written_out=files.written_out,
    )
    node_of = mapping_given(mapping, run.network, run.program.ranks)
    return replayed(
        *(run, node_of, engine or DEFAULT_ENGINE, files, bins),
        exact=exact,
        repeat=repeat,
        progress=progress,
    )


def replayed(
    run: ReplayInput,
    node_of: Mapping,
    engine: str,
    files: RunFiles,
    bins: int,
    *,
    exact: bool = False,
    repeat: int = 0,
    title: str = "",
    progress: Progress | None = None,
) -> Result:
    """Replay what is ready, and write the files that are asked for; see `simulate`."""
    files.expect_writable(run.program)
    result = replay(
        run.program,
        run.network,
        node_of,
        parameters=run.parameters,
        engine=engine,
        record_operations=files.operations,
        record_links=bins if files.links else 0,
        steady=None if exact else Steady(),
        repeat=repeat,
        progress=progress,
    )
    rests_on = assumed(result, run.network, run.settings or {}, generated=run.generated)
    result = replace(result, assumed=rests_on)
    recording = run.calls if isinstance(run.calls, Trace) else None
    title = title or f"{run.name} on {run.network.spec}, engine {engine}"
    files.write(recording, run.program, result, run.network, node_of, title)
    return result


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


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
        Its ``parameters`` are what `simulate` takes as settings; seconds, bytes, bytes/s.

    Raises
    ------
    PingPongError, ParameterError
        A file that cannot be read so, or measurements that nothing can be fitted to.
    """
    if isinstance(pingpong, PingPong):
        return fitted(pingpong)
    return fitted(read_pingpong(pingpong, hops=hops, round_trip=round_trip), str(pingpong))


def explain(
    given: Given,
    topology: GivenTopology | GivenMapping | None = None,
    mapping: GivenMapping | None = None,
    *,
    settings: GivenSettings = None,
    steps: int | None = None,
    rounds: int | None = None,
    top: int = 5,
    doubled: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Say why a run takes as long as it does: critical path, bounds, bottlenecks, sensitivity.

    Parameters
    ----------
    given, topology, mapping, settings, steps, rounds : see `simulate`
    top : int
        Servers and rank pairs to list.
    doubled : bool
        Whether to replay with each parameter doubled, too.

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, ParameterError, DeadlockError
        See `simulate`.
    """
    expect(TRACE, given)
    network, mapping = on_network(topology, mapping)
    mapping_given(mapping, configured(network)[0], None)
    run = replay_given(given, network, settings=settings, steps=steps, rounds=rounds)
    node_of = mapping_given(mapping, run.network, run.program.ranks)
    return why(
        run.program,
        run.network,
        node_of,
        parameters=run.parameters,
        top=top,
        doubled=doubled,
        progress=progress,
    )
