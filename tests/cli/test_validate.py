"""hopmap validate, and calibrate for collectives: on times that the simulator made itself."""

from __future__ import annotations

import csv
import re
import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest

import hopmap as hm
from hopmap.simulator.measured.prediction import predict
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import topology_from_spec
from support.commands import as_json, hopmap, invoke, sets
from support.measured_calls import measured_of

MACHINE = "torus:2x2x2"
TRUE = {
    "link.bandwidth": 5e9,
    "overhead.send": 1.5e-6,
    "overhead.control": 3e-6,
    "eager_limit": 32768,
}
CALLS = [
    ("bcast", "default-binomial"), ("bcast", "default-pipeline"), ("allgather", "default-ring"),
    ("allgather", "default-recursive-doubling"), ("gather", "default-binomial"),
]  # fmt: skip
SIZES = [256, 16384, 2**18, 2**20, 2**23]


@pytest.fixture
def written(tmp_path):
    """A file of what the model itself says of some calls, and of one that nobody knows."""
    rows = [
        {"collective": c, "algorithm": a, "buffer_bytes": size, "median_ns": 1.0}
        for c, a in CALLS
        for size in SIZES
    ]
    network, parameters = configure(topology_from_spec(MACHINE), tuple(TRUE.items()))
    times = predict(measured_of(rows), [network], parameters).time
    path = tmp_path / "times.csv"
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, list(rows[0]))
        out.writeheader()
        for row, time in zip(rows, times.tolist(), strict=True):
            out.writerow(row | {"median_ns": repr(time * 1e9)})
        out.writerow(rows[0] | {"algorithm": "default-trix3", "median_ns": "5"})
    return path


def true(**changed):
    return sets(TRUE | changed)


def failed(*words):
    result = invoke(words)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_what_the_model_made_it_predicts_without_error(written):
    found = as_json("validate", written, "-t", MACHINE, *true())
    assert (found["rows"], found["known"]) == (len(CALLS) * len(SIZES) + 1, len(CALLS) * len(SIZES))
    for sizes in ("all", "large"):
        assert found["error"][sizes]["median"] < 1e-12
        assert found["error"][sizes]["p90"] < 1e-12
        assert found["error"][sizes]["within_5"] == 1
    assert found["choice"]["cells"] == 2 * len(SIZES)
    assert found["choice"]["right"] == found["choice"]["within_5"] == found["choice"]["cells"]
    assert [u["algorithm"] for u in found["unknown"]] == ["default-trix3"]
    assert {(g["collective"], g["algorithm"]) for g in found["by"]} == set(CALLS)


def test_a_network_twice_as_fast_is_twice_too_fast_for_large_buffers(written):
    found = as_json("validate", written, "-t", MACHINE, *true(**{"link.bandwidth": 1e10}))
    assert found["error"]["large"]["bias"] == pytest.approx(-0.5, abs=0.05)


def test_tables_name_what_is_not_simulated_and_say_how_choices_come_out(written):
    text = hopmap("validate", written, "-t", MACHINE, *true())
    assert ">= 1 MiB" in text
    assert "bcast default-trix3  no public definition" in text
    assert "found in 10 of 10 cells" in text


def test_names_of_hopmap_are_known_and_of_others_the_nearest_is_named(tmp_path):
    head = "collective,algorithm,buffer_bytes,median_ns\n"
    names = ("ring", "allreduce=rabenseifner", "rign", "rign_ompi")
    rows = [f"allreduce,{name},8388608,1000000\n" for name in names]
    own = _file(tmp_path, head + "".join([*rows, "all_reduce,ring,8,1\n"]))
    text = hopmap("validate", own, "-t", MACHINE)
    assert "allreduce ring  " in text
    assert "allreduce allreduce=rabenseifner  " in text
    assert "unknown name (did you mean ring?)" in text
    assert "no public definition (did you mean ring_ompi?)" in text
    assert "unknown collective (did you mean allreduce?)" in text
    assert "order of algorithms at 1 MiB and above: no Kendall's tau: no cell has three" in text
    found = as_json("validate", own, "-t", MACHINE)
    assert (found["known"], len(found["unknown"])) == (2, 3)
    none = _file(tmp_path, head + "allreduce,rign,8,1\n")
    said = failed("validate", none, "-t", MACHINE)
    assert "none of 1 calls can be simulated (allreduce rign: unknown name (did you mean" in said
    assert "hopmap list measured-names" in said


@pytest.mark.usefixtures("drawn")
def test_a_page_says_why_there_is_no_tau(tmp_path):
    head = "collective,algorithm,buffer_bytes,median_ns\n"
    own = _file(tmp_path, head + "allreduce,ring,8388608,1000000\n")
    hopmap("validate", own, "-t", MACHINE, "--out", tmp_path / "held")
    page = (tmp_path / "held" / "validation.html").read_text()
    assert "no Kendall&#39;s tau: no cell has three simulated algorithms" in page
    assert "nan" not in re.sub(r"data:image[^\"]*", "", page)


