"""What a mapping costs before anything is replayed: `evaluate`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .input_kinds import MappingLike
from .machine import MachineLike, placed
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

    Raises
    ------
    MappingError, TraceError, TopologyError, SettingError, MetricsError
        Something makes no sense, or does not fit.
    """
    from hopmap.simulator import MetricsError, hot_links
    from hopmap.simulator import evaluate as measure
    from hopmap.simulator.metrics.failure_impact import failure_impact

    workload = Workload.of(workload)
    place = placed(machine, mapping)  # before anything takes long
    network = place.machine.network
    traffic = workload.traffic(place.machine.algorithms)
    node_of = place.of_ranks(traffic.ranks)
    if draws is not None and place.machine.failures is None:
        raise MetricsError(f"draws {draws}: requires a machine with failures")
    metrics = measure(traffic, network, node_of, convention)
    if convention == "hopmap":
        metrics = replace(metrics, hot_links=hot_links(traffic, network, node_of, top=top))
    if place.machine.failures is not None:
        whole = replace(place.machine, failures=None).network
        impact = failure_impact(traffic, whole, node_of, place.machine.failures, draws)
        metrics = replace(metrics, failure_impact=impact)
    return metrics
