"""The command warm-up: compile what users reach, so that no later command waits for it."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from hopmap.errors import HopmapError

from .arguments import AsJson
from .console import print_json, say, working

Step: TypeAlias = tuple[str, Callable[[], object]]

NETWORKS = (
    *("torus:4x4", "mesh:4x4*2", "tree:4:4", "cluster:4*4", "fattree:4x4", "dragonfly:2x2x2x4"),
)
OBJECTIVES = ("hop_bytes", "max_link_load")

PLACED = "rank,node\n" + "".join(f"{rank},{rank}\n" for rank in range(16))
FIRST_CALLS = (  # what compiles longest stands first, but for what several of them need
    "map TRACE -t torus:4x2x2 -m auto --seconds 0.1",
    "simulate TRACE m.csv -t torus:4x2x2 --engine simpy --perfetto p.json --otf2 otf2",
    "simulate TRACE m.csv -t torus:4x2x2 --engine compiled",
    "simulate TRACE m.csv -t torus:4x2x2 --engine flow",
    "explain TRACE m.csv -t torus:4x2x2",
    "simulate TRACE m.csv -t torus:4x2x2 --set network.routing=adaptive --set network.buffer=4 "
    "--set network.virtual_channels=3",
    "simulate TRACE m.csv -t torus:4x2x2 --set network.buffer=4 --set network.virtual_channels=2",
    "simulate TRACE m.csv -t torus:4x2x2 --set network.routing=adaptive",
    "map TRACE -t dragonfly:2x4x2 -m auto --seconds 0.1",
    "map TRACE -t fattree:4x4 -m auto --seconds 0.1",
    "map TRACE -t torus:4x2x2 -m auto --seconds 0.1 --objective makespan",
    "map TRACE -t torus:4x2x2 -m annealing --seconds 0.1",
    "map TRACE -t haec:4x2x2 -m bokhari",
    "map TRACE -t torus:4x2x2 -m bokhari",
    "map TRACE -t torus:4x2x2 -m minmd",
    "evaluate TRACE m.csv -t torus:4x2x2 --convention maplib",
    "convert TRACE --to simgrid --out converted",
    "matrix TRACE --collectives expand --out m.npz",
)
"""Commands whose kernels a package carries."""


def warm_up(
    carry: Annotated[
        bool,
        typer.Option(
            "--carry",
            help="Compile what first calls need, for all processors of this kind, into the package "
            "itself, as an installation does.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compile all kernels now, for images and modules; NUMBA_CACHE_DIR says where they are kept."""
    if carry:
        _carry(as_json)
    else:
        _keep(as_json)


def _keep(as_json: bool) -> None:
    from hopmap.compilation import cache_folder

    with working("compiling") as progress:
        listed = list(steps())
        for done, (name, compile_it) in enumerate(listed):
            progress(done, len(listed), name)
            compile_it()
    folder = cache_folder()
    kernels = sum(1 for _ in folder.rglob("*.nbc"))
    if as_json:
        print_json({"folder": str(folder), "kernels": kernels})
    else:
        say(f"compiled: {kernels} kernels in {folder}")


def _carry(as_json: bool) -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from hopmap.carried import CARRIED, VARIABLE, portable_cpu, portable_environment

    if (said := os.environ.get(VARIABLE, "1")) != "1":
        raise HopmapError(f"{VARIABLE}={said}: expected 1, or that it is not set")
    if portable_cpu() is None:
        raise HopmapError("no code can be carried for processors such as this one")
    remove_stale(CARRIED)
    with working("compiling") as progress, tempfile.TemporaryDirectory() as none_kept:
        environment = portable_environment() | {"NUMBA_CACHE_DIR": none_kept}
        os.environ.clear()
        os.environ.update(environment)
        workers = min(os.cpu_count() or 1, 4)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for done, _ in enumerate(pool.map(first_call, FIRST_CALLS)):
                progress(done, len(FIRST_CALLS), FIRST_CALLS[done].split(" ")[0])
    kernels = sum(1 for _ in CARRIED.rglob("*.gz"))
    if as_json:
        print_json({"folder": str(CARRIED), "kernels": kernels})
    else:
        say(f"compiled: {kernels} kernels in {CARRIED}")


def remove_stale(carried: Path) -> None:
    """Remove what was compiled from sources that are no longer those of the package."""
    from hopmap.compilation import folder_of
    from hopmap.source_files import PACKAGE

    for old in carried.glob("*-*"):
        source = PACKAGE.joinpath(*old.name.rpartition("-")[0].split(".")).with_suffix(".py")
        if not source.is_file() or folder_of(source).name != old.name:
            shutil.rmtree(old)


def first_call(words: str) -> None:
    """Run a command on the trace that comes with hopmap, in a folder that is thrown away."""
    from hopmap.scenarios.sweep.scenario_files import SHIPPED

    from .app import app

    trace = SHIPPED["first"].parent / "recorded" / "mg.S.16"
    given = [str(trace) if word == "TRACE" else word for word in words.split()]
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("m.csv").write_text(PLACED)
        try:
            with redirect_stdout(said), redirect_stderr(said):
                app(given)
        except SystemExit as stop:
            if stop.code:
                raise HopmapError(f"hopmap {words}: {said.getvalue()}") from None


def steps() -> Iterator[Step]:
    """Yield what is compiled, by name: reading, mapping on every sort of network, replaying."""
    from hopmap.mappers.timing import compile_for
    from hopmap.scenarios import replays
    from hopmap.scenarios.sweep.scenario_files import SHIPPED
    from hopmap.simulator import ENGINES
    from hopmap.topologies import topology_from_spec
    from hopmap.traces.sources import open_source

    recorded = SHIPPED["first"].parent / "recorded" / "is.S.16"
    network = topology_from_spec("torus:4x4")
    in_order = list(range(16))

    def replay(trace: str | Path, engine: str) -> Callable[[], object]:
        return lambda: replays.simulate(trace, network, in_order, engine=engine)

    def place(spec: str, objective: str) -> Callable[[], object]:
        return lambda: compile_for(topology_from_spec(spec), "auto", objective)

    yield "reading", lambda: open_source(recorded).traffic()
    for engine in ENGINES:
        yield f"simulate, {engine}", replay(recorded, engine)
        yield f"simulate, {engine}, loops", replay("lu.S.16", engine)
    yield "explain", lambda: replays.explain(recorded, network, in_order)
    for spec in NETWORKS:
        for objective in OBJECTIVES:
            yield f"map, {spec}, {objective}", place(spec, objective)
