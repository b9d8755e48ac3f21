"""What compiling costs, function by function: ``python benchmarks/cold_start/kernels.py map ...``.

Runs a command of hopmap with an empty cache. Prints for every function that numba compiled: for how
many kinds of arguments, and processor seconds without its callees, by phase. ``--most 20`` prints
that many rows; ``--json`` prints the number of compilations alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PHASES = {"nopython_type_inference": "typing", "native_lowering": "machine code"}


class Clock:
    """Processor seconds of things that nest: each without what is inside it."""

    def __init__(self) -> None:
        self.open: list[list[float]] = []

    def begin(self) -> None:
        self.open.append([time.process_time(), 0.0])

    def end(self) -> float:
        begin, inside = self.open.pop()
        spent = time.process_time() - begin
        if self.open:
            self.open[-1][1] += spent
        return spent - inside


def compile_costs(words: list[str]) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Run a command; return by function how often it was compiled, and seconds by phase."""
    from numba.core import event

    kinds: Counter[str] = Counter()
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    inside: list[str] = []
    clock = Clock()

    class Functions(event.Listener):
        def on_start(self, heard: event.Event) -> None:
            inside.append(name_of(heard.data["dispatcher"].py_func))
            clock.begin()

        def on_end(self, _: event.Event) -> None:
            name = inside.pop()
            kinds[name] += 1
            seconds[name]["other passes"] += clock.end()

    class Passes(event.Listener):
        def on_start(self, _: event.Event) -> None:
            clock.begin()

        def on_end(self, heard: event.Event) -> None:
            spent = clock.end()
            phase = PHASES.get(heard.data["name"].split(" ")[0], "other passes")
            if inside:
                seconds[inside[-1]][phase] += spent

    from hopmap.cli.app import main as command

    sys.argv = ["hopmap", *words]
    with (
        event.install_listener("numba:compile", Functions()),
        event.install_listener("numba:run_pass", Passes()),
    ):
        try:
            command()
        except SystemExit as end:
            if end.code:
                raise
    return kinds, seconds


def name_of(function: Any) -> str:
    file = Path(function.__code__.co_filename)
    place = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
    return f"{place}:{function.__qualname__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=40, metavar="N")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of the command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache  # before numba looks at it
        kinds, seconds = compile_costs(options.words)
    if options.json:
        print(json.dumps({"compilations": kinds.total(), "functions": len(kinds)}))
        return
    total = sum(each.total() for each in seconds.values())
    print(f"{kinds.total()} compilations of {len(kinds)} functions in {total:.1f} s")
    print("| function | kinds | typing | machine code | other passes | all |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in sorted(seconds, key=lambda name: -seconds[name].total())[: options.most]:
        phases = seconds[name]
        parts = [phases[part] for part in ("typing", "machine code", "other passes")]
        shown = " | ".join(f"{part:.2f} s" for part in (*parts, phases.total()))
        print(f"| {name} | {kinds[name]} | {shown} |")


if __name__ == "__main__":
    main()
