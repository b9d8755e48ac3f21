"""Benchmarks, patterns, stencils and sparse matrices that are generated."""

import pytest

from hopmap.api.workload import Workload
from hopmap.traces import load_traffic, nas_traffic, stencil_traffic, synthetic_traffic
from support import DATA
from support.commands import as_json, failed, hopmap


def test_generate_traffic_and_trace(tmp_path):
    facts = as_json("generate", "lu", "--class", "C", "--ranks", 64, "--out", tmp_path / "lu.npz")
    assert facts["messages"] == 9_052_876
    assert load_traffic(tmp_path / "lu.npz").ranks == 64
    hopmap("generate", "lu", "--class", "S", "--ranks", 4, "--out", tmp_path / "lu.S.4.otf2")
    assert as_json("info", tmp_path / "lu.S.4.otf2")["messages"] == 4520


@pytest.mark.parametrize("name", ["cg", "mg", "is"])
def test_generate_every_benchmark(tmp_path, name):
    facts = as_json("generate", name, "--class", "C", "--ranks", 64, "--out", tmp_path / "t.npz")
    assert load_traffic(tmp_path / "t.npz").same_as(nas_traffic(f"{name}.C.64"))
    hopmap("generate", name, "--ranks", 8, "--out", tmp_path / "t.otf2")
    assert as_json("info", tmp_path / "t.otf2")["ranks"] == 8
    assert f"{name}: NAS {name.upper()}" in hopmap("list", "benchmarks")
    assert facts["ranks"] == 64


def test_generate_at_the_rate_of_a_recorded_run(tmp_path):
    slow, again = tmp_path / "slow.otf2", tmp_path / "again.otf2"
    hopmap("generate", "cg", "--ranks", 4, "--flops", "3 Mflop/s", "--out", slow)
    fitted = as_json("generate", "cg", "--ranks", 8, "--rate-from", slow, "--out", again)["rate"]
    assert fitted["of"] == "cg.S.4"
    assert fitted["flops"] == pytest.approx(3e6, rel=1e-5)
    assert fitted["deviation"] < 1e-5
    seconds = [as_json("info", path)["duration"] for path in (slow, again)]
    assert seconds[0] == pytest.approx(2 * seconds[1], rel=1e-4)  # on half as many ranks
    text = hopmap("generate", "mg", "--rate-from", DATA / "mg.S.16", "--out", tmp_path / "mg.otf2")
    assert "operations/s, from mg.S.16" in text
    assert "by rank" in text


def test_generate_a_textbook_pattern(tmp_path):
    out = tmp_path / "shuffle.npz"
    facts = as_json("generate", "shuffle", "--dims", "4x4", "--bytes", 8192, "--out", out)
    assert (facts["ranks"], facts["messages"], facts["bytes"]) == (16, 16, 16 * 8192)
    assert load_traffic(out).same_as(synthetic_traffic("shuffle", (4, 4), size=8192))


def test_generate_a_stencil_and_map_it(tmp_path):
    out, placed = tmp_path / "t.npz", tmp_path / "m.csv"
    words = ("--dims", "12x11x8", "--stencil", "7pt", "--bytes", 1000)
    facts = as_json("generate", "stencil", *words, "--periodic", "y", "--out", out)
    assert (facts["ranks"], facts["bytes"]) == (1056, 1000 * facts["messages"])
    periodic = stencil_traffic((12, 11, 8), "7pt", periodic=(False, True, False), size=1000)
    assert load_traffic(out).same_as(periodic)
    hopmap("map", out, "-t", "cluster:33*32", "-m", "kd_tree", "--out", placed)
    measured = as_json("evaluate", "stencil:12x11x8,7pt", placed, "-t", "cluster:33*32")
    assert measured["messages"]["off_node"] == {"total": 1928, "max": 71}


def test_generate_a_sparse_matrix_vector_product(tmp_path):
    pytest.importorskip("mtkahypar", reason="the extra sparse is not installed")
    ring = tmp_path / "ring.mtx"
    entries = "".join(f"{i + 1} {(i + 1) % 32 + 1} 1\n" for i in range(32))
    ring.write_text(f"%%MatrixMarket matrix coordinate real general\n32 32 32\n{entries}")
    words = ("--matrix", ring, "--ranks", 4, "--model", "row-net")
    facts = as_json("generate", "spmv", *words, "--out", tmp_path / "ring.npz")
    traffic = load_traffic(tmp_path / "ring.npz")
    assert (facts["ranks"], facts["bytes"]) == (4, traffic.bytes.sum())
    assert traffic.metadata["model"] == "row-net"
    # Each of the four arcs that a ring falls into at best needs one word of the next.
    assert facts["bytes"] >= 4 * 8


def test_a_benchmark_goes_wherever_traffic_does(tmp_path):
    assert as_json("info", "lu.C.64")["messages"] == 9_052_876
    placed = as_json("map", "LU.c.64", "-t", "torus:4x4x4", "-m", "scan")
    assert placed["hop_messages"] == 168 * 80829 + 42
    out = tmp_path / "m.csv"
    hopmap("map", "lu.S.4", "-t", "mesh:4", "-m", "sweep", "--out", out)
    assert as_json("simulate", "lu.S.4", out, "-t", "mesh:4", "--steps", 1)["ranks"] == 4


def test_a_step_of_training_is_a_trace_or_what_it_sends(tmp_path):
    """The archive has the program's messages and collectives, the traffic both."""
    words = ["generate", "training", "--tp", 2, "--pp", 2, "--dp", 2]
    words += ["--sizes", "layers=4,hidden=64,microbatches=3"]
    spec = "training:layers=4,hidden=64,microbatches=3,tp=2,pp=2,dp=2"
    archive = as_json(*words, "--out", tmp_path / "step.otf2")
    traffic = as_json(*words, "--out", tmp_path / "step.npz")
    assert (archive["ranks"], archive["messages"]) == (8, 4 * 2 * 3)
    read = Workload(tmp_path / "step.otf2", collectives="expand").sent().traffic
    named = Workload(spec, collectives="expand").sent().traffic
    assert read.same_as(named) and load_traffic(tmp_path / "step.npz").same_as(named)
    assert traffic["bytes"] == named.bytes.sum() > archive["bytes"]
    assert "multiple of pp 3" in failed(*words, "--pp", 3, "--out", tmp_path / "no.npz")
