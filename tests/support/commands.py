"""The command line as users type it, in this process, and fixtures of what it answers."""

import json
import math
import sys
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from hopmap.cli.app import app
from hopmap.figures import style
from hopmap.scenarios.results.study import Case, Entry
from hopmap.simulator import KEYS
from hopmap.simulator.parameters.settings import LINK_UNITS
from support import DATA
from support.archives import archives_read_here

LU = str(DATA / "lu.S.4")
COMPILING = "hopmap: compiling for this machine, once"  # said by whichever test comes first
LITTLE = """
name = "Little"
traces = ["stencil:2x2,5pt,bytes=1000"]
topologies = ["mesh:2x2"]
mappers = ["sweep", "random"]
[replay]
engine = "simpy"
"""
COMMAND = get_command(app)  # CliRunner.invoke builds it again for each call


class Said(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str
    output: str
    exception: Exception | None


def invoke(words, *, typed=None, env=None):
    """Run a command; return its exit code and what it says."""
    exit_code, exception = 0, None
    with CliRunner().isolation(typed, env) as streams:
        try:
            COMMAND.main([*map(str, words)], prog_name="hopmap")
        except SystemExit as stop:
            exit_code = stop.code
        except Exception as error:
            exit_code, exception = 1, error
        sys.stdout.flush()
        sys.stderr.flush()
        said = [stream.getvalue().decode() for stream in streams]
    return Said(exit_code, *said, exception)


def hopmap(*words):
    """Run a command that works; return what it prints."""
    result = invoke(words)
    assert result.exit_code == 0, result.output
    assert result.stderr.replace(f"{COMPILING}\n", "") == "", result.stderr
    return result.stdout


def noted(*words):
    """Run a command that works; return what it says beside its result."""
    result = invoke(words)
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if line != COMPILING]


def as_json(*words):
    return json.loads(hopmap(*words, "--json"))


def failed(*words):
    """Run a command that is refused; return the one line that it says."""
    result = invoke(words)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def sets(settings):
    """Words of --set for numbers in SI units."""
    units = {key: set_unit(key) for key in settings}
    return [w for key, unit in units.items() for w in ("--set", f"{key}={settings[key]}{unit}")]


def set_unit(key):
    prefix, _, quantity = key.rpartition(".")
    unit = LINK_UNITS[quantity] if prefix == "link" else KEYS[key].unit
    return "" if unit == "1" else f" {unit}"


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
        monkeypatch.setattr(f"hopmap.cli.{where}.announce_compilation", lambda: None)


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
