"""Cases of traces of other tools, from GOAL to Chakra; see `fuzz_cases`."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from random import Random
from typing import Any

import fuzz_mutators as mutate
from fuzz_traces import SETTINGS

from hopmap.traces.foreign.dumpi.rank import NAMES as NUMBERS

NAMES = ("goal", "goal-binary", "liballprof", "dumpi", "paraver", "tit", "chakra", "chakra-json")
_GOAL = """num_ranks 4
rank 0 {
a: calc 100 cpu 1
b: send 8000b to 1 tag 7
c: recv 8b from -1 tag -1
b requires a
c irequires b
}
rank 1 {
a: recv 8000b from 0 tag 7
b: send 8b to 0
b requires a
}
rank 2 {
}
rank 3 {
}
"""
_PRV = """#Paraver (31/01/2022 at 11:46):1000_ns:1(4):2:4(1:1,1:1,1:1,1:1),1(1:1),1
c:1:14:4:1:2:3:4
2:1:1:1:1:10:50000001:3:42000050:7
2:1:1:1:1:20:50000001:0
2:1:1:2:1:15:50000001:2
2:1:1:2:1:25:50000001:0
3:1:1:1:1:12:13:1:1:2:1:16:24:100:1
1:1:1:1:1:0:10:1
"""


def seeds_of_foreign(folder: Path) -> None:
    for name in NAMES:
        (folder / name).mkdir()
    (folder / "goal" / "x.goal").write_text(_GOAL)
    (folder / "goal-binary" / "x.bin").write_bytes(_goal_binary())
    (folder / "paraver" / "x.prv").write_text(_PRV)
    for rank in range(4):
        comm = f"6000,{rank},4"
        calls = [f"Comm_split:3.0:{comm}:{rank % 2}:0:9:4.0"]
        calls += [f"Allreduce:5.0:7:8:3:1,4,4:3:{comm}:6.0"]
        calls += [f"Irecv:7.0:7:9:1,4,4:-1:-1:{comm}:1000:8.0"]
        calls += [f"Send:9.0:7:5:1,4,4:{rank ^ 1}:3:{comm}:10.0", "Waitall:11.0:1:1000:0:12.0"]
        calls += [
            f"Alltoallv:13.0:1:2:5,5,5,5:3:0,1,2,3:1,4,4:4:5:5,5,5,5:6:0,1,2,3:1,4,4:{comm}:14.0"
        ]
        text = "\n".join(["Init:-:1:2:1.0", *calls, "Finalize:15.0:-"]).replace("\n", "\nMPI_")
        (folder / "liballprof" / f"t-{rank}.txt").write_text(f"# head\n\nMPI_{text}\n")
        lines = ["init", f"isend {rank ^ 1} 0 100", f"irecv {rank ^ 1} 0 100"]
        lines += [
            f"wait {rank} {rank ^ 1} 0",
            "waitall",
            "compute 1e6",
            "allreduce 8 0",
            "finalize",
        ]
        (folder / "tit" / f"r{rank}.tit").write_text("".join(f"{rank} {line}\n" for line in lines))
        (folder / "dumpi" / f"run-{rank:04}.bin").write_bytes(_dumpi(rank))
    for rank in range(4):
        nodes = _chakra(rank)
        (folder / "chakra" / f"c.{rank}.et").write_bytes(_chakra_file(nodes))
        document = json.dumps({"workload_graph": nodes}, indent=1)
        (folder / "chakra-json" / f"c.{rank}.json").write_text(document)
    (folder / "chakra" / "comm_group.json").write_text('{"a": [0, 1], "b": [2, 3]}')
    (folder / "dumpi" / "run.meta").write_text("numprocs=4\nfileprefix=run\nversion=1\n")
    (folder / "tit" / "index").write_text("".join(f"r{rank}.tit\n" for rank in range(4)))


def _chakra(rank: int) -> list[dict[str, Any]]:
    """Nodes of a rank, with the keys of the JSON form."""
    group = {"comm_type": 0, "comm_size": 4000, "pg_name": "ab"[rank // 2]}
    to, tag = {"comm_dst": rank ^ 1}, {"comm_tag": 3, "comm_size": 100}
    nodes: list[dict[str, Any]] = [
        {"NodeType": 4, "runtime": 10, "is_cpu_op": True},
        {"NodeType": 7, "data_deps": [0], **group},
        {"NodeType": 4, "data_deps": [0], "runtime": 20},
        {"NodeType": 5, "data_deps": [1], **to, **tag},
        {"NodeType": 6, "data_deps": [2], "comm_src": rank ^ 1, **tag},
        {"NodeType": 7, "data_deps": [4, 3], "comm_type": 5, "comm_size": 8},
        {"NodeType": 4, "ctrlDeps": [1], "num_ops": 10**9},
    ]
    return [{"Id": number, "data_deps": [], **node} for number, node in enumerate(nodes)]


def _chakra_file(nodes: list[dict[str, Any]]) -> bytes:
    """Bytes of protobuf; no field here is longer than 127."""
    messages = [b"\x0a\x051.0.0"]
    for node in nodes:
        deps, control = bytes(node["data_deps"]), bytes(node.get("ctrlDeps", ()))
        message = bytes((8, node["Id"], 0x18, node["NodeType"]))
        message += bytes((0x22, len(control))) + control + bytes((0x2A, len(deps))) + deps
        message += bytes((0x38, node.get("runtime", 0)))
        for name in ("is_cpu_op", "num_ops", "comm_type", "comm_size", "pg_name", "comm_dst",
                     "comm_src", "comm_tag"):  # fmt: skip
            if name in node:
                value = node[name]
                coded = (
                    bytes((0xEA, 1, len(value))) + value.encode()
                    if isinstance(value, str)
                    else b"\x48" + _varint(int(value))
                )
                attribute = bytes((0x0A, len(name))) + name.encode() + coded
                message += bytes((0x52, len(attribute))) + attribute
        messages.append(message)
    return b"".join(_varint(len(message)) + message for message in messages)


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*parts, number))


def _goal_binary() -> bytes:
    """Write four ranks in a ring as LogGOPSim's Graph::serialize_mmap does."""
    parts = []
    for rank in range(4):
        nodes = (  # waits, kind, peer, size, tag, cpu, nic, who waits for its end and its begin
            struct.pack("<IBIQIBBIIII", 0, 3, 0, 100, 0, 1, 0, 1, 0, 0, 1),
            struct.pack("<IBIQIBBIIII", 1, 1, (rank + 1) % 4, 8000, 7, 0, 0, 0, 1, 1, 1),
            struct.pack("<IBIQIBBIIII", 1, 2, 2**32 - 1, 8000, 7, 0, 0, 0, 2, 0, 2),
        )
        parts.append(struct.pack("<III", 3, 1, 0) + b"".join(nodes) + struct.pack("<II", 1, 2))
    places = [6 + 16 * 4 + sum(map(len, parts[:k])) for k in range(5)]
    table = b"".join(struct.pack("<QQ", *places[k : k + 2]) for k in range(4))
    return struct.pack("<QIBB", 4223, 4, 1, 0) + table + b"".join(parts)


