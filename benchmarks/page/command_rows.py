"""What a user waits for, for `page.py`: commands, and what a sweep adds to its runs."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sweep
from kill_test import write_scenario

from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario

RUNS = 300
DATA = Path(__file__).parents[2] / "tests" / "data"
COMMAND = [sys.executable, "-c", "from hopmap.cli.app import main; main()"]
AIMS = (  # what it is, words, seconds that a user should not wait beyond
    ("hopmap --help", ("--help",), 0.5),
    ("hopmap list mappers", ("list", "mappers"), 2.0),
    ("hopmap info mg.S.16", ("info", str(DATA / "mg.S.16")), 2.0),
    ("hopmap map, minmd", ("map", "lu.C.64", "-t", "torus:4x4x4", "-m", "minmd"), 2.0),
)


def rows() -> Iterator[tuple[str, str, str, str, float]]:
    """Yield the rows of the page."""
    for what, words, aim in AIMS:
        _wait(words)  # compiles
        spent = min(_wait(words) for _ in range(3))
        yield what, f"{spent:.2f} s", "what a user waits for gladly", f"{aim:g} s", aim / spent
    beyond = _sweep()
    yield "a run of a sweep, beyond its work", f"{beyond:.1f} ms", "aim", "20 ms", 20 / beyond


def _wait(words: tuple[str, ...]) -> float:
    """Processor seconds of a command, its own process's start included."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*COMMAND, *words], check=True, capture_output=True, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _sweep() -> float:
    """Processor milliseconds that a sweep adds to each of its runs."""
    with tempfile.TemporaryDirectory() as name:
        few = write_scenario(Path(name), 16)
        sweep.loop(few)
        run_scenario(few, load_scenario(few), Path(name) / "few")
        file = write_scenario(Path(name), RUNS)
        begin = sweep.processor()
        sweep.loop(file)
        between = sweep.processor()
        run_scenario(file, load_scenario(file), Path(name) / "whole")
        return (sweep.processor() - between - (between - begin)) / RUNS * 1e3
