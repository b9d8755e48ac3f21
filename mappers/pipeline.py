"""Mappers one after another: "bokhari(objective=hop_bytes, jumps=8) | local_search"."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hopmap.errors import HopmapError, choice
from hopmap.plugins import describe_error, is_own
from hopmap.topologies import (
    Mapping,
    MappingError,
    Topology,
    check_fits,
    check_mapping,
)
from hopmap.traces import Traffic

from .mapper import MapperInfo, all_mappers, get_mapper
from .objectives import LOAD, OBJECTIVES, Function
from .stop import Interrupted, Progress, Stopped


@dataclass(frozen=True)
class Stage:
    """One mapper of a pipeline with the parameters that were set."""

    info: MapperInfo
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        values = ", ".join(
            f"{key}={str(value).lower() if value is None or isinstance(value, bool) else value}"
            for key, value in self.parameters.items()
        )
        return f"{self.info.name}({values})" if values else self.info.name


def parse_pipeline(text: str) -> tuple[Stage, ...]:
    """Read a pipeline and check every name and value in it.

    Stages are joined by bars, each ``name`` or ``name(parameter=value, ...)``; ``preset=NAME``
    sets the parameters of a publication, which explicit parameters override. A mapper that ignores
    what the stages before it did is refused. Mistakes are a `MappingError`.
    """
    stages = tuple(_stage(part.strip(), text) for part in text.split("|"))
    for before, stage in pairwise(stages):
        if stage.info.initial == "ignored":
            raise MappingError(
                f"mapper pipeline {text!r}: {stage.info.name} ignores what {before.info.name} "
                "made: expected a mapper that improves a mapping after the bar"
            )
    return stages


def draws(stages: Sequence[Stage]) -> bool:
    """Whether another seed may give another mapping."""
    return any("rng" in stage.info.passed for stage in stages)


def expect_applicable(stages: Sequence[Stage], traffic: Traffic, topology: Topology) -> None:
    """Raise `MappingError` where a mapper says that it is not made for such traffic or networks."""
    check_fits(traffic.ranks, topology)
    for stage in stages:
        if stage.info.needs is not None:
            stage.info.needs(stage.info.name, traffic, topology)


def _stage(part: str, text: str) -> Stage:
    match = re.fullmatch(r"(\w[\w-]*)\s*(?:\((.*)\))?", part, flags=re.DOTALL)
    if match is None:
        raise MappingError(
            f"mapper pipeline {text!r}: {part!r}: expected a mapper like random or "
            "bokhari(jumps=8), several joined by |"
        )
    info = get_mapper(match[1])
    options: dict[str, str] = {}
    for setting in (match[2] or "").split(","):
        if not setting.strip() and not (match[2] or "").strip():
            continue
        key, equals, value = (piece.strip() for piece in setting.partition("="))
        if not equals or not key or not value:
            raise MappingError(f"mapper {part!r}: {setting.strip()!r}: expected parameter=value")
        if key in options:
            raise MappingError(f"mapper {part!r}: parameter {key} is set twice")
        options[key] = value.strip("'\"")
    preset = info.preset(options.pop("preset")) if info.presets and "preset" in options else {}
    return Stage(info, {**preset, **{key: info.check(key, options[key]) for key in options}})


def map_ranks(
    traffic: Traffic,
    topology: Topology,
    pipeline: str | Sequence[Stage],
    *,
    seed: int = 0,
    seconds: float | None = None,
    initial: ArrayLike | None = None,
    objective: str | Function | None = None,
    progress: Progress | None = None,
    stopped: Stopped | None = None,
) -> Mapping:
    """Place every rank on a node; on Ctrl-C in a search by its best so far, without later stages.

    - `seed`: the same seed gives the same mapping, unless a time budget ends a search.
    - `seconds`: time budget of the pipeline; what is left is shared equally by the searches still
      to come. A search that runs out of time returns its best so far.
    - `initial`: mapping that the first stage starts from, if it does.
    - `objective`: what is minimised or maximised by those mappers of the pipeline that can and do
      not say otherwise. A function of ``node_of``, an array of shape (ranks,), is minimised.
    - `progress`: called as ``progress(done, total or None, text)``.
    - `stopped`: called by each stage with why it ended: "optimal", "stagnated" or "budget".
    """
    try:
        return time_mapping(
            traffic, topology, pipeline, seed=seed, seconds=seconds, initial=initial,
            objective=objective, progress=progress, stopped=stopped,
        )[0]  # fmt: skip
    except Interrupted as end:
        return check_mapping(end.mapping, topology, traffic.ranks, name="mapper")


def time_mapping(
    traffic: Traffic,
    topology: Topology,
    pipeline: str | Sequence[Stage],
    *,
    seed: int = 0,
    seconds: float | None = None,
    initial: ArrayLike | None = None,
    objective: str | Function | None = None,
    progress: Progress | None = None,
    stopped: Stopped | None = None,
) -> tuple[Mapping, float]:
    """Place the ranks as `map_ranks` does; return the mapping and its seconds, compiling apart.

    Ctrl-C in a search raises `Interrupted`, which has its best mapping so far.
    """
    from hopmap.compilation import wall

    begin = wall()
    stages, mapping = _prepare(traffic, topology, pipeline, seed, seconds, initial, objective)
    end = None if seconds is None else wall() + seconds
    for index, stage in enumerate(stages):
        keywords = {p.name: p.default for p in stage.info.parameters} | stage.parameters
        if end is not None and stage.info.has("seconds"):
            searches = sum(later.info.has("seconds") for later in stages[index:])
            share = max(end - wall(), 0.0) / searches
            own = keywords.get("seconds")
            keywords["seconds"] = share if own is None else min(own, share)
        rng = np.random.default_rng(np.random.SeedSequence([seed, _key(index, stage)]))
        offered = {"rng": rng, "initial": mapping, "progress": progress, "stopped": stopped}
        keywords |= {what: offered[what] for what in stage.info.passed}
        name = f"mapper {stage.info.name}"
        try:
            made = stage.info.run(traffic, topology, keywords)
        except Exception as error:
            if isinstance(error, HopmapError | MemoryError) or is_own(stage.info.function):
                raise
            raise MappingError(f"{name}, {describe_error(error, stage.info.function)}") from error
        mapping = check_mapping(made, topology, traffic.ranks, name=name)
    assert mapping is not None
    return mapping, wall() - begin


def _prepare(
    traffic: Traffic,
    topology: Topology,
    pipeline: str | Sequence[Stage],
    seed: int,
    seconds: float | None,
    initial: ArrayLike | None,
    objective: str | Function | None,
) -> tuple[tuple[Stage, ...], Mapping | None]:
    """Return the stages of `map_ranks` and what they start from; refuse what it refuses."""
    stages = parse_pipeline(pipeline) if isinstance(pipeline, str) else tuple(pipeline)
    if not stages:
        raise MappingError("mapper pipeline: expected at least one mapper")
    if seed < 0:
        raise MappingError(f"seed {seed}: expected a whole number >= 0")
    if seconds is not None and not seconds >= 0:
        raise MappingError(f"seconds {seconds}: expected a number >= 0")
    check_fits(traffic.ranks, topology)
    stages = stages if objective is None else _with_objective(stages, objective)
    if initial is None and stages[0].info.needs_initial:
        raise MappingError(
            f"mapper {stages[0].info.name} improves a mapping: expected one before it, "
            f"like 'sweep | {stages[0].info.name}'"
        )
    if initial is None:
        return stages, None
    return stages, check_mapping(initial, topology, traffic.ranks, name="initial mapping")


def _with_objective(stages: tuple[Stage, ...], objective: str | Function) -> tuple[Stage, ...]:
    """Give the objective to the mappers that can work for it and have none of their own."""
    named = isinstance(objective, str)
    if named and objective not in (known := (*OBJECTIVES, LOAD)):
        raise MappingError(choice("objective", objective, known))
    able = [stage.info.takes("objective", objective) for stage in stages]
    if not any(able):
        names = sorted(n for n, info in all_mappers().items() if info.takes("objective", objective))
        raise MappingError(
            f"mapper {' | '.join(map(str, stages))}: does not work for "
            f"{f'objective {objective}' if named else 'a function as objective'}: expected one of "
            f"{', '.join(names)} in it"
        )
    return tuple(
        replace(stage, parameters={"objective": objective, **stage.parameters}) if can else stage
        for stage, can in zip(stages, able, strict=True)
    )


def _key(index: int, stage: Stage) -> int:
    """Return a number for a stage that does not depend on Python's own hash."""
    digest = hashlib.sha256(f"{index}:{stage.info.name}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
