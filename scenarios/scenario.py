"""The scenario file: which traces, topologies, mappers and seeds a sweep crosses, and how it runs.

Every mistake in a file is a `ScenarioError` of one line: file, key, value, what was expected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from ..mappers import parse_pipeline
from ..topologies import Topology, did_you_mean, topology_from_spec
from .settings import SettingError, check_settings, parameters_in
from .sources import Source, find_source
from .stencil_suites import suite_cases
from .variants import Axis, axis, check_axes, count_variants

SHIPPED = Path(__file__).parent
LISTS = ("traces", "topologies", "suites", "mappers", "seeds")
MOST_RUNS = 1_000_000  # whose plan still fits into memory

T = TypeVar("T")
Text = Annotated[StrictStr, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Seeds = Annotated[list[Annotated[StrictInt, Field(ge=0, lt=2**63)]], Field(min_length=1)]
Given = StrictStr | StrictInt | StrictFloat


class ScenarioError(ValueError):
    """A scenario file cannot be used; the message names file, key, value and what was expected."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Replay(_Section):
    """How runs are replayed.

    Attributes
    ----------
    engine : str or False
        A name of `hopmap.simulator.ENGINES`; False measures without replaying.
    steps : int, optional
        Time steps to replay of a generated benchmark; all of them when left out.
        Metrics are of the whole run all the same.
    messages : bool
        Whether to keep when each message was sent and delivered, in the table "messages".
    """

    engine: Text | Literal[False] = "simpy"
    steps: Annotated[StrictInt, Field(ge=1)] | None = None
    messages: StrictBool = False


class Published(_Section):
    """Numbers of a paper, to be shown beside ours.

    Attributes
    ----------
    file : str
        CSV with the header ``trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max``,
        relative to the scenario file; ``topology`` is a family ("mesh").
    """

    file: Text


class Include(_Section):
    """More runs: these traces on these topologies.

    Attributes
    ----------
    traces, topologies : list of str
        As in `Scenario`.
    mappers : list of str, optional
        The scenario's when left out.
    seeds : list of int, optional
        The scenario's when left out.
    """

    traces: Texts
    topologies: Texts
    mappers: Texts | None = None
    seeds: Seeds | None = None


class Exclude(_Section):
    """Runs to leave out: those that match every list that is given.

    Attributes
    ----------
    traces, topologies, mappers : list of str, optional
        As they are written elsewhere in the scenario.
    unequal_nodes : bool, optional
        True: only topologies whose nodes have not all the same number of slots.
    """

    traces: Texts | None = None
    topologies: Texts | None = None
    mappers: Texts | None = None
    unequal_nodes: Literal[True] | None = None


class Vary(_Section):
    """Parameters that take several values; see `variants.py`.

    Attributes
    ----------
    name : str, optional
        What reports call it; the keys when left out.
    labels : list of str, optional
        What reports call the values; the values themselves when left out.
    parameters : dict
        Lists of the same length, by key: the first values go together, and so on.
    """

    name: Text | None = None
    labels: Texts | None = None
    parameters: Annotated[
        dict[str, Annotated[list[Given], Field(min_length=1)]], Field(min_length=1)
    ]

    @property
    def axis(self) -> Axis:
        """The same with all names filled in."""
        return axis(self.name, self.labels, self.parameters)


