"""What is shipped for MPI programs, under each MPI: levels, queries, the library, the benchmark."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import hopmap.mappers
from hopmap.mappers.cartesian.halvings import hyperplane_all
from hopmap.mappers.cartesian.mpi import mpi_files
from hopmap.mappers.cartesian.strips import stencil_strips_all
from hopmap.traces.patterns.stencils import star

HERE = Path(__file__).parent
SOURCES = Path(hopmap.mappers.__file__).parent / "cartesian" / "mpi"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"]
C = ["-std=c99", "-pedantic"]


def compiled(mpi, source, folder, *flags, compiler="mpicc"):
    program = folder / source.stem
    words = [mpi.command(compiler), *flags, *FLAGS, source, "-o", program]
    subprocess.run(words, check=True, cwd=folder)
    return program


def lines(folder, processes):
    """The lines of the file of every process."""
    return [(folder / f"{p}.txt").read_text().splitlines() for p in range(processes)]


@pytest.fixture(scope="module")
def queries(mpi, tmp_path_factory):
    """What cart_queries.c says: of every process, numbers by word."""
    folder = tmp_path_factory.mktemp("queries")
    done = mpi.run(8, compiled(mpi, HERE / "cart_queries.c", folder, *C), folder)
    assert done.returncode == 0, done.stderr
    return [
        {word: list(map(int, rest)) for word, *rest in map(str.split, said)}
        for said in lines(folder, 8)
    ]


def test_sockets_stay_within_their_nodes(queries):
    """4 x 2 ranks: two rows a node; sockets alone give every other row to the other node."""
    assert [q["sockets_alone"] for q in queries] == [[0, 6, 12]] * 8
    assert [q["levels"] for q in queries] == [[0, 2, 4]] * 8
    # node 0 has processes 0, 2, 4, 6; its socket 0 has 0 and 4
    assert [q["place"][0] for q in queries] == [0, 4, 2, 6, 1, 5, 3, 7]


def test_costs_weigh_the_vectors_and_know_shared_memory(queries):
    """The border between the nodes is crossed along the first dimension, ten each way."""
    assert [q["weighed"] for q in queries] == [[0, 20, 40]] * 8
    assert [q["shared_memory"] for q in queries] == [[0, 0, 0]] * 8


def test_parts_that_span_coarser_ones_are_an_error_on_all_processes(queries):
    assert [q["spanning"] for q in queries] == [[-8, 1]] * 8


def test_a_stencil_that_is_no_star_gets_a_neighbourhood(queries):
    """Vectors (1, 1) and (0, 2) of weights 7 and 9 on 4 x 2, periodic in the second dimension."""
    for query in queries:
        error, rank, count, *rest = query["neighbours"]
        x, y = divmod(rank, 2)
        from_ = [(2 * (x - 1) + (y - 1) % 2, 7)] * (x > 0) + [(rank, 9)]
        to = [(2 * (x + 1) + (y + 1) % 2, 7)] * (x < 3) + [(rank, 9)]
        expected = [n for r, weight in from_ for n in (r, weight, r)]
        expected += [n for pair in to for n in pair]
        assert [error, count, *rest] == [0, len(from_), *expected]


def test_a_grid_without_dimensions_has_one_process(queries):
    assert [q["no_dimensions"] for q in queries] == [[0, 0]] + [[0, -1]] * 7


@pytest.fixture(scope="module")
def preload(mpi, tmp_path_factory):
    """Run a program under the library on eight processes; and what they got."""
    folder = tmp_path_factory.mktemp("library")
    library = compiled(mpi, SOURCES / "hopmapcart.c", folder, *C, "-shared", "-fPIC")

    def run(program, **settings):
        return mpi.run(8, program, folder, LD_PRELOAD=library, **settings)

    return run, lambda: [tuple(map(int, said[0].split())) for said in lines(folder, 8)]


def numbers(coordinates):
    return np.ravel_multi_index(tuple(coordinates.T), (2, 4)).tolist()


@pytest.mark.parametrize("language", ["C", "mpi", "mpi_f08"])
def test_programs_are_reordered_as_they_are(mpi, preload, tmp_path, language):
    """Two nodes of four: squares instead of rows, where the program asks for it."""
    if language == "C":
        program = compiled(mpi, HERE / "unchanged.c", tmp_path, *C)
    else:
        text = (HERE / "unchanged.f90").read_text()
        if language == "mpi_f08":
            text = text.replace("use mpi\n", "use mpi_f08\n")
            text = text.replace("integer :: cart\n", "type(MPI_Comm) :: cart\n")
            text = text.replace("cart, error)", "cart)")  # ierror is optional there
        source = tmp_path / "fortran.f90"
        source.write_text(text)
        program = compiled(mpi, source, tmp_path, compiler="mpifort")
    run, got = preload
    done = run(program, HOPMAP_CART_NODE_SIZE=4, HOPMAP_CART_VERBOSE=1)
    assert done.returncode == 0, done.stderr
    strips = numbers(stencil_strips_all((2, 4), 4, star(2)))
    assert strips == [0, 4, 1, 5, 2, 6, 3, 7]
    assert got() == list(zip(strips, range(8), strict=True))
    assert (
        "hopmapcart: stencil_strips: worst node 2, sum 4 leave the nodes (in MPI's order 4, 8)\n"
        in done.stderr
    )


def test_the_environment_chooses(mpi, preload, tmp_path):
    program = compiled(mpi, HERE / "unchanged.c", tmp_path, *C)
    run, got = preload
    assert run(program, HOPMAP_CART="off", HOPMAP_CART_NODE_SIZE=4).returncode == 0
    assert got() == [(rank, rank) for rank in range(8)]
    chosen = {
        "HOPMAP_CART_ALGORITHM": "hyperplane",
        "HOPMAP_CART_STENCIL": "1:0/-1:0/0:1/0:-1",
        "HOPMAP_CART_WEIGHTS": "1:1:1000:1000",
        "HOPMAP_CART_LEVELS": "node,socket",
        "HOPMAP_CART_NODE_SIZE": 2,
        "HOPMAP_CART_SOCKET_SIZE": 1,
    }
    done = run(program, **chosen)
    assert done.returncode == 0, done.stderr
    weighed = numbers(hyperplane_all((2, 4), 2, star(2), [1, 1, 1000, 1000]))
    assert [rank for rank, _ in got()] == weighed
    assert weighed != numbers(hyperplane_all((2, 4), 2, star(2)))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HOPMAP_CART_ALGORITHM", "sweep", "a mapper's name, like stencil_strips or hyperplane"),
        ("HOPMAP_CART_STENCIL", "1:0/x", "star, or vectors like 1:0/-1:0/0:1/0:-1"),
        ("HOPMAP_CART_STENCIL", "1:0/0", "star, or vectors like 1:0/-1:0/0:1/0:-1"),
        ("HOPMAP_CART_WEIGHTS", "1:-1", "whole numbers of at least 0, like 1000:1"),
        ("HOPMAP_CART_LEVELS", "rack", "node or node,socket"),
        ("HOPMAP_CART_NODE_SIZE", "0", "a whole number of at least 1"),
        ("HOPMAP_CART", "no", "on or off"),
    ],
)
def test_a_setting_that_cannot_be_read_ends_the_program(
    mpi, preload, tmp_path, name, value, expected
):
    program = compiled(mpi, HERE / "unchanged.c", tmp_path, *C)
    done = preload[0](program, **{name: value})
    assert done.returncode != 0
    assert f"hopmapcart: {name}={value}: expected {expected}\n" in done.stderr


def test_what_cannot_be_heeded_is_said(mpi, preload, tmp_path):
    """Gropp's boxes need nodes of one size; a stencil is for grids of as many dimensions."""
    program = compiled(mpi, HERE / "unchanged.c", tmp_path, *C)
    run, got = preload
    given = {"HOPMAP_CART_ALGORITHM": "gropp", "HOPMAP_CART_STENCIL": "1:0:0"}
    done = run(program, **given, HOPMAP_CART_NODE_SIZE=3)
    assert done.returncode == 0, done.stderr
    assert got() == [(rank, rank) for rank in range(8)]
    assert "gropp cannot place this grid (code -3): made as MPI does" in done.stderr
    assert "HOPMAP_CART_STENCIL has not the dimensions of this grid: the star is" in done.stderr


