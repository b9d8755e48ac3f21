"""The explorer of a folder of results: one of its cases, runtimes over a parameter, regret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hopmap.api.machine import Machine
from hopmap.api.workload import Workload
from hopmap.arrays import Floats
from hopmap.errors import HopmapError
from hopmap.progress import Progress, silent
from hopmap.scenarios.results.plan_file import LOCK, read_traces
from hopmap.scenarios.results.study import Case, Study, load_study
from hopmap.traces.sources import open_source
from hopmap.units import percent

from .explorer import Explorer, Section, explore

MODELS = 400  # cells in a row of regrets


class ViewError(HopmapError, ValueError):
    """Results or a file of which there is no page."""


def explore_results(
    folder: str | Path,
    wanted: tuple[str | None, str | None, str | None] = (None, None, None),
    *,
    steps: int | None = None,
    sections: Sequence[Section] = (),
    progress: Progress = silent,
) -> Explorer:
    """Replay the best mapping and the default order of a case of results, and return the page.

    Parameters
    ----------
    folder : path
        What ``hopmap run`` filled.
    wanted : trace, topology and variant, as the report names them, None for any
        Which case; of several the one in which the best mapping saves the largest share of the run.
    steps : int, optional
        Time steps of a benchmark; as many as the scenario replayed when left out.
    sections : sequence of Section
        Appended to the sections of the results.

    Raises
    ------
    ViewError, StoreError
        No such case, results of a measurement alone or of co-running jobs, a trace that changed.
    """
    folder = Path(folder)
    study = load_study(folder)
    if study.scenario.get("co_running_jobs"):
        raise ViewError(f"{folder}: co-running jobs: expected results of one job at a time")
    case = _case(study, wanted)
    machine = Machine(study.spec_of(case.topology), dict(study.settings_of(case)))
    return explore(
        _workload(folder, study, case, steps),
        machine,
        np.asarray(case.best.best["node_of"], dtype=np.int64),
        name=case.best.mapper.strip(),
        baseline=None
        if case.default is None
        else (case.order, np.asarray(case.default.best["node_of"], dtype=np.int64)),
        sections=[*_sections(study, case), *sections],
        progress=progress,
    )


def _case(study: Study, wanted: Sequence[str | None]) -> Case:
    """Return the case by trace, topology and variant that matters most."""

    def saves(case: Case) -> float:
        least, default = case.best.value("makespan"), case.default
        most = None if default is None else default.value("makespan")
        return 0.0 if not most or least is None else 1 - least / most

    replayed = [case for case in study.cases if case.replayed]
    found = [
        case
        for case in replayed
        if all(
            value in (None, own)
            for value, own in zip(wanted, (case.trace, case.topology, case.variant), strict=True)
        )
    ]
    if not found:
        known = "; ".join(f"{case.trace} on {case.where}" for case in replayed[:4])
        raise ViewError(
            f"{study.folder}: no such case was replayed: expected one of {known or 'none'}"
        )
    return max(found, key=saves)


def _workload(folder: Path, study: Study, case: Case, steps: int | None) -> Workload:
    """Open the trace of a case where it lay when it was run."""
    entry = read_traces(folder).get(case.trace)
    if entry is None:
        raise ViewError(f"{folder / LOCK}: expected the table traces with {case.trace}")
    source = open_source(entry.get("path", case.trace))
    if source.digest() != entry.get("digest"):
        raise ViewError(f"{case.trace}: changed since {folder} was made: run the scenario again")
    if steps is None and source.has_steps:
        steps = study.steps
    rounds = None if source.has_program else study.rounds
    return Workload(source, steps, rounds)


def _sections(study: Study, case: Case) -> Iterator[Section]:
    """Yield runtimes over a parameter with their crossings, and regrets over models."""
    from hopmap.figures.style import svg_text
    from hopmap.figures.tips import tips
    from hopmap.report.figures import draw_networks, draw_variation
    from hopmap.report.report import image_uri

    drawn = list(draw_networks(study, case.trace)) or list(draw_variation(study, case.trace))
    pictures = []
    for place, (_, caption, figure) in enumerate(drawn):
        uri, width = image_uri(svg_text(figure)), round(96 * figure.get_figwidth())
        name = f"over-{place}"
        pictures.append(
            {"caption": caption, "uri": uri, "width": width, "tips": tips(figure), "name": name}
        )
    if pictures:
        how = (
            "Where two lines cross, a dashed line has the value: it lies on a straight line in "
            "logarithms between two values that were run."
        )
        yield Section("Runtime over what varies", how, pictures)
    if case.by_models and case.times is not None:
        times = case.times
        yield regret_section(
            [each.mapper.strip() for each in case.entries], times / times.min(0) - 1
        )


def regret_section(
    candidates: Sequence[str], regrets: Floats, settings: Sequence[str] = ()
) -> Section:
    """Return a table of how far candidates are behind the best under each model.

    Regrets have shape (candidates, models), 0.05 is 5 %; NaN where nothing was replayed. `settings`
    says what each model sets, as far as that is known.
    """
    most = float(np.nanmax(regrets)) or 1.0
    rows = []
    for name, row in zip(candidates, regrets, strict=True):
        cells = [
            {
                "tint": round(100 * value / most),
                "words": f"{name}, model {model}: {percent(value)} behind the best"
                + (f" ({settings[model]})" if settings else ""),
            }
            if np.isfinite(value)
            else {"tint": 0, "words": f"{name}, model {model}: not replayed"}
            for model, value in enumerate(row[:MODELS].tolist())
        ]
        rows.append({"name": name, "worst": percent(float(np.nanmax(row))), "cells": cells})
    how = (
        "How much longer a run takes than with the best candidate under the same model of the "
        f"network: a cell a model; the darkest is {percent(most)}."
    )
    if regrets.shape[1] > MODELS:
        how += f" Shown are the first {MODELS} of {regrets.shape[1]} models."
    return Section("Regret, candidates by models", how, (), rows)


def read_regrets(path: Path) -> Section:
    """Return the regrets of what ``hopmap robust --json`` printed."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        candidates = found["candidates"]
        names = [str(each["mapper"]) for each in candidates]
        regrets = np.array([each["regrets"] for each in candidates], dtype=np.float64)
        if regrets.ndim != 2 or not np.isfinite(regrets).any():
            raise ValueError
        settings = [
            ", ".join(f"{key} = {value}" for key, value in model.items())
            for model in found["models"]
        ]
        if len(settings) != regrets.shape[1]:
            raise ValueError
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ViewError(
            f"--regret {path}: expected the JSON of hopmap robust, with candidates and regrets"
        ) from None
    return regret_section(names, regrets, settings)
