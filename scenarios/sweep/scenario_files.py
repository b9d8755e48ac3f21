"""Scenario files: found, read, changed by --set, checked.

Every mistake in a file is a `ScenarioError` of one line: file, key, value, what was expected.

A trace of a [[jobs]] table may have fields in braces, which a job of so many nodes fills: {nodes},
{power} for the largest power of two that fits, {square} for the largest square, {box} for three
sizes as near to each other as their product, at most the nodes, allows: "4x4x5".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from math import isqrt
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from hopmap.api.named_files import absolute_in, change_paths
from hopmap.scenarios.results.plan_file import flat
from hopmap.simulator import KEYS
from hopmap.simulator.parameters.settings import SettingError, parameters_in, read_validated
from hopmap.topologies import TopologyError, did_you_mean, topology_from_spec
from hopmap.topologies.readers.hosts import lists_in, nodes_of, read_hosts

from . import SHIPPED, ScenarioError
from .scenario import Scenario
from .scenario_tables import Context, Jobs

LISTS = ("traces", "topologies", "suites", "mappers", "seeds", "plugins")


def scenario_path(text: str | Path) -> Path:
    """Return the file of a scenario: a path, or the name of a shipped one."""
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
    """Read and check a scenario file, with changes set over it (`override`)."""
    path, before = Path(path), None
    data = read_toml(path)
    if changes:
        with suppress(ScenarioError):  # which may be what is set right
            before = _valid(data, path)
    wanted = override(data, changes, path)
    try:
        return _valid(wanted, path, before)
    except ScenarioError as error:
        # What is wrong, and was not in the file, is what was set.
        raise ScenarioError(f"{'' if before is None else '--set over '}{error}") from None


def _valid(data: dict[str, Any], path: Path, before: Scenario | None = None) -> Scenario:
    """Make a scenario of what a file says."""
    context = Context(path, before, _nodes_of_job(data, path))
    try:
        scenario = Scenario.model_validate({"name": path.stem, **data}, context=context)
        for key in ("traces", "topologies"):
            if not (scenario.suites or scenario.jobs or getattr(scenario, key)):
                raise ScenarioError(f"{path}: key {key!r} is missing")
        if scenario.jobs:
            more = write_out_jobs(scenario, path)
            written = scenario.model_dump(exclude_unset=True) | more
            scenario = Scenario.model_validate(written, context=context._replace(job=""))
    except ValidationError as error:
        raise ScenarioError(f"{path}: {_one_line(error)}") from None
    return scenario.model_copy(update={"hosts": None, "nodelist": None})


def _nodes_of_job(data: dict[str, Any], path: Path) -> str:
    """Return the prefix of every topology, from the keys that list a job's nodes."""
    hosts, nodelist = data.get("hosts"), data.get("nodelist")
    if hosts is not None and nodelist is not None:
        raise ScenarioError(f"{path}: nodelist and hosts are mutually exclusive")
    name, nodes = ("job", hosts) if nodelist is None else ("nodes", nodelist)
    return f"{name}:{nodes}@" if nodes and isinstance(nodes, str) else ""


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a scenario file without checking what it says, parameters by dotted keys."""
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ScenarioError(f"{path}: cannot be read as a scenario ({reason})") from None
    varied = data.get("vary")
    for table in (data, *(varied if isinstance(varied, list) else ())):
        for key in ("parameters", "prices"):
            if isinstance(table, dict) and isinstance(table.get(key), dict):
                table[key] = dict(flat(table[key]))
    return data


def override(data: dict[str, Any], changes: Sequence[str], path: Path) -> dict[str, Any]:
    """Set keys of a scenario as ``--set`` says.

    A change is "key=value", the key one of the scenario ("seeds", "replay.engine") or else a
    parameter ("link.bandwidth"), the value in TOML, or a text without quotes. A list of one needs
    no brackets. FILE.toml gives its tables [parameters] and [validated]; other changes win.
    """
    try:
        data = {**data, **_read_validation(changes)}
        pairs = _pairs(changes)
    except SettingError as error:
        raise ScenarioError(str(error)) from None
    varied = _varied_keys(data)
    for key, value in pairs:
        section, dot, name = key.partition(".")
        if section not in Scenario.model_fields:
            hint = "" if dot or key in KEYS else did_you_mean(key, Scenario.model_fields)
            if hint:
                raise ScenarioError(f"--set {key}: unknown key{hint}")
            section, dot, name = "parameters", ".", key
        if section == "parameters" and name in varied:
            raise ScenarioError(f"--set {name}: {path} varies it: expected another key")
        if dot:
            table = data.get(section, {})
            if not isinstance(table, dict):
                raise ScenarioError(f"--set {key}: {section!r} has no keys: expected none")
            data[section] = {**table, name: value}
        else:
            data[section] = [value] if section in LISTS and not isinstance(value, list) else value
    return data


def _read_validation(changes: Sequence[str]) -> dict[str, Any]:
    """Return the table [validated] of the last file that has one, as a scenario has it."""
    found = read_validated(changes)
    if not found:
        return {}
    return {"validated": {"topologies": list(found[-1].topologies), "error": found[-1].error}}


def _varied_keys(data: dict[str, Any]) -> set[str]:
    """Return the parameters that a scenario varies; keys other than tables are ignored."""
    vary = data.get("vary")
    listed = vary if isinstance(vary, list) else []
    tables = [each.get("parameters") for each in listed if isinstance(each, dict)]
    return {key for table in tables if isinstance(table, dict) for key in table}


def _pairs(changes: Sequence[str]) -> list[tuple[str, Any]]:
    """Split changes into keys and values, values from files first."""
    files = [change for change in changes if "=" not in change and change.endswith(".toml")]
    pairs = [(f"parameters.{k}", v) for file in files for k, v in parameters_in(file).items()]
    for change in [change for change in changes if change not in files]:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key or not text:
            raise ScenarioError(f"--set {change!r}: expected key=value, like replay.engine=flow")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
            of_scenario = key.partition(".")[0] in {*Scenario.model_fields} - {"parameters"}
            # A number of a parameter stays text, since on the command line quantities have units.
            plain = of_scenario or not isinstance(value, int | float)
            pairs.append((key, value if plain else text))
        except tomllib.TOMLDecodeError:
            if text.startswith("["):
                raise ScenarioError(
                    f"--set {change!r}: expected a list as TOML writes it, like 'seeds=[0, 1]' or "
                    """'mappers=["sweep", "auto"]'"""
                ) from None
            pairs.append((key, text))
    return pairs


def _one_line(error: ValidationError) -> str:
    """Rewrite one of pydantic's complaints: key, value, what was expected."""
    # A misspelt key comes before the one that is missing for it.
    first = min(error.errors(include_url=False), key=lambda each: each["type"] == "missing")
    kind, place = first["type"], first["loc"]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
    if kind == "missing":
        return f"key {key!r} is missing"
    if kind == "value_error":
        return ": ".join(filter(None, (key, str(first["ctx"]["error"]))))
    if kind == "extra_forbidden":
        table = Scenario.model_fields[str(place[0])].annotation if len(place) > 1 else Scenario
        models = [each for each in (table, *get_args(table)) if hasattr(each, "model_fields")]
        fields = list(models[0].model_fields)
        hint = did_you_mean(str(place[-1]), fields)
        return f"unknown key {key!r}{hint}: expected one of {', '.join(fields)}"
    if kind == "list_type" and isinstance(first["input"], dict):
        return f"[{key}]: expected [[{key}]], one for each table"
    expected = first["msg"].removeprefix("Input should be ").replace("Input should", "should")
    if kind == "too_short":
        expected = "at least one"
    elif kind.startswith("model_"):
        expected = f"a table [{key}]"
    return f"{key}: {repr(first['input'])[:60]}: expected {expected}"


