"""Cases of traces: OTF2 archives and matrices; see `fuzz_cases`."""

from __future__ import annotations

import io
import shutil
import sys
import zipfile
from pathlib import Path
from random import Random

import fuzz_mutators as mutate
import numpy as np

from hopmap.traces import Trace

DATA = Path(__file__).parents[2] / "tests" / "data"
# A message of 2^52 bytes is one packet, as replaying it honestly takes days.
SETTINGS = ("--set", "compute.scale=0", "--set", f"packet_size={2**53}")
MATRICES = ("t.npz", "t.csv", "t.mtx", "t.graph", "t.count.csv", "t.size.csv")
BOMBS = {
    "t.mtx": (
        "%%MatrixMarket matrix coordinate integer general\n4000000000 4000000000 1\n1 1 1\n",
        "%%MatrixMarket matrix array integer general\n1000000 1000000\n1\n",
        "%%MatrixMarket matrix coordinate integer general\n9 9 4000000000\n1 1 1\n",
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1e300\n3 1 nan\n",
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 1\n",
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n",
    ),
    "t.graph": (
        "1000000000 0\n",
        "4 9223372036854775808\n\n\n\n\n",
        "2 1 011 99999999\n2 1\n1 1\n",
    ),
    "t.csv": (
        "src,dst,messages,bytes\n4611686018427387904,0,1,1\n",
        "src,dst,messages,bytes\n3000000000,0,1,1\n",
        "src,dst,messages,bytes\n0,1,1e18,9e18\n0,1,1e18,9e18\n",
        "1,2\n3,4\n",
    ),
}


VALUES = (
    *(np.int64(v) for v in (-1, 0, 2**31, 2**62, 2**63 - 1)),
    *(np.uint64(2**63), np.float64("nan"), np.float64("inf"), np.float64(1e300), np.str_("7")),
)


def seeds_of_archives(folder: Path) -> None:
    for archive in sorted(DATA.iterdir()):
        if archive.is_dir():
            shutil.copytree(archive, folder / archive.name)
    from hopmap.traces import write_trace
    from hopmap.traces.nas.benchmarks import nas_trace

    write_trace(nas_trace("lu.S.4", steps=2), folder / "short.otf2")
    write_trace(_one_sided(), folder / "windows.otf2")


def _one_sided() -> Trace:
    """Four ranks in a ring that put, get and lock."""
    sys.path.append(str(DATA.parent))
    from support import made_traces as made

    ranks = [
        [
            made.made_window(0),
            made.put(1, (rank + 1) % 4, 8000, 1),
            made.get(2, (rank + 2) % 4, 500, 2),
            made.fence(3, 1, 2),
            made.lock(4, (rank + 1) % 4),
            made.atomic(5, (rank + 1) % 4, 8, 8, 3),
            made.unlock(6 + rank, (rank + 1) % 4, 3),
            made.group_sync(10, "post", (rank - 1) % 4),
            made.group_sync(11, "start", (rank + 1) % 4),
            made.group_sync(12, "complete", (rank + 1) % 4),
            made.group_sync(13, "wait", (rank - 1) % 4),
        ]
        for rank in range(4)
    ]
    return made.window_trace(ranks, groups=[[rank] for rank in range(4)])


def case_of_archives(rng: Random, seeds: Path, folder: Path) -> list[str]:
    seed = rng.choice(sorted(seeds.iterdir()))
    archive = folder / seed.name
    shutil.copytree(seed, archive)
    mutate.of_folder(rng, archive)
    ranks = 4
    for text in seed.name.split("."):
        ranks = int(text) if text.isdecimal() else ranks
    places = "\n".join(f"{rank},{rank}" for rank in range(ranks))
    (folder / "map.csv").write_text(f"rank,node\n{places}\n")
    name, network = seed.name, f"mesh:{ranks}"
    replay = [name, "map.csv", "-t", network]
    return rng.choice(
        (
            ["info", name],
            ["info", name],
            ["matrix", name, "--out", "out.npz"],
            ["matrix", name, "--collectives", "expand", "--out", "out.csv"],
            ["evaluate", *replay],
            ["simulate", *replay, "--engine", "compiled", *SETTINGS],
            ["matrix", name, "--rma", "include", "--out", "out.npz"],
            ["simulate", *replay, "--engine", "analytic"],
            ["convert", name, "--to", "simgrid", "--out", "out"],
        )
    )