class Scenario(_Section):
    """A sweep: every trace on every topology with every mapper and seed.

    Attributes
    ----------
    name, description : str
        Title and introduction of the report.
    traces : list of str
        OTF2 archives or traffic files, relative to the scenario file, or benchmarks ("lu.C.64").
    topologies : list of str
        Specs, like "torus:4x4x4"; files of ``file:`` are relative to the scenario file.
    mappers : list of str
        Pipelines, like "minmd | bokhari".
    seeds : list of int
        One run for each.
    replay : Replay
        Engine, and how much of generated benchmarks.
    parameters : dict
        Of the network and the model: "link.bandwidth" = "10 GB/s"; `hopmap list parameters`.
    published : Published, optional
        Numbers to compare with.
    suites : list of str
        Pairs of a stencil and a cluster to run, as `stencil_suites` names them; with one,
        traces and topologies may be left out.
    include, exclude, vary : list, optional
        More runs, runs to leave out, parameters of several values.
    """

    name: Text
    description: StrictStr = ""
    traces: Texts = Field(default=[], validate_default=False)
    topologies: Texts = Field(default=[], validate_default=False)
    suites: list[Text] = []
    mappers: Texts
    seeds: Seeds = [0]
    replay: Replay = Replay()
    parameters: dict[str, Given] = {}
    published: Published | None = None
    include: list[Include] = []
    exclude: list[Exclude] = []
    vary: list[Vary] = []

    def groups(self) -> list[Include]:
        """Return what is crossed: the scenario itself, then what it includes."""
        crossed = (self.traces, self.topologies)
        pairs = [
            ([case.trace], [case.topology]) for text in self.suites for case in suite_cases(text)
        ]
        first, *others = [
            Include.model_construct(traces=traces, topologies=topologies)
            for traces, topologies in (crossed, *pairs)
        ]
        return [
            each.model_copy(
                update={"mappers": each.mappers or self.mappers, "seeds": each.seeds or self.seeds}
            )
            for each in (first, *self.include, *others)
        ]

    def traced(self) -> list[str]:
        """Return the traces, each once."""
        return list(dict.fromkeys(trace for group in self.groups() for trace in group.traces))

    def sources(self, folder: Path) -> list[Source]:
        """Find the traces, each once; `folder` is where the scenario file lies."""
        return [find_source(trace, folder) for trace in self.traced()]


def scenario_path(text: str | Path) -> Path:
    """Return the file of a scenario: a path, or the name of a shipped one.

    Raises
    ------
    ScenarioError
        A word that is neither.
    """
    path = Path(text)
    shipped = SHIPPED / f"{path.name.removesuffix('.toml')}.toml"
    if path.exists() or len(path.parts) != 1:
        return path
    if not shipped.exists() and path.suffix != ".toml":
        names = sorted(file.stem for file in SHIPPED.glob("*.toml"))
        hint = did_you_mean(str(text), names)
        raise ScenarioError(
            f"{text}: no such file or shipped scenario{hint}: expected a TOML file, "
            f"or one of {', '.join(names)}"
        )
    return shipped if shipped.exists() else path


def canonical_mapper(pipeline: str) -> str:
    """Return a pipeline as it is always written, whatever its spaces.

    Raises
    ------
    MappingError
        See `parse_pipeline`.
    """
    return " | ".join(str(stage) for stage in parse_pipeline(pipeline))


def load_scenario(path: str | Path, changes: Sequence[str] = ()) -> Scenario:
    """Read and check a scenario file.

    Parameters
    ----------
    changes : sequence of str
        What to set over it, see `changed`.

    Raises
    ------
    ScenarioError
        Unreadable or not TOML, a key unknown or missing, a value out of range, a trace that is
        not there, a topology, mapper or parameter that does not exist, more than `MOST_RUNS`.
    """
    given = changed(read_toml(path), changes, Path(path))
    try:
        scenario = Scenario.model_validate(given)
    except ValidationError as error:
        raise ScenarioError(f"{path}: {_one_line(error)}") from None
    for key in ("traces", "topologies"):
        if not scenario.suites and not getattr(scenario, key):
            raise ScenarioError(f"{path}: key {key!r} is missing")
    scenario = _with_networks_beside(scenario, Path(path))
    _check(scenario, Path(path))
    return scenario


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a scenario file without checking what it says, parameters by dotted keys.

    Raises
    ------
    ScenarioError
        Unreadable or not TOML.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{path}: cannot be read as a scenario ({reason})") from None
    varied = given.get("vary")
    for table in (given, *(varied if isinstance(varied, list) else ())):
        if isinstance(table, dict) and isinstance(table.get("parameters"), dict):
            table["parameters"] = dict(flat(table["parameters"]))
    return given