FIELDS = ("nodes", "power", "square", "box")


def write_out_jobs(scenario: Scenario, path: Path) -> dict[str, Any]:
    """Return what a scenario file would say that included the runs of its jobs one by one."""
    description = [scenario.description]
    included: list[dict[str, Any]] = [each.model_dump() for each in scenario.include]
    for place, jobs in enumerate(scenario.jobs):
        at = f"{path}: jobs[{place}]"
        try:
            found, strangers = _find_nodes(jobs, path.parent / scenario.folder)
        except TopologyError as error:
            raise ScenarioError(f"{at}: {error}") from None
        if not found:
            most = f"to {jobs.max_nodes}" if jobs.max_nodes else "or more"
            sizes = f"{jobs.min_nodes} {most} nodes in {jobs.hosts}"
            raise ScenarioError(f"{at}: no job of {sizes}: expected at least one")
        for trace in jobs.traces:
            for field in re.findall(r"\{(.*?)\}", trace):
                if field not in FIELDS:
                    known = ", ".join(f"{{{name}}}" for name in FIELDS)
                    raise ScenarioError(f"{at}.traces: {trace!r}: expected no fields but {known}")
        if strangers:
            description.append(
                f"{strangers} jobs of {jobs.hosts} are left out, which have nodes that "
                f"{jobs.topology} does not have."
            )
        included += [
            {
                "traces": list(dict.fromkeys(fill_trace(trace, nodes) for trace in jobs.traces)),
                "topologies": [spec],
                "mappers": jobs.mappers,
                "seeds": jobs.seeds,
            }
            for spec, nodes in found
        ]
    said = "\n".join(filter(None, description))
    return {"include": included, "jobs": [], "folder": "", "description": said}


