"""One-sided operations on the command line: how many there are, counted or not."""

import pytest

from hopmap.traces import load_traffic, write_trace
from support.commands import as_json, hopmap, invoke
from support.made_traces import fence, get, made_window, put, recv, send, window_trace


@pytest.fixture
def archive(tmp_path):
    """Rank 0 sends 10 bytes to rank 1, puts 100 there, and gets 1000 from there."""
    ranks = [
        [
            made_window(0),
            (1, "MPI_Send", send(1, 10)),
            put(2, 1, 100),
            get(3, 1, 1000),
            fence(4, 1),
        ],
        [made_window(0), (1, "MPI_Recv", recv(0, 10)), fence(4)],
    ]
    write_trace(window_trace(ranks), tmp_path / "run.otf2")
    return tmp_path / "run.otf2"


def said_by(*words):
    """All that a command prints, in one line."""
    done = invoke(words)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_info_says_how_many_there_are(archive):
    facts = as_json("info", archive)
    told = facts["one_sided"]
    assert (facts["messages"], told["messages"], told["bytes"], told["pairs"]) == (1, 2, 1100, 2)
    assert (told["records"]["RmaPut"], told["records"]["RmaCollectiveEnd"]) == (1, 4)
    assert facts["omitted"] == []
    text = hopmap("info", archive)
    assert "one-sided: RmaGet" in text
    assert "2 messages, 1,100 B, 2 pairs" in text


@pytest.mark.parametrize("how", ["ignore", "expand"])
def test_matrix_counts_them_unless_told_not_to(archive, tmp_path, how):
    bytes_ = {}
    for rma in ("include", "ignore"):
        out = tmp_path / f"{rma}.csv"
        options = ("--rma", rma) if rma == "ignore" else ()
        said_by("matrix", archive, "--out", out, "--collectives", how, *options)
        found = load_traffic(out)
        pairs = zip(found.src.tolist(), found.dst.tolist(), found.bytes.tolist(), strict=True)
        bytes_[rma] = {(s, d): b for s, d, b in pairs if b}
    assert bytes_ == {"include": {(0, 1): 110, (1, 0): 1000}, "ignore": {(0, 1): 10}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "2 one-sided messages of 1.1 kB in all: counted, too (--rma ignore leaves them out)"),
        (("--rma", "ignore"), "in all: not counted (--rma include counts them)"),
    ],
)
def test_map_and_matrix_say_what_they_did(archive, tmp_path, options, said):
    for words in (
        ("matrix", archive, "--out", tmp_path / "out.csv"),
        ("map", archive, "--topology", "mesh:2", "--mapper", "identity"),
    ):
        assert said in said_by(*words, *options)


def test_a_replay_moves_them(archive, tmp_path):
    out = tmp_path / "mapping.csv"
    said_by("map", archive, "--topology", "mesh:2", "--mapper", "identity", "--out", out)
    facts = as_json("simulate", archive, out)
    assert facts["bytes"] == 10 + 100 + 1000
