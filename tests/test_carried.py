"""Compiled code that came with the package is used where it fits, and only there."""

import os
import subprocess
import sys

import numba
import pytest

from hopmap.carried import VARIABLE, portable_cpu, portable_environment
from support import ROOT

pytestmark = [
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled"),
    pytest.mark.skipif(portable_cpu() is None, reason="no code is carried for this processor"),
]
RUN = """
from numba.core import event
{before}
with event.install_recorder("numba:compile") as compiled:
    from hopmap.{module}_kernels import {module}
    print({module}(1), len(compiled.buffer) // 2)
"""
OTHER_PROCESSOR = """
from llvmlite import binding
features = binding.get_host_cpu_features()
features["avx2"] = features["neon"] = False
binding.get_host_cpu_features = lambda: features
"""
OTHER_NUMBA = """
import numba
numba.__version__ += ".other"
"""


class Package:
    """A package of that name with two kernels, one that calls the other."""

    def __init__(self, root):
        self.root, self.folder, self.kept = root, root / "hopmap", root / "kept"
        self.carried = self.folder / "compiled"

    def run(self, module="outer", before="", **env):
        """Call a kernel in a new process; return its value, and how many were compiled."""
        done = subprocess.run(
            [sys.executable, "-B", "-c", RUN.format(module=module, before=before)],
            cwd=self.root,
            env={
                **{name: value for name, value in os.environ.items() if name != VARIABLE},
                "NUMBA_CACHE_DIR": str(self.kept),
                "PYTHONPATH": ".",
                **env,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        self.said = done.stderr
        return tuple(map(int, done.stdout.split()))

    def carry(self, module="outer"):
        return self.run(module, **portable_environment() | {"NUMBA_CACHE_DIR": str(self.kept)})


@pytest.fixture
def package(tmp_path):
    made = Package(tmp_path / "here")
    made.folder.mkdir(parents=True)
    (made.folder / "__init__.py").touch()
    for name in ("carried.py", "compilation.py", "errors.py", "source_files.py"):
        (made.folder / name).write_bytes((ROOT / "hopmap" / name).read_bytes())
    (made.folder / "inner_kernels.py").write_text(
        "from hopmap.compilation import njit\n\n\n@njit\ndef inner(x):\n    return x + 1\n"
    )
    (made.folder / "outer_kernels.py").write_text(
        "from hopmap.compilation import njit\n\nfrom .inner_kernels import inner\n\n\n"
        "@njit\ndef outer(x):\n    return 10 * inner(x)\n"
    )
    return made


def test_what_is_carried_is_not_compiled_and_nothing_is_written(package):
    assert package.carry() == (20, 2)
    before = {file: file.stat().st_mtime_ns for file in package.folder.rglob("*")}
    assert package.run() == (20, 0)
    assert {file: file.stat().st_mtime_ns for file in package.folder.rglob("*")} == before
    assert not [*package.kept.rglob("*.nbi")]


def test_it_is_carried_to_another_folder(package, tmp_path):
    package.carry()
    there = Package(package.root.rename(tmp_path / "there"))
    assert there.run() == (20, 0)


def test_what_is_not_carried_is_compiled_with_what_is(package):
    assert package.carry("inner") == (2, 1)
    assert package.run() == (20, 1)
    assert package.run() == (20, 0)
    assert [file.name.split("-")[0] for file in package.kept.rglob("*.nbi")] == [
        "outer_kernels.outer"
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({VARIABLE: "0"}, id="not wanted"),
        pytest.param({"NUMBA_CPU_NAME": "generic"}, id="another processor asked for"),
        pytest.param({"before": OTHER_PROCESSOR}, id="processor without the features"),
        pytest.param({"before": OTHER_NUMBA}, id="another numba"),
    ],
)
def test_what_does_not_fit_is_compiled(package, other):
    package.carry()
    assert package.run(**other) == (20, 2)


def test_what_is_made_of_other_sources_is_compiled(package):
    package.carry()
    changed = package.folder / "inner_kernels.py"
    changed.write_text(changed.read_text().replace("x + 1", "x + 2"))
    assert package.run() == (30, 2)


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(0, id="empty", marks=pytest.mark.slow),
        pytest.param(7, id="cut", marks=pytest.mark.slow),
        pytest.param(-1, id="altered"),
    ],
)
def test_what_is_damaged_is_compiled_and_named(package, kept):
    package.carry()
    for file in package.carried.rglob("*.gz"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data if kept < 0 else data[:kept])
    assert package.run() == (20, 2)
    assert "outer_kernels.outer" in package.said
    assert "cannot be read" in package.said
    assert "Traceback" not in package.said
    assert package.run() == (20, 0)


def test_what_was_compiled_for_this_very_processor_comes_first(package):
    package.carry()
    assert package.run(**{VARIABLE: "0"}) == (20, 2)
    for file in package.carried.rglob("*.gz"):
        file.write_bytes(b"not asked for")
    assert package.run() == (20, 0)
    assert package.said == ""
