"""No command changes a file that it reads, and none replaces another one without --force."""

import resource
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopmap.cli.app import COMMANDS
from hopmap.cli.overwriting import NEVER_FORCED, OUTPUTS
from support import DATA
from support.commands import COMMAND, LITTLE, invoke

# Every command that writes: T, M, P, S stand for what it reads, W for what it writes.
WRITING = {
    "map": ("T -t torus:2x2 -m sweep --out W", "T -t torus:2x2 -m sweep --initial M --out W"),
    "export": ("M --to slurm --out W", "M --to simgrid --out W", "M --to maplib --out W"),
    "convert": ("T --to goal --out W", "T --to simgrid --out W --mapping M"),
    "generate": ("uniform --dims 2x2 --out W", "lu --ranks 4 --steps 1 --rate-from T --out W"),
    "scale": ("T T --ranks 16 --out W",),
    "matrix": ("T --out W", "T --out W --plot W"),
    "coarsen": ("T --nodes 2 --by rb --out W --blocks W",),
    "simulate": (
        "T M --engine simpy --otf2 W",
        "T M --engine simpy --perfetto W --links W",
    ),
    "view": ("T M --out W",),
    "calibrate": ("P --out W", "P --out W --plot W"),
    "validate": ("P -t torus:2x2 --out W",),
    "header": ("--out W", "--dir W"),
    "advise": ("T -t torus:2x2 --samples 6 --seconds 0 --out W",),
    "robust": ("T -t torus:2x2 --samples 6 --seconds 0 --out W",),
    "run": ("S --out W", "S --out W --set seeds=[1]"),
    "record": ("--out W -- true",),
}
FITTING = {
    "T": ("in.npz", "in.csv", "in.mtx", "lu.otf2", "traces.otf2", "link.csv", "sub/../in.npz"),
    "M": ("own.csv",),
    "P": ("ping.csv",),
    "S": ("s.toml",),
}
THERE = ("in.npz", "in.csv", "in.mtx", "own.csv", "notes.txt", "lu.otf2", "lu.otf2/traces.otf2")
THERE += (
    "traces.otf2",
    "traces.def",
    "ping.csv",
    "s.toml",
    "link.csv",
    "sub/../in.npz",
    ".",
    "p.svg",
)
NEW = ("new.csv", "new.npz", "new.otf2", "new.toml", "new.svg", "new", "sub/new.json", "null")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of what users have: traffic, mappings, an archive, notes, measured times, links."""
    folder = tmp_path_factory.mktemp("files")
    with chdir(folder):
        shutil.copytree(DATA / "lu.S.4", "lu.otf2")
        shutil.copytree(DATA / "lu.S.4", ".", dirs_exist_ok=True)
        Path("sub").mkdir()
        for end in ("npz", "csv", "mtx"):
            assert not invoke(["generate", "uniform", "--dims", "2x2", "--out", f"in.{end}"])[0]
        assert not invoke(["convert", "in.npz", "--to", "simgrid", "--out", "tit"])[0]
        Path("own.csv").write_text("# hopmap mapping on torus:2x2\nrank,node\n0,0\n1,1\n2,2\n3,3\n")
        Path("notes.txt").write_text("a day in a queue\n")
        Path("p.svg").write_text("<svg/>\n")
        Path("ping.csv").write_text("size,time\n8 B,1 us\n1 KiB,2 us\n8 KiB,9 us\n64 KiB,60 us\n")
        for name in ("s.toml", "scenario.toml"):
            Path(name).write_text(LITTLE)
        Path("link.csv").symlink_to("in.csv")
        Path("null").symlink_to("/dev/null")
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A copy of it, as the working directory."""
    shutil.copytree(files, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_command_that_writes_is_drawn_below():
    writes = {
        name
        for name in COMMANDS
        if {each.name for each in COMMAND.get_command(None, name).params} & {*OUTPUTS}
    }
    assert writes == WRITING.keys()


@st.composite
def words_of_commands(draw):
    """A command, with any path for what it reads, and any for what it writes."""
    name = draw(st.sampled_from(sorted(WRITING)))
    words, read, written = [name], [], []
    for word in draw(st.sampled_from(WRITING[name])).split():
        path = word
        if word in FITTING:
            path = draw(st.sampled_from(FITTING[word]) | st.sampled_from(THERE))
            read.append(path)
        elif word == "W":
            path = draw(st.sampled_from(NEW) | st.sampled_from((*THERE, *read, *read)))
            written.append(path)
        words.append(path)
    force = draw(st.booleans()) and name not in NEVER_FORCED
    return words + ["--force"] * force, read, written, force


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=words_of_commands())
def test_no_command_changes_a_file_that_it_was_given_or_ends_well_with_less_data(files, drawn):
    words, read, written, force = drawn
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        shutil.copytree(files, here, symlinks=True)
        before = contents(here)
        with chdir(here):
            invoke(words)
            inputs = {Path(path).resolve() for path in read}
            asked = {Path(path).resolve() for path in written if Path(path).is_file()}
        after = contents(here)
        changed = {(here / name).resolve() for name in before if after.get(name) != before[name]}
        assert before.keys() <= after.keys()
        assert not changed & inputs
        assert (here / "null").is_symlink()
        if not force:
            assert not changed
        folders = {Path(here, path).resolve() for path in written}
        assert all(path in asked or folders & {*path.parents} for path in changed)


