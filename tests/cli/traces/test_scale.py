"""The command scale, and what it makes as a source of other commands."""

import json

import pytest

from hopmap.traces import load_traffic, nas_folded, nas_traffic
from hopmap.traces.sources import open_source
from support.commands import as_json, failed, hopmap, invoke
from support.made_traces import differences

TWO, THREE = ["ep.A.16", "ep.A.64"], ["ep.A.16", "ep.A.64", "ep.A.128"]


def test_scale_says_what_it_rests_on(tmp_path):
    out = tmp_path / "three.npz"
    facts = as_json("scale", *THREE, "--ranks", 256, "--out", out)
    assert facts["grids"] == [[16], [64], [128], [256]]
    assert facts["checked"]
    assert load_traffic(out).same_as(nas_traffic("ep.A.256"))
    assert "not checked: a third rank count would be" in hopmap(
        "scale", *TWO, "--ranks", 256, "--out", tmp_path / "ep.npz"
    )


def test_what_is_scaled_is_an_archive(tmp_path):
    out = tmp_path / "ep.otf2"
    hopmap("scale", *TWO, "--ranks", 256, "--out", out)
    hopmap("generate", "ep", "--class", "A", "--ranks", 256, "--out", tmp_path / "same.otf2")
    facts, same = as_json("info", out), as_json("info", tmp_path / "same.otf2")
    assert facts["collectives"] == same["collectives"] != {}
    assert facts["collective_bytes"] == same["collective_bytes"]


def test_what_is_scaled_is_a_source_with_its_loops(tmp_path):
    source = open_source("scaled:256,lu.A.16,lu.A.64")
    assert differences(source.calls(), nas_folded("lu.A.256")) == []
    assert source.traffic().same_as(nas_traffic("lu.A.256"))
    assert source.digest() != open_source("scaled:144,lu.A.16,lu.A.64").digest()
    named = "scaled:256,ep.A.16,ep.A.64"
    hopmap("matrix", named, "--collectives", "expand", "--out", tmp_path / "ep.npz")
    assert load_traffic(tmp_path / "ep.npz").ranks == 256


def test_files_that_change_make_another_source(tmp_path):
    for name in ("a", "b"):
        hopmap("generate", "ep", "--ranks", 4, "--out", tmp_path / f"{name}.otf2")
    first = open_source(f"scaled:8,{tmp_path / 'a.otf2'}").digest()
    hopmap("generate", "ep", "--ranks", 2, "--out", tmp_path / "a.otf2", "--force")
    assert open_source(f"scaled:8,{tmp_path / 'a.otf2'}").digest() != first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mg.A.16", "mg.A.64", "--ranks", 256], "loops that grow do not explain it"),
        (["lu.W.16", "--ranks", 9, "--weak"], "expected more than the 16 recorded"),
        (["lu.W.16", "--ranks", 64], "expected a second one, or --weak"),
        (["edges.csv", "--ranks", 64], "expected a trace or a benchmark"),
        (["lu.W.16,", "--ranks", 64], "expected scaled:RANKS,TRACE,..."),
    ],
)
def test_what_cannot_be_scaled_is_a_line(words, said, tmp_path):
    table = tmp_path / "edges.csv"
    table.write_text("src,dst,messages,bytes\n0,1,1,8\n")
    words = [table if word == "edges.csv" else word for word in words]
    line = failed("scale", *words, "--out", tmp_path / "t.npz")
    assert said in line
    assert not (tmp_path / "t.npz").exists()


@pytest.mark.parametrize("text", ["scaled:", "scaled:64", "scaled:x,lu.W.16", "scaled:64,,lu.W.16"])
def test_a_name_that_makes_no_sense(text):
    found = invoke(["info", text])
    assert found.exit_code == 2
    assert "expected scaled:RANKS,TRACE,..." in found.stderr
    assert json.dumps(text)[1:-1] in found.stderr
