"""How fast traces are read: events and bytes per second of processor time, best of three.

A further column divides the time by the time for counting the bytes of the same files.

    python benchmarks/readers/readers.py [messages a rank]

Two ranks send each other messages; files are written first. An event of a trace is a row of it,
as for OTF2; of a schedule, an operation or a dependency. Kernels are compiled before. Of an OTF2
archive, "traffic" is what reading its traffic alone takes, location by location.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

from hopmap.traces.calls import Call, calls, trace_of_calls
from hopmap.traces.otf2.totals import read_summary
from hopmap.traces.otf2.write import write_trace
from hopmap.traces.sources import Source, open_source

RANKS = 2


def goal(folder: Path, count: int) -> None:
    lines = [f"num_ranks {RANKS}"]
    for rank in range(RANKS):
        lines.append(f"rank {rank} {{")
        for k in range(count):
            word = "send 1000b to" if (k + rank) % 2 else "recv 1000b from"
            lines += [f"l{k}: {word} {1 - rank} tag 1", f"c{k}: calc 500", f"c{k} requires l{k}"]
            lines += [f"l{k} requires c{k - 1}"] * (k > 0)
        lines.append("}")
    (folder / "x.goal").write_text("\n".join(lines) + "\n")


def liballprof(folder: Path, count: int) -> None:
    for rank in range(RANKS):
        at, lines = 1_237_666_046_950_106, ["MPI_Init:-:1:2:1237666046950105.000000"]
        comm = f"6000,{rank},{RANKS}"
        for k in range(count):
            word, status = ("Send", "") if (k + rank) % 2 else ("Recv", ":140737488340112")
            lines.append(
                f"MPI_{word}:{at}.000000:11251872:4500:11,8,8:{1 - rank}:3000:{comm}{status}:"
                f"{at + 5}.000000"
            )
            at += 20
        (folder / f"t-{rank}.txt").write_text(
            "\n".join([*lines, f"MPI_Finalize:{at}.000000:-"]) + "\n"
        )


def dumpi(folder: Path, count: int) -> None:
    mark = b"\xff\xaa\xddDUMPI"
    for rank in range(RANKS):
        out = bytearray(mark + bytes(8))
        for k in range(count):
            number, status = (0, b"") if (k + rank) % 2 else (1, bytes(4))
            clock = struct.pack(
                ">HiHi", k // 10**6, 1000 * (k % 10**6), k // 10**6, 1000 * (k % 10**6) + 500
            )
            out += struct.pack(">HBH", number, 0x4F, 0) + 2 * clock
            out += struct.pack(">ihiih", 9, 9, 1 - rank, 3, 2) + status
        out += struct.pack(">H", 293)
        header = len(out)
        out += bytes((1, 0, 0)) + bytes(20)
        sizes = len(out)
        out += struct.pack(">i10i", 10, *([4] * 10))
        out += mark + struct.pack(">7Q", sizes, 0, 0, header, 8, sizes, sizes)
        (folder / f"run-{rank}.bin").write_bytes(out)


def paraver(folder: Path, count: int) -> None:
    lines = [f"#Paraver (31/01/2022 at 11:46):{count * 100}_ns:1(2):1:2(1:1,1:1),0"]
    for k in range(count):
        at = 100 * k
        for task in (1, 2):
            word = 1 if (k + task) % 2 else 2
            counters = "42000050:249970:42000059:151503"
            lines.append(f"2:{task}:1:{task}:1:{at}:50000001:{word}:{counters}")
            lines.append(f"2:{task}:1:{task}:1:{at + 50}:50000001:0:{counters}")
        source, target = (1, 2) if k % 2 == 0 else (2, 1)
        ends = f"{source}:1:{source}:1:{at + 5}:{at + 6}:{target}:1:{target}:1:{at + 5}:{at + 45}"
        lines.append(f"3:{ends}:1000:1")
    (folder / "x.prv").write_text("\n".join(lines) + "\n")


def tit(folder: Path, count: int) -> None:
    for rank in range(RANKS):
        lines = [f"{rank} init"]
        for k in range(count):
            word = "send" if (k + rank) % 2 else "recv"
            lines += [f"{rank} compute 1500000.25", f"{rank} {word} {1 - rank} 1 1000"]
        (folder / f"r{rank}.tit").write_text("\n".join([*lines, f"{rank} finalize"]) + "\n")
    (folder / "index").write_text("".join(f"r{rank}.tit\n" for rank in range(RANKS)))


def otf2(folder: Path, count: int) -> None:
    tables = []
    for rank in range(RANKS):
        words = np.where((np.arange(count) + rank) % 2, Call.SEND, Call.RECV).astype(np.uint8)
        tables.append(calls(words, count, peer=1 - rank, tag=1, size=1000, before=5e-7))
    write_trace(trace_of_calls("x", RANKS, tables), folder / "x.otf2")


def read(source: Source) -> int:
    """Read it; return its events."""
    if not source.has_calls:
        schedule = source.schedule()
        return schedule.operations + len(schedule.after)
    trace = source.trace()
    return trace.events + trace.ignored.get("event", 0)


def read_traffic(source: Source) -> int:
    """Read what is sent alone; return the events of all."""
    assert source.archive is not None
    return read_summary(source.archive, workers=1).events


def spent() -> float:
    """Processor seconds of this process and of the children that read for it."""
    return sum(os.times()[:4])


READERS = (
    ("goal", goal, read),
    ("liballprof", liballprof, read),
    ("dumpi", dumpi, read),
    ("paraver", paraver, read),
    ("tit", tit, read),
    ("otf2", otf2, read),
    ("  traffic", otf2, read_traffic),
)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    print(f"{'format':12}{'MB':>8}{'events':>12}{'s':>8}", end="")
    print(f"{'million/s':>11}{'MB/s':>8}{'of a count':>12}")
    for name, write, reader in READERS:
        with tempfile.TemporaryDirectory() as scratch:
            small, large = Path(scratch) / "small", Path(scratch) / "large"
            for folder, size in ((small, 10), (large, count)):
                folder.mkdir()
                write(folder, size)
            reader(open_source(small))
            files = [file for file in large.rglob("*") if file.is_file()]
            content = np.concatenate([np.fromfile(file, np.uint8) for file in files])
            seconds, counts = [], []
            for _ in range(3):
                begin = spent()
                events = reader(open_source(large))
                middle = spent()
                np.bincount(content)
                seconds.append(middle - begin)
                counts.append(spent() - middle)
            best = max(min(seconds), 0.01)  # what the clock tells
            print(
                f"{name:12}{len(content) / 1e6:8.1f}{events:12,}{best:8.2f}"
                f"{events / best / 1e6:11.2f}{len(content) / best / 1e6:8.1f}"
                f"{best / max(min(counts), 0.01):12.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
