"""Files as the recorder's library writes them, made by hand: no MPI is needed for them."""

from __future__ import annotations

import numpy as np

from hopmap.traces import Kind
from hopmap.traces.recorder.raw import HEADER, MAGIC, PAGE, RECORD, VERSION, Extra

SEND, RECV, WAITALL, ALLTOALLV = range(4)
REGIONS = ("MPI_Send", "MPI_Recv", "MPI_Waitall", "MPI_Alltoallv")


def row(begin, end, region, kind=Extra.NOTHING, peer=-1, size=-1, request=-1, **columns):
    record = np.zeros((), RECORD)
    for name in ("comm", "tag", "received"):
        record[name] = -1
    record["operation"] = 255
    given = {"begin": begin, "end": end, "region": region, "kind": kind, "peer": peer}
    for name, value in (given | {"size": size, "request": request} | columns).items():
        record[name] = value
    return record


def written(folder, *programs, names=(), **header):
    """Write the files of a run, one list of rows a process."""
    everyone = f"group w 0-{len(programs) - 1}\ncomm 0 w 0\n"
    for rank, rows in enumerate(programs):
        head = np.zeros((), HEADER)
        head["magic"], head["version"], head["record_size"] = MAGIC, VERSION, RECORD.itemsize
        head["rank"], head["ranks"], head["run"], head["open"] = rank, len(programs), 5, -1
        head["finished"] = 1
        for name, value in header.items():
            head[name] = value[rank] if isinstance(value, list) else value
        body = np.array(rows, RECORD).tobytes() + bytes(3 * RECORD.itemsize)
        (folder / f"{rank}.events").write_bytes(head.tobytes().ljust(PAGE, b"\0") + body)
        lines = "".join(f"region {k} {name}\n" for k, name in enumerate(REGIONS))
        more = "".join(f"{line}\n" for line in (names[rank] if names else ()))
        (folder / f"{rank}.names").write_text(everyone + "comm 1 s 0\n" + lines + more)
    return folder


def one_message(folder, **header):
    return written(
        folder,
        [row(100, 200, SEND, Kind.SEND, peer=1, comm=0, tag=7, size=40)],
        [row(150, 250, RECV, Kind.RECV, peer=0, comm=0, tag=7, size=40)],
        **header,
    )
