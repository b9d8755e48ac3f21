"""What is asked about is read once, however many parts of an answer need it."""

from collections import Counter

import pytest

import hopmap as hm
from hopmap.launchers import mapping_files
from hopmap.traces.otf2 import read, totals
from support import DATA
from support.archives import archives_read_here
from support.commands import hopmap

MG = str(DATA / "mg.S.16")
SCENARIO = f"""
name = "once"
traces = ["{MG}"]
topologies = ["torus:4x4", "mesh:4x4"]
mappers = ["sweep", "minmd"]
"""


@pytest.fixture
def passes(monkeypatch):
    """Count readings, by the name of the function that reads."""
    counts = Counter()

    def count(module, name):
        function = getattr(module, name)

        def counted(*args, **more):
            counts[name] += 1
            return function(*args, **more)

        monkeypatch.setattr(module, name, counted)

    count(read, "read_trace")
    count(totals, "read_summary")
    count(vars(mapping_files.MappingFile)["lines"], "func")  # what reads a mapping file
    with archives_read_here():
        yield counts


def test_a_sweep_passes_over_an_archive_for_its_traffic_and_for_its_program(passes, tmp_path):
    (tmp_path / "once.toml").write_text(SCENARIO)
    hopmap("run", tmp_path / "once.toml", "--out", tmp_path / "out", "--no-report")
    assert passes["read_summary"] <= 1
    assert passes["read_trace"] <= 1


def test_a_workload_passes_over_an_archive_for_its_traffic_and_for_its_program(passes):
    workload = hm.Workload(MG)
    placed = hm.map_ranks(workload, "torus:4x4", "minmd")
    for _ in range(2):
        hm.evaluate(workload, placed)
        hm.simulate(workload, placed)
    assert passes == {"read_summary": 1, "read_trace": 1}


def test_a_mapping_file_is_read_once(passes, tmp_path):
    hopmap("map", MG, "-t", "torus:4x4", "-m", "sweep", "--out", tmp_path / "m.csv")
    assert passes["func"] == 0
    for command in ("evaluate", "simulate", "explain"):
        passes.clear()
        words = ("--no-sensitivity",) if command == "explain" else ()
        hopmap(command, MG, tmp_path / "m.csv", *words)
        assert passes["func"] == 1, command


def test_a_pipeline_is_parsed_once(monkeypatch):
    from hopmap.api import mapping
    from hopmap.mappers import pipeline

    texts, parse = [], pipeline.parse_pipeline
    for module in (pipeline, mapping):
        monkeypatch.setattr(
            module, "parse_pipeline", lambda text: texts.append(text) or parse(text)
        )
    hm.map_ranks(MG, "torus:4x4", "minmd | kl")
    assert texts.count("minmd | kl") == 1
