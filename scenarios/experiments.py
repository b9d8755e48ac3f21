"""Many runs at once: sweeps, described in Python or by a scenario file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w

from hopmap.api.machine import Machine, MachineLike
from hopmap.api.workload import Workload, WorkloadLike
from hopmap.progress import Progress
from hopmap.topologies import Topology, topology_from_spec
from hopmap.topologies.spec import FILE
from hopmap.traces import Traffic, save_traffic
from hopmap.traces.safety.atomic_files import write_text
from hopmap.traces.sources import FileSource, Source

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
    """
    path = scenario_path(scenario)
    results = Path("results") / path.stem if out is None else Path(out)
    loaded = load_scenario(path, set)
    return run(path, loaded, results, workers=Workers(workers), changes=set, progress=progress)


def sweep(
    workloads: WorkloadLike | Sequence[WorkloadLike],
    machines: MachineLike | Sequence[MachineLike],
    mappers: str | Sequence[str],
    *,
    seeds: int | Sequence[int] = 0,
    replay: Mapping[str, Any] | bool = True,
    vary: Sequence[Mapping[str, Any]] = (),
    out: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Place every workload on every machine with every mapper, measure it and replay it.

    Parameters
    ----------
    workloads : one or several of Workload, str, Path, Source or Traffic
        With the same steps, rounds and collectives for all.
    machines : one or several of Machine or str
        With the same settings.
    mappers : one or several pipelines
    seeds : one or several
    replay : mapping or bool
        The table [replay] of a scenario, like ``{"engine": "flow", "repeat": 20}``; False measures
        only.
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
        A row for each run, see `docs/how-to/query-results.md`. Failed runs have an ``error``.
    """
    what = [Workload.of(each) for each in _as_list(workloads)]
    where = [Machine.of(each) for each in _as_list(machines)]
    if isinstance(replay, bool):
        replay = {} if replay else {"engine": False}
    place = tempfile.TemporaryDirectory() if out is None else nullcontext(str(out))
    with place as name:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        taken = {key: _common(what, key) for key in ("steps", "rounds")}
        table: dict[str, Any] = {
            "name": "sweep",
            "traces": [_trace(each, number, folder) for number, each in enumerate(what)],
            "topologies": [_spec(each) for each in where],
            "mappers": _as_list(mappers),
            "seeds": _as_list(seeds),
            "collectives": _common(what, "collectives"),
            "balanced": _common(where, "balanced"),
            "replay": {key: value for key, value in taken.items() if value} | dict(replay),
            "parameters": dict(_common(where, "settings")),
            "vary": [dict(each) for each in vary],
        }
        path = folder / "sweep.toml"
        said = {key: value for key, value in table.items() if value not in ({}, [])}
        write_text(path, tomli_w.dumps(said))
        try:
            loaded = load_scenario(path)
        except ScenarioError as error:  # this file is hopmap's own, so name the sweep instead
            raise ScenarioError(str(error).replace(f"{path}: ", "sweep: ", 1)) from None
        outcome = run(path, loaded, folder, workers=Workers(workers), progress=progress)
        return outcome.to_frame()


def _as_list(value: Any) -> list[Any]:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    return list(value) if several else [value]


def _common(values: Sequence[Workload] | Sequence[Machine], name: str) -> Any:
    """Return the value that all of them share, as a scenario has it once."""
    found = [getattr(each, name) for each in values]
    if any(each != found[0] for each in found):
        raise ScenarioError(f"{name}: {found}: expected the same of all, or `vary`")
    return found[0]


def _trace(workload: Workload, number: int, folder: Path) -> str:
    """Return what a scenario in the folder calls it."""
    if workload.rma != "include" or not workload.loops:
        raise ScenarioError(f"{workload.name}: a sweep counts one-sided messages and keeps loops")
    source = workload.source
    if isinstance(source, Traffic):
        path = folder / f"traffic-{number}.npz"
        save_traffic(path, source)
        return path.name
    if isinstance(source, Source):
        source = source.path if isinstance(source, FileSource) else source.name
    if not isinstance(source, str | Path):
        raise ScenarioError(f"{workload.name}: expected a path, a name or traffic")
    path = Path(source)
    return str(path.absolute()) if path.exists() else str(source)


def _spec(machine: Machine) -> str:
    """Return the spec of a network that is as its spec says, wherever the scenario lies."""
    network = machine.network if machine.topology is None else machine.topology
    plain = topology_from_spec(network if isinstance(network, str) else network.spec)
    if isinstance(network, Topology):
        if plain.kinds != network.kinds:
            raise ScenarioError(f"{network.spec}: its links were set: expected settings for that")
        if not np.array_equal(plain.slots, network.slots):
            raise ScenarioError(f"{network.spec}: some of its nodes only: expected a whole network")
    machine.expect_alone("sweep")
    if machine.is_named or machine.imbalance is not None:
        what = "hosts of a job" if machine.is_named else "an imbalance"
        raise ScenarioError(f"{plain.spec}: {what}: expected a spec, like job:HOSTS@SPEC")
    if machine.failures is not None:
        return f"failed:{machine.failures}@{_spec(replace(machine, failures=None))}"
    spec = plain.spec
    return FILE + str(Path(spec.removeprefix(FILE)).absolute()) if spec.startswith(FILE) else spec
