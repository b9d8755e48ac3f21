"""What is fuzzed: for every kind of input valid seeds, and how a case is made of one.

A case is a folder of files and a command line of `hopmap` that is run there. To add a seed, write
it in `seeds_of_...`; to add a kind, add a row to `KINDS`. The seeds and a number determine a case
on every machine, so only the number has to be kept.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import fuzz_foreign
import fuzz_mutators as mutate
import fuzz_traces
import numpy as np

DATA = Path(__file__).parents[2] / "tests" / "data"
SHIPPED = Path(__file__).parents[2] / "scenarios"


class Kind(NamedTuple):
    """A kind of input.

    Attributes
    ----------
    seeds : callable
        ``seeds(folder)`` writes the valid inputs.
    case : callable
        ``case(rng, seeds, folder)`` writes what the command reads and returns its words; those
        after "--out" name what it may write.
    """

    seeds: Callable[[Path], None]
    case: Callable[[Random, Path, Path], list[str]]


def build(kind: str, seeds: Path, number: int, folder: Path) -> list[str]:
    """Write a case into an empty folder and return its command line."""
    return KINDS[kind].case(Random(f"{kind} {number}"), seeds, folder)


# scenarios ----------------------------------------------------------------------------------------

SCENARIO = """\
name = "Fuzzed"
description = "A sweep that takes no time."
traces = ["t.csv", "lu.S.4", "stencil:4x4,5pt,bytes=1000"]
topologies = ["mesh:4x4", "torus:4x2x2*2", "haec:2x2x4", "tree:4:4@1:10", "file:net.graphml"]
mappers = ["sweep", "random", "minmd | bokhari(jumps=2)", "greedy_all_c | local_search"]
seeds = [0, 1, 2]
suites = ["stencil_skew,bytes=1000"]

[replay]
engine = "compiled"
steps = 1

[parameters]
"link.bandwidth" = "10 GB/s"
"link.wireless.bandwidth" = "100 Gbit/s"
"eager_limit" = "64 kB"
compute.scale = 0

[published]
file = "paper.csv"

[[include]]
traces = ["lu.S.8"]
topologies = ["fattree:4x4"]
mappers = ["row_major"]
seeds = [7]

[[exclude]]
topologies = ["mesh:4x4"]
mappers = ["random"]

