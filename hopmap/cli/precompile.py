"""The command precompile: compile what common commands need, so that they do not wait for it."""

from __future__ import annotations

import io
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from hopmap.errors import HopmapError

from .console import print_json, say, working
from .options import AsJson

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
