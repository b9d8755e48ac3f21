"""Commands on hopmap itself: list, all there is to choose from; precompile, what they need."""

from __future__ import annotations

import io
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hopmap.errors import HopmapError
from hopmap.units import show_value

from .console import print_json, print_table, say, working
from .options import AsJson

Entry: TypeAlias = dict[str, Any]
Entries: TypeAlias = Iterator[Entry]


Listed = StrEnum(
    "Listed",
    "BENCHMARKS MAPPERS TOPOLOGIES ENGINES PRESETS FORMATS PARAMETERS ALGORITHMS MEASURED-NAMES "
    "SCENARIOS",
)


def _entry(name: str, summary: str, source: str = "", parameters: Sequence[Entry] = ()) -> Entry:
    return {"name": name, "summary": summary, "source": source, "parameters": parameters}


def _parameter(name: str, kind: str, default: object = None) -> Entry:
    return {"name": name, "type": kind, "default": default}


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _mappers() -> Entries:
    from hopmap.mappers import all_mappers

    for info in sorted(all_mappers().values(), key=lambda info: (info.name != "auto", info.name)):
        parameters = [_parameter(each.name, each.type, each.default) for each in info.parameters]
        if info.presets:
            parameters.append(_parameter("preset", "|".join(info.presets)))
        yield _entry(info.name, info.summary, info.source, parameters)


def _topologies() -> Entries:
    from hopmap.topologies import all_families

    for name, family in all_families().items():
        like = " or ".join(f"{name}:{example}" for example in family.examples)
        parameters = [_parameter("shape", f"{family.shape}, like {like}")]
        if family.slots:
            parameters.append(_parameter("*S", "S ranks a node"))
        for option, values in family.options.items():
            kind = "|".join(values) or "whole number"
            parameters.append(_parameter(option, kind, values[0] if values else 0))
        yield _entry(name, family.summary, parameters=parameters)


def _presets() -> Entries:
    from hopmap.topologies import PRESETS

    for name, preset in PRESETS.items():
        parameters = [_parameter(field, source, value) for field, value, source in preset.fields()]
        yield _entry(name, preset.summary, parameters=parameters)


def _engines() -> Entries:
    from hopmap.simulator import ENGINES

    for name, engine in ENGINES.items():
        yield _entry(name, engine.summary)


def _formats() -> Entries:
    from hopmap.launchers.formats import companion, launchers
    from hopmap.simulator.export import EXPORTS, WRITERS
    from hopmap.simulator.parameters.pingpong_files import FORMATS as PINGPONGS
    from hopmap.topologies import NETWORK_FORMATS
    from hopmap.traces.formats.files import FORMATS
    from hopmap.traces.sources import tools

    yield _entry(".otf2", "trace: OTF2 archive folder")
    for name, tool in tools().items():
        yield _entry(name, f"trace: {tool.about}; recognised by content")
    for name, text in FORMATS.items():
        yield _entry(name, f"traffic: {text}")
    for name, text in NETWORK_FORMATS.items():
        yield _entry(name, f"topology: {text}")
    yield _entry("mapping CSV", "mapping: rank,node below a comment that names the topology")
    text = "mapping: lines of x y z, count and ranks of a node; --to maplib"
    yield _entry("MapLib mapping", text)
    for launcher in launchers():
        command = launcher.command.format(
            file="FILE",
            stem="NAME",
            module=companion(launcher, "NAME").removesuffix(".py"),
            ranks="N",
            nodes="NODES",
            nodelist="LIST",
            pack="",
            each="K",
            hosts="HOSTS",
            processes="EACH",
        )
        text = f"launcher: {launcher.summary}; {launcher.direction}; {command}"
        yield _entry(launcher.name, text, launcher.source)
    for name in WRITERS:
        yield _entry(name, f"trace for {EXPORTS[name].summary}")
    for name, text in PINGPONGS.items():
        yield _entry(name, f"calibrate: {text}")


