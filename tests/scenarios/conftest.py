"""Cases of a study made by hand, for what is computed from them."""

import math

import numpy as np
import pandas as pd
import pytest

from hopmap.scenarios.figures import style
from hopmap.scenarios.results.study import Case, Entry
from support.archives import archives_read_here

METRICS = (
    *("hop_bytes", "hop_messages", "bytes_congestion_max", "messages_congestion_max"),
    *("link_seconds_total", "link_seconds_max", "replayed_hop_bytes", "replayed_congestion_max"),
)


@pytest.fixture
def runs_of():
    """Make runs of unlike mappings, m0, m1, ..., whose other metrics follow hop-bytes."""

    def make(times, hops, **columns):
        figures = dict.fromkeys(METRICS, hops) | {
            "mapper": [f"m{place}" for place in range(len(times))],
            "node_of": [np.array([place, 0]) for place in range(len(times))],
            "makespan": times,
            "energy": [math.nan] * len(times),
            "energy_transfer": [math.nan] * len(times),
        }
        return pd.DataFrame(figures | columns)

    return make


@pytest.fixture
def case_of():
    """Make a case of runs, its first mapper as the best."""

    def make(runs, variant=""):
        entries = [Entry(str(m), own.iloc[0], own) for m, own in runs.groupby("mapper", sort=False)]
        return Case("trace", "mesh:2x2", variant, runs, entries, entries[0], None)

    return make


@pytest.fixture(autouse=True)
def compiled_in_silence(monkeypatch):
    """Keep the compiler's announcement out of what commands print: caches may be cold here."""
    for where in ("console", "sweep"):
        monkeypatch.setattr(f"hopmap.scenarios.cli.{where}.announce_compilation", lambda: None)


@pytest.fixture(scope="module", autouse=True)
def unguarded():
    """Read archives in this process."""
    with archives_read_here():
        yield


DRAWN = style.svg_text
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture(scope="module", autouse=True)
def outlined():
    """Have reports made with empty pictures: figures have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "svg_text", lambda _: EMPTY)
        yield


@pytest.fixture
def drawn(monkeypatch):
    """Have the pictures of reports drawn."""
    monkeypatch.setattr(style, "svg_text", DRAWN)