def test_measured_names_are_listed():
    names = {entry["name"]: entry for entry in as_json("list", "measured-names")}
    assert names["allgather=ring_ompi"]["source"] == "Open MPI"
    assert "default-ring" in names["allgather=default-ring"]["name"]
    assert names["bcast=chain_ompi"]["summary"] == "chain(fanout=4, segment=0)"


def test_what_is_larger_than_the_limit_is_listed(written):
    found = as_json("validate", written, "-t", MACHINE, "--limit", 100, *true())
    too_large = {
        (u["collective"], u["algorithm"]): u["rows"]
        for u in found["unknown"]
        if u["why"] == "too large to simulate"
    }
    # A ring has 56 messages, each of which counts as four packets more; a broadcast's tree has 7.
    assert too_large["allgather", "default-ring"] == len(SIZES)
    assert 0 < too_large["bcast", "default-binomial"] < len(SIZES)


@pytest.mark.usefixtures("drawn")
def test_a_page_and_a_table_of_all_calls_are_written(written, tmp_path):
    text = hopmap("validate", written, "-t", MACHINE, "--out", tmp_path / "held", *true())
    calls = pq.read_table(tmp_path / "held" / "calls.parquet").to_pydict()
    assert calls["predicted"][:-1] == pytest.approx(calls["measured"][:-1])
    assert calls["predicted"][-1] is None
    assert calls["not_simulated"][-1] == "no public definition"
    page = (tmp_path / "held" / "validation.html").read_text()
    assert "allgather default-ring, &gt;= 1 MiB" in page
    assert "<text " in page[page.index("<svg") :]  # it is drawn
    assert "calls.parquet" in text


def test_calibration_finds_the_parameters_that_made_the_times(written, tmp_path):
    fitted = ("link.bandwidth", "overhead.send", "overhead.control")
    words = [word for key in fitted for word in ("--fit", key)]
    out = tmp_path / "p.toml"
    begin = true(**{"link.bandwidth": 1e10, "overhead.send": 1e-6, "overhead.control": 1e-6})
    found = as_json("calibrate", written, "-t", MACHINE, *words, *begin, "--out", out)
    for key in fitted:
        assert found["parameters"][key] == pytest.approx(TRUE[key], rel=0.02)
    assert found["error"]["all sizes"]["median"] < 0.01
    assert found["unexplained"] == []
    table = tomllib.loads(out.read_text())
    assert table["parameters"]["eager_limit"] == 32768
    assert table["validated"]["topologies"] == [MACHINE]
    again = as_json("validate", written, "-t", MACHINE, "--parameters", out)
    assert again["error"]["all"]["median"] < 0.01


def test_a_fit_says_of_how_many_calls_of_which_sizes_its_error_is(written, tmp_path):
    head, *rows = written.read_text().splitlines()
    small = [
        row for row in rows if int(row.split(",")[head.split(",").index("buffer_bytes")]) < 1 << 20
    ]
    for name, kept in ("all.csv", rows), ("small.csv", small):
        (tmp_path / name).write_text("\n".join([head, *kept]))
        out = tmp_path / f"{name}.toml"
        options = ("--fit", "link.bandwidth", *true(), "--out", out)
        found = as_json("calibrate", tmp_path / name, "-t", MACHINE, *options)["error"]
        sizes = "all sizes" if kept is small else "1 MiB and above"
        assert f"# {found[sizes]['rows']} calls, {sizes}: " in out.read_text()


def test_a_fit_states_what_other_algorithms_and_sizes_predict(written, tmp_path):
    """A call of one algorithm is off: its median does not show it, its prediction does."""
    rows = written.read_text().replace("default-trix3", "default-trix4").splitlines()
    slow = [
        ",".join([*row.split(",")[:3], repr(2 * float(row.split(",")[3]))])
        if "pipeline" in row or "binomial" in row
        else row
        for row in rows
    ]
    (tmp_path / "slow.csv").write_text("\n".join(slow))
    out = tmp_path / "p.toml"
    words = ("calibrate", tmp_path / "slow.csv", "-t", MACHINE, "--fit", "link.bandwidth")
    found = as_json(*words, *true(), "--out", out)
    others = [f"1 MiB and above, by other {each}" for each in ("algorithms", "sizes")]
    stated = max(found["error"][name]["median"] for name in others)
    assert tomllib.loads(out.read_text())["validated"]["error"] == stated
    assert f"; by other algorithms {100 * found['error'][others[0]]['median']:.1f} %, " in (
        out.read_text()
    )
    assert found["omitted"] == [{"why": "no public definition", "calls": 1}]
    assert "left out: 1 of 26 calls (no public definition 1)" in hopmap(*words, *true())


def test_a_fit_to_one_algorithm_and_size_states_no_error(tmp_path):
    head = "collective,algorithm,buffer_bytes,median_ns\n"
    same = _file(tmp_path, head + "bcast,default-pipeline,4194304,1000000\n" * 3)
    words = ("calibrate", same, "-t", MACHINE, "--fit", "link.bandwidth", *true())
    found = as_json(*words, "--out", tmp_path / "p.toml")
    assert found["error"]["by other algorithms"]["median"] is None
    text = (tmp_path / "p.toml").read_text()
    assert "validated" not in tomllib.loads(text)
    assert "; no other algorithm or size: the fit cannot be tested" in text


