"""Pictures: matplotlib figures of workloads, machines and mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hopmap.api.input_kinds import MappingLike
from hopmap.api.machine import Machine, MachineLike, nodes_of_ranks
from hopmap.api.mapping import Placement
from hopmap.api.workload import Workload, WorkloadLike
from hopmap.figures.bars import SeedSpread, ienpc_bars, runtime_bars
from hopmap.figures.mapping import mapping_view
from hopmap.figures.network import link_loads
from hopmap.figures.spy import spy_plot
from hopmap.simulator import evaluate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["bars", "links", "mapping", "spy"]


def __dir__() -> list[str]:
    return __all__


def links(
    workload: WorkloadLike,
    machine: MachineLike,
    mapping: MappingLike,
    *,
    limit: float | None = None,
) -> Figure:
    """Draw the network, every directed link coloured by the bytes that it carries.

    Parameters
    ----------
    workload, machine, mapping : see `hopmap.evaluate`
    limit : float, optional
        Bytes of the darkest colour, to compare pictures; the busiest link's when left out.
    """
    workload, network = Workload.of(workload), Machine.of(machine).network
    traffic = workload.traffic()
    metrics = evaluate(traffic, network, nodes_of_ranks(mapping, network, traffic.ranks))
    assert metrics.link_bytes is not None
    title = f"{workload.name} on {network.spec}"
    return link_loads(network, metrics.link_bytes, title=title, limit=limit)


def mapping(workload: WorkloadLike, machine: MachineLike, mapping: MappingLike) -> Figure:
    """Draw the ranks on their nodes, and how far their bytes go; next to the default order.

    Parameters
    ----------
    workload, machine, mapping : see `hopmap.evaluate`
        Of a `Placement`, the default order is drawn, too.
    """
    workload, network = Workload.of(workload), Machine.of(machine).network
    traffic = workload.traffic()
    mappings = {"this mapping": nodes_of_ranks(mapping, network, traffic.ranks)}
    if isinstance(mapping, Placement) and mapping.default_order is not None:
        mappings["default order"] = mapping.default_order
    return mapping_view(network, mappings, traffic, title=f"{workload.name} on {network.spec}")


def spy(workload: WorkloadLike) -> Figure:
    """Draw who sends how much to whom."""
    workload = Workload.of(workload)
    return spy_plot(workload.traffic(), title=workload.name)


def bars(runs: pd.DataFrame) -> Figure:
    """Draw the simulated runtime of every mapper of a sweep; bytes on links if none was replayed.

    Parameters
    ----------
    runs : DataFrame
        Of `sweep` or `load_results`, of one trace on one topology.
    """
    from hopmap.scenarios.sweep import ScenarioError

    cases = runs[["trace", "topology", "variant"]].drop_duplicates()
    if len(cases) != 1:
        raise ScenarioError(f"{len(cases)} cases: expected runs of one trace on one topology")
    title = " on ".join(cases.iloc[0, :2])
    groups = {str(mapper): rows for mapper, rows in runs.groupby("mapper", sort=False)}
    if runs["makespan"].isna().all():
        best = [g.sort_values("hop_bytes").iloc[0] for g in groups.values()]
        parts = ("total", "avg", "min", "max")
        rows = [{part: float(run[f"bytes_ienpc_{part}"]) for part in parts} for run in best]
        return ienpc_bars(list(groups), rows, title=title)
    columns = ["compute", "communicate", "wait"]
    times = [tuple(group[columns].mean()) for group in groups.values()]
    spans = [
        SeedSpread(g["makespan"].mean(), g["makespan"].min(), g["makespan"].max())
        for g in groups.values()
    ]
    return runtime_bars(list(groups), times, spans, title=title)
