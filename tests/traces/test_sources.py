"""What the word for a trace means, and kinds of sources of one's own."""

import shutil
import subprocess
import sys
import warnings

import pytest

from hopmap.errors import HopmapWarning
from hopmap.plugins import VARIABLE
from hopmap.scenarios.sweep import SHIPPED
from hopmap.traces import FORMATS, TraceError, Traffic, save_traffic
from hopmap.traces.sources import KINDS, is_source_name, open_source, tools
from support import DATA


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_that_is_called_like_a_benchmark_is_taken_and_warned_of(here):
    (here / "lu.S.4").mkdir()
    (here / "lu.S.4" / "traces.otf2").touch()
    with pytest.warns(HopmapWarning, match=r"lu\.S\.4: reads this file, not the benchmark"):
        assert open_source("lu.S.4").kind == "archive"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source("./lu.S.4").kind == "archive"
        assert open_source("lu.S.4", here).kind == "archive"  # as a scenario beside it says


@pytest.mark.parametrize("beside", ["lu.S.4.otf2", "lu.S.4.npz", "LU.S.4"])
def test_a_benchmark_that_is_generated_beside_a_file_of_nearly_its_name_is_warned_of(here, beside):
    (here / beside).mkdir()
    with pytest.warns(HopmapWarning, match=rf"lu\.S\.4: no such file, .*; did you mean {beside}\?"):
        assert open_source("lu.S.4").kind == "benchmark"


def test_a_benchmark_is_generated_without_a_word_where_nothing_is_alike(here):
    (here / "lu.S.40.npz").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source("lu.S.4").kind == "benchmark"


def test_a_broken_link_is_an_error_whatever_its_name(here):
    for name in ("lu.S.4", "lu.otf2"):
        (here / name).symlink_to("gone")
        with pytest.raises(TraceError, match=rf"{name}: a broken link, to gone: expected a file"):
            open_source(name)


def test_a_part_of_an_archive_names_the_anchor_one_folder_up(here):
    """Score-P's traces.otf2 lies beside traces.def and the folder traces/ with the events."""
    shutil.copytree(DATA / "lu.S.4", here / "run")
    anchor = here / "run" / "traces.otf2"
    for part in ("run/traces", "run/traces.def", "run/traces/0.evt", "run/traces/../traces"):
        with pytest.warns(HopmapWarning, match=rf"{part}: a part of an OTF2 archive, so {anchor}"):
            assert open_source(part).path == anchor
    anchor.rename(here / "other.otf2")
    with pytest.raises(TraceError, match=r"run/traces: no trace by its name or its content"):
        open_source("run/traces")


def test_what_is_no_trace_is_answered_with_what_would_be(here):
    (here / "notes.txt").write_text("hello\n")
    (here / "empty").mkdir()
    for name in ("notes.txt", "empty"):
        with pytest.raises(TraceError) as caught:
            open_source(name)
        for word in (name, "OTF2 archive", *tools(), ".npz", ".csv", ".prof"):
            assert word in str(caught.value)


def test_sample_data_are_files_and_those_that_come_with_hopmap():
    assert not [path for path in DATA.rglob("*") if path.is_symlink()]
    for shipped in (SHIPPED["first"].parent / "recorded").iterdir():
        for file in (path for path in shipped.rglob("*") if path.is_file()):
            copy = DATA / shipped.name / file.relative_to(shipped)
            assert copy.read_bytes() == file.read_bytes()


READERS = ("otf2", "foreign", "nas", "patterns", "recorder", "extrapolation", "formats")
OPENING = """
import sys
from hopmap.traces import open_source
source = open_source(sys.argv[1])
source.digest(), source.traffic()
print(*(name for name in sorted(sys.modules) if name.startswith("hopmap.traces.")))
"""


def test_opening_traffic_imports_no_reader_of_another_format(tmp_path):
    file = tmp_path / "a.npz"
    save_traffic(file, Traffic.from_pairs(2, [0], [1], [1], [8]))
    done = subprocess.run(
        [sys.executable, "-c", OPENING, file], capture_output=True, text=True, check=True
    )
    loaded = {name.removeprefix("hopmap.traces.") for name in done.stdout.split()}
    readers = {name for name in loaded if name.partition(".")[0] in READERS}
    own = {"formats", "formats.files", "formats.tables"}
    assert readers == own


def test_the_table_has_every_format_of_traffic():
    assert {suffix.removeprefix(".count").removeprefix(".size") for suffix in FORMATS} <= {*KINDS}


def test_names_of_sources_are_known_by_their_form():
    assert all(map(is_source_name, ("lu.C.64", "stencil:4x4,5pt", "folded:run")))
    assert not any(map(is_source_name, ("torus:4x4", "run.otf2", "lu")))


OWN = """
from dataclasses import dataclass
from hopmap.traces import FileSource, Source, Traffic, source_kind

@dataclass(frozen=True)
class Ring(Source):
    ranks: int
    kind = "ring"
    has_program = has_calls = False

    def traffic(self):
        ranks = range(self.ranks)
        one, to = [1] * self.ranks, [(rank + 1) % self.ranks for rank in ranks]
        return Traffic.from_pairs(self.ranks, ranks, to, one, [8] * self.ranks)

@source_kind("ring:")
def open_ring(words, folder):
    return Ring(f"ring:{words}", int(words))

class Listed(FileSource):
    kind = "listed"

    def traffic(self):
        return Traffic.from_pairs(2, [0], [1], [1], [int(self.path.read_text())])

    def files(self):
        return [self.path]

@source_kind(".listed")
def open_listed(path, _):
    from pathlib import Path

    return None if "none" in path else Listed("l", Path(path))
"""


@pytest.mark.usefixtures("forgetting")
def test_a_plugin_brings_kinds_of_sources(here, monkeypatch):
    with pytest.raises(TraceError, match=r"ring:4: no such file or folder"):
        open_source("ring:4")
    (here / "own_kinds.py").write_text(OWN)
    monkeypatch.setenv(VARIABLE, str(here / "own_kinds.py"))
    ring = open_source("ring:4")
    assert (ring.traffic().pairs, ring.name, ring.has_program) == (4, "ring:4", False)
    assert ring == open_source("ring:4")
    assert ring.digest() != open_source("ring:5").digest()
    with pytest.raises(TraceError, match="invalid literal"):
        open_source("ring:x")
    with pytest.raises(TraceError, match="only traffic, without the order of messages"):
        ring.calls()
    (here / "a.listed").write_text("7")
    listed = open_source("a.listed")
    assert listed.traffic().bytes.tolist() == [7]
    before = listed.digest()
    (here / "a.listed").write_text("70")
    assert listed.digest() != before
    (here / "none.listed").touch()
    with pytest.raises(TraceError, match="open_listed returns None: expected a Source"):
        open_source("none.listed")


@pytest.mark.usefixtures("forgetting")
@pytest.mark.parametrize(
    ("name", "line"),
    [("stencil:", "two kinds of sources"), ("ring", "'kind:' or '.suffix'")],
)
def test_a_kind_needs_a_name_of_its_own(here, monkeypatch, name, line):
    (here / "own_kinds.py").write_text(OWN.replace("ring:", name))
    monkeypatch.setenv(VARIABLE, str(here / "own_kinds.py"))
    with pytest.raises(Exception, match=line):
        open_source("nothing:4")