[[vary]]
name = "optical:wireless"
labels = ["1:1", "10:1"]
parameters."link.latency" = ["250 ns", "1 us"]
parameters."packet_size" = [1024, "4 KiB"]
"""
PAPER = (
    "trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max\n"
    "lu.S.4,mesh,sweep,100,2.5,1,9\n"
)
TINY = """\
name = "Tiny"
traces = ["t.csv"]
topologies = ["mesh:4x4"]
mappers = ["sweep", "minmd"]
replay.engine = false
"""


def seeds_of_scenarios(folder: Path) -> None:
    from hopmap.traces import save_traffic
    from hopmap.traces.patterns.stencils import stencil_traffic

    (folder / "extra_files").mkdir()
    save_traffic(folder / "extra_files" / "t.csv", stencil_traffic((4, 2, 2), "7pt", size=100))
    _write_graphml(folder / "extra_files" / "net.graphml")
    (folder / "extra_files" / "paper.csv").write_text(PAPER)
    (folder / "all.toml").write_text(SCENARIO)
    (folder / "tiny.toml").write_text(TINY)
    shutil.copy(SHIPPED / "ienpc_time_energy.toml", folder)


def case_of_scenarios(rng: Random, seeds: Path, folder: Path) -> list[str]:
    shutil.copytree(seeds / "extra_files", folder, dirs_exist_ok=True)
    name = rng.choice(("all.toml", "all.toml", "all.toml", "tiny.toml", "ienpc_time_energy.toml"))
    shutil.copy(seeds / name, folder)
    file = folder / rng.choice((name,) * 9 + ("t.csv", "net.graphml", "paper.csv"))
    mutate.of_file(rng, file)
    words = ["run", name, "--out", "out"]
    return [*words, "--no-report"] if name == "tiny.toml" else [*words, "--dry-run"]


# mappings -----------------------------------------------------------------------------------------

MAPLIB = "4 2 2\nx_coord y_coord z_coord rank_count ranks\n" + "".join(
    f"{n % 4} {n // 4 % 2} {n // 8} 1 {n}\n" for n in range(16)
)
LAUNCHERS = ("openmpi", "slurm", "cray", "intel", "fugaku", "bluegene", "simgrid", "json", "none")
LAUNCHERS += ("flux", "pals", "jsrun", "prrte", "mpijob", "likwid")
JOB_MAPPERS = ("greedy", "minmd", "multilevel(moves=100)", "auto(moves=100)")


def seeds_of_mappings(folder: Path) -> None:
    from hopmap.mappers import map_ranks
    from hopmap.topologies import torus
    from hopmap.traces import save_traffic
    from hopmap.traces.patterns.stencils import stencil_traffic

    places = "".join(f"{rank},{(5 * rank) % 16}\n" for rank in range(16))
    (folder / "map.csv").write_text(f"# hopmap mapping on torus:4x2x2\nrank,node\n{places}")
    (folder / "map.txt").write_text(MAPLIB)
    (folder / "hosts").write_text("".join(f"node{node}\n" for node in range(16)))
    traffic = stencil_traffic((4, 4), "9pt", size=1000)
    save_traffic(folder / "t.npz", traffic)
    for mapper in JOB_MAPPERS:
        map_ranks(traffic, torus((4, 4, 2)).only(range(16)), mapper)  # compiled here, untimed


def case_of_mappings(rng: Random, seeds: Path, folder: Path) -> list[str]:
    shutil.copytree(seeds, folder, dirs_exist_ok=True)
    name = rng.choice(("map.csv", "map.csv", "map.txt"))
    mutate.of_file(rng, folder / name)
    networks = ("torus:4x2x2",) * 4 + (("mesh:2x4*2", "cluster:4*4") if name == "map.csv" else ())
    network = ["-t", rng.choice(networks)]
    named = [] if name == "map.csv" and rng.random() < 0.8 else network
    to = ["--to", rng.choice(LAUNCHERS)]
    hosts = ["--hosts", "hosts"]
    job = rng.choice(JOB_MAPPERS)
    if rng.random() < 0.2:
        mutate.of_file(rng, folder / "hosts")
    return rng.choice(
        (
            ["evaluate", "t.npz", name, *network],
            ["evaluate", "t.npz", name, *network, "--convention", "maplib"],
            ["export", name, *to, *named, *rng.choice(([], hosts))],
            ["export", name, *to, *named, "--out", "out"],
            ["map", "t.npz", *network, "-m", "bokhari", "--initial", name, "--out", "out.csv"],
            ["map", "t.npz", "-t", "torus:4x4x2", "-m", job, *hosts, "--out", "out.csv"],
            ["simulate", "t.npz", name, *network, "--engine", "compiled"],
            ["convert", "lu.S.16", "--to", "simgrid", "--mapping", name, *named, "--out", "out"],
        )
    )


# topologies ---------------------------------------------------------------------------------------

SPECS = (
    *("mesh:4x4", "torus:4x2x2*2,ties=parity", "haec:2x2x4", "hypercube:4", "hypercube:4*2"),
    *("fattree:4x4", "fattree:4x4:1x2", "fattree:4x4:1x2:1x2,routing=ecmp,seed=1", "cluster:4*4"),
    *("cluster:2*4+4*2", "tree:4:4@1:10", "tree:4:4:2@1:10:100*2", "dragonfly:2x4x2"),
    *("dragonfly:2x4x2x5", "preset:bgq*16", "file:net.graphml", "file:machine.xml"),
    *("torus:100000x100000x100000", "tree:1000000:1000000", "tree:2000:2000:2", "mesh:1x999999999"),
    *("cluster:9999999*9999999", "dragonfly:100000x100000x100000", "fattree:9999x9999x9999"),
    *("hypercube:999999999", "haec:40000x2x2", "mesh:" + "1x" * 5000 + "1", "cluster:9999999"),
)
STENCILS = (
    *("stencil:4x4,5pt", "stencil:4x2x2,27pt,periodic=xz,bytes=1000", "stencil:16,star"),
    *("stencil:4x4,1:0/-1:0,bytes=2000:1000", "stencil:4x4,hops,periodic=10", "stencil:4x4,box"),
    *("stencil:100000x100000,5pt", "stencil:" + "2x" * 40 + "2,star", "stencil:9,1,bytes=10"),
    *(
        "lu.S.4",
        "lu.C.64",
        "lu.A.1048576",
        "cg.C.1000000000",
        "stencil:2x2x2x2x2x2x2x2x2x2x2x2,box",
    ),
)
SETTINGS = (
    *("link.bandwidth=10GB/s", "link.latency=1 us", "eager_limit=64 kB", "compute.scale=0"),
    *("packet_size=1 KiB", "collective.allreduce=ring", "link.optical.bandwidth=25 Gbit/s"),
)
GRAPHML = """\
<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="b" for="edge" attr.name="bandwidth" attr.type="double"/>
<key id="l" for="edge" attr.name="latency" attr.type="double"/>
<key id="k" for="edge" attr.name="kind" attr.type="string"/>
<key id="h" for="node" attr.name="host" attr.type="boolean"/>
<key id="s" for="node" attr.name="slots" attr.type="int"/>
<graph edgedefault="undirected">
{nodes}<node id="hub"><data key="h">false</data></node>
{edges}</graph></graphml>
"""
HWLOC = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0x0000000f">
{packages}</object></topology>
"""