def _dumpi(rank: int) -> bytes:
    """Write the calls of a rank as docs/traceformat.dox of sst-dumpi has it."""
    peer = rank ^ 1
    calls: tuple[tuple[str, bytes], ...] = (
        ("Init", struct.pack(">ii", 1, 1) + b"x"),
        ("Irecv", struct.pack(">ihiihi", 9, 9, peer, 3, 2, 5)),
        ("Send", struct.pack(">ihiih", 9, 9, peer, 3, 2)),
        ("Waitall", struct.pack(">iiiiiibbi", 1, 1, 5, 1, 36, peer, 0, 0, 3)),
        ("Comm_split", struct.pack(">hiih", 2, rank % 2, 0, 4)),
        ("Barrier", struct.pack(">h", 4)),
        ("Finalize", b""),
    )
    mark = b"\xff\xaa\xddDUMPI"
    out = mark + bytes(8)
    for k, (word, arguments) in enumerate(calls):
        clock = struct.pack(">HiHi", 0, 1000 * k, 0, 1000 * k + 500)
        out += struct.pack(">HBH", NUMBERS.index(f"MPI_{word}"), 0x4F, 0) + 2 * clock + arguments
    out += struct.pack(">H", 293)
    header = len(out)
    out += bytes((1, 0, 0)) + bytes(20)
    sizes = len(out)
    out += struct.pack(">i", 10) + struct.pack(">10i", *([4] * 10))
    return out + mark + struct.pack(">7Q", sizes, 0, 0, header, 8, sizes, sizes)


def case_of_foreign(
    rng: Random, seeds: Path, folder: Path, names: tuple[str, ...] = NAMES
) -> list[str]:
    # Seeds of "--more" are called "goal.what", say.
    seed = rng.choice(sorted(of for of in seeds.iterdir() if of.name.split(".")[0] in names))
    name = seed.name
    shutil.copytree(seed, folder / name)
    file = rng.choice(sorted((folder / name).iterdir()))
    for _ in range(rng.choice((1, 1, 1, 3))):
        mutate.of_file(rng, file)
    (folder / "map.csv").write_text("rank,node\n" + "".join(f"{r},{r}\n" for r in range(4)))
    replay = [name, "map.csv", "-t", "mesh:4"]
    return rng.choice(
        (
            ["info", name],
            ["matrix", name, "--out", "out.npz"],
            ["matrix", name, "--collectives", "expand", "--out", "out.csv"],
            ["simulate", *replay, "--engine", "compiled", *SETTINGS],
        )
    )