def test_the_benchmark_writes_times_and_where_processes_are(mpi, tmp_path):
    program = compiled(mpi, SOURCES / "stencil_bench.c", tmp_path, *C)
    times, alloc = tmp_path / "times.csv", tmp_path / "alloc.csv"
    words = ["--grid", "2x2", "--bytes", "1,1000", "--iterations", "3", "--mappers", "mpi,kd_tree"]
    done = mpi.run(4, program, *words, "--out", times, "--alloc", alloc)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(times.read_text().splitlines()))
    assert ",".join(rows[0]) == (
        "collective,nodes,tasks_per_node,mpi,mpi_version,gpu_aware,notes,algorithm,buffer_bytes,"
        "iterations,median_ns,min_ns,max_ns"
    )
    assert [(r["collective"], r["algorithm"], int(r["buffer_bytes"])) for r in rows] == [
        (what, mapper, size)
        for mapper in ("mpi", "kd_tree")
        for what, size in [("cart_create", 0), ("stencil:2x2,star", 1), ("stencil:2x2,star", 1000)]
    ]
    for row in rows:
        assert 0 < float(row["min_ns"]) <= float(row["median_ns"]) <= float(row["max_ns"])
        assert (row["nodes"], row["tasks_per_node"], row["iterations"]) == ("1", "4", "3")
        assert row["notes"] == "worst node 0 sum 0"
    placed = alloc.read_text().splitlines()
    assert placed[0] == "MPI_Rank,allocation"
    assert [line.split(",")[0] for line in placed[1:]] == ["0", "1", "2", "3"]
    refused = mpi.run(2, program, "--grid", "2x2")
    assert refused.returncode != 0
    assert "stencil_bench: --grid 2x2: expected no more than there are processes" in refused.stderr


def test_cmake_and_pkg_config_find_what_is_written(mpi, tmp_path):
    for command in ("cmake", "pkg-config"):
        if shutil.which(command) is None:
            pytest.skip(f"no command {command}")
    for name, text in mpi_files().items():
        (tmp_path / name).write_text(text)
    words = ["cmake", "-B", "build", f"-DMPI_C_COMPILER={mpi.command('mpicc')}"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "build" / "libhopmapcart.so").exists()
    assert (tmp_path / "build" / "stencil_bench").exists()
    said = subprocess.run(
        ["pkg-config", "--cflags", "hopmapcart"], env={"PKG_CONFIG_PATH": str(tmp_path)},
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert said.split() == [f"-I{tmp_path}"]
