"""What is in a trace, and its traffic: info and matrix, with collectives and without."""

import json
import re

import pytest

from hopmap.traces import Traffic, load_traffic, save_traffic, write_trace
from support import DATA
from support.collective_calls import collective, trace_of_calls
from support.commands import LU, as_json, hopmap, invoke

IGNORED = "count collectives with --collectives expand\n"
COUNTED = "what collectives send is counted, too (--collectives ignore leaves it out)\n"


def test_info_of_a_recorded_trace():
    facts = as_json("info", LU)
    assert {key: facts[key] for key in ("ranks", "events", "messages", "bytes", "pairs")} == {
        "ranks": 4,
        "events": 28866,
        "messages": 4520,
        "bytes": 3305152,
        "pairs": 8,
    }
    assert facts["collectives"]["BCAST"] > 0
    assert facts["duration"] == pytest.approx(0.36, abs=0.005)
    assert facts["wall_seconds"] > 0
    text = hopmap("info", LU)
    assert "4,520" in text
    assert "BCAST" in text


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".mtx", ".graph"])
def test_matrix_equals_the_recorded_pairs(tmp_path, suffix):
    out = tmp_path / f"lu{suffix}"
    facts = as_json("matrix", LU, "--out", out)
    assert facts["out"] == str(out)
    assert facts["messages"] == 4520
    recorded = load_traffic(DATA / "lu.S.4.p2p.csv")
    if suffix in (".npz", ".csv"):
        assert load_traffic(out).same_as(recorded)
    assert load_traffic(out).bytes.sum() == recorded.bytes.sum()


def test_matrix_with_collectives_is_what_a_replay_sends(tmp_path, mapping):
    recorded = load_traffic(DATA / "lu.S.4.p2p.csv")
    plain, full = tmp_path / "plain.csv", tmp_path / "full.csv"
    ignored = as_json("matrix", LU, "--out", plain, "--collectives", "ignore")
    assert load_traffic(plain).same_as(recorded)
    assert "algorithms" not in ignored
    facts = as_json("matrix", LU, "--out", full, "--collectives", "expand")
    replayed = as_json("simulate", LU, mapping, "-t", "mesh:2x2", "--set", "compute.scale=0")
    assert (facts["messages"], facts["bytes"]) == (replayed["messages"], replayed["bytes"])
    assert facts["algorithms"] == replayed["algorithms"]
    assert facts.keys() == ignored.keys() | {"algorithms", "notes"}
    expanded = load_traffic(full)
    assert facts["messages"] == expanded.messages.sum() > recorded.messages.sum()
    assert set(zip(recorded.src, recorded.dst, strict=True)) <= set(
        zip(expanded.src, expanded.dst, strict=True)
    )


def test_traffic_of_collectives_only_is_said_to_be_so(tmp_path):
    what = "hopmap: ft.S.8: no point-to-point messages: "
    out = tmp_path / "map.csv"
    for words in (
        ["matrix", "ft.S.8"],
        ["map", "ft.S.8", "-t", "mesh:8", "-m", "sweep", "--out", out, "--force"],
        ["evaluate", "ft.S.8", out, "-t", "mesh:8"],
    ):
        for how, said in (("ignore", IGNORED), ("auto", COUNTED)):
            given = [*words, "--json", "--collectives", how]
            result = invoke(given)
            assert (result.exit_code, result.stderr) == (0, what + said)
        as_json(*words, "--collectives", "expand")


def test_where_collectives_outweigh_messages_both_are_mapped_and_measured(data, tmp_path):
    """What is done by default is what `expand` does; of MG, whose messages are more, `ignore`."""
    out = tmp_path / "map.csv"

    def said(*words):
        found = invoke([*words, "--json"]).stdout
        return {key: value for key, value in json.loads(found).items() if key != "seconds"}

    for source, same, other in (("is.S.16", "expand", "ignore"), ("mg.S.16", "ignore", "expand")):
        for words in (
            ["map", data / source, "-t", "mesh:4x4", "-m", "minmd", "--out", out, "--force"],
            ["evaluate", data / source, out],
        ):
            assert said(*words) == said(*words, "--collectives", same)
            assert said(*words) != said(*words, "--collectives", other)


