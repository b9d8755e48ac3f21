"""hopmap_cart.h: the communicators of a real MPI, and the lines that guides show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from math import prod
from pathlib import Path

import numpy as np
import pytest

from hopmap.mappers import map_ranks
from hopmap.topologies import topology_from_spec
from hopmap.traces import stencil_traffic
from hopmap.traces.patterns.stencils import star
from support import ROOT
from support.grids import row_major

from .cart_header import (
    ALGORITHM,
    DIMS,
    EQUAL,
    EVERYONE,
    FLAGS,
    NODES,
    PROCESSES,
    algorithms,
    line,
)

HERE = Path(__file__).parent
PAGE = (ROOT / "docs" / "reference" / "mappers.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "how-to" / "cartesian-communicators.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def mpirun(tmp_path_factory):
    """Run a program, in C or Python, on so many processes; return its lines."""
    for command in ("mpicc", "mpirun"):
        if shutil.which(command) is None:
            pytest.skip(f"no MPI: no command {command}")
    folder = tmp_path_factory.mktemp("mpi")
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    crowded = ["--oversubscribe", "--bind-to", "none"] if "Open MPI" in version else []
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run(source, processes, *words):
        program = [sys.executable, source]
        if source.suffix == ".c":
            program = [folder / source.stem]
            subprocess.run(["mpicc", "-std=c99", *FLAGS, source, "-o", *program], check=True)
        done = subprocess.run(
            ["mpirun", *crowded, "-np", str(processes), *program, *words],
            capture_output=True, text=True, timeout=120, env=os.environ | allowed,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def numberings(rng):
    """Nodes of 24 processes: block by block, round robin, by chance, and of unequal sizes."""
    block = np.repeat(np.arange(4), 6)
    return {
        "block": block,
        "round robin": np.arange(24) % 4,
        "by chance": rng.permutation(block),
        "unequal": np.repeat([5, 2, 7, 0], [9, 6, 5, 4]),
        "unequal, by chance": rng.permutation(np.repeat(np.arange(5), [8, 7, 5, 3, 1])),
        "one node": np.zeros(24, int),
    }


def places(name, dims, node_of, stencil):
    """Row-major number in the grid of every process, -1 beyond it, for processes on these nodes."""
    nodes, first = np.unique(node_of, return_index=True)
    leader = first[np.searchsorted(nodes, node_of)]
    order = np.argsort(leader, kind="stable")[: prod(dims)]
    sizes = np.unique(leader[order], return_counts=True)[1].tolist()
    number = np.full(len(node_of), -1)
    number[order] = np.ravel_multi_index(tuple(EVERYONE[name](dims, sizes, stencil).T), dims)
    return number


def created(mpirun, folder, processes, cases):
    """Run cart_processes.c; what every process of every case says of its communicator."""
    file = folder / "cases"
    lines = [
        line(name, len(dims), dims, periods, len(stencil), np.array(stencil, int), *nodes)
        for name, dims, periods, stencil, *nodes in cases
    ]
    file.write_text("\n".join([str(len(cases)), *lines]))
    found = mpirun(HERE / "cart_processes.c", processes, file)
    said = np.empty((len(cases), processes), dtype=object)
    for text in found:
        n, process, *rest = (int(word) for word in text.split())
        said[n, process] = rest
    return said.tolist()


@pytest.mark.parametrize("dims", [(6, 4), (2, 3, 4), (24,), (5, 4)])
def test_communicators_are_the_python_s_rank_by_rank(mpirun, tmp_path, dims):
    """However processes are numbered; with 5 x 4, four of 24 are left out."""
    d, periods = len(dims), [n % 2 for n in range(len(dims))]
    stencil = [*star(d), [2, *[0] * (d - 1)]]
    cases = [
        (name, dims, periods, stencil, "given", node_of)
        for node_of in numberings(np.random.default_rng(3)).values()
        for name in EVERYONE
    ]
    refused = 0
    for case, said in zip(cases, created(mpirun, tmp_path, 24, cases), strict=True):
        name, node_of = case[0], case[-1]
        if name in EQUAL and said[0][0] == NODES:
            refused += 1
            assert said == [[NODES, -1]] * 24
            continue
        expected = [
            [0, number, *row_major(number, dims), *periods] if number >= 0 else [0, -1]
            for number in places(name, dims, node_of, stencil).tolist()
        ]
        assert said == expected, case
    assert refused == 2 * (5 if prod(dims) < 24 else 2)


def test_nodes_get_the_ranks_that_the_mapper_gives_them(mpirun, tmp_path):
    """12 processes on nodes of 4, 4, 3 and 1 after one another."""
    sizes, dims = [4, 4, 3, 1], (4, 3)
    node_of = np.repeat(np.arange(4), sizes)
    traffic = stencil_traffic(dims, "5pt")
    names = algorithms(sizes)
    cases = [(name, dims, (0, 0), star(2), "given", node_of) for name in names]
    topology = topology_from_spec("cluster:" + "+".join(f"1*{size}" for size in sizes))
    for name, said in zip(names, created(mpirun, tmp_path, 12, cases), strict=True):
        ranks = [rank for _, rank, *_ in said]
        assert map_ranks(traffic, topology, name)[ranks].tolist() == node_of.tolist(), name


def test_the_nodes_of_this_machine_are_found(mpirun, tmp_path):
    """It is one node: gropp makes one box of all, strips one column."""
    dims = (4, 3)
    cases = [(name, dims, (1, 0), [], "real") for name in EVERYONE]
    for name, said in zip(EVERYONE, created(mpirun, tmp_path, 12, cases), strict=True):
        numbers = places(name, dims, np.zeros(12, int), star(2)).tolist()
        assert said == [[0, n, *row_major(n, dims), 1, 0] for n in numbers], name


def test_all_processes_see_the_same_error(mpirun, tmp_path):
    nodes = np.arange(12) // 3
    wrong = {
        ("sweep", (4, 3)): ALGORITHM,
        ("kd_tree", (4, 4)): PROCESSES,
        ("kd_tree", (4, 0)): DIMS,
    }
    cases = [(*given, (0, 0), [], "given", nodes) for given in wrong]
    for error, said in zip(wrong.values(), created(mpirun, tmp_path, 12, cases), strict=True):
        assert said == [[error, -1]] * 12


def test_the_guide_s_program_in_c_prints_its_coordinates(mpirun, tmp_path):
    (program,) = re.findall(r"```c\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "guide.c").write_text(program)
    found = mpirun(tmp_path / "guide.c", 12)
    assert sorted(found) == sorted(f"{3 * x + y}: {x} {y}" for x in range(4) for y in range(3))


# Into files: mpirun may cut the lines of processes that print at once.
SHOW = """
with open(f"{}/{{comm.rank}}.txt", "w") as file:
    file.write(str(cart.rank))
