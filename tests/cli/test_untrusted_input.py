"""Input that is damaged, or announces more than anybody has: one line, exit 2, at once, no harm."""

import json
import pickle
import re
import resource
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hopmap.errors import LONGEST, one_line
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.traces import TraceError, save_traffic, stencil_traffic
from support import ROOT, about
from support.commands import invoke

SCENARIO = 'name="s"\ntraces=["lu.S.4"]\ntopologies=["mesh:4"]\nmappers=["sweep"]\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_traffic("t.npz", stencil_traffic((4, 4), "5pt"))
    (tmp_path / "map.csv").write_text("rank,node\n" + "".join(f"{r},{r}\n" for r in range(16)))
    return tmp_path


def complaint(*words: str) -> str:
    """Run a command that fails, with next to no memory and time; return its line."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    done = invoke(words)
    assert time.process_time() - begin < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB
    assert done.exit_code == 2, done.output
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 2 * LONGEST
    assert not [line for line in done.stdout.splitlines() if line]
    return done.stderr


def test_networks_that_nobody_has_are_refused_before_they_are_built(here):
    for spec, words in [
        ("torus:100000x100000x100000", "nodes: expected at most 16,777,216"),
        ("mesh:" + "1x" * 5000 + "1", "5001 dimensions: expected at most 32"),
        ("mesh:4x4*999999999", "slots: expected at most 67,108,864"),
        ("haec:4000x2x2", "links: expected at most 67,108,864"),
        ("tree:1000000:1000000@1:2", "nodes: expected at most"),
        ("tree:" + "1:" * 3000 + "1", "3001 levels: expected at most 32"),
        ("fattree:" + "1x" * 3000 + "1", "3001 levels: expected at most 32"),
        ("fattree:4096x4096:1x4097", "links: expected at most"),
        ("cluster:9999999*9999999", "slots: expected at most"),
        ("cluster:" + "9999999+" * 1000 + "1", "nodes: expected at most"),
        ("dragonfly:100000x100000x100000", "nodes: expected at most"),
        ("preset:bgq*999999999", "slots: expected at most"),
    ]:
        with about(spec, words):
            assert words in complaint("map", "t.npz", "-t", spec, "-m", "sweep", "--out", "out.csv")
            assert not (here / "out.csv").exists()


def test_traffic_that_nobody_has_is_refused_before_it_is_made(here):
    for source, words in [
        ("stencil:100000x100000,5pt", "10000000000 ranks: expected at most 16777216"),
        ("stencil:" + "2x" * 40 + "2,star", "41 dimensions: expected at most 32"),
        ("stencil:" + "1x" * 20 + "1,box", "box has 21 dimensions: expected at most 10"),
        ("lu.S.18446744073709551616", "ranks: expected at most 16777216"),
        ("lu.S.999999937", "ranks: expected at most 16777216"),  # a prime: roots take time
        ("x9" * 5000, ""),
    ]:
        with about(source, words):
            assert words in complaint("matrix", source, "--out", "out.npz")


HEADER = "src,dst,messages,bytes\n"


def test_numbers_of_traffic_files_without_measure(here):
    for name, text, words in [
        ("t.csv", HEADER + "4611686018427387904,0,1,1\n", "ranks: expected 0 to 16777216"),
        ("t.csv", HEADER + "inf,0,1,1\n", "src inf in row 0: expected a whole number"),
        ("t.csv", HEADER + "0,1,1,1e300\n", "bytes 1e+300 in row 0: expected a whole number"),
        ("t.csv", HEADER + "0,1,1,9e18\n0,1,1,9e18\n", "sum of all bytes: expected at most 2^53"),
        ("t.graph", "9" * 400 + " 1\n", "expected numbers below 10^18"),
        ("t.graph", "1000000000 0\n", "0 vertex lines: expected 1000000000"),
        ("t.graph", "2 1 011\n1 99999999999999999999\n1 1\n", "cannot be read as METIS graph"),
        ("t.graph", "1 0\n-9223372036854775808\n", "neighbour -9223372036854775808: expected 1..1"),
        ("t.size.csv", "0,1e30\n1,0\n", "below 2^63"),
    ]:
        with about(name, text, words):
            (here / name).write_text(text)
            assert words in complaint("info", name)


def npz(file, **changed):
    arrays = {"ranks": np.int64(2), "src": [0], "dst": [1], "messages": [1], "bytes": [8]}
    arrays |= {"metadata": np.str_("{}")} | changed
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


def test_arrays_of_npz_files_that_are_something_else(here):
    for changed, words in [
        ({"src": np.array([2**63], dtype=np.uint64)}, "below 2^63"),
        ({"src": np.array([1j])}, "1-D array of complex128: expected a list of whole numbers"),
        ({"src": np.array([[0]])}, "2-D array of int64"),
        ({"ranks": np.float64("nan")}, "ranks nan: expected one whole number"),
        ({"ranks": np.array([1, 2])}, "ranks [1 2]: expected one whole number"),
        ({"ranks": np.int64(-1)}, "-1 ranks: expected 0 to"),
        ({"dst": None}, "no array 'dst'"),
        ({"metadata": np.str_("[" * 100_000)}, "expected a JSON object"),
        ({"metadata": np.str_("[]")}, "expected a JSON object"),
        ({"metadata": np.str_('{"dims": [4, 0]}')}, "dims: [4, 0]: expected 1 to 32 whole"),
        ({"metadata": np.str_('{"stencil": 7}')}, "stencil: 7: expected a list of lists"),
        ({"metadata": np.str_('{"periodic": [1]}')}, "periodic: [1]: expected a list of true"),
    ]:
        with about(changed, words):
            npz(here / "x.npz", **changed)
            assert words in complaint("info", "x.npz")


def test_an_npz_file_that_announces_more_than_it_holds(here):
    npz(here / "x.npz")
    with zipfile.ZipFile(here / "x.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    short, long = b"(1,), }         ", b"(4000000000,), }"
    assert short in parts["src.npy"]
    parts["src.npy"] = parts["src.npy"].replace(short, long)
    with zipfile.ZipFile(here / "x.npz", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    assert "cannot hold the shape (4000000000,)" in complaint("info", "x.npz")


def test_numbers_of_mappings_without_measure(here):
    for text, words in [
        ("rank,node\n4611686018427387904,0\n", "map.csv: "),
        ("rank,node\n0,99999999999999999999\n", "expected two whole numbers"),
        ("rank,node\n" + "9" * 5000 + ",0\n", "expected two whole numbers"),
        ("rank,node\n" + "9" * 200_000 + ",0\n", "expected two whole numbers"),
        ("rank,node\n٣,0\n", "expected two whole numbers"),
        ("4 4 1\nx_coord y_coord z_coord\n0 0 0 99999999999999999999 1\n", "expected x y z count"),
    ]:
        with about(text, words):
            (here / "map.csv").write_text(text, encoding="utf-8")
            assert words in complaint("evaluate", "t.npz", "map.csv", "-t", "mesh:4x4x1")


def test_files_that_begin_with_a_byte_order_mark_are_read(here):
    for name in ("map.csv", "t.csv"):
        if name == "t.csv":
            save_traffic(name, stencil_traffic((4, 4), "5pt"))
        text = (here / name).read_text()
        (here / name).write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    done = invoke(["evaluate", "t.csv", "map.csv", "-t", "mesh:4x4"])
    assert done.exit_code == 0, done.output


def test_host_names_that_are_not_text(here):
    (here / "hosts").write_bytes(b"\xff\xfe\x00n")
    said = complaint("export", "map.csv", "-t", "mesh:4x4", "--to", "slurm", "--hosts", "hosts")
    assert "hosts: cannot be read as a list of hosts (it is no text and no whole archive)" in said


def axes(count: int, key: str) -> str:
    values = json.dumps(list(range(1, 1 + count)))
    return f'[[vary]]\nparameters."{key}" = {values}\n'


def test_scenarios_without_measure(here):
    for text, words in [
        (
            SCENARIO
            + "seeds = [0, 1]\n"
            + axes(1000, "overhead.send")
            + axes(1000, "overhead.recv")
            + axes(1000, "gap"),
            "2,000,000,000 runs: expected at most 1,000,000",
        ),
        (SCENARIO + f"seeds = [{2**63}]\n", "seeds[0]"),
        (SCENARIO + f"seeds = [{'9' * 5000}]\n", "cannot be read as a scenario"),
        ("a = " + "[" * 5000, "cannot be read as a scenario"),
        ("a" + ".a" * 5000 + " = 1", ""),
        (SCENARIO + "[parameters]\neager_limit = 1e300\n", "eager_limit"),
        (SCENARIO + f"[parameters]\ngap = {'9' * 400}\n", "gap"),
        (SCENARIO + '[parameters]\ngap = "1__0 s"\n', "gap"),
    ]:
        with about(text, words):
            (here / "s.toml").write_text(text)
            assert words in complaint("run", "s.toml", "--dry-run")
            assert not (here / "results").exists()


def test_messages_to_replay_without_measure(here):
    (here / "t.csv").write_text(HEADER + "0,15,1000000000000,1000000000000\n")
    said = complaint("simulate", "t.csv", "map.csv", "-t", "mesh:4x4")
    assert "1,000,000,000,000 messages to replay one by one: expected at most" in said


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("m.xml", '<?xml version="1.0" encoding="UTF-7z"?><topology/>', "cannot be read as XML"),
        ("m.xml", "<topology>" + "<object>" * 3000 + "</object>" * 3000 + "</topology>", "m.xml"),
        ("n.graphml", "<graphml><graph/></graphml>", "n.graphml"),
        ("n.graphml", "<!DOCTYPE a><a>", "cannot be read as XML"),
    ],
)
def test_networks_in_files_that_are_something_else(here, name, text, words):
    (here / name).write_text(text)
    assert words in complaint("evaluate", "t.npz", "map.csv", "-t", f"file:{name}")


def test_a_graph_without_types_is_read_without_a_word(here):
    edges = '<edge source="a" target="b"><data key="w">1e-6</data></edge>'
    (here / "n.graphml").write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="w" for="edge" attr.name="latency"/><graph edgedefault="undirected">'
        f'<node id="a"/><node id="b"/>{edges}</graph></graphml>'
    )
    (here / "two.csv").write_text(HEADER + "0,1,1,1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = invoke(["map", "two.csv", "-t", "file:n.graphml", "-m", "sweep"])
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_line_is_one_line_on_a_terminal():
    line = one_line(TraceError("a\x1b[2Jb\u202ec\n" + "x" * 10_000 + "end"))
    assert line.isprintable()
    assert line.startswith("a\ufffd[2Jb\ufffdc ")
    assert line.endswith("xend")
    assert len(line) < LONGEST + 10


UNPICKLES = re.compile(
    r"\bpickle\.|cloudpickle|shelve|marshal|joblib|read_pickle|np\.load\b|allow_pickle=True|"
    r"ProcessPool|connection import|from distributed|cache=True"
)


def test_what_unpickles_is_listed_with_the_reason():
    page = (ROOT / "docs" / "explanations" / "untrusted-input.md").read_text("utf-8")
    rows = {line.split("`")[1] for line in page.splitlines() if re.match(r"\| `.*\.py`", line)}
    files = [
        file.relative_to(ROOT)
        for part in ("traces", "topologies", "mappers", "simulator", "scenarios", "hopmap")
        for file in (ROOT / part).rglob("*.py")
    ]
    assert len(files) > 300
    unpickles = {str(f) for f in files if UNPICKLES.search((ROOT / f).read_text("utf-8"))}
    assert unpickles == rows


class Armed:
    """An object whose pickle writes a file when it is read."""

    def __reduce__(self):
        return open, ("armed", "w")


def test_a_pickle_in_any_input_is_not_read(here):
    with np.load("t.npz") as sound:
        arrays = {**sound, "metadata": np.array([Armed()], dtype=object)}
    np.savez("t.npz", **arrays)
    Path("t.csv").write_bytes(pickle.dumps(Armed()))
    Path("t.mtx").write_bytes(pickle.dumps(Armed()))
    for file in ("t.npz", "t.csv", "t.mtx"):
        with about(file):
            complaint("info", file)
    complaint("evaluate", "stencil:4x4,5pt", "t.csv", "-t", "torus:4x4")
    complaint("map", "stencil:4x4,5pt", "-t", "file:t.csv")
    assert not Path("armed").exists()


RUN = {
    **dict.fromkeys(("run_id", "mapper"), "sweep"),
    "trace": "lu.S.4",
    "topology": "mesh:2x2",
    "node_of": [0, 1, 2, 3],
    **dict.fromkeys(("ranks", "nodes"), 4),
    **dict.fromkeys(("hop_messages", "hop_bytes", "bytes_congestion_max"), 1),
    **dict.fromkeys(("bytes_dilation_avg", "mapping_seconds"), 1.0),
}


@pytest.mark.parametrize(
    ("row", "scenario", "words"),
    [
        ({"omitted": '[{"x": 1}]'}, "", "omitted: expected a JSON list"),
        ({"omitted": "no"}, "", "omitted: expected a JSON list"),
        ({"trace": None}, "", "a run without trace, topology or mapper"),
        ({"topology": "torus:100000x100000"}, "", "nodes: expected at most 16,777,216"),
        ({"topology": "file:t.npz"}, "", "t.npz: "),
        ({}, "[parameters]\nlink = 3\nx = [1]", "unknown parameter 'link'"),
    ],
)
def test_damaged_results_are_one_line(here, row, scenario, words):
    (results := here / "results").mkdir()
    store.save_run(results, RUN | row)
    save_plan(results, Plan(runs=["sweep"]))
    (results / "scenario.toml").write_text(scenario)
    assert words in complaint("report", str(results))
    assert not list(results.glob("report*"))


def test_a_plan_that_is_not_of_its_runs_is_none(here):
    (here / "results").mkdir()
    (here / "results" / "plan.json").write_text('{"runs": ["a"], "variant_of": ["x", "y"]}')
    assert "no results there" in complaint("query", "results", "FROM runs")


def test_entries_of_a_scenario_that_are_of_another_kind_are_left_out(here):
    """A title, a relevance: the page is of the runs, which are as they were."""
    (results := here / "results").mkdir()
    store.save_run(results, RUN | {"trace": "<script>x", "mapper": "<img src=x>"})
    save_plan(results, Plan(runs=["sweep"]))
    kinds = 'name = ["a"]\nrelevance = "x"\nparameters = 3\nreplay = []\nvalidated.error = 1\n'
    (results / "scenario.toml").write_text(kinds)
    assert invoke(["report", str(results)]).exit_code == 0
    page = (results / "report.html").read_text("utf-8")
    assert "&lt;script&gt;x" in page
    assert "<script>x" not in page
    assert "<img src=x>" not in page