def _parameters() -> Entries:
    from hopmap.simulator import KEYS, Parameters
    from hopmap.simulator.parameters.energy import LINK as ENERGY_LINK
    from hopmap.simulator.parameters.energy import MEANS
    from hopmap.simulator.parameters.keys import ASSUMED, TRACER
    from hopmap.simulator.parameters.settings import LINK_UNITS
    from hopmap.topologies import haec, mesh

    defaults = Parameters()
    plain, boxes = mesh((2,)).kinds[0], haec((1, 1, 2)).kinds
    for prefix, links in (("link", "all links"), ("link.KIND", "links of one kind")):
        for quantity, unit in LINK_UNITS.items():
            of_haec = (f"{kind.name} {show_value(getattr(kind, quantity), unit)}" for kind in boxes)
            yield _entry(
                f"{prefix}.{quantity}",
                f"{quantity} of {links}; haec: {', '.join(of_haec)}; presets and files have others",
                "assumed",
                parameters=[_parameter("value", unit, getattr(plain, quantity))],
            )
    for quantity, unit in ENERGY_LINK.items():
        value, text = _parameter("value", unit, 0), f"{MEANS[quantity]}, of one kind"
        yield _entry(f"energy.link.KIND.{quantity}", text, parameters=[value])
    for name, key in KEYS.items():
        default = getattr(defaults, key.field) if key.field else (*key.choices, 0)[0]
        value = _parameter("value", key.unit or "|".join(key.choices), default)
        text = key.summary or f"algorithm of {name.partition('.')[2]}"
        source = "assumed" if name in ASSUMED else "TraceR, generic torus" * (name in TRACER)
        yield _entry(name, text, source, [value])


def _algorithms() -> Entries:
    from hopmap.simulator import ALGORITHMS
    from hopmap.simulator.collectives.algorithms import OPTIONS, options_of

    for operation, table in ALGORITHMS.items():
        for name, algorithm in table.items():
            parameters = [
                _parameter(option, OPTIONS[option].kind, default)
                for option, default in options_of(algorithm).items()
            ]
            text = _first_line(algorithm.__doc__)
            yield _entry(f"{operation}={name}", text, parameters=parameters)


def _measured_names() -> Entries:
    from hopmap.plugins import load_named

    for each in load_named("hopmap.simulator.measured", "known_names:measured_names")():
        yield _entry(f"{each.collective}={each.name}", each.algorithm, each.source)


def _benchmarks() -> Entries:
    from hopmap.traces.nas.benchmarks import BENCHMARKS

    for name, benchmark in BENCHMARKS.items():
        source = (benchmark.about or "").partition("Source: ")[2]
        yield _entry(name, _first_line(benchmark.about), " ".join(source.split()))


def _scenarios() -> Entries:
    from hopmap.scenarios.sweep import SHIPPED

    for _, file in sorted(SHIPPED.items()):
        scenario = tomllib.loads(file.read_text(encoding="utf-8"))
        yield _entry(file.stem, _first_line(scenario["name"]))


CATALOGUE: Mapping[str, Callable[[], Entries]] = {
    "benchmarks": _benchmarks,
    "mappers": _mappers,
    "topologies": _topologies,
    "engines": _engines,
    "presets": _presets,
    "formats": _formats,
    "parameters": _parameters,
    "algorithms": _algorithms,
    "measured-names": _measured_names,
    "scenarios": _scenarios,
}


