"""The command warm-up: compile what users reach, so that no later command waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from .arguments import AsJson
from .console import print_json, say, working

Step: TypeAlias = tuple[str, Callable[[], object]]

NETWORKS = (
    *("torus:4x4", "mesh:4x4*2", "tree:4:4", "cluster:4*4", "fattree:4x4", "dragonfly:2x2x2x4"),
)
OBJECTIVES = ("hop_bytes", "max_link_load")


def warm_up(as_json: AsJson = False) -> None:
    """Compile all kernels now, for images and modules; NUMBA_CACHE_DIR says where they are kept."""
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