def _write_graphml(file: Path) -> None:
    nodes = "".join(f'<node id="n{n}"><data key="s">2</data></node>\n' for n in range(8))
    speeds = '<data key="b">1e9</data><data key="l">1e-6</data><data key="k">copper</data>'
    edges = "".join(f'<edge source="n{n}" target="hub">{speeds}</edge>\n' for n in range(8))
    file.write_text(GRAPHML.format(nodes=nodes, edges=edges))


def seeds_of_topologies(folder: Path) -> None:
    from hopmap.traces import save_traffic
    from hopmap.traces.patterns.stencils import stencil_traffic

    _write_graphml(folder / "net.graphml")
    core = '<object type="Core" os_index="{n}"><object type="PU" os_index="{n}"/></object>\n'
    package = '<object type="Package" os_index="{p}">\n{cores}</object>\n'
    packages = "".join(
        package.format(p=p, cores="".join(core.format(n=8 * p + n) for n in range(8)))
        for p in range(2)
    )
    (folder / "machine.xml").write_text(HWLOC.format(packages=packages))
    save_traffic(folder / "t.npz", stencil_traffic((4, 4), "9pt", size=1000))
    places = "".join(f"{rank},{rank}\n" for rank in range(16))
    (folder / "map.csv").write_text(f"rank,node\n{places}")