def list_(
    what: Annotated[
        Listed | None, typer.Argument(help="What to list; all of them in short when left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what there is: benchmarks, mappers, topologies, engines, presets, formats, ..."""
    if what is None:
        _list_all(as_json)
        return
    entries = list(CATALOGUE[what.value]())
    if what is Listed.MAPPERS:
        entries = list(map(_with_capabilities, entries))
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        say(f"{entry['name']}: {entry['summary']}")
        for parameter in entry["parameters"]:
            shown = show_value(parameter["default"], parameter["type"])
            default = "" if parameter["default"] is None else f" = {shown}"
            say(f"    {parameter['name']}{default}  ({parameter['type']})")
        if entry["source"]:
            say(f"    source: {entry['source']}")
    if what is Listed.MAPPERS:
        _show_capabilities(entries)


def _with_capabilities(entry: Entry) -> Entry:
    from hopmap.mappers import get_mapper
    from hopmap.mappers.capabilities import capabilities

    return entry | {"capabilities": capabilities(get_mapper(entry["name"]))._asdict()}


def _show_capabilities(entries: Sequence[Entry]) -> None:
    """Print a row a mapper: what it does, works for and takes."""
    rows = []
    for entry in entries:
        can = entry["capabilities"]
        objectives = ", ".join(can["objectives"]) or "-"
        if can["objectives"][:3] == SUMS:
            objectives = ", ".join(("sums", *can["objectives"][3:]))
        budget = "yes" if can["budget"] else "no"
        row = (entry["name"], can["role"], objectives, can["weights"] or "-")
        rows.append((*row, can["needs"] or "-", budget, can["cost"] or "not stated"))
    say()
    print_table(
        ("mapper", "mapping", "objectives", "weights", "needs", "--seconds", "cost"),
        rows,
        title="sums: cardinality, hop_messages, hop_bytes; -: no choice, nothing",
    )


SUMS = ("cardinality", "hop_messages", "hop_bytes")
SHORT = 6
"""Names of each kind that are printed where all kinds are."""


def _list_all(as_json: bool) -> None:
    """Print the names of everything, the first few of each kind."""
    names = {kind: [entry["name"] for entry in entries()] for kind, entries in CATALOGUE.items()}
    if as_json:
        print_json(names)
        return
    for kind, known in names.items():
        more = f", and {len(known) - SHORT} more" if len(known) > SHORT else ""
        say(f"{kind}: {', '.join(known[:SHORT])}{more}")
    say("hopmap list KIND describes all of a kind")


MAPPING = "rank,node\n" + "".join(f"{rank},{rank}\n" for rank in range(16))
NETWORKS = ("torus:4x2x2", "tree:4:4", "cluster:4*4", "fattree:4x4", "dragonfly:2x4x2")
SETTINGS = ("routing=adaptive", "buffer=4", "buffer=4 --set network.routing=adaptive")
COMMANDS = (
    "matrix TRACE --collectives expand --out m.npz",
    "explain TRACE m.csv -t torus:4x2x2",
    "evaluate TRACE m.csv -t torus:4x2x2 --convention maplib",
    "convert TRACE --to simgrid --out converted",
    "simulate TRACE m.csv -t torus:4x2x2 --engine simpy --perfetto p.json --otf2 otf2",
    *(f"simulate TRACE m.csv -t {network}" for network in ("fattree:4x4", "dragonfly:2x4x2")),
    *(f"simulate TRACE m.csv -t torus:4x2x2 --engine {engine}" for engine in ("flow", "analytic")),
    *(
        f"simulate TRACE m.csv -t torus:4x2x2 --set network.virtual_channels=3 --set network.{each}"
        for each in SETTINGS
    ),
    *(f"map TRACE -t torus:4x2x2 -m {mapper}" for mapper in ("annealing", "bokhari", "minmd")),
    *(
        f"map lu.S.16 -t {network} -m auto --seconds 0.1 --objective {objective}"
        for network in NETWORKS
        for objective in ("hop_bytes", "max_link_load", "makespan")
    ),
)
"""Commands whose kernels are compiled; TRACE is a trace that comes with hopmap."""


def precompile(as_json: AsJson = False) -> None:
    """Compile what common commands need, for container images; NUMBA_CACHE_DIR sets the folder."""
    from hopmap.compilation import cache_folder

    with working("compiling") as progress:
        for done, words in enumerate(COMMANDS):
            progress(done, len(COMMANDS), words.replace("TRACE ", "").partition("--seconds")[0])
            run_quietly(words)
    folder = cache_folder()
    kernels = sum(1 for _ in folder.rglob("*.nbc"))
    if as_json:
        print_json({"folder": str(folder), "kernels": kernels})
    else:
        say(f"compiled: {kernels} kernels in {folder}")


def run_quietly(words: str) -> None:
    """Run a command on the trace that comes with hopmap, in a temporary folder."""
    from hopmap.scenarios.sweep import SHIPPED

    from .app import app

    trace = SHIPPED["first"].parent / "recorded" / "mg.S.16"
    arguments = [str(trace) if word == "TRACE" else word for word in words.split()]
    output = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("m.csv").write_text(MAPPING)
        try:
            with redirect_stdout(output), redirect_stderr(output):
                app(arguments)
        except SystemExit as stop:
            if stop.code:
                raise HopmapError(f"hopmap {words}: {output.getvalue()}") from None