def test_algorithms_that_are_named_are_counted(tmp_path):
    """A ring's messages go to one neighbour, although LU's messages outweigh them."""
    out = tmp_path / "map.csv"
    words = ["map", "lu.S.4", "-t", "mesh:2x2", "-m", "sweep", "--out", out, "--force"]
    ring = ["--set", "collective.allreduce=ring"]
    found = as_json(*words, *ring)
    assert found["hop_bytes"] == as_json(*words, *ring, "--collectives", "expand")["hop_bytes"]
    assert found["hop_bytes"] > as_json(*words)["hop_bytes"]


def test_traffic_of_collectives_mostly_is_said_to_be_so(data, tmp_path):
    """IS sorts by ALLTOALLV; its point-to-point messages are 4 bytes each."""
    recorded = "60 B in messages and 8.72 MB in collectives"
    generated = "15 point-to-point messages of 60 B in all"
    out, few = tmp_path / "map.csv", "descend(evaluations=20)"
    for source, said in ((data / "is.S.16", recorded), ("is.S.16", generated)):
        for words in (
            ["matrix", source, "--collectives", "auto"],
            ["map", source, "-t", "mesh:4x4", "-m", "sweep", "--out", out, "--force"],
            ["map", source, "-t", "mesh:4x4", "-m", few, "--objective", "makespan"],
            ["evaluate", source, out, "-t", "mesh:4x4"],
        ):
            for how, done in (([], COUNTED), (["--collectives", "ignore"], IGNORED)):
                result = invoke([*words, "--json", *how])
                assert result.exit_code == 0
                assert f"hopmap: is.S.16: {said}: {done}" in result.stderr


def test_a_program_of_messages_mostly_has_no_hint(data, tmp_path):
    for source in (data / "mg.S.16", data / "lu.S.4", "cg.S.16", "lu.S.1"):
        assert invoke(["matrix", str(source), "--json"]).stderr == ""


def test_a_file_of_traffic_has_no_collectives_to_count(tmp_path):
    save_traffic(tmp_path / "silent.npz", Traffic.from_pairs(2, [], [], [], []))
    assert as_json("matrix", tmp_path / "silent.npz")["messages"] == 0


def test_an_error_comes_without_the_hints_of_a_result(tmp_path):
    (tmp_path / "short.csv").write_text("rank,node\n0,0\n")
    words = ["evaluate", "ft.S.8", str(tmp_path / "short.csv"), "-t", "mesh:8"]
    result = invoke(words)
    assert result.exit_code == 2
    assert re.fullmatch(r"hopmap: .*: expected 8.*\n", result.stderr)
    words = ["generate", "ft", "--ranks", "8", "--out", str(tmp_path / "ft.npz")]
    assert "hopmap matrix ft.S.8 --collectives expand" in invoke(words).stderr


def test_expanded_collectives_take_the_algorithms_that_are_named(tmp_path):
    words = ["--collectives", "expand", "--set", "collective.bcast=linear"]
    facts = as_json("matrix", LU, *words)
    calls = facts["collectives"]["BCAST"]
    assert facts["algorithms"]["bcast"] == {"linear": calls}
    assert re.search(
        rf"bcast calls by linear +{calls}\n",
        hopmap("matrix", LU, "--out", tmp_path / "m.npz", *words),
    )
    out = tmp_path / "map.csv"
    placed = as_json("map", LU, "-t", "mesh:4", "-m", "sweep", "--out", out, *words)
    metrics = as_json("evaluate", LU, out, "-t", "mesh:4", *words)
    assert metrics["bytes"]["ieplc"]["total"] == facts["bytes"]
    assert metrics["bytes"]["dilation"]["sum"] == placed["hop_bytes"]
    assert placed["hop_bytes"] > as_json("map", LU, "-t", "mesh:4", "-m", "sweep")["hop_bytes"]
    # A benchmark's steps stand in loops.
    assert as_json("matrix", "lu.S.4", *words)["messages"] == facts["messages"]


