"""What is checked of a scenario beyond the types of its keys, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hopmap.simulator.parameters.keys import names_algorithm
from hopmap.simulator.parameters.settings import check_settings
from hopmap.topologies import Topology, did_you_mean, topology_from_spec
from hopmap.traces.sources import Source, open_source

from .beside import others_digest
from .mappings import canonical_mapper
from .published import check_published
from .scenario import Exclude, Scenario, ScenarioError
from .suites import suite_cases
from .variants import check_axes, count_variants

MOST_RUNS = 1_000_000
"""Whose plan still fits into memory."""

T = TypeVar("T")


class Crossed(NamedTuple):
    """What a scenario crosses: traces and their names, topologies, mappers as always written.

    Each of `cells` is a number of traces, mappers and seeds, and the topology that they run on.
    """

    traces: set[str]
    names: set[str]
    topologies: dict[str, Topology]
    mappers: set[str]
    cells: list[tuple[int, str]]


NOTHING = Crossed(set(), set(), {}, set(), [])


def check_scenario(scenario: Scenario, path: Path, before: Crossed = NOTHING) -> Crossed:
    """Check that all that a scenario names is there, once, and not too much.

    Parameters
    ----------
    before : Crossed
        What the file crosses without ``--set``; rules may be about that, too.

    Raises
    ------
    ScenarioError
        See `load_scenario`.
    """
    from hopmap.simulator import ENGINES

    _each(f"{path}: suites", scenario.suites, suite_cases)
    _once(f"{path}: suites", scenario.suites)
    crossed = _check_groups(scenario, path)
    known = crossed._replace(
        traces=crossed.traces | before.traces,
        topologies=crossed.topologies | before.topologies,
        mappers=crossed.mappers | before.mappers,
    )
    for place, rule in enumerate(scenario.exclude):
        _check_rule(f"{path}: exclude[{place}]", rule, known)
    _check_parameters(scenario, path, crossed)
    engine = scenario.replay.engine
    if engine and engine not in ENGINES:
        raise ScenarioError(
            f"{path}: replay.engine: {engine!r}{did_you_mean(engine, ENGINES)}: "
            f"expected false or one of {', '.join(ENGINES)}"
        )
    if scenario.beside:
        _each(f"{path}: beside", [scenario.beside], others_digest)
        for key in ("repeat", "messages"):
            if getattr(scenario.replay, key):
                raise ScenarioError(
                    f"{path}: replay.{key}: {getattr(scenario.replay, key)!r}: expected none of it "
                    f"with other jobs beside, which are replayed once"
                )
    if scenario.published:
        file = path.parent / scenario.published.file
        _each(
            f"{path}: published.file",
            [file],
            lambda file: check_published(file, crossed.names, crossed.topologies),
        )
    return crossed


def _check_groups(scenario: Scenario, path: Path) -> Crossed:
    """Find all traces, topologies and mappers, each once in its list."""
    topologies: dict[str, Topology] = {}
    sources: dict[str, Source] = {}
    mappers: set[str] = set()
    cells: list[tuple[int, str]] = []
    for place, group in enumerate(scenario.groups()):
        at = f"{path}: include[{place - 1}]." if place else f"{path}: "
        _once(f"{at}seeds", group.seeds or [])
        names = _each(f"{at}mappers", group.mappers or [], canonical_mapper)
        _once(f"{at}mappers", names)
        mappers.update(names)
        networks = _each(f"{at}topologies", group.topologies, topology_from_spec)
        _once(f"{at}topologies", [topology.spec for topology in networks])
        topologies |= {topology.spec: topology for topology in networks}
        crossed = len(group.traces) * len(names) * len(group.seeds or [])
        cells += [(crossed, topology.spec) for topology in networks]
        found = _each(f"{at}traces", group.traces, lambda trace: open_source(trace, path.parent))
        for index, source in enumerate(found):
            if source in found[:index] or sources.setdefault(source.name, source) != source:
                raise ScenarioError(
                    f"{at}traces: two are called {source.name!r}: expected unlike names"
                )
    return Crossed(set(scenario.traced()), set(sources), topologies, mappers, cells)


def _check_rule(at: str, rule: Exclude, crossed: Crossed) -> None:
    """Check that a rule says something, and of what is there."""
    specs = _each(f"{at}.topologies", rule.topologies or [], topology_from_spec)
    names = _each(f"{at}.mappers", rule.mappers or [], canonical_mapper)
    unused = [
        *(f".traces: {t!r}" for t in rule.traces or [] if t not in crossed.traces),
        *(f".topologies: {t.spec!r}" for t in specs if t.spec not in crossed.topologies),
        *(f".mappers: {mapper!r}" for mapper in names if mapper not in crossed.mappers),
        *([": empty"] if rule == Exclude() else []),
    ]
    for what in unused:
        raise ScenarioError(f"{at}{what}: expected something that the scenario runs")


def _check_parameters(scenario: Scenario, path: Path, crossed: Crossed) -> None:
    """Check parameters and what varies of them, and the number of runs that this makes."""
    every = list(crossed.topologies.values())
    _each(f"{path}: parameters", [scenario.parameters], lambda given: check_settings(given, every))
    axes = _each(f"{path}: vary", scenario.vary, lambda vary: vary.axis)
    if scenario.collectives == "expand":
        for key in (key for axis in axes for key in axis.parameters if names_algorithm(key)):
            raise ScenarioError(
                f"{path}: vary: {key}: expected no algorithms to vary where collectives are "
                f"expanded, since they change the traffic that is mapped"
            )
    _each(f"{path}: vary", [axes], lambda all_of: check_axes(all_of, scenario.parameters, every))
    points = {topology.spec: count_variants(axes, topology) for topology in every}
    runs = sum(cells * points[spec] for cells, spec in crossed.cells)
    if runs > MOST_RUNS:
        raise ScenarioError(f"{path}: {runs:,} runs: expected at most {MOST_RUNS:,}")


def _each(where: str, values: Iterable[Any], check: Callable[[Any], T]) -> list[T]:
    try:
        return [check(value) for value in values]
    except ValueError as error:
        raise ScenarioError(f"{where}: {error}") from None


def _once(where: str, values: Iterable[Any]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ScenarioError(f"{where}: {value!r} is listed twice: expected once")
        seen.add(value)
