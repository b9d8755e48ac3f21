"""Without its extras hopmap does the main job, and says which extra the rest needs."""

import json
import subprocess
import sys
import tomllib

import pytest
from scipy.sparse import eye_array

from hopmap.errors import MissingExtraError
from hopmap.mappers import map_ranks
from hopmap.scenarios.results.labelled import to_xarray
from hopmap.scenarios.results.query import query
from hopmap.scenarios.sweep.workers import Workers, distribute
from hopmap.topologies import topology_from_spec
from hopmap.topologies.readers.slurm import from_slurm_yaml
from hopmap.traces import hypergraph_of, nas_traffic, partition_hypergraph, pattern_of
from hopmap.traces.frames.hatchet import to_hatchet
from hopmap.traces.patterns.spmv import _mtkahypar
from support import DATA, ROOT

LIBRARIES = {
    "chakra": "google.protobuf",
    "cluster": "distributed",
    "hatchet": "hatchet",
    "partition": "kahip",
    "query": "duckdb",
    "slurm": "yaml",
    "sparse": "mtkahypar",
    "xarray": "xarray",
}


def topdown():
    map_ranks(nas_traffic("lu.A.64"), topology_from_spec("tree:4:4:4"), "topdown")


def chakra():
    from hopmap.traces.foreign.chakra.nodes import _messages  # part of a wing

    _messages.cache_clear()
    _messages()


CASES = [
    ("chakra", chakra, "reading a Chakra execution trace"),
    ("cluster", lambda: list(distribute(abs, [1], Workers(1, "tcp://localhost:1"))), "--scheduler"),
    ("partition", topdown, "partitioning a graph"),
    ("hatchet", lambda: to_hatchet(DATA / "lu.S.4"), "to_hatchet"),
    ("xarray", lambda: to_xarray("nowhere"), "to_xarray"),
    ("query", lambda: query("nowhere", "FROM runs"), "hopmap query"),
    ("slurm", lambda: from_slurm_yaml("- topology: a", "file:a.yaml"), "reading a topology.yaml"),
    (
        "sparse",
        lambda: partition_hypergraph(hypergraph_of(pattern_of(eye_array(4)), "row-net"), 2),
        "partitioning a hypergraph",
    ),
]


@pytest.mark.parametrize(("extra", "call", "what"), CASES, ids=[case[0] for case in CASES])
def test_what_is_missing_is_one_line_with_its_extra(extra, call, what, monkeypatch):
    library = LIBRARIES[extra]
    monkeypatch.setitem(sys.modules, library, None)
    _mtkahypar.cache_clear()
    with pytest.raises(MissingExtraError) as caught:
        call()
    assert str(caught.value) == (
        f"{what} requires {library}: install hopmap with its extra {extra!r}, like "
        f"pip install -e '.[{extra}]'"
    )


@pytest.mark.slow
def test_the_main_job_needs_no_extra(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        f'name = "s"\ntraces = ["{DATA / "lu.S.4"}"]\ntopologies = ["mesh:2x2", "haec:2x2x1"]\n'
        'mappers = ["greedy", "auto(seconds=0.1)"]\n'
    )
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({list(LIBRARIES.values())}));"
        "from hopmap.cli.app import main; main()"
    )
    command = [sys.executable, "-c", code, "run", str(file), "--out", str(tmp_path / "out")]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] == 4
    assert (tmp_path / "out" / "report.html").stat().st_size > 0


def test_all_has_every_extra_and_the_tests_need_all():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras["optional-dependencies"]
    # Hatchet needs an older pandas than everything else can have.
    assert extras["all"] == [f"hopmap[{','.join(sorted(LIBRARIES.keys() - {'hatchet'}))}]"]
    assert "hopmap[all]" in extras["test"]
    assert extras.keys() == {*LIBRARIES, "all", "dev", "docs", "test"}
