"""What importing hopmap loads, and what it leaves as it is: one process imports part after part."""

import json
import os
import re
import subprocess
import sys

import pytest

from hopmap.source_files import PACKAGE

PARTS = ("traces", "topologies", "mappers", "simulator")
PROGRAM = """
import importlib, json, sys

told = {"before": sorted(sys.modules)}
import hopmap
told["door"] = sorted(sys.modules)

from numba.core import caching, ccallback, config, decorators, dispatcher
parts = [caching, ccallback, config, decorators, dispatcher]
parts += [caching.CacheImpl, caching.FunctionCache, dispatcher.Dispatcher]
before = [dict(vars(part)) for part in parts]
for name in sys.argv[1:]:
    importlib.import_module(name)
told["changed"] = [
    f"{part.__name__}.{name}"
    for part, was in zip(parts, before)
    for name in {*was, *vars(part)}
    if was.get(name, part) is not vars(part).get(name, was)
]

import hopmap.simulator
told["simulator"] = sorted(sys.modules)
import hopmap.figures.network, hopmap.report.report
told["report"] = sorted(sys.modules)

import elsewhere
told["elsewhere"] = elsewhere.double(21)
print(json.dumps(told))
"""
ELSEWHERE = "import numba\n\n\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n"


def names_of_kernels():
    """Every module with compiled code, as it is imported."""
    compiles = re.compile(r"compilation import .*\b(njit|subroutine)\b")
    files = sorted(
        file
        for part in PARTS
        for file in (PACKAGE / part).rglob("*.py")
        if "kernels" in file.name or compiles.search(file.read_text(encoding="utf-8"))
    )
    return [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a module of another package that has numba cache a function."""
    made = tmp_path_factory.mktemp("elsewhere")
    (made / "elsewhere.py").write_text(ELSEWHERE)
    return made


@pytest.fixture(scope="module")
def told(folder):
    given = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    path = os.pathsep.join(filter(None, [str(folder), given.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names_of_kernels()],
        env=given | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_door_loads_next_to_nothing(told):
    new = {name.partition(".")[0] for name in set(told["door"]) - set(told["before"])}
    assert new - sys.stdlib_module_names == {"hopmap"}


def test_replays_do_not_wait_for_what_only_reports_need(told):
    """Importing scipy.stats takes as long as all the rest."""
    assert "scipy.stats" not in told["simulator"]


def test_drawing_chooses_no_backend(told):
    assert "matplotlib.figure" in told["report"]
    assert "matplotlib.pyplot" not in told["report"]


def test_numba_stays_as_it_is(told):
    assert told["changed"] == []
    assert len(names_of_kernels()) > 50


def test_what_others_cache_lies_where_numba_puts_it(told, folder):
    assert told["elsewhere"] == 42
    (index,) = (folder / "__pycache__").glob("elsewhere.double-*.nbi")
    assert list((folder / "__pycache__").glob(f"{index.stem}*.nbc"))
    assert not list((folder / "cache").rglob("*elsewhere*"))