def _find_nodes(jobs: Jobs, folder: Path) -> tuple[list[tuple[str, int]], int]:
    """Return spec and nodes of every job that counts, and how many have unknown nodes."""
    machine = change_paths(jobs.topology, absolute_in(folder))
    network = topology_from_spec(machine)
    found, strangers = [], 0
    for listed in lists_in(str((folder / jobs.hosts).resolve())):
        hosts = read_hosts(listed)
        if not jobs.min_nodes <= len(hosts) <= (jobs.max_nodes or len(hosts)):
            continue
        try:
            nodes = nodes_of(network, hosts, listed)
        except TopologyError:
            if jobs.on_unknown == "error":
                raise
            strangers += 1
            continue
        found.append((f"job:{listed}@{machine}", len(nodes)))
    return found, strangers


def fill_trace(trace: str, nodes: int) -> str:
    """Return a trace with its fields filled in for so many nodes.

    Examples
    --------
    >>> filled("lu.C.{power}", 72), filled("stencil:{box},7pt", 72)
    ('lu.C.64', 'stencil:3x4x6,7pt')
    """
    power, square = 1 << (nodes.bit_length() - 1), isqrt(nodes) ** 2
    fields = {
        "nodes": nodes,
        "power": power,
        "square": square,
        "box": "x".join(map(str, box(nodes))),
    }
    return re.sub(r"\{(\w+)\}", lambda match: str(fields[match[1]]), trace)


@lru_cache(maxsize=256)
def box(nodes: int) -> tuple[int, int, int]:
    """Return three sizes of a product of at most `nodes`: near a cube, then with most nodes.

    No size is more than twice another; of these boxes the one that leaves fewest nodes over.
    """
    return max(_boxes(nodes), key=lambda sides: (sides[0] * sides[1] * sides[2], sides[0]))


def _boxes(nodes: int) -> Iterator[tuple[int, int, int]]:
    for x in range(1, round(nodes ** (1 / 3)) + 1):
        for y in range(x, 2 * x + 1):
            z = min(nodes // (x * y), 2 * x)
            if z >= y:
                yield x, y, z
