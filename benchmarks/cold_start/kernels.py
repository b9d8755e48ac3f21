"""What compilation costs, kernel by kernel: ``python benchmarks/cold_start/kernels.py map ...``.

Runs a command of hopmap with an empty folder of compiled code and prints, for every function that
numba compiled, how often, for how many kinds of arguments, and the processor seconds of itself
(what it calls apart) and in all. ``--most 20`` prints so many rows, ``--kinds`` what the arguments
were.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=40, metavar="N")
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of the command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache  # before numba looks at it
        rows = compiled_by(options.words)
    print(f"{sum(row[0] for row in rows):.1f} s of compilation: {' '.join(options.words)}")
    print("| own | in all | kinds | kernel |\n|---:|---:|---:|---|")
    for own, whole, kinds, name in rows[: options.most]:
        print(f"| {own:.2f} s | {whole:.2f} s | {len(kinds)} | {name} |")
        for kind in kinds if options.kinds else ():
            print(f"    {kind}")


def compiled_by(words: list[str]) -> list[tuple[float, float, list[str], str]]:
    """Run a command; return seconds, seconds in all, types and names of what was compiled."""
    from numba.core import event

    own: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    kinds: dict[str, list[str]] = defaultdict(list)
    open_: list[list[float]] = []  # begin, and seconds of what was compiled within

    class Clock(event.Listener):
        def on_start(self, _: object) -> None:
            open_.append([time.process_time(), 0.0])

        def on_end(self, heard: event.Event) -> None:
            begin, within = open_.pop()
            spent = time.process_time() - begin
            if open_:
                open_[-1][1] += spent
            function = heard.data["dispatcher"].py_func
            file = Path(function.__code__.co_filename)
            name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
            name = f"{name}:{function.__qualname__}"
            own[name] += spent - within
            whole[name] += spent
            kinds[name].append(str(heard.data["args"]))

    from hopmap.scenarios.cli.app import main as command

    sys.argv = ["hopmap", *words]
    with event.install_listener("numba:compile", Clock()):
        try:
            command()
        except SystemExit as end:
            if end.code:
                raise
    return sorted(((own[n], whole[n], kinds[n], n) for n in own), reverse=True)


if __name__ == "__main__":
    main()
