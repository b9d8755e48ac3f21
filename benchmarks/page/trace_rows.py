"""Compare reader and writer with the Python API of the otf2 wheel, for `page.py`."""

from __future__ import annotations

import resource
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from otf2_archives import python_traffic, python_write

from hopmap.traces import read_trace, read_traffic, write_trace
from hopmap.traces.otf2.files import find_archive

ROOT = Path(__file__).parents[2]
RECORDED = ROOT.parent / "shared" / "nas" / "lu.W.16.tar.xz"
COPIED = 100_000  # events that the Python writer copies: enough for a rate


def spent() -> float:
    """Processor seconds of this process, and of its children: archives are read in one."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def best(run: Callable[[], object], times: int = 5) -> float:
    """Least processor time of a few calls."""
    seconds = []
    for _ in range(times):
        begin = spent()
        run()
        seconds.append(spent() - begin)
    return min(seconds)


def rows() -> Iterator[tuple[str, str, str, str, float]]:
    """Yield the rows of the page."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if RECORDED.exists():
            with tarfile.open(RECORDED) as packed:
                packed.extractall(folder, filter="data")
            (anchor,) = folder.rglob("*.otf2")
        else:
            anchor = find_archive(ROOT / "tests" / "data" / "mg.S.16")
        trace = read_trace(anchor)
        out, copy = folder / "out.otf2", folder / "copy"
        write_trace(trace, out), read_traffic(anchor)  # compile
        begin = time.process_time()
        events, _ = python_traffic(anchor)
        reader = events / (time.process_time() - begin)
        writer = python_write(anchor, copy, COPIED)
        name = "lu.W.16" if RECORDED.exists() else "mg.S.16"
        for what, rate, peer, component in (
            ("trace to traffic", events / best(lambda: read_traffic(anchor)), reader, "reader"),
            ("trace to program", events / best(lambda: read_trace(anchor)), reader, "reader"),
            ("program to trace", trace.events / best(lambda: write_trace(trace, out)), writer,
             "writer"),
        ):  # fmt: skip
            yield (
                f"{what}, {name}", f"{rate / 1e6:.1f} M events/s", f"otf2's Python {component}",
                f"{peer / 1e6:.2f} M events/s", rate / peer,
            )  # fmt: skip