def test_a_fit_prints_intervals_and_what_other_algorithms_and_sizes_say(written):
    text = hopmap("calibrate", written, "-t", MACHINE, "--fit", "link.bandwidth", *true())
    assert "to (95 %)" in text
    assert "by other algorithms" in text
    assert "by other sizes" in text


def test_calls_of_a_job_run_on_its_hosts(tmp_path):
    (tmp_path / "alloc.csv").write_text("rank,host\n0,node7\n1,node7\n2,node0\n")
    head = "collective,nodes,tasks_per_node,algorithm,buffer_bytes,median_ns\n"
    (tmp_path / "t.csv").write_text(head + "bcast,2,1,binomial_ompi,1048576,1\n")
    measured, hosts = tmp_path / "t.csv", tmp_path / "alloc.csv"
    far = hm.validate(measured, "mesh:8", alloc=hosts, settings={"link.latency": 1.0})
    near = hm.validate(measured, "mesh:8", alloc=hosts, settings={"link.latency": 0.0})
    # Three crossings of seven links.
    assert far.prediction.time - near.prediction.time == pytest.approx(np.array([21.0]), rel=1e-6)


def test_ranks_a_node_are_those_of_the_allocation_where_it_has_more_than_any_call(tmp_path):
    hosts, head = tmp_path / "alloc.csv", "collective,nodes,algorithm,buffer_bytes,median_ns\n"
    hosts.write_text("rank,host\n0,node0\n1,node0\n2,node1\n3,node1\n")
    measured = _file(tmp_path, head + "bcast,2,pipeline_ompi,1048576,1\n")
    text = hopmap("validate", measured, "-t", "mesh:2", "--alloc", hosts)
    assert f"{measured}: 4 ranks on 2 nodes in {hosts}: taken as 2 a node" in text
    found = as_json("validate", measured, "-t", "mesh:2", "--alloc", hosts)
    assert len(found["notes"]) == 1
    larger = _file(tmp_path, head + "bcast,2,pipeline_ompi,1048576,1\n" * 2)
    hosts.write_text("rank,host\n0,node0\n1,node1\n")
    assert as_json("validate", larger, "-t", "mesh:2", "--alloc", hosts)["notes"] == []


def test_calls_of_more_ranks_than_asked_for_are_left_out(written):
    many = as_json("validate", written, "-t", MACHINE, "--ranks", "8", *true())
    assert many["known"] == len(CALLS) * len(SIZES)
    said = failed("validate", written, "-t", MACHINE, "--ranks", "7", *true())
    assert "none of 26 calls can be simulated" in said
    assert "more ranks than --ranks" in said


def test_what_does_not_fit_is_one_line(written, tmp_path):
    assert "nosuch" in failed("validate", written, "-t", "nosuch:3")
    assert "no column 'algorithm'" in failed(
        "validate", _file(tmp_path, "collective,b\n1,2\n"), "-t", MACHINE
    )
    head = "collective,algorithm,buffer_bytes,median_ns,nodes\n"
    nine = _file(tmp_path, head + "bcast,default-binomial,8,1,9\n")
    assert "9 nodes: torus:2x2x2 has 8: expected as many" in failed("validate", nine, "-t", MACHINE)
    two = failed("validate", written, written, written, "-t", MACHINE, "-t", MACHINE)
    assert "2 topologies for 3 files: expected one, or as many" in two
    assert "--topology" in failed("calibrate", written)
    assert "nic" in failed("calibrate", written, "-t", MACHINE, "--fit", "nic")
    assert "expected at least" in failed("calibrate", nine, "-t", "torus:9")
    assert "--plot" in failed("calibrate", written, "-t", MACHINE, "--plot", "x.svg")


def _file(folder, text):
    path = folder / "other.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("torus:2x2x2", "validated on this network: error 3.0 % (median;"),
        ("torus:4x2", "validated on torus:2x2x2: error 3.0 % (median;"),
    ],
)
def test_simulate_says_whether_parameters_are_validated_for_the_network(tmp_path, network, said):
    out, mapping = tmp_path / "p.toml", tmp_path / "m.csv"
    out.write_text(
        "[parameters]\n'eager_limit' = 100\n[validated]\ntopologies = ['torus:2x2x2']\nerror = 0.03"
    )
    hopmap("map", "lu.S.8", "-t", network, "--mapper", "identity", "--out", mapping)
    words = ("simulate", "lu.S.8", mapping, "-t", network, "--steps", "1")
    text = hopmap(*words, "--set", out)
    assert said in text
    assert ("not on this network" in text) == (network != "torus:2x2x2")
    assert "validated" not in hopmap(*words)
    out.write_text("[parameters]\n[validated]\nerror = 'x'")
    assert "[validated]: expected topologies and error" in failed(*words, "--set", out)
