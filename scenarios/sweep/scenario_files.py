"""Scenario files: found, read, changed by --set, checked.

Every mistake in a file is a `ScenarioError` of one line: file, key, value, what was expected.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hopmap.mappers.lookup import all_mappers
from hopmap.plugins import PluginError, add_plugin
from hopmap.simulator import KEYS
from hopmap.simulator.parameters.settings import (
    SettingError,
    known_keys,
    parameters_in,
    validated_in,
)
from hopmap.topologies import Topology, TopologyError, did_you_mean, topology_from_spec

from .jobs import beside, with_jobs
from .mappings import mapping_beside
from .scenario import (
    Exclude,
    Include,
    Jobs,
    Published,
    Replay,
    Scenario,
    ScenarioError,
    Validated,
    Vary,
)
from .scenario_checks import NOTHING, check_scenario
from .shipped import SHIPPED

APPLICABLE = "applicable"
LISTS = ("traces", "topologies", "suites", "mappers", "seeds", "plugins")


def scenario_path(text: str | Path) -> Path:
    """Return the file of a scenario: a path, or the name of a shipped one.

    Raises
    ------
    ScenarioError
        A word that is neither.
    """
    path = Path(text)
    shipped = SHIPPED.get(path.name.removesuffix(".toml"))
    if path.exists() or len(path.parts) != 1:
        return path
    if shipped is None and path.suffix != ".toml":
        names = sorted(SHIPPED)
        hint = did_you_mean(str(text), names)
        raise ScenarioError(
            f"{text}: no such file or shipped scenario{hint}: expected a TOML file, "
            f"or one of {', '.join(names)}"
        )
    return shipped or path


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
        not there, a topology, mapper or parameter that does not exist, too many runs.
    """
    given, before = read_toml(path), NOTHING
    if changes:
        with suppress(ScenarioError):  # which may be what is set right
            before = check_scenario(_valid(given, Path(path)), Path(path))
    wanted = changed(given, changes, Path(path))
    try:
        scenario = _valid(wanted, Path(path))
        if before is not NOTHING:
            scenario = _without_parameters_of(before.topologies.values(), scenario, given)
        check_scenario(scenario, Path(path), before)
    except ScenarioError as error:
        # What is wrong, and was not in the file, is what was set.
        raise ScenarioError(f"{'' if before is NOTHING else '--set over '}{error}") from None
    return scenario


def _valid(given: dict[str, Any], path: Path) -> Scenario:
    """Make a scenario of what a file says."""
    try:
        _load_plugins(given.get("plugins"), path)
        scenario = Scenario.model_validate(_with_applicable(given, path))
    except ValidationError as error:
        raise ScenarioError(f"{path}: {_one_line(error)}") from None
    for key in ("traces", "topologies"):
        if not scenario.suites and not scenario.jobs and not getattr(scenario, key):
            raise ScenarioError(f"{path}: key {key!r} is missing")
    return with_jobs(_on_nodes_of_job(_with_files_beside(scenario, path), path), path)


def _load_plugins(plugins: Any, path: Path) -> None:
    """Load files and modules, before anything asks for their mappers; other types are refused."""
    for each in plugins if isinstance(plugins, list) else ():
        if isinstance(each, str):
            try:
                add_plugin(str(path.parent / each) if each.endswith(".py") else each)
            except PluginError as error:
                raise ScenarioError(f"{path}: plugins: {error}") from None


