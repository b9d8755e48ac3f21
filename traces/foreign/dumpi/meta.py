"""DUMPI's meta file, which names the files of a run's ranks."""

from __future__ import annotations

import re
from pathlib import Path

from hopmap.traces.foreign.files import read_whole
from hopmap.traces.trace import TraceError

_META = re.compile(rb"^(hostname|numprocs|username|startime|fileprefix|version)=", re.MULTILINE)


def is_meta(start: bytes) -> bool:
    """Whether a file that begins like this names the files of a run."""
    return len(start) < 1 << 14 and {b"numprocs", b"fileprefix"} <= set(_META.findall(start))


def files_of_meta(meta: Path) -> tuple[Path, ...]:
    """Return the files of all ranks that a meta file names.

    Raises
    ------
    TraceError
        Values that make no sense, or files that are missing.
    """
    lines = (
        line.partition("=") for line in read_whole(meta, 1).decode("utf-8", "replace").splitlines()
    )
    values = {key.strip(): value.strip() for key, _, value in lines}
    count, prefix = values["numprocs"], Path(values["fileprefix"]).name
    if not re.fullmatch("[0-9]{1,8}", count) or not 0 < int(count) <= 2**24:
        raise TraceError(f"{meta}: numprocs={count[:40]}: expected a number of ranks")
    files = {}
    for file in meta.parent.iterdir():
        match = re.fullmatch(re.escape(prefix) + r"-(\d+)\.bin", file.name)
        if match:
            files[int(match[1])] = file
    for rank in range(int(count)):
        if rank not in files:
            raise TraceError(f"{meta}: {prefix}-{rank:04}.bin of {count} ranks is not beside it")
    if len(files) > int(count):
        raise TraceError(
            f"{meta}: numprocs={count}, and {len(files)} files {prefix}-*.bin are beside it: "
            "expected as many"
        )
    return tuple(files[rank] for rank in range(int(count)))
