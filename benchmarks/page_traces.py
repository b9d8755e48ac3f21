"""Reader and writer beside the Python API of the otf2 wheel, for `page.py`."""

from __future__ import annotations

import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from otf2_archives import python_traffic, python_write

from hopmap.traces import lu_traffic, nas_trace, read_trace, read_traffic, traffic_of, write_trace
from hopmap.traces.otf2_archive import find_archive

ROOT = Path(__file__).parents[1]
RECORDED = ROOT.parent / "shared" / "nas" / "lu.W.16.tar.xz"
COPIED = 100_000  # events that the Python writer copies: enough for a rate


def best(run: Callable[[], object], times: int = 5) -> float:
    """Least processor time of a few calls."""
    seconds = []
    for _ in range(times):
        begin = time.process_time()
        run()
        seconds.append(time.process_time() - begin)
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
        for what, rate, peer, beside in (
            ("trace to traffic", events / best(lambda: read_traffic(anchor)), reader, "reader"),
            ("trace to program", events / best(lambda: read_trace(anchor)), reader, "reader"),
            ("program to trace", trace.events / best(lambda: write_trace(trace, out)), writer,
             "writer"),
        ):  # fmt: skip
            yield (
                f"{what}, {name}", f"{rate / 1e6:.1f} M events/s", f"otf2's Python {beside}",
                f"{peer / 1e6:.2f} M events/s", rate / peer,
            )  # fmt: skip
    formula = best(lambda: lu_traffic("W", 64))
    program = best(lambda: traffic_of(nas_trace("lu.W.64")), 1)
    yield (
        "traffic of lu.W.64 by formula", f"{formula * 1e3:.2f} ms", "counting a generated trace",
        f"{program * 1e3:.0f} ms", program / formula,
    )  # fmt: skip