def _with_applicable(given: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write all mappers out that need no mapping to start from."""
    asked = given.get("mappers")
    if isinstance(asked, str) and asked != APPLICABLE:
        hint = did_you_mean(asked, [APPLICABLE])
        raise ScenarioError(f'{path}: mappers: {asked!r}{hint}: expected a list, or "{APPLICABLE}"')
    if asked not in (APPLICABLE, [APPLICABLE]):
        return given
    names = [name for name, info in all_mappers().items() if not info.needs_initial]
    return {**given, "mappers": names}


def _on_nodes_of_job(scenario: Scenario, path: Path) -> Scenario:
    """Leave the nodes of a job on every topology."""
    hosts, nodelist = scenario.hosts, scenario.nodelist
    if hosts is None and nodelist is None:
        return scenario
    if hosts is not None and nodelist is not None:
        raise ScenarioError(f"{path}: nodelist: {nodelist!r}: expected it or hosts, not both")
    over = f"nodes:{nodelist}@" if hosts is None else f"job:{(path.parent / hosts).resolve()}@"

    def on_job(specs: list[str]) -> list[str]:
        return [over + spec for spec in specs]

    include = [
        each.model_copy(update={"topologies": on_job(each.topologies)}) for each in scenario.include
    ]
    exclude = [
        each.model_copy(update={"topologies": on_job(each.topologies)}) if each.topologies else each
        for each in scenario.exclude
    ]
    more = {"include": include, "exclude": exclude, "hosts": None, "nodelist": None}
    return scenario.model_copy(update={"topologies": on_job(scenario.topologies)} | more)


def _without_parameters_of(
    before: Iterable[Topology], scenario: Scenario, given: dict[str, Any]
) -> Scenario:
    """Leave out what the file gives of parameters of topologies that were set away."""
    specs = {spec for group in scenario.groups() for spec in group.topologies}
    try:
        now = known_keys([topology_from_spec(spec) for spec in specs])
    except TopologyError:
        return scenario  # which has not been checked yet
    gone = set(known_keys(before)).difference(now)
    kept = {
        key: value
        for key, value in scenario.parameters.items()
        if key not in gone or given["parameters"].get(key) != value
    }
    return scenario.model_copy(update={"parameters": kept})


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
        brackets. Or FILE.toml, for its tables [parameters] and [validated]; the others win over it.

    Raises
    ------
    ScenarioError
        No equals sign, a table that is none, or a parameter that the scenario varies.
    """
    given = {**dict(given), **_validated(changes)}
    varied = _varied(given)
    for key, value in _pairs(changes):
        section, dot, name = key.partition(".")
        if section not in Scenario.model_fields:
            hint = "" if dot or key in KEYS else did_you_mean(key, Scenario.model_fields)
            if hint:
                raise ScenarioError(f"--set {key}: unknown key{hint}")
            section, dot, name = "parameters", ".", key
        if section == "parameters" and name in varied:
            raise ScenarioError(f"--set {name}: {path} varies it: expected another key")
        if dot:
            table = given.get(section, {})
            if not isinstance(table, dict):
                raise ScenarioError(f"--set {key}: {section!r} has no keys: expected none")
            given[section] = {**table, name: value}
        else:
            given[section] = [value] if section in LISTS and not isinstance(value, list) else value
    return given


def _validated(changes: Sequence[str]) -> dict[str, Any]:
    """Return the table [validated] of the last file that has one, as a scenario has it."""
    try:
        found = validated_in(changes)
    except SettingError as error:
        raise ScenarioError(str(error)) from None
    if not found:
        return {}
    return {"validated": {"topologies": list(found[-1].topologies), "error": found[-1].error}}


def _varied(given: dict[str, Any]) -> set[str]:
    """Return the parameters that a scenario varies, whatever else it says instead of tables."""
    vary = given.get("vary")
    listed = vary if isinstance(vary, list) else []
    tables = [each.get("parameters") for each in listed if isinstance(each, dict)]
    return {key for table in tables if isinstance(table, dict) for key in table}


def _pairs(changes: Sequence[str]) -> list[tuple[str, Any]]:
    """Split changes into keys and values, those of files first."""
    files = [change for change in changes if "=" not in change and change.endswith(".toml")]
    try:
        pairs = [(f"parameters.{k}", v) for file in files for k, v in parameters_in(file).items()]
    except SettingError as error:
        raise ScenarioError(str(error)) from None
    for change in [change for change in changes if change not in files]:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key or not text:
            raise ScenarioError(f"--set {change!r}: expected key=value, like replay.engine=flow")
        try:
            pairs.append((key, tomllib.loads(f"value = {text}")["value"]))
        except tomllib.TOMLDecodeError:
            if text.startswith("["):
                raise ScenarioError(
                    f"--set {change!r}: expected a list as TOML writes it, like 'seeds=[0, 1]' or "
                    """'mappers=["sweep", "auto"]'"""
                ) from None
            pairs.append((key, text))
    return pairs


def _with_files_beside(scenario: Scenario, path: Path) -> Scenario:
    """Make the files of ``file:`` relative to the scenario file, wherever it is read."""

    def moved(part: Scenario | Include | Exclude | Jobs) -> dict[str, list[str]]:
        found = {"mappers": [mapping_beside(text, path.parent) for text in part.mappers or ()]}
        if not isinstance(part, Jobs):
            found["topologies"] = [beside(spec, path.parent) for spec in part.topologies or ()]
        return {key: texts for key, texts in found.items() if texts}

    def all_of(parts: Sequence[Include | Exclude | Jobs]) -> list[Any]:
        return [part.model_copy(update=moved(part)) for part in parts]

    more = {name: all_of(getattr(scenario, name)) for name in ("include", "exclude", "jobs")}
    others = str((path.parent / scenario.beside).resolve()) if scenario.beside else ""
    return scenario.model_copy(update=moved(scenario) | more | {"beside": others})


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
    if first["type"] == "too_short":
        expected = "at least one"
    if first["type"].startswith("model_"):
        expected = f"a table [{key}]"
    if first["type"] == "extra_forbidden":
        sections: dict[str, type[BaseModel]] = {
            "replay": Replay,
            "published": Published,
            "validated": Validated,
            "include": Include,
            "jobs": Jobs,
            "exclude": Exclude,
            "vary": Vary,
        }
        fields = list(sections.get(str(where[0]), Scenario).model_fields)
        hint = did_you_mean(str(where[-1]), fields)
        return f"unknown key {key!r}{hint}: expected one of {', '.join(fields)}"
    return f"{key}: {repr(first['input'])[:60]}: expected {expected}"
