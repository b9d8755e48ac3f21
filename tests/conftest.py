"""What tests share: the recorded archives of the repository, and those that are too big for it."""

from pathlib import Path

import pytest
from hypothesis import settings

from support import ROOT
from support.slow import SHARE


def pytest_configure(config: pytest.Config) -> None:
    """Draw all examples where slow tests run."""
    SHARE["of"] = 4 if "not slow" in config.option.markexpr else 1
    settings.register_profile("hopmap", max_examples=100 // SHARE["of"])
    settings.load_profile("hopmap")


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
