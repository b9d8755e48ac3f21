"""The command list: all there is to choose from, with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import typer

from .console import print_json, say
from .options import AsJson

Entries: TypeAlias = list[dict[str, Any]]


Listed = StrEnum(
    "Listed",
    "BENCHMARKS MAPPERS TOPOLOGIES ENGINES PRESETS FORMATS PARAMETERS ALGORITHMS SCENARIOS",
)


def _entry(name: str, summary: str, source: str = "", parameters: Entries | None = None) -> Any:
    return {"name": name, "summary": summary, "source": source, "parameters": parameters or []}


def _parameter(name: str, kind: str, default: object = None) -> dict[str, Any]:
    return {"name": name, "type": kind, "default": default}


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _mappers() -> Entries:
    from hopmap.mappers import all_mappers

    entries = []
    for info in sorted(all_mappers().values(), key=lambda info: (info.name != "auto", info.name)):
        parameters = [_parameter(each.name, each.type, each.default) for each in info.parameters]
        if info.presets:
            parameters.append(_parameter("preset", "|".join(info.presets)))
        entries.append(_entry(info.name, info.summary, info.source, parameters))
    return entries


def _topologies() -> Entries:
    from hopmap.topologies import all_families

    entries = []
    for name, family in all_families().items():
        like = " or ".join(f"{name}:{example}" for example in family.examples)
        parameters = [_parameter("shape", f"{family.shape}, like {like}")]
        if family.slots:
            parameters.append(_parameter("*S", "S ranks a node"))
        for option, values in family.options.items():
            kind = "|".join(values) or "whole number"
            parameters.append(_parameter(option, kind, values[0] if values else 0))
        entries.append(_entry(name, family.summary, parameters=parameters))
    return entries


def _presets() -> Entries:
    from hopmap.topologies import PRESETS

    return [
        _entry(
            name,
            preset.summary,
            parameters=[
                _parameter(field, source, value) for field, value, source in preset.fields()
            ],
        )
        for name, preset in PRESETS.items()
    ]


def _engines() -> Entries:
    from hopmap.simulator import ENGINES

    return [_entry(name, engine.summary) for name, engine in ENGINES.items()]


def _formats() -> Entries:
    from hopmap.launchers.formats import companion, launchers
    from hopmap.simulator.export import EXPORTS
    from hopmap.simulator.parameters.pingpong_files import FORMATS as PINGPONGS
    from hopmap.topologies import NETWORK_FORMATS
    from hopmap.traces.formats.files import FORMATS
    from hopmap.traces.sources import tools

    others = [
        _entry(name, f"trace: {tool.about}; told by content") for name, tool in tools().items()
    ]
    traffic = [_entry(name, f"traffic: {summary}") for name, summary in FORMATS.items()]
    launched = [
        _entry(
            launcher.name,
            f"launcher: {launcher.summary}; {launcher.direction}; "
            + launcher.command.format(
                file="FILE",
                stem="NAME",
                module=companion(launcher, "NAME").removesuffix(".py"),
                ranks="N",
                nodes="NODES",
                nodelist="LIST",
                each="K",
                hosts="HOSTS",
                processes="EACH",
            ),
            launcher.source,
        )
        for launcher in launchers()
    ]
    mappings = [
        _entry("mapping CSV", "mapping: rank,node below a comment that names the topology"),
        _entry("MapLib mapping", "mapping: lines of x y z, count and ranks of a node; --to maplib"),
    ]
    networks = [_entry(name, f"topology: {text}") for name, text in NETWORK_FORMATS.items()]
    pingpongs = [_entry(name, f"calibrate: {text}") for name, text in PINGPONGS.items()]
    simulators = [
        _entry(name, f"trace for {export.summary}")
        for name, export in EXPORTS.items()
        if export.is_installed
    ]
    return [
        _entry(".otf2", "trace: OTF2 archive folder"),
        *others,
        *traffic,
        *networks,
        *mappings,
        *launched,
        *simulators,
        *pingpongs,
    ]


def _parameters() -> Entries:
    from hopmap.simulator import KEYS, Parameters
    from hopmap.simulator.parameters.energy import LINK as ENERGY_LINK
    from hopmap.simulator.parameters.energy import MEANS
    from hopmap.simulator.parameters.settings import LINK_UNITS
    from hopmap.topologies import haec, mesh

    defaults = Parameters()
    plain, boxes = mesh((2,)).kinds[0], haec((1, 1, 2)).kinds

    def note(quantity: str) -> str:
        of_haec = ", ".join(f"{kind.name} {getattr(kind, quantity)}" for kind in boxes)
        return f"of haec {of_haec}; presets and files have their own"

    links = [
        _entry(
            f"{prefix}.{quantity}",
            f"{quantity} of {what}; {note(quantity)}",
            parameters=[_parameter("value", unit, getattr(plain, quantity))],
        )
        for prefix, what in (("link", "all links"), ("link.KIND", "links of one kind"))
        for quantity, unit in LINK_UNITS.items()
    ] + [
        _entry(
            f"energy.link.KIND.{quantity}",
            f"{MEANS[quantity]}, of one kind",
            parameters=[_parameter("value", unit, 0)],
        )
        for quantity, unit in ENERGY_LINK.items()
    ]
    return links + [
        _entry(
            name,
            key.summary or f"algorithm of {name.partition('.')[2]}",
            parameters=[
                _parameter(
                    "value",
                    key.unit or "|".join(key.choices),
                    getattr(defaults, key.field) if key.field else (*key.choices, 0)[0],
                )
            ],
        )
        for name, key in KEYS.items()
    ]


def _algorithms() -> Entries:
    from hopmap.simulator import ALGORITHMS
    from hopmap.simulator.collectives.algorithms import OPTIONS, options_of

    return [
        _entry(
            f"{operation}={name}",
            _first_line(algorithm.__doc__),
            parameters=[
                _parameter(option, OPTIONS[option].kind, default)
                for option, default in options_of(algorithm).items()
            ],
        )
        for operation, table in ALGORITHMS.items()
        for name, algorithm in table.items()
    ]


def _benchmarks() -> Entries:
    from hopmap.traces.nas.benchmarks import BENCHMARKS

    described = {name: b.about for name, b in BENCHMARKS.items()}
    return [
        _entry(name, _first_line(text), " ".join((text or "").partition("Source: ")[2].split()))
        for name, text in described.items()
    ]


def _scenarios() -> Entries:
    from hopmap.scenarios.sweep import SHIPPED

    files = [SHIPPED[name] for name in sorted(SHIPPED)]
    contents = [(file, tomllib.loads(file.read_text(encoding="utf-8"))) for file in files]
    return [_entry(file.stem, _first_line(given["name"])) for file, given in contents]


CATALOGUE: Mapping[str, Callable[[], Entries]] = {
    "benchmarks": _benchmarks,
    "mappers": _mappers,
    "topologies": _topologies,
    "engines": _engines,
    "presets": _presets,
    "formats": _formats,
    "parameters": _parameters,
    "algorithms": _algorithms,
    "scenarios": _scenarios,
}


def list_(
    what: Annotated[Listed, typer.Argument(help="What to list.")], as_json: AsJson = False
) -> None:
    """List what there is: benchmarks, mappers, topologies, engines, presets, formats, ..."""
    entries = CATALOGUE[what.value]()
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        say(f"{entry['name']}: {entry['summary']}")
        for parameter in entry["parameters"]:
            default = "" if parameter.get("default") is None else f" = {parameter['default']}"
            say(f"    {parameter['name']}{default}  ({parameter['type']})")
        if entry["source"]:
            say(f"    source: {entry['source']}")
    if not entries:
        say(f"no {what.value} yet")