def seeds_of_matrices(folder: Path) -> None:
    from hopmap.traces import save_traffic
    from hopmap.traces.patterns.stencils import stencil_traffic

    traffic = stencil_traffic((4, 4), "9pt", periodic=True, size=1000)
    for name in MATRICES:
        save_traffic(folder / name, traffic)


def case_of_matrices(rng: Random, seeds: Path, folder: Path) -> list[str]:
    name = rng.choice(MATRICES)
    file = folder / name
    shutil.copy(seeds / name, file)
    if name.startswith(("t.count", "t.size")) and rng.random() < 0.5:
        shutil.copy(seeds / ("t.size.csv" if "count" in name else "t.count.csv"), folder)
    if name in BOMBS and rng.random() < 0.2:
        file.write_text(rng.choice(BOMBS[name]))
    if name == "t.npz" and rng.random() < 0.7:
        _mutate_npz(rng, file)
    elif rng.random() < 0.95:
        mutate.of_file(rng, file)
    (folder / "map.csv").write_text("rank,node\n" + "".join(f"{r},{r}\n" for r in range(16)))
    mtx = 3 if name == "t.mtx" else 0
    out = rng.choice((*MATRICES, "t.npz", "t.csv")).replace("t.", "out.")
    return rng.choice(
        (
            ["info", name],
            ["matrix", name, "--out", out],
            ["map", name, "-t", "torus:4x4", "-m", "minmd", "--out", "out.csv"],
            ["evaluate", name, "map.csv", "-t", "mesh:4x2x2"],
            ["simulate", name, "map.csv", "-t", "mesh:4x2x2", "--engine", "analytic"],
            *([["generate", "spmv", "--matrix", name, "--ranks", "2", "--out", "out.npz"]] * mtx),
        )
    )


def _mutate_npz(rng: Random, file: Path) -> None:
    """Change one array: its type, its shape, a value; or its header, in a whole zip file."""
    with np.load(file) as data:
        arrays = dict(data)
    name = rng.choice(sorted(arrays))
    raw: dict[str, bytes] = {}
    how = rng.randrange(6)
    with np.errstate(all="ignore"):
        if how == 0 and name != "metadata":
            arrays[name] = arrays[name].astype(rng.choice(("f8", "f4", "u8", "i2", "U9", "c8")))
        elif how == 1:
            shapes = (arrays[name][..., None], np.array(0), np.zeros(0), np.zeros((2, 3)))
            arrays[name] = rng.choice(shapes)
        elif how == 2:
            many = len(arrays["src"]) if name != "ranks" and rng.random() < 0.8 else 1
            arrays[name] = np.resize(rng.choice(VALUES), many)
        elif how == 3:
            del arrays[name]
        elif how == 4:
            texts = ("[]", "1", "null", "", "{", '{"dims": [4000000, 4000000]}', '{"dims": "x"}')
            more = ('{"dims": [4, 4], "stencil": 7}', '{"dims": [-4, -4], "stencil": [[1]]}')
            arrays["metadata"] = np.str_(rng.choice((*texts, *more, "[" * 100_000)))
        else:
            stream = io.BytesIO()
            np.lib.format.write_array(stream, arrays[name])
            shape = str(arrays[name].shape)
            huge = rng.choice(("(4000000000,)", "(9223372036854775807,)", "(-1,)", "(1 << 40,)"))
            raw[name] = stream.getvalue().replace(shape.encode(), huge.encode())
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.asanyarray(array))
            archive.writestr(f"{key}.npy", raw.get(key, stream.getvalue()))
