"""Where ranks should sit: `map_ranks`, and the placement that it returns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hopmap.errors import HopmapWarning, choice
from hopmap.launchers.mapping_files import MappingFile
from hopmap.mappers import LOAD, OBJECTIVES, Function, Stage, default_objective, parse_pipeline
from hopmap.mappers import map_ranks as place
from hopmap.mappers.objectives import objective_value
from hopmap.mappers.pipeline import expect_applicable, time_mapping
from hopmap.notebook import ShownMixin
from hopmap.plugins import NotInstalledError
from hopmap.progress import Progress
from hopmap.topologies import Mapping, MappingError, Topology, check_mapping
from hopmap.units import show_seconds

from .default_order import DEFAULT_ORDER, warn_above_default_order
from .input_kinds import MappingLike
from .machine import Machine, MachineLike, nodes_of_ranks
from .provenance import with_assumed
from .simulated_objective import (
    BOUND,
    SIMULATED,
    Others,
    Replayed,
    Simulated,
    bound_of,
    make_objective,
)
from .workload import Workload, WorkloadLike

if TYPE_CHECKING:
    import pandas as pd

    from hopmap.simulator import Metrics, Result
    from hopmap.traces import Traffic

Objective: TypeAlias = str | Replayed | Function | None

MANY, VERTICES, LOOSE = "integrated", 2**14, 0.01
"""What `auto` stands for from so many vertices and such an imbalance on: it moves single ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Placement(ShownMixin):
    """Ranks on nodes; stands wherever an array ``node_of[rank]`` does.

    Attributes
    ----------
    workload : Workload
        What was placed.
    machine : Machine
        Where.
    node_of : ndarray(int64, shape=(ranks,))
        Node of each rank.
    traffic : Traffic
        What the ranks were placed by.
    topology : Topology
        The network; its slots are those that were free.
    mapper : str
        The pipeline, with its parameters.
    seconds : float
        What mapping took, the compiler apart.
    objective : tuple of (str, float, float), optional
        The objective that was asked for, its value before and after.
    replays : int
        For an objective that takes them.
    default_order : ndarray(int64, shape=(ranks,)), optional
        The mapping of rank after rank on node after node.
    interrupted : bool
        Whether Ctrl-C ended the search.
    stop_reason : {"optimal", "stagnated", "budget"}, optional
        Why the search ended, where its mapper says so: no mapping is better, a round of it gained
        next to nothing, or its time or moves were spent.
    expected_gain : float, optional
        Part of the hop-bytes that 5 times the time would gain: the median of benchmarks, where the
        time of "auto" was spent.
    best_replay : Result, optional
        The best of the replays.
    warning : str
        What it has more of than the default order; empty for nothing.
    """

    workload: Workload
    machine: Machine
    node_of: Mapping
    traffic: Traffic
    topology: Topology
    mapper: str
    seconds: float = 0.0
    objective: tuple[str, float, float] | None = None
    replays: int = 0
    default_order: Mapping | None = None
    interrupted: bool = False
    stop_reason: str | None = None
    expected_gain: float | None = None
    best_replay: Result | None = None
    warning: str = ""

    @property
    def name(self) -> str:
        """What reports call the workload."""
        return self.workload.name

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> NDArray[np.generic]:
        """Return `node_of`."""
        return np.array(self.node_of, dtype=dtype) if copy else np.asarray(self.node_of, dtype)

    def __len__(self) -> int:
        return len(self.node_of)

    def __repr__(self) -> str:
        return (
            f"<Placement of {self.name}: {len(self)} ranks on {self.topology.spec} by "
            f"{self.mapper}, in {show_seconds(self.seconds)}>"
        )

    def metrics(self) -> Metrics:
        """Measure it; see `evaluate`."""
        from hopmap.simulator import evaluate

        return evaluate(self.traffic, self.topology, self.node_of)

    def metrics_in_default_order(self) -> Metrics | None:
        """Measure the default order."""
        if self.default_order is None:
            return None
        return replace(self, node_of=self.default_order).metrics()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each rank: ``node``, and ``name`` where the network names its nodes."""
        import pandas as pd

        frame = pd.DataFrame({"node": self.node_of})
        frame.index.name = "rank"
        names = self.topology.names
        return frame.assign(name=[names[node] for node in self.node_of]) if names else frame

    def to_dict(self) -> dict[str, Any]:
        """Return what ``map --json`` prints."""
        metrics = self.metrics()
        found = {
            "mapper": self.mapper,
            "topology": self.topology.spec,
            "ranks": len(self),
            "seconds": self.seconds,
            "hop_bytes": metrics.bytes.dilation.sum,
            "hop_messages": metrics.messages.dilation.sum,
            "node_of": self.node_of.tolist(),
            "nodes": int((self.topology.slots > 0).sum()),
            **_figures(metrics),
        }
        if (baseline := self.metrics_in_default_order()) is not None:
            found["baseline"] = _figures(baseline)
        if self.warning:
            found["warning"] = self.warning
        if self.interrupted:
            found["interrupted"] = True
        if self.stop_reason is not None:
            found["stop_reason"] = self.stop_reason
        if self.expected_gain is not None:
            found["expected_gain"] = self.expected_gain
        if self.objective is not None:
            found["objective"] = dict(zip(("name", "before", "after"), self.objective, strict=True))
        if self.best_replay is not None:
            found["objective"] |= {
                "engine": self.best_replay.engine,
                "replays": self.replays,
                "assumed": list(self.best_replay.assumed),
                "assumed_rounds": self.workload.assumed_rounds,
            }
        return found


def _figures(metrics: Metrics) -> dict[str, Any]:
    """Return how far messages and bytes go, and what the busiest link has; as `evaluate` does."""
    whole = metrics.to_dict()
    return {
        side: {name: whole[side][name] for name in ("dilation", "congestion")}
        for side in ("messages", "bytes")
    }


def map_ranks(
    workload: WorkloadLike,
    machine: MachineLike,
    mapper: str = "auto",
    *,
    objective: Objective = None,
    seconds: float | None = None,
    seed: int = 0,
    initial: MappingLike | None = None,
    keep_interrupted: bool = False,
    progress: Progress | None = None,
) -> Placement:
    """Place ranks on nodes.

    Parameters
    ----------
    workload : Workload, or what it takes
        Who talks to whom: a trace, a benchmark, traffic.
    machine : Machine, str or Topology
        Network, nodes of the job, and co-running jobs. With co-running jobs the objective of
        "auto" defaults to "max_link_load".
    mapper : str
        A pipeline, like "minmd | bokhari(jumps=8)"; see ``hopmap list mappers``. On a machine with
        an imbalance, "auto" is "integrated" from 16,384 vertices and 1 % on, up to 2,048 nodes.
    objective : str, Replayed or callable, optional
        "hop_bytes", "hop_messages", "cardinality", "max_link_load"; "makespan" or "energy", which
        replay every mapping that is looked at, or a `Replayed` that names the engine as well;
        "makespan_bound", see `MakespanBound`; or a function of the mapping. When left out, each
        mapper's own; that of "auto" is "hop_bytes", and "max_link_load" on dragonflies.
    seconds : float, optional
        Time budget of searches.
    seed : int
        The same seed gives the same mapping.
    initial : mapping, optional
        What the first mapper starts from.
    keep_interrupted : bool
        Whether Ctrl-C in a search ends it with the best mapping so far, and not with
        KeyboardInterrupt; `Placement.interrupted` says so.

    Examples
    --------
    >>> placement = map_ranks("lu.S.16", "torus:4x4", "minmd")
    >>> len(placement)
    16
    """
    from hopmap.mappers.stop import Ending, Interrupted

    workload, machine = Workload.of(workload), Machine.of(machine)
    stages = parse_pipeline(mapper)
    if initial is not None and stages[0].info.initial == "ignored":
        raise MappingError(f"initial: mapper {stages[0].info.name} ignores an initial mapping")
    if isinstance(initial, str | Path):
        initial = MappingFile(initial)
    if initial is not None and machine.imbalance is None:
        machine.mapping(initial)  # before anything takes long
    others: Others | None = None
    if machine.co_running:
        from .jobs import exclude_used_nodes, place_jobs

        others = place_jobs(machine.co_running, machine)
        objective = _co_running(objective, _is_free(stages))
    goal = _goal(objective, workload, machine, others)
    traffic = workload.traffic(machine.algorithms)
    network = machine.free(traffic.ranks)
    network = network if others is None else exclude_used_nodes(others, network)
    room = network.evenly(traffic.ranks) if machine.balanced else network
    if machine.imbalance is not None and _is_large(mapper, goal, traffic, network, machine):
        stages = parse_pipeline(MANY)
    elif goal is None and _is_free(stages) and default_objective(room) == LOAD:
        objective = goal = LOAD
    start = None if initial is None else nodes_of_ranks(initial, network, traffic.ranks)
    interrupted, begin = False, time.perf_counter()
    endings: list[Ending] = []
    try:
        node_of, took = time_mapping(
            traffic,
            room,
            stages,
            seed=seed,
            seconds=seconds,
            initial=start,
            objective=goal,
            progress=progress,
            stopped=endings.append,
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
    valued, best_replay = None, None
    if goal is not None:
        first = place(traffic, room, "sweep") if start is None else start
        before, after = (
            goal(each) if callable(goal) else objective_value(traffic, network, each, goal)
            for each in (first, node_of)
        )
        name = objective.quantity if isinstance(objective, Replayed) else objective
        valued = (name if isinstance(name, str) else "function", before, after)
    if isinstance(goal, Simulated) and goal.best is not None:
        generated = workload.generated
        best_replay = with_assumed(goal.best, machine.settings, generated=generated)
    return Placement(
        *(workload, machine, node_of, traffic, network, " | ".join(map(str, stages))),
        seconds=took,
        objective=valued,
        replays=replays,
        default_order=place(traffic, room, DEFAULT_ORDER),
        interrupted=interrupted,
        stop_reason=endings[-1].reason if endings else None,
        expected_gain=endings[-1].gain if endings and stages[-1].info.name == "auto" else None,
        best_replay=best_replay,
        warning=warn_above_default_order(stages, traffic, room, node_of, goal, also=(LOAD,)),
    )


def _goal(
    objective: Objective, workload: Workload, machine: Machine, others: Others | None
) -> str | Function | None:
    """Return the objective as mappers take it."""
    if isinstance(objective, str) and objective in SIMULATED:
        objective = Replayed(objective)
    if isinstance(objective, Replayed):
        return make_objective(objective, workload, machine, others)
    if objective == BOUND:
        return bound_of(workload, machine)
    if isinstance(objective, str) and objective not in (known := (*OBJECTIVES, LOAD)):
        raise MappingError(choice("objective", objective, (*known, *SIMULATED, BOUND)))
    return objective


def _is_free(stages: Sequence[Stage]) -> bool:
    """Whether `auto` is to choose its objective."""
    only = stages[0]
    return len(stages) == 1 and only.info.name == "auto" and not only.parameters.get("objective")


def _co_running(objective: Objective, free: bool) -> Objective:
    """Return the objective of a job with co-running jobs; warn of what it ignores of them.

    `free` is whether the mapper takes any and names none.
    """
    if objective is None and free:
        return LOAD
    counts = isinstance(objective, Replayed) or objective in (LOAD, *SIMULATED)
    if not counts and not callable(objective):
        warnings.warn(
            f"objective {objective or 'of each mapper'}: ignores the traffic of co-running jobs "
            f"({LOAD} and makespan count it)",
            HopmapWarning,
            stacklevel=3,
        )
    return objective


def _is_large(
    mapper: str, goal: str | Function | None, traffic: Traffic, network: Topology, machine: Machine
) -> bool:
    """Whether `auto` leaves a graph of many vertices a node to the mapper of such graphs."""
    assert machine.imbalance is not None
    if mapper.strip() != "auto" or traffic.ranks < VERTICES or machine.imbalance < LOOSE:
        return False
    try:
        stages = parse_pipeline(MANY)
        expect_applicable(stages, traffic, network)
    except (MappingError, NotInstalledError):  # too many nodes, or taken out
        return False
    return stages[0].info.takes("objective", goal or "hop_bytes")
