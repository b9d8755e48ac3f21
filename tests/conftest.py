"""What tests share: the recorded archives of the repository, and those that are too big for it."""

import gc
import importlib
import pkgutil
import sys
import time
from itertools import cycle, pairwise
from pathlib import Path

import numba
import pytest
from hypothesis import HealthCheck, settings

import hopmap
from support import ROOT
from support.slow import SHARE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--draw", type=float, metavar="MINUTES", help="draw new examples for that long"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples in every run; no test fails because a machine is busy."""
    gc.set_threshold(100_000)  # as the command line does
    SHARE["of"] = 6 if config.option.markexpr == "not slow" else 1
    settings.register_profile(
        "hopmap",
        max_examples=100 // SHARE["of"],
        deadline=None,
        derandomize=config.option.draw is None,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("hopmap")
    # Hypothesis draws constants of the sources that are loaded. So load all, whatever runs first.
    if not getattr(config.option, "numprocesses", None):
        for module in pkgutil.walk_packages(hopmap.__path__, "hopmap."):
            if module.name != "hopmap.__main__":
                importlib.import_module(module.name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With --draw, go through the tests that draw examples until the time is up."""
    if session.config.option.draw is None:
        return None
    drawing = [item for item in session.items if item.get_closest_marker("hypothesis")]
    end = time.monotonic() + 60 * session.config.option.draw
    for item, following in pairwise(cycle(drawing)):
        if session.shouldstop or session.shouldfail or time.monotonic() > end:
            break
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return True


@pytest.fixture(scope="session")
def data() -> Path:
    """Archives that come with the project: edge.X.8, is.S.16, lu.S.4, mg.S.16, and their CSVs."""
    return ROOT / "tests" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recordings and published data kept beside the repository; tests that need them skip."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder.name!r} beside the repository, which holds the recordings")
    return folder


@pytest.fixture
def compiled() -> None:
    """Skip where numba's compiler is switched off (NUMBA_DISABLE_JIT=1)."""
    if numba.config.DISABLE_JIT:
        pytest.skip("too large for kernels that are not compiled")


@pytest.fixture
def forgetting(monkeypatch):
    """Forget the plugins, mappers and families of topologies that a test brings."""
    from hopmap.mappers import MAPPERS
    from hopmap.plugins import VARIABLE, load_entry_points
    from hopmap.topologies import FAMILIES
    from hopmap.traces.sources import KINDS

    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    tables = [(table, dict(table)) for table in (MAPPERS, FAMILIES, KINDS)]
    modules = set(sys.modules)
    yield
    load_entry_points.cache_clear()
    for table, before in tables:
        table.clear()
        table.update(before)
    for name in set(sys.modules) - modules:
        if name.startswith(("own", "/")):
            del sys.modules[name]
