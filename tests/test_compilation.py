"""What is compiled is kept in one folder, and no longer than its sources stay as they are."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from hopmap.compilation import UNUSED_DAYS
from hopmap.source_files import PACKAGE, sources_of
from support import ROOT

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

RUN = """
from hopmap.outer_kernels import outer
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """Make a package of that name with our decorator and three modules, which returns a runner."""
    folder = tmp_path / "hopmap"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("compilation.py", "source_files.py"):
        (folder / name).write_bytes((ROOT / "hopmap" / name).read_bytes())
    (folder / "constants.py").write_text("STEP = 1\n")
    (folder / "inner_kernels.py").write_text(
        "from hopmap.compilation import njit\nfrom hopmap.constants import STEP\n\n\n"
        "@njit\ndef inner(x):\n    return x + STEP\n"
    )
    (folder / "outer_kernels.py").write_text(
        "from hopmap.compilation import njit\n\nfrom .inner_kernels import inner\n\n\n"
        "@njit\ndef outer(x):\n    return 10 * inner(x)\n"
    )

    def run():
        done = subprocess.run(
            [sys.executable, "-B", "-c", RUN],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        return tuple(map(int, done.stdout.split()))

    run.folder, run.cache = folder, tmp_path / "cache" / "hopmap"
    return run


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("constants", "= 1", "= 2"),
        pytest.param("inner_kernels", "x + STEP", "x + 2", marks=pytest.mark.slow),
    ],
)
def test_a_kernel_is_compiled_anew_when_a_module_it_is_made_of_changes(package, file, old, new):
    assert package() == (20, 0)
    assert package() == (20, 1)  # from the cache
    changed = package.folder / f"{file}.py"
    changed.write_text(changed.read_text().replace(old, new))
    assert package() == (30, 0)


def test_nothing_is_written_beside_the_sources(package):
    before = sorted(package.folder.rglob("*"))
    package()
    assert sorted(package.folder.rglob("*")) == before
    assert {folder.name.split("-")[0] for folder in package.cache.iterdir()} >= {"outer_kernels"}


def test_what_no_version_has_used_for_long_is_removed(package):
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    for name, when in (("old", long_ago), ("new", time.time())):
        folder = package.cache / f"outer_kernels-{name}"
        folder.mkdir(parents=True)
        os.utime(folder, (when, when))
    package()
    left = {folder.name for folder in package.cache.glob("outer_kernels-*")}
    assert "outer_kernels-new" in left
    assert "outer_kernels-old" not in left


KERNELS = [
    file
    for part in ("traces", "topologies", "mappers", "simulator")
    for file in sorted((PACKAGE / part).rglob("*.py"))
    if "import njit" in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("file", KERNELS, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_compiled_modules_import_from_where_things_are_defined(file: Path):
    """From a package that hands names on, a change would not be seen."""
    names = [
        (node.module, alias.name)
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hopmap.")
        for alias in node.names
    ]
    known = sources_of(file)
    for module, name in names:
        path = PACKAGE.parent.joinpath(*module.split("."))
        assert path.with_suffix(".py") in known or path / f"{name}.py" in known, (module, name)
