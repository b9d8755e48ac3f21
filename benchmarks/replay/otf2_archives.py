"""Events per second and memory of the OTF2 reader and writer, and of the wheel's Python API.

    python benchmarks/replay/otf2_archives.py ARCHIVE_OR_TAR [--repeat 5] [--no-python]

Compilation is apart: it happens once per installation. Each figure is the best of several runs;
memory is the peak of a fresh process beyond what it had before reading, without that of the child
that reads (docs/explanations/untrusted-input.md).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import otf2
from rich.console import Console
from rich.table import Table

from hopmap.traces import Trace, read_summary, read_trace, read_traffic, write_trace
from hopmap.traces.otf2.files import find_archive

PYTHON_WRITES = 100_000  # events: enough for a rate, more would take minutes

MEMORY = """
import sys
from pathlib import Path
from hopmap.traces import read_trace, read_traffic

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

read = {"program": read_trace, "traffic": read_traffic}[sys.argv[2]]
read(sys.argv[3])  # compiles
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compiling
before = kilobytes("VmRSS")
result = read(sys.argv[1])
print(1024 * (kilobytes("VmHWM") - before))
"""


def best(repeat: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def python_traffic(anchor: Path) -> tuple[int, dict[tuple[int, int], int]]:
    """The matrix by the plain Python API: what this package replaces."""
    events, messages = 0, {}
    with otf2.reader.open(str(anchor)) as reader:
        for location, event in reader.events:
            events += 1
            if isinstance(event, (otf2.events.MpiSend, otf2.events.MpiIsend)):
                pair = (location._ref, event.communicator.location(event.receiver)._ref)
                messages[pair] = messages.get(pair, 0) + 1
    return events, messages


def python_write(anchor: Path, folder: Path, limit: int) -> float:
    """Events per second of copying the first ones by the plain Python API, reading not counted."""
    with otf2.reader.open(str(anchor)) as reader:
        definitions = reader.definitions
        batch = [pair for pair, _ in zip(reader.events, range(limit), strict=False)]
        begin = time.perf_counter()
        with otf2.writer.open(str(folder), definitions=definitions) as writer:
            writers = {}
            for location, event in batch:
                if location not in writers:
                    writers[location] = writer.event_writer_from_location(location)
                writers[location](event)
        return len(batch) / (time.perf_counter() - begin)


def memory(archive: Path, small: Path, what: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(archive), what, str(small)],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


def measure(archive: Path, repeat: int, with_python: bool, console: Console) -> None:
    anchor = find_archive(archive)
    small = Path(__file__).parents[2] / "tests" / "data" / "lu.S.4"
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.otf2"
        write_trace(read_trace(small), out)  # compiles
        read_traffic(small)
        summary, trace = read_summary(archive), read_trace(archive)
        seconds = {
            "traffic": best(repeat, lambda: read_traffic(archive)),
            "program": best(repeat, lambda: read_trace(archive)),
            "writer": best(repeat, lambda: write_trace(trace, out)),
        }
        peak = {what: memory(archive, small, what) for what in ("traffic", "program")}
        rates = {what: summary.events / spent for what, spent in seconds.items()}
        rates["writer"] = trace.events / seconds["writer"]
        if with_python:
            begin = time.perf_counter()
            events, messages = python_traffic(anchor)
            rates["Python reader"] = events / (time.perf_counter() - begin)
            assert events == summary.events
            assert sum(messages.values()) == summary.messages
            rates["Python writer"] = python_write(anchor, Path(scratch) / "python", PYTHON_WRITES)
    console.print(report(trace, rates, peak))


def report(trace: Trace, rates: dict[str, float], peak: dict[str, int]) -> Table:
    table = Table(
        title=f"{trace.name}: {trace.events:,} events, program of {trace.nbytes / 1e6:.1f} MB"
    )
    for column in ("", "million events/s", "x Python", "peak MB", "peak / program"):
        table.add_column(column, justify="right" if column else "left")
    for what, rate in rates.items():
        plain = rates.get("Python writer" if what == "writer" else "Python reader")
        table.add_row(
            what,
            f"{rate / 1e6:.3f}" if rate < 1e6 else f"{rate / 1e6:.1f}",
            f"{rate / plain:.0f}" if plain and not what.startswith("Python") else "",
            f"{peak[what] / 1e6:.1f}" if what in peak else "",
            f"{peak[what] / trace.nbytes:.2f}" if what in peak else "",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help="archive folder, anchor file or .tar.xz of one")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-python", action="store_true", help="skip the slow comparison")
    arguments = parser.parse_args()
    console = Console()
    if arguments.archive.is_dir() or arguments.archive.suffix == ".otf2":
        measure(arguments.archive, arguments.repeat, not arguments.no_python, console)
        return
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(arguments.archive) as packed:
            packed.extractall(scratch, filter="data")
        (anchor,) = Path(scratch).rglob("*.otf2")
        measure(anchor, arguments.repeat, not arguments.no_python, console)


if __name__ == "__main__":
    main()
