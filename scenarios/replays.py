"""The questions that a replay answers: how long a run takes, why, and with which parameters.

Every function takes what `given.py` describes; its parameters are called as on the command line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hopmap.errors import choice
from hopmap.progress import Progress
from hopmap.simulator import DEFAULT_ENGINE, ENGINES, ParameterError
from hopmap.topologies import Mapping

from .given import (
    Given,
    GivenMapping,
    GivenSettings,
    GivenTopology,
    ReplayInput,
    configured,
    mapping_given,
    on_network,
    replay_given,
)
from .mistaken import TRACE, expect

if TYPE_CHECKING:
    from hopmap.simulator import Explanation, Result
    from hopmap.simulator.parameters.calibration import Fit, PingPong

    from .run_files import RunFiles

BINS = 256
"""Time steps of the use of links, at most, unless told otherwise."""


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
    given, topology, mapping : see `hopmap.evaluate`
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
    from .run_files import RunFiles

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
    from hopmap.simulator import Steady
    from hopmap.simulator import simulate as replay
    from hopmap.traces import Trace

    from .assumed import assumed

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
    from hopmap.simulator import explain as why

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
    from hopmap.simulator.parameters.calibration import PingPong
    from hopmap.simulator.parameters.calibration import calibrate as fitted
    from hopmap.simulator.parameters.pingpong_files import read_pingpong

    if isinstance(pingpong, PingPong):
        return fitted(pingpong)
    return fitted(read_pingpong(pingpong, hops=hops, round_trip=round_trip), str(pingpong))


def expect_engine(engine: str | None) -> None:
    """Raise `ParameterError` for an engine that there is not."""
    if engine is not None and engine not in ENGINES:
        raise ParameterError(choice("unknown engine", engine, ENGINES))


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