"""


def test_the_guide_s_lines_of_mpi4py_do_the_same(mpirun, tmp_path):
    loads = [sys.executable, "-c", "from mpi4py import MPI"]
    if subprocess.run(loads, capture_output=True).returncode:
        pytest.skip("no mpi4py")
    (lines,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    (tmp_path / "guide.py").write_text(lines + SHOW.format(tmp_path))
    mpirun(tmp_path / "guide.py", 12)
    said = [int((tmp_path / f"{process}.txt").read_text()) for process in range(12)]
    cells = places("kd_tree", (4, 3), np.zeros(12, int), star(2))
    assert said == cells.tolist()


def test_the_call_on_the_page_of_mappers_compiles(mpirun, tmp_path):
    (call,) = re.findall(r"```c\n(hopmap_cart_create.*?)```", PAGE, flags=re.DOTALL)
    begin = "int main(int argc, char **argv) { int dims[2] = {4, 3}, periods[2] = {0, 0}, rank;"
    begin += " MPI_Comm cart; MPI_Init(&argc, &argv);"
    end = 'MPI_Comm_rank(cart, &rank); printf("%d\\n", rank); return MPI_Finalize(); }'
    head = '#include "hopmap_cart.h"\n#include <stdio.h>\n'
    (tmp_path / "page.c").write_text(head + begin + call + end)
    assert sorted(map(int, mpirun(tmp_path / "page.c", 12))) == list(range(12))