def case_of_topologies(rng: Random, seeds: Path, folder: Path) -> list[str]:
    shutil.copytree(seeds, folder, dirs_exist_ok=True)
    spec = rng.choice(SPECS)
    if spec.startswith("file:") and rng.random() < 0.9:
        mutate.of_file(rng, folder / spec.partition(":")[2])
    else:
        spec = _argument(mutate.of_text(rng, spec)) if rng.random() < 0.9 else spec
    stencil = rng.choice(STENCILS)
    stencil = _argument(mutate.of_text(rng, stencil)) if rng.random() < 0.8 else stencil
    setting = rng.choice(SETTINGS)
    setting = _argument(mutate.of_text(rng, setting)) if rng.random() < 0.8 else setting
    dims = _argument(mutate.of_text(rng, "4x4"))
    pattern = rng.choice(("uniform", "transpose", "tornado", "complement", "neighbour", "shuffle"))
    return rng.choice(
        (
            ["map", "t.npz", f"--topology={spec}", "-m", "sweep", "--out", "out.csv"],
            ["evaluate", "t.npz", "map.csv", f"--topology={spec}"],
            ["map", "t.npz", f"--topology={spec}", "-m", "minmd", "--json"],
            ["simulate", "t.npz", "map.csv", "-t", "mesh:4x4", f"--set={setting}"],
            ["simulate", "t.npz", "map.csv", "-t", "haec:4x2x2", f"--set={setting}"],
            ["matrix", "--out", "out.npz", "--", stencil],
            ["info", "--", stencil],
            ["generate", pattern, f"--dims={dims}", "--out", "out.npz"],
        )
    )


# files of other tools ----------------------------------------------------------------------------

NETWORKS = {
    "topology.conf": "SwitchName=s0 Nodes=dev[0-7]\nSwitchName=s1 Nodes=dev[8-15]\n"
    "SwitchName=s2 Switches=s[0-1]\n",
    "block.conf": "BlockName=b1 Nodes=node[1-8]\nBlockName=b2 Nodes=node[9-16]\nBlockSizes=8\n",
    "topology.yaml": "- topology: t\n  cluster_default: true\n  torus3d:\n    toruses:\n"
    "      - name: a\n        dims: {x: 4, y: 2, z: 2}\n        nodes: node[01-16]\n",
    "fabric.txt": "\n".join(
        line
        for leaf in (1, 2)
        for line in (
            f'Switch\t9 "S-{leaf}"\t# "leaf"',
            *(f'[{h}]\t"H-{leaf}{h}"[1]({h}) # "n{leaf}{h} HCA-1" lid 1 4xHDR' for h in range(8)),
            f'[8]\t"S-3"[{leaf}] # "spine" lid 1 4xNDR',
        )
    )
    + '\nSwitch\t9 "S-3"\t# "spine"\n[1]\t"S-1"[8] # "leaf" lid 1 4xNDR\n'
    + '[2]\t"S-2"[8] # "leaf" lid 1 4xNDR\n',
    "places.txt": "".join(f"nid{n} {n % 2 << 9 | n // 2 << 4:#x}\n" for n in range(16)),
    "xnames.csv": "rank,host,xname\n"
    + "".join(f"{n},nid{n},x{1000 + n % 2}c0s{n // 2}b0n0\n" for n in range(16)),
    "graph.json": '{"instances": ['
    + ", ".join(f'{{"id": "i{n}", "network_layers": ["leaf{n // 4}", "spine"]}}' for n in range(16))
    + "]}\n",
    "tree.yaml": "- topology: default\n  tree:\n    switches:\n      - switch: root\n"
    "        children: s[1-2]\n      - switch: s1\n        nodes: node[01-08]\n"
    "      - switch: s2\n        nodes: node[09-16]\n",
}
PINGPONG = {
    "pp.csv": "size,time,hops\n0,1.21 us,1\n8 KiB,4.2 us,1\n1 MB,120 us,1\n0,1.52 us,3\n"
    "8 KiB,4.5 us,3\n1 MB,121 us,3\n",
    "osu.txt": "# OSU MPI Latency Test v7.0\n# Size  Latency (us)\n0   1.21\n1   1.23\n"
    "8192   4.2\n1048576   120\n",
}
GRAPH = "0\n4 8\n0 000\n2 1 3\n2 0 2\n2 1 3\n2 0 2\n"  # Scotch: a ring of four
PROF = "".join(
    f"{letter}\t{src}\t{(src + 1) % 4}\t{size} bytes\t3 msgs sent\t0,0,3,0\n"
    for letter, size in (("E", 3000), ("I", 30))
    for src in range(4)
)
READABLE_LAUNCHERS = tuple(launcher for launcher in LAUNCHERS if launcher != "none")


