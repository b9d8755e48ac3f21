"""The wheel holds every module and every data file, and its parts import from anywhere."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support import ROOT

PARTS = ("traces", "topologies", "mappers", "simulator", "scenarios")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("build", reason="needs the extra dev")
    out = tmp_path_factory.mktemp("wheel")
    # By way of a source archive, as it would be published.
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", out, ROOT], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_module_and_data_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {
        f"hopmap/{part}/{file.name}"
        for part in PARTS
        for file in (ROOT / part).iterdir()
        if file.is_file()
    }
    assert expected <= names, sorted(expected - names)
    assert {f"hopmap/{part}/py.typed" for part in PARTS} <= names


def test_the_wheel_holds_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"hopmap"}


def test_packages_are_flat():
    """A nested package would be missing from the wheel until it is listed in pyproject.toml."""
    nested = [
        folder
        for part in PARTS
        for folder in (ROOT / part).iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    ]
    assert not nested


def test_the_wheel_works_on_its_own(wheel, tmp_path):
    """Imported from the wheel alone, with a folder called traces in the way."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "traces").mkdir()
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); sys.meta_path[:] = "
        "[f for f in sys.meta_path if 'editable' not in getattr(f, '__module__', '')];"
        "import hopmap.scenarios.cli, hopmap.traces, hopmap.mappers, hopmap.simulator;"
        "from hopmap.scenarios.cli.listing import CATALOGUE;"
        "print(hopmap.traces.__file__); print(len(CATALOGUE['scenarios']()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    where, scenarios = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path / "site")
    assert int(scenarios) == len(list((ROOT / "scenarios").glob("*.toml")))
