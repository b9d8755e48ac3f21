"""Many questions at once: sweeps, given in Python or by a scenario file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from hopmap.progress import Progress
from hopmap.simulator import DEFAULT_ENGINE
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.spec import FILE
from hopmap.traces import Traffic, save_traffic
from hopmap.traces.safety.atomic_files import replacing
from hopmap.traces.sources import FileSource, Source

from .given import GivenSettings
from .results.store import load_runs
from .sweep import ScenarioError
from .sweep.run import SweepOutcome
from .sweep.run import run_scenario as run
from .sweep.scenario_files import load_scenario, scenario_path
from .sweep.workers import Workers

if TYPE_CHECKING:
    import pandas as pd


def run_scenario(
    scenario: str | Path,
    out: str | Path | None = None,
    *,
    set: Sequence[str] = (),  # noqa: A002 - as on the command line
    workers: int = 1,
    progress: Progress | None = None,
) -> SweepOutcome:
    """Do what is missing of a scenario.

    Parameters
    ----------
    scenario : str or Path
        A TOML file, or the name of a shipped one; see ``hopmap list scenarios``.
    out : path, optional
        Folder of results; results/NAME when left out.
    set : sequence of str
        Changes like "replay.engine=flow".
    workers : int
        Processes to share the runs.

    Returns
    -------
    SweepOutcome
        How many runs were done; ``results`` is the folder, ``to_frame()`` the table.

    Raises
    ------
    ScenarioError, TraceError, WorkerError, OSError
        See `hopmap.scenarios.sweep.run.run_scenario`.
    """
    path = scenario_path(scenario)
    results = Path("results") / path.stem if out is None else Path(out)
    loaded = load_scenario(path, set)
    return run(path, loaded, results, workers=Workers(workers), changes=set, progress=progress)


def sweep(
    traces: str | Path | Source | Traffic | Sequence[str | Path | Source | Traffic],
    topologies: str | Topology | Sequence[str | Topology],
    mappers: str | Sequence[str],
    *,
    seeds: int | Sequence[int] = 0,
    engine: str | bool = DEFAULT_ENGINE,
    steps: int | None = None,
    rounds: int | None = None,
    exact: bool = False,
    repeat: int | None = None,
    collectives: str = "auto",
    spread: bool = False,
    settings: GivenSettings = None,
    vary: Sequence[Mapping[str, Any]] = (),
    out: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Place every trace on every topology with every mapper, measure it and replay it.

    Parameters
    ----------
    traces : one or several of str, Path, Source or Traffic
    topologies : one or several specs
    mappers : one or several pipelines
    seeds : one or several
    engine : str or False
        Of the replay; False measures only.
    repeat : int, optional
        How often to replay every run with noise, for the columns ``makespan_median``, ``_low`` and
        ``_high``, and ``makespans``.
    steps, rounds, exact, collectives, spread, settings : see `simulate` and `map_ranks`
    vary : sequence of mapping
        Tables [[vary]] of a scenario: ``[{"parameters": {"link.latency": ["0.1 us", "1 us"]}}]``.
    out : path, optional
        Folder of results, which is resumed and reported as a scenario's is; kept for this call only
        when left out.
    workers : int
        Processes to share the runs.

    Returns
    -------
    DataFrame
        A row for each run; `docs/SWEEPS.md` lists the columns. Failed runs have an ``error``.

    Raises
    ------
    ScenarioError, TraceError, TopologyError, MappingError, SettingError
        What is given makes no sense.
    """
    where = tempfile.TemporaryDirectory() if out is None else nullcontext(str(out))
    with where as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        replay = {"engine": engine, "steps": steps, "rounds": rounds, "repeat": repeat}
        replay["exact"] = exact or None
        table: dict[str, Any] = {
            "name": "sweep",
            "traces": [_trace(each, place, folder) for place, each in enumerate(_listed(traces))],
            "topologies": [_spec(each) for each in _listed(topologies)],
            "mappers": _listed(mappers),
            "seeds": _listed(seeds),
            "collectives": collectives,
            "balanced": spread,
            "replay": {key: value for key, value in replay.items() if value is not None},
            "parameters": dict(settings or {}),
            "vary": [dict(each) for each in vary],
        }
        path = folder / "sweep.toml"
        said = {key: value for key, value in table.items() if value not in ({}, [])}
        with replacing(path) as partial:
            partial.write_text(tomli_w.dumps(said), "utf-8")
        try:
            loaded = load_scenario(path)
        except ScenarioError as error:  # nobody but us wrote this file
            raise ScenarioError(str(error).replace(f"{path}: ", "sweep: ", 1)) from None
        outcome = run(path, loaded, folder, workers=Workers(workers), progress=progress)
        return outcome.to_frame()


def _listed(given: Any) -> list[Any]:
    one = isinstance(given, str | Path | Source | Traffic | Topology | int)
    return [given] if one else list(given)


def _trace(given: str | Path | Source | Traffic, place: int, folder: Path) -> str:
    """Return what a scenario in the folder calls it."""
    if isinstance(given, Traffic):
        path = folder / f"traffic-{place}.npz"
        save_traffic(path, given)
        return path.name
    if isinstance(given, Source):
        given = given.path if isinstance(given, FileSource) else given.name
    path = Path(given)
    return str(path.absolute()) if path.exists() else str(given)


def _spec(given: str | Topology) -> str:
    """Return the spec of a network that is as its spec says, wherever the scenario lies."""
    plain = topology_from_spec(given if isinstance(given, str) else given.spec)
    if isinstance(given, Topology):
        if plain.kinds != given.kinds:
            raise ScenarioError(f"{given.spec}: its links were set: expected settings= for that")
        if not np.array_equal(plain.slots, given.slots):
            raise ScenarioError(f"{given.spec}: some of its nodes only: expected a whole network")
    spec = plain.spec
    return FILE + str(Path(spec.removeprefix(FILE)).absolute()) if spec.startswith(FILE) else spec


def load_results(folder: str | Path) -> pd.DataFrame:
    """Return the finished runs of a folder of results, a row each; `docs/SWEEPS.md` lists columns.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    return load_runs(folder)