def seeds_of_others(folder: Path) -> None:
    from hopmap.launchers.formats import export_mapping
    from hopmap.simulator import Parameters
    from hopmap.simulator.export.simgrid import platform_xml
    from hopmap.topologies import topology_from_spec

    seeds_of_mappings(folder)
    torus = topology_from_spec("torus:4x2x2")
    for launcher in READABLE_LAUNCHERS:
        places = (5 * np.arange(16)) % 16
        (folder / f"map.{launcher}").write_text(export_mapping(launcher, places, torus))
    for zone in ("routes", "torus"):
        text = "".join(platform_xml(torus, Parameters(), zone))
        (folder / f"{zone}.xml").write_text(text)
    for name, text in (NETWORKS | PINGPONG | {"t.grf": GRAPH, "run.0.prof": PROF}).items():
        (folder / name).write_text(text)
    (folder / "fit.toml").write_text('[parameters]\n"link.bandwidth" = "5 GB/s"\n')


def case_of_others(rng: Random, seeds: Path, folder: Path) -> list[str]:
    shutil.copytree(seeds, folder, dirs_exist_ok=True)
    launcher = rng.choice(READABLE_LAUNCHERS)
    mapping_file = f"map.{launcher}"
    network = rng.choice((*NETWORKS, "routes.xml", "torus.xml"))
    pingpong = rng.choice(tuple(PINGPONG))
    traffic = rng.choice(("t.grf", "run.0.prof"))
    nodelist = _argument(mutate.of_text(rng, "node[01-12],gpu[3-6]"))
    allocated = _argument(mutate.of_text(rng, "node[0-6,11-15],node[20-31]"))
    on = ["-t", "torus:4x2x2"]
    words, file = rng.choice(
        (
            (
                ["export", f"map.{launcher}", "--from", launcher, *on, "--to", "csv"],
                f"map.{launcher}",
            ),
            (["evaluate", "t.npz", mapping_file, *on], mapping_file),
            (["export", "map.csv", "--to", launcher, f"--nodelist={nodelist}", *on], "map.csv"),
            (
                ["map", "t.npz", "-t", f"file:{network}", "-m", "random", "--out", "out.csv"],
                network,
            ),
            (
                ["map", "t.npz", "-t", f"file:{network}", "-m", "random", "--out", "out.csv"],
                network,
            ),
            (
                ["map", "t.npz", "-t", "mesh:8x4", "-m", "bokhari", f"--nodelist={allocated}"],
                "hosts",
            ),
            (["calibrate", pingpong, "--out", "out.toml"], pingpong),
            (["matrix", traffic, "--out", "out.npz"], traffic),
            (["matrix", traffic, "--out", "out.grf"], traffic),
            (["simulate", "t.npz", "map.csv", *on, "--set", "fit.toml"], "fit.toml"),
        )
    )
    mutate.of_file(rng, folder / file)
    return words


def _argument(text: str) -> str:
    """Make a text that a shell could give: no zero bytes, and no longer than the kernel takes."""
    return text.replace("\0", "")[:100_000]


KINDS = {
    "archives": Kind(fuzz_traces.seeds_of_archives, fuzz_traces.case_of_archives),
    "foreign": Kind(fuzz_foreign.seeds_of_foreign, fuzz_foreign.case_of_foreign),
    **{
        name: Kind(
            fuzz_foreign.seeds_of_foreign,
            functools.partial(fuzz_foreign.case_of_foreign, names=(name,)),
        )
        for name in fuzz_foreign.NAMES
    },
    "scenarios": Kind(seeds_of_scenarios, case_of_scenarios),
    "matrices": Kind(fuzz_traces.seeds_of_matrices, fuzz_traces.case_of_matrices),
    "mappings": Kind(seeds_of_mappings, case_of_mappings),
    "topologies": Kind(seeds_of_topologies, case_of_topologies),
    "others": Kind(seeds_of_others, case_of_others),
}
