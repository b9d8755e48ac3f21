"""Which runs of a sweep cannot be; they are left out, and said to be, before any other is done.

Ranks without a slot, mappers not made for a network or a traffic, engines that know nothing of what
a variant sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from hopmap.mappers.pipeline import expect_applicable, parse_pipeline
from hopmap.scenarios.results import store
from hopmap.scenarios.results.store_index import finished
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.settings import Settings, configure
from hopmap.simulator.simulate import expect_known
from hopmap.topologies import MappingError, check_fits
from hopmap.traces import Traffic

from .beside import room_beside
from .inputs import planned_network
from .mappings import in_file, placed_in_file
from .plan import Run


class Possible(NamedTuple):
    """Runs that can be done, and how many cannot, by the reason."""

    runs: list[Run]
    impossible: dict[str, int]


def possible(runs: Sequence[Run], results: Path, new: Mapping[str, Traffic]) -> Possible:
    """Look at every trace on every network by every mapper; what has gone well before is possible.

    Parameters
    ----------
    new : mapping of str to Traffic
        Of traces of which the results hold none.

    Raises
    ------
    MappingError
        Nothing is left; says the first reason.
    StoreError, TopologyError, OSError
        What a run needs cannot be read.
    """
    errors = finished(results)

    @lru_cache(maxsize=1)
    def traffic_of(name: str, made_of: str) -> Traffic:
        return new[name] if name in new else store.load_traffic(results, name, made_of)

    @lru_cache
    def why_not(
        trace: str,
        made_of: str,
        topology: str,
        network: str,
        beside: tuple[Settings, str, str],
        mapper: str,
        spread: bool,
    ) -> str:
        traffic = traffic_of(trace, made_of)
        try:
            built = room_beside(topology, network, *beside)
            check_fits(traffic.ranks, built)
        except MappingError as error:
            return f"{trace}: {error}"
        room = built.evenly(traffic.ranks) if spread else built
        _, pipeline = in_file(mapper)
        try:
            placed_in_file(mapper, built, room, traffic.ranks)
            if pipeline:
                expect_applicable(parse_pipeline(pipeline), traffic, room)
        except MappingError as error:
            return str(error) if topology in str(error) else f"{trace} on {topology}: {error}"
        return ""

    @lru_cache
    def unknown_to(engine: str, topology: str, network: str, settings: Settings) -> str:
        try:
            _, parameters = configure(planned_network(topology, network), settings)
            expect_known(parameters, engine)
        except ParameterError as error:
            return str(error)
        return ""

    kept: list[Run] = []
    impossible: Counter[str] = Counter()
    for run in runs:
        reason = ""
        if errors.get(run.run_id, "") is not None:
            where = (run.trace.name, run.traffic_of, run.topology, run.network)
            beside = run.settings if run.others else (), run.others, run.others_digest
            if run.engine:
                reason = unknown_to(run.engine, run.topology, run.network, run.settings)
            reason = reason or why_not(*where, beside, run.mapper, run.spread)
        if reason:
            impossible[reason] += 1
        else:
            kept.append(run)
    if not kept:
        raise MappingError(f"{next(iter(impossible))} (none of {len(runs)} runs can be done)")
    return Possible(kept, dict(impossible))
