"""Which runs of a sweep cannot be; they are left out, and said to be, before any other is done.

Ranks without a slot, mappers not made for a network or a traffic, engines that know nothing of what
a variant sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hopmap.api.named_files import initial_mapping, split_mapper
from hopmap.mappers.pipeline import expect_applicable, parse_pipeline
from hopmap.scenarios.results import store
from hopmap.scenarios.results.stored_runs import finished
from hopmap.simulator import DEFAULT_ENGINE
from hopmap.simulator.parameters.keys import ParameterError
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.simulate import expect_known
from hopmap.topologies import MappingError, check_fits
from hopmap.traces import Traffic

from .inputs import planned_network
from .measure import usable_network
from .plan import Run


def possible(
    runs: Sequence[Run], results: Path, new: Mapping[str, Traffic]
) -> tuple[list[Run], dict[str, int]]:
    """Return the runs that can be done, and how many cannot, by the reason.

    Looks at every trace on every network by every mapper; what has gone well before is possible.
    `new` has the traffic of traces of which the results hold none. Raises `MappingError` with the
    first reason where nothing is left.
    """
    errors = finished(results)

    @lru_cache(maxsize=1)
    def traffic_of(name: str, made_of: str) -> Traffic:
        return new[name] if name in new else store.load_traffic(results, name, made_of)

    @lru_cache
    def unknown_to_engine(run: Run) -> str:
        try:
            _, parameters = configure(planned_network(run.topology, run.network), run.settings)
            expect_known(parameters, run.engine or DEFAULT_ENGINE)
        except ParameterError as error:
            return str(error)
        return ""

    @lru_cache
    def does_not_fit(run: Run) -> str:
        trace, topology = run.trace.name, run.topology
        traffic = traffic_of(trace, run.traffic_of)
        try:
            network = usable_network(run)
            check_fits(traffic.ranks, network)
        except MappingError as error:
            return f"{trace}: {error}"
        usable = network.evenly(traffic.ranks) if run.spread else network
        _, pipeline = split_mapper(run.mapper)
        try:
            initial_mapping(run.mapper, network, usable, traffic.ranks)
            if pipeline:
                expect_applicable(parse_pipeline(pipeline), traffic, usable)
        except MappingError as error:
            return str(error) if topology in str(error) else f"{trace} on {topology}: {error}"
        return ""

    kept: list[Run] = []
    impossible: Counter[str] = Counter()
    for run in runs:
        reason = ""
        if errors.get(run.run_id, "") is not None:
            alike = replace(run, seed=0, variant="", called="", mapper_called="")
            if run.engine:
                reason = unknown_to_engine(replace(alike, mapper="", mapping=""))
            settings = run.settings if run.others or run.expanded else ()
            reason = reason or does_not_fit(replace(alike, engine=None, settings=settings))
        if reason:
            impossible[reason] += 1
        else:
            kept.append(run)
    if not kept:
        raise MappingError(f"{next(iter(impossible))} (none of {len(runs)} runs can be done)")
    return kept, dict(impossible)
