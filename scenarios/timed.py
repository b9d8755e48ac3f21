"""How long a mapping takes, the compiler apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np

from ..mappers import Progress, map_ranks
from ..topologies import Mapping, MappingError, Topology, mesh
from ..traces import Traffic


def timed_mapping(
    traffic: Traffic,
    topology: Topology,
    pipeline: str,
    *,
    seed: int,
    seconds: float | None = None,
    initial: Mapping | None = None,
    objective: str | Callable[[Mapping], float] | None = None,
    progress: Progress | None = None,
) -> tuple[Mapping, float]:
    """Place the ranks as `map_ranks` does; return the mapping and the seconds it took."""
    _compile(pipeline, _flat if callable(objective) else objective)
    begin = time.perf_counter()
    node_of = map_ranks(
        traffic,
        topology,
        pipeline,
        seed=seed,
        seconds=seconds,
        initial=initial,
        objective=objective,
        progress=progress,
        keep_interrupted=False,
    )
    return node_of, time.perf_counter() - begin


def _flat(_: Mapping) -> float:
    """Stand for an objective that takes long."""
    return 0.0


@cache
def _compile(pipeline: str, objective: str | Callable[[Mapping], float] | None = None) -> None:
    """Map something small for a moment, so that all that needs compiling is compiled."""
    ring = np.arange(8)
    traffic = Traffic.from_pairs(8, ring, np.roll(ring, 1), ring + 1, ring + 1)
    small = mesh((2, 2, 2))
    with suppress(MappingError):  # it may not be made for this case
        for _ in range(3):  # what compiling took from one budget, the next one has
            map_ranks(
                traffic, small, pipeline, initial=ring, seconds=0.02, objective=objective,
                keep_interrupted=False,
            )  # fmt: skip
