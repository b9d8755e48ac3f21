"""Whether all ranks of a sweep's runs find a slot, before any of them is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hopmap.scenarios.results import store
from hopmap.topologies import MappingError, check_fits
from hopmap.traces import Traffic

from .inputs import planned_network, planned_traffic
from .plan import Run


def expect_room(runs: Sequence[Run], results: Path) -> None:
    """Look at every trace on every network of the runs.

    Raises
    ------
    MappingError
        A trace has more ranks than a network has slots; says the first, and how many runs fail.
    TraceError, OSError
        A trace cannot be read.
    """
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.trace.name, run.topology), []).append(run)
    ranks: dict[str, int] = {}
    wrong: list[str] = []
    failing = 0
    for (name, _), same in cells.items():
        first = same[0]
        if name not in ranks:
            ranks[name] = _traffic(first, results).ranks
        try:
            check_fits(ranks[name], planned_network(first.topology, first.network))
        except MappingError as error:
            wrong.append(f"{name} on {first.called or first.topology}: {error}")
            failing += len(same)
    if wrong:
        raise MappingError(f"{wrong[0]} ({failing} of {len(runs)} runs cannot be done)")


def _traffic(run: Run, results: Path) -> Traffic:
    if store.has_traffic(results, run.trace.name, run.traffic_of):
        return store.load_traffic(results, run.trace.name, run.traffic_of)
    return planned_traffic(run.trace, run.digest)
