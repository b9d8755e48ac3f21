"""Wings of hopmap can be taken out: the rest is complete without any of them."""

import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import pytest

from hopmap.cli.app import COMMANDS
from hopmap.mappers import MAPPERS
from hopmap.plugins import Table, is_installed
from hopmap.report.tables import SECTIONS
from hopmap.simulator.collectives.algorithms import ALGORITHMS
from hopmap.simulator.export import EXPORTS, WRITERS
from hopmap.traces.sources import BENCHMARK, BY_CONTENT, KINDS
from support import ROOT

ALWAYS = ("test_imports.py", "test_door.py", "test_house.py", "test_start_up.py", "test_plugins.py")


class Wing(NamedTuple):
    """What is deleted of the code, and below tests/; what is run below tests/, near to it."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    near: tuple[str, ...]


WINGS = {
    "traces of other tools": Wing(
        ("traces/foreign",),
        ("traces/foreign", "simulator/programs/test_from_schedule.py"),
        ("traces/test_sources.py", "traces/formats"),
    ),
    "extrapolation and folding": Wing(
        ("traces/extrapolation",),
        ("traces/extrapolation",),
        ("traces/test_sources.py", "traces/patterns"),
    ),
    "the recorder": Wing(
        ("traces/recorder", "hopmap/cli/record.py"),
        ("traces/recorder", "cli/test_record.py"),
        ("traces/test_sources.py", "cli/test_app.py"),
    ),
    "mappers of large graphs": Wing(
        ("mappers/partitions", "hopmap/cli/coarsen.py"),
        (
            *("mappers/partitions", "cli/test_coarsen.py", "benchmarks/test_viem.py"),
            *("benchmarks/test_timer.py", "benchmarks/test_timer_readings.py"),
        ),
        ("mappers/test_mapper.py", "mappers/exchanges/test_timer.py"),
    ),
    "exact mappers": Wing(
        ("mappers/exact",), ("mappers/exact",), ("mappers/test_mapper.py", "mappers/orders")
    ),
    "the library for C": Wing(
        ("mappers/cartesian/mpi", "hopmap/cli/header.py"),
        tuple(
            f"mappers/cartesian/test_{name}.py"
            for name in ("cart_communicators", "hopmap_cart", "mpi_programs")
        ),
        ("mappers/cartesian/test_strips.py", "mappers/cartesian/test_grid.py"),
    ),
    "measured times and Bine's collectives": Wing(
        (
            *("simulator/measured", "simulator/collectives/bine", "hopmap/validation"),
            "hopmap/cli/measured.py",
        ),
        (
            *("simulator/measured", "simulator/collectives/bine", "cli/test_calibrate.py"),
            *("cli/test_validate.py", "validation", "figures/test_nothing_is_cut.py"),
            "simulator/collectives/test_temporaries.py",
        ),
        ("simulator/collectives/test_algorithms.py", "simulator/collectives/test_volumes.py"),
    ),
    "writers for SimGrid and LogGOPSim": Wing(
        ("simulator/export/goal.py", "simulator/export/simgrid.py"),
        (
            *("simulator/export/test_goal.py", "simulator/export/test_simgrid.py"),
            *("simulator/programs/test_from_schedule.py", "traces/foreign/tit/test_read.py"),
            "launchers/test_launchers_run.py",
        ),
        ("simulator/export",),
    ),
    "the explorer": Wing(
        ("hopmap/view", "hopmap/cli/view.py"), ("view",), ("cli/test_app.py", "figures")
    ),
    "studies": Wing(
        ("scenarios/studies",),
        (
            *("scenarios/studies", "benchmarks/test_orders.py", "benchmarks/test_stencils.py"),
            "cli/test_published_tables.py",
        ),
        ("report", "scenarios/results"),
    ),
}


def test_whatever_tables_name_is_there():
    """Lists leave out what is not, so that a wrong name would go unnoticed."""
    from hopmap.traces.foreign.recognition import TOOLS  # a wing: this file runs without it, too

    for table in (COMMANDS, SECTIONS, Table("hopmap.traces.foreign", TOOLS), *ALGORITHMS.values()):
        assert list(table) == list(table._places)
    assert list(MAPPERS) == list(MAPPERS.data)
    assert list(WRITERS) == list(EXPORTS)
    sources = [BENCHMARK, BY_CONTENT, *(kind for kind in KINDS.values() if isinstance(kind, str))]
    assert [place for place in sources if not is_installed("hopmap.traces", place)] == []


@pytest.mark.slow
@pytest.mark.parametrize("wing", WINGS)
def test_without_a_wing_the_rest_passes_its_tests(wing, tmp_path, tmp_path_factory):
    """Copy what git lists but for the wing; collect all tests, and run `ALWAYS` and those near.

    To collect tests imports all modules, see conftest.py: that finds whatever imports the wing.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no clone of the repository")
    code, tests, near = WINGS[wing]
    gone = (*code, *(f"tests/{each}" for each in tests))
    assert [each for each in gone if not (ROOT / each).exists()] == []
    for name in filter(None, listed.stdout.split("\0")):
        if any(f"{name}/".startswith(f"{each}/") for each in gone) or not (ROOT / name).exists():
            continue
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name, follow_symlinks=False)
    cache = tmp_path_factory.getbasetemp() / "compiled"  # of all wings
    environment = {"NUMBA_CACHE_DIR": str(cache)} | os.environ
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    for more in (["--collect-only"], [f"tests/{each}" for each in (*ALWAYS, *near)]):
        done = subprocess.run(
            [*words, *more], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-3000:]