@pytest.mark.parametrize(
    "words",
    [
        "map in.npz -t torus:2x2 -m sweep --out in.npz",
        "map own.csv -t torus:2x2 -m sweep --out own.csv",
        "map in.npz -t torus:2x2 -m sweep --initial own.csv --out own.csv",
        "map in.csv -t torus:2x2 -m sweep --out link.csv",
        "export own.csv --to slurm --out own.csv",
        "export own.csv --to slurm --out ./sub/../own.csv",
        "map traces.otf2 -t torus:2x2 -m sweep --out traces.def",
        "map traces.otf2 -t torus:2x2 -m sweep --out traces/0.evt",
        "map lu.otf2 -t torus:2x2 -m sweep --out lu.otf2/traces.def",
        "simulate --job in.npz,own.csv -t torus:2x2 --engine simpy --perfetto own.csv",
        "convert tit/traces.txt --to simgrid --out tit",
        "generate lu --ranks 4 --steps 1 --rate-from lu.otf2 --out lu.otf2",
        "scale lu.otf2 scaled:9,lu.otf2 --ranks 16 --out lu.otf2",
    ],
)
def test_what_is_read_is_never_replaced(here, words):
    before = contents(here)
    for force in ([], ["--force"]):
        said = invoke(words.split() + force)
        assert (said.exit_code, said.output.count("\n")) == (2, 1), said.output
        assert "is read by this command: expected another name" in said.stderr
    assert contents(here) == before


def test_a_sweep_replaces_no_file_of_others_and_not_its_own_scenario(here):
    before = contents(here)
    refused = invoke(["run", "s.toml", "--out", "."])
    assert "holds scenario.toml: expected a new folder" in refused.stderr
    assert contents(here) == before
    assert invoke(["run", "s.toml", "--out", "r"]).exit_code == 0
    scenario = Path("r/scenario.toml").read_text()
    assert invoke(["run", "r/scenario.toml", "--out", "r"]).exit_code == 0
    said = invoke(["run", "r/scenario.toml", "--out", "r", "--set", "seeds=[2]"])
    assert (said.exit_code, Path("r/scenario.toml").read_text()) == (2, scenario)
    assert "r/scenario.toml: belongs to these results: expected a copy" in said.stderr


def test_what_exists_is_replaced_when_asked_for(here):
    words = ["map", "in.npz", "-t", "torus:2x2", "-m", "sweep", "--out", "notes.txt"]
    refused = invoke(words)
    assert (refused.exit_code, Path("notes.txt").read_text()) == (2, "a day in a queue\n")
    assert "notes.txt: exists: expected a new name, or --force" in refused.stderr
    assert invoke([*words, "--force"]).exit_code == 0
    assert "rank,node" in Path("notes.txt").read_text()


def test_files_that_are_written_together_are_all_looked_at(here):
    Path("x_platform.xml").write_text("mine")
    companion = ["export", "own.csv", "--to", "simgrid", "--out", "x"]
    assert "x_platform.xml: exists" in invoke(companion).stderr
    assert not Path("x").exists()
    for same in ("same.svg", "sub/../same.svg"):
        twice = invoke(["matrix", "in.npz", "--out", "same.svg", "--plot", same])
        assert "same.svg: expected another name for each file to write" in twice.stderr


@pytest.mark.parametrize(
    ("words", "stranger"),
    [
        ("convert in.npz --to simgrid --out new", "new/notes.txt"),
        ("generate lu --ranks 4 --steps 1 --out new.otf2", "new.otf2/traces.txt"),
        ("generate lu --ranks 4 --steps 1 --out new.otf2", "new.otf2/traces/notes.txt"),
    ],
)
def test_a_folder_with_files_of_others_is_never_replaced(here, words, stranger):
    forced = [*words.split(), "--force"]
    assert [invoke(forced).exit_code for _ in range(2)] == [0, 0]
    Path(stranger).write_text("mine")
    said = invoke(forced)
    assert (said.exit_code, Path(stranger).read_text()) == (2, "mine"), said.output


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("map stencil:16x16,5pt -t torus:16x16 -m sweep --out m.csv", "m.csv"),
        ("map in.npz -t torus:2x2 -m sweep --plot m.png", "m.png"),
        ("run s.toml --out results", "results/"),
    ],
)
def test_a_disk_without_room_is_one_line_that_names_the_file(here, words, file):
    """A limit on the size of files has writes fail as a full disk has, with another number."""
    before, unlimited = contents(here), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, unlimited[1]))
        said = invoke(words.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert (said.exit_code, said.stderr.count("\n")) == (2, 1), said.output
    assert file in said.stderr and "File too large" in said.stderr
    assert contents(here) == before
