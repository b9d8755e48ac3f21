"""What a mapping costs before anything is replayed: `evaluate`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .input_kinds import MappingLike
from .machine import MachineLike, machine_of_mapping
from .workload import Workload, WorkloadLike

if TYPE_CHECKING:
    from hopmap.simulator import Metrics


def evaluate(
    workload: WorkloadLike,
    machine: MachineLike | MappingLike | None = None,
    mapping: MappingLike | None = None,
    *,
    convention: str = "hopmap",
    top: int = 5,
    failures: str | None = None,
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
    failures : str, optional
        What is down, see `with_failures`; `Metrics.failure_impact` compares with the whole network.
    draws : int, optional
        How often to draw failures that are drawn, with the seeds 0, 1, ...

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, MetricsError
        Something makes no sense, or does not fit.
    """
    from hopmap.simulator import evaluate as measure
    from hopmap.simulator import hot_links
    from hopmap.simulator.metrics.failure_impact import failure_impact
    from hopmap.topologies import with_failures

    workload = Workload.of(workload)
    machine, mapping = machine_of_mapping(machine, mapping)
    machine.mapping(mapping, None)  # before anything takes long
    whole = machine.network
    network = whole if failures is None else with_failures(whole, failures)
    traffic = workload.traffic(machine.algorithms)
    node_of = machine.mapping(mapping, traffic.ranks)
    metrics = measure(traffic, network, node_of, convention)
    if convention == "hopmap":
        metrics = replace(metrics, hot_links=hot_links(traffic, network, node_of, top=top))
    if failures is not None:
        impact = failure_impact(traffic, whole, node_of, failures, draws)
        metrics = replace(metrics, failure_impact=impact)
    return metrics
