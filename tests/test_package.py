"""The wheel holds every module and every data file, and its parts import from anywhere."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from hopmap.scenarios.sweep import SHIPPED
from support import ROOT

PARTS = ("traces", "topologies", "mappers", "simulator", "scenarios")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build by way of a source archive, as it would be published."""
    pytest.importorskip("build", reason="needs the extra dev")
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", out, ROOT], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.mark.slow
def test_a_wheel_is_for_any_machine(wheel):
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_data_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {
        f"hopmap/{file.relative_to(ROOT)}"
        for part in PARTS
        for file in (ROOT / part).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    expected |= {f"hopmap/{file.name}" for file in (ROOT / "hopmap").iterdir() if file.is_file()}
    assert names >= expected, sorted(expected - names)


@pytest.mark.slow
def test_the_wheel_holds_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"hopmap"}


def test_every_file_is_in_a_package_or_named_as_its_data():
    """As far as that shows without building: setuptools takes packages, and files by pattern."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    known = {
        file
        for package, patterns in named["package-data"].items()
        for pattern in patterns
        for file in (
            (file for part in PARTS for file in (ROOT / part).rglob(pattern))
            if package == "*"
            else (ROOT / package.replace(".", "/")).glob(pattern)
        )
    }
    known |= {file.resolve() for file in known}
    for file in [file for part in PARTS for file in (ROOT / part).rglob("*") if file.is_file()]:
        if "__pycache__" in file.parts:
            continue
        if file.suffix == ".py":
            assert (file.parent / "__init__.py").is_file(), file
        else:
            assert file in known, file


def test_changes_citation_and_package_name_one_version():
    latest, *_ = re.findall(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == cited == latest


@pytest.mark.slow
def test_the_wheel_works_on_its_own(wheel, tmp_path):
    """Imported from the wheel alone, with a folder called traces in the way."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "traces").mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); sys.meta_path[:] = "
        "[f for f in sys.meta_path if 'editable' not in getattr(f, '__module__', '')];"
        "import hopmap.cli, hopmap.traces, hopmap.mappers, hopmap.simulator;"
        "from hopmap.cli.listing import CATALOGUE;"
        "print(hopmap.traces.__file__); print(len(list(CATALOGUE['scenarios']())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, scenarios = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path / "site")
    assert int(scenarios) == len(SHIPPED)