@pytest.mark.usefixtures("drawn")
def test_matrix_draws_the_spy_plot(tmp_path):
    assert "written" in hopmap("matrix", LU, "--plot", tmp_path / "spy.png")
    assert (tmp_path / "spy.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def ring(tmp_path):
    """Archive of one sparse alltoallv: 8 ranks send 800 bytes to the next."""
    archive = tmp_path / "ring.otf2"
    call = collective("ALLTOALLV", 0, 1, sent=800, received=800)
    write_trace(trace_of_calls([[call]] * 8), archive)
    return archive


def test_what_is_made_up_of_an_alltoallv_is_said(ring, tmp_path):
    words = ("matrix", ring, "--collectives", "expand", "--out", tmp_path / "ring.csv", "--force")
    lines = hopmap(*words).splitlines()
    assert [line for line in lines if line.startswith("note: ")] == [
        "note: alltoallv calls recorded only as sums: 1",
        "note: pairs assumed for these calls: 56",
        "note: bytes between these pairs: 5,600",
    ]
    assert list(as_json(*words)["notes"].values()) == [1, 56, 5600]


def test_counts_beside_an_archive_are_named_and_taken(ring, tmp_path):
    table = "".join(f"{rank},0,{(rank + 1) % 8},800\n" for rank in range(8))
    (ring / "traces.counts").write_text(f"rank,call,peer,bytes\n{table}")
    assert as_json("info", ring)["counts"] == str(ring / "traces.counts")
    assert f"pairs of alltoallv, in  {ring / 'traces.counts'}" in hopmap("info", ring)
    out = tmp_path / "ring.csv"
    facts = as_json("matrix", ring, "--collectives", "expand", "--out", out)
    assert (facts["pairs"], facts["bytes"]) == (8, 6400)
    assert facts["notes"] == {"alltoallv calls whose pairs come from the trace's .counts file": 1}
    (ring / "traces.counts").write_text(f"rank,call,peer,bytes\n{table[:-3]}")
    result = invoke(["matrix", str(ring), "--collectives", "expand", "--out", str(out), "--force"])
    assert result.exit_code == 2
    assert "rank 7, call 0: 8 bytes in all: expected 800" in result.stderr.replace("\n", " ")


def test_what_cannot_be_or_is_not_looked_through_is_said(ring, monkeypatch):
    def said(command="info"):
        done = invoke([command, str(ring)])
        assert done.exit_code == 0
        return done.stderr

    assert said() == ""
    counts = ring / "traces.counts"
    counts.write_text("rank,call,peer,bytes\n0,0,1,800\n")
    why = "rank 1, call 0: 0 bytes in all: expected 800"
    assert said().startswith(f"hopmap: cannot be replayed: {counts}: {why}")
    counts.unlink()
    monkeypatch.setattr("hopmap.api.workload.LOOKED_THROUGH", 10)
    assert said() == (
        "hopmap: ring: 24 events, more than 10: lists ignored records only; hopmap simulate also "
        "lists what a replay leaves out\n"
    )


def test_info_of_a_collective_counts_what_it_sends():
    facts = as_json("info", "collective:allreduce=ring,8,1KiB")
    assert (facts["messages"], facts["bytes"]) == (8 * 14, 8 * 14 * 128)


def test_several_processes_say_the_same(tmp_path):
    one, two = (as_json("info", LU, "--workers", n) for n in (1, 2))
    assert one | {"wall_seconds": 0} == two | {"wall_seconds": 0}
    hopmap("matrix", LU, "--workers", 2, "--out", tmp_path / "two.csv")
    hopmap("matrix", LU, "--out", tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_what_one_process_reads_says_so():
    found = invoke(["info", "lu.S.4", "--workers", "2"])
    assert found.exit_code == 2
    said = "requires an OTF2 archive"
    assert said in found.stderr or said in str(found.exception)