def changed(given: dict[str, Any], changes: Sequence[str], path: Path) -> dict[str, Any]:
    """Set keys of a scenario as ``--set`` says.

    Parameters
    ----------
    changes : sequence of str
        "key=value", the key one of the scenario ("seeds", "replay.engine") or else a parameter
        ("link.bandwidth"), the value in TOML, or a text without quotes. A list of one needs no
        brackets. Or FILE.toml, for its table [parameters]; the others win over it.

    Raises
    ------
    ScenarioError
        No equals sign, a table that is none, or a parameter that the scenario varies.
    """

    def expect_fixed(name: str) -> None:
        if any(name in vary.get("parameters", {}) for vary in given.get("vary") or []):
            raise ScenarioError(f"--set {name}: {path} varies it: expected another key")

    given = dict(given)
    files = [change for change in changes if "=" not in change and change.endswith(".toml")]
    try:
        tables = [parameters_in(file) for file in files]
    except SettingError as error:
        raise ScenarioError(str(error)) from None
    for table in tables:
        for name in table:
            expect_fixed(name)
        given["parameters"] = {**given.get("parameters", {}), **table}
    for change in [change for change in changes if change not in files]:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key or not text:
            raise ScenarioError(f"--set {change!r}: expected key=value, like replay.engine=flow")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        section, dot, name = key.partition(".")
        if section not in Scenario.model_fields:
            section, dot, name = "parameters", ".", key
        if section == "parameters":
            expect_fixed(name)
        if dot:
            table = given.get(section, {})
            if not isinstance(table, dict):
                raise ScenarioError(f"--set {key}: {section!r} has no keys: expected none")
            given[section] = {**table, name: value}
        else:
            given[section] = [value] if section in LISTS and not isinstance(value, list) else value
    return given


def _with_networks_beside(scenario: Scenario, path: Path) -> Scenario:
    """Make the files of ``file:`` topologies relative to the scenario file, wherever it is read."""

    def moved(specs: list[str]) -> dict[str, list[str]]:
        return {"topologies": [_beside(spec, path) for spec in specs]}

    include = [each.model_copy(update=moved(each.topologies)) for each in scenario.include]
    exclude = [
        each.model_copy(update=moved(each.topologies)) if each.topologies else each
        for each in scenario.exclude
    ]
    more = {"include": include, "exclude": exclude}
    return scenario.model_copy(update=moved(scenario.topologies) | more)


def _beside(spec: str, path: Path) -> str:
    """Spec of a topology in a file, relative to the scenario file, so that it is found anywhere."""
    family, _, name = spec.partition(":")
    return f"file:{(path.parent / name).resolve()}" if family == "file" and name else spec


