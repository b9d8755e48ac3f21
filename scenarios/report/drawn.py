"""Whether a report is still that of its results, so that nothing is drawn twice."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hopmap.scenarios.results.stored_runs import loose_ids, loose_path, part_files
from hopmap.source_files import digest_of, sources_of

HERE = Path(__file__).parent
INPUTS = ("plan.json", "scenario.toml", "published.csv")
HEAD = 4096  # bytes of a page that hold its digest


def digest_of_report(folder: Path) -> str:
    """Return the digest of all that a report is made of: results, by their names, and code.

    A part of a table has a digest of its runs in its name, and these that of their inputs.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in part_files(folder, "runs"):
        digest.update(path.name.encode() + b"\0")
    for run_id in loose_ids(folder):
        written = loose_path(folder, "runs", run_id).stat().st_mtime_ns
        digest.update(f"{run_id} {written}\0".encode())
    for file in (folder / name for name in INPUTS):
        digest.update(file.read_bytes() + b"\0" if file.is_file() else b"\0")
    code = sources_of(HERE / "report.py", HERE / "figures.py", whole=True)
    page = [HERE / name for name in ("page.html.j2", "page.css", "page.js")]
    return digest_of([*code, *page], digest.hexdigest())


def is_drawn(folder: Path, digest: str) -> bool:
    """Whether the folder has the page of that digest, and what lies beside it."""
    if not (folder / "figures").is_dir() or not (folder / "cases.csv").is_file():
        return False
    try:
        with (folder / "report.html").open("rb") as page:
            return f'content="{digest}"'.encode() in page.read(HEAD)
    except OSError:
        return False