def _check(scenario: Scenario, path: Path) -> None:
    """Check what a type cannot say."""
    from ..simulator import ENGINES

    def each(key: str, values: Iterable[Any], check: Callable[[Any], T]) -> list[T]:
        try:
            return [check(value) for value in values]
        except ValueError as error:
            raise ScenarioError(f"{path}: {key}: {error}") from None

    def once(key: str, values: Iterable[Any]) -> None:
        seen = set()
        for value in values:
            if value in seen:
                raise ScenarioError(f"{path}: {key}: {value!r} is listed twice: expected once")
            seen.add(value)

    each("suites", scenario.suites, suite_cases)
    once("suites", scenario.suites)
    topologies: dict[str, Topology] = {}
    sources: dict[str, Source] = {}
    mappers: set[str] = set()
    crossed: list[tuple[int, str]] = []  # traces, mappers and seeds of a topology
    for place, group in enumerate(scenario.groups()):
        at = f"include[{place - 1}]." if place else ""
        once(f"{at}seeds", group.seeds or [])
        names = each(f"{at}mappers", group.mappers or [], canonical_mapper)
        once(f"{at}mappers", names)
        mappers.update(names)
        networks = each(f"{at}topologies", group.topologies, topology_from_spec)
        once(f"{at}topologies", [topology.spec for topology in networks])
        topologies |= {topology.spec: topology for topology in networks}
        cells = len(group.traces) * len(names) * len(group.seeds or [])
        crossed += [(cells, topology.spec) for topology in networks]
        found = each(f"{at}traces", group.traces, lambda trace: find_source(trace, path.parent))
        for index, source in enumerate(found):
            if source in found[:index] or sources.setdefault(source.name, source) != source:
                raise ScenarioError(
                    f"{path}: {at}traces: two are called {source.name!r}: expected unlike names"
                )
    for place, rule in enumerate(scenario.exclude):
        at = f"exclude[{place}]"
        specs = each(f"{at}.topologies", rule.topologies or [], topology_from_spec)
        names = each(f"{at}.mappers", rule.mappers or [], canonical_mapper)
        unused = [
            *(f".traces: {t!r}" for t in rule.traces or [] if t not in scenario.traced()),
            *(f".topologies: {t.spec!r}" for t in specs if t.spec not in topologies),
            *(f".mappers: {mapper!r}" for mapper in names if mapper not in mappers),
            *([": empty"] if rule == Exclude() else []),
        ]
        for what in unused:
            raise ScenarioError(f"{path}: {at}{what}: expected something that the scenario runs")
    every = list(topologies.values())
    each("parameters", [scenario.parameters], lambda given: check_settings(given, every))
    axes = each("vary", scenario.vary, lambda vary: vary.axis)
    each("vary", [axes], lambda all_of: check_axes(all_of, scenario.parameters, every))
    points = {topology.spec: count_variants(axes, topology) for topology in every}
    runs = sum(cells * points[spec] for cells, spec in crossed)
    if runs > MOST_RUNS:
        raise ScenarioError(f"{path}: {runs:,} runs: expected at most {MOST_RUNS:,}")
    engine = scenario.replay.engine
    if engine and engine not in ENGINES:
        raise ScenarioError(
            f"{path}: replay.engine: {engine!r}{did_you_mean(engine, ENGINES)}: "
            f"expected false or one of {', '.join(ENGINES)}"
        )
    if scenario.published and not (path.parent / scenario.published.file).is_file():
        raise ScenarioError(
            f"{path}: published.file: {scenario.published.file!r}: expected a CSV file beside it"
        )


def flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Join the keys of nested tables with dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


# Keys that take one of several types, for which pydantic would name one type only.
_EITHER = {
    "parameters": "a number in SI units, or a text like '10 GB/s'",
    "replay.engine": "false, or the name of an engine",
}


def _one_line(error: ValidationError) -> str:
    """Rewrite one of pydantic's complaints: key, value, what was expected."""
    # A misspelt key comes before the one that is missing for it.
    first = min(error.errors(include_url=False), key=lambda each: each["type"] == "missing")
    where = first["loc"]
    expected = first["msg"].removeprefix("Input should be ").replace("Input should", "should")
    for start, types in _EITHER.items():
        if where[:2] == tuple(start.split(".")) or where[:1] == (start,):
            where, expected = where[:2], types
    if where[0] == "vary" and len(where) > 5:  # a value in a list
        where, expected = where[:5], _EITHER["parameters"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)[1:]
    if first["type"] == "missing":
        return f"key {key!r} is missing"
    if first["type"] == "extra_forbidden":
        sections: dict[str, type[BaseModel]] = {
            "replay": Replay,
            "published": Published,
            "include": Include,
            "exclude": Exclude,
            "vary": Vary,
        }
        fields = list(sections.get(str(where[0]), Scenario).model_fields)
        hint = did_you_mean(str(where[-1]), fields)
        return f"unknown key {key!r}{hint}: expected one of {', '.join(fields)}"
    return f"{key}: {repr(first['input'])[:60]}: expected {expected}"
