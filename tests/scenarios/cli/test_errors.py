"""Bad input: exit 2, exactly one line, nothing written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hopmap.scenarios.cli.app import app
from hopmap.scenarios.cli.traces import reading
from support import DATA

SCENARIO = 'name="s"\ntraces=["lu.S.4"]\ntopologies=["mesh:4"]\nmappers=["sweep"]\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with good and bad files in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA / "lu.S.4", "good")
    shutil.copytree("good", "cut")
    events = Path("cut/traces/1.evt")
    events.write_bytes(events.read_bytes()[:5000])
    shutil.copytree("good", "undefined")
    Path("undefined/traces.def").unlink()
    Path("empty").mkdir()
    Path("text.otf2").write_text("not a trace\n")
    Path("text.txt").write_text("not a trace\n")
    Path("oblong.csv").write_text("1,2,3\n4,5,6\n")
    Path("square.csv").write_text("1,2\n3,4\n")
    Path("negative.csv").write_text("1,2\n3,-4\n")
    Path("nan.csv").write_text("1,2\n3,nan\n")
    Path("pairs.csv").write_text("src,dst,messages,bytes\n0,1,1,-3\n")
    Path("short.csv").write_text("rank,node\n0,0\n1,1\n")
    Path("twice.csv").write_text("rank,node\n0,0\n1,1\n2,2\n3,2\n")
    Path("map.csv").write_text("# hopmap mapping on mesh:4\nrank,node\n0,0\n1,1\n2,2\n3,3\n")
    Path("moved.csv").write_text("# hopmap mapping on file:gone.graphml\nrank,node\n0,0\n")
    Path("wrong.toml").write_text(SCENARIO + "seed = [1]\n")
    Path("right.toml").write_text(SCENARIO + "[replay]\nengine = false\n")
    Path("speeds.toml").write_text('[parameters]\n"link.bandwidth" = "10 GBs"\n')
    Path("calls.csv").write_text(
        "collective,algorithm,buffer_bytes,median_ns\nbcst,default-binomial,8,1\n"
    )
    Path("file").write_text("in the way")
    return tmp_path


def everything(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


MAP = "map lu.S.4 -t mesh:4 -m sweep --out new.csv"
FLOW = "simulate good map.csv -t mesh:4 --engine flow"
BAD = {
    "simulate good map.csv -t mesh:4 --bins 9": "--bins: expected --links with it",
    f"{MAP} --nodelist node[0-2]": "4 ranks do not fit on 3 of the 4 nodes of mesh:4",
    f"{MAP} --nodelist node[0-4]": "host node4: expected nodes of mesh:4, node0 to node3",
    f"{MAP} --nodelist node[0-3] --hosts file": "expected it or the file file, not both",
    f"{FLOW} --links new.svg": "engine flow does not serve packets",
    f"{FLOW} --otf2 empty/new --links new.txt": "--links new.txt: expected a name",
    f"{FLOW} --perfetto none/new.json": "none/new.json: there is no folder none",
    "simulate lu.E.4 map.csv -t mesh:4 --perfetto new.json": "expected at most 5,000,000",
    f"{FLOW} --otf2 file": "file: a file, expected the place of",
    "matrix cut --out new.csv": "cut",
    "matrix undefined --out new.npz": "undefined",
    "matrix empty --out new.npz": "empty",
    "matrix text.otf2 --out new.npz": "text.otf2",
    "matrix text.txt --out new.npz": "unknown kind of traffic file",
    "info nothing": "no such file or folder",
    "info oblong.csv": "expected a square matrix",
    "info negative.csv": "-4",
    "info nan.csv": "nan",
    "info pairs.csv": "-3",
    "info dt.C.64": "cannot be generated",
    "info lu.C.0": "on 0 ranks",
    "info lu.X.4": "X",
    "matrix good --out new.xyz": "unknown kind of traffic file",
    "matrix good --out new.npz --collectives expnd": "is not one of 'auto', 'ignore', 'expand'",
    "matrix good --out new.npz --set collective.bcast=linear": "expected --collectives expand",
    "matrix good --out new.npz --collectives expand --set link.latency=1": "unknown parameter",
    "matrix good --out new.npz --collectives expand --set collective.bcast=tree": "binomial",
    "matrix square.csv --out new.npz --collectives expand": "square.csv: only traffic",
    "matrix good --plot new.bmp": ".svg .png .pdf",
    "matrix good --out nowhere/new.csv": "nowhere/new.csv: there is no folder nowhere",
    "matrix good --out new.csv --plot nowhere/new.svg": "there is no folder nowhere",
    "matrix good --out empty": "empty: is a folder: expected a file to write",
    "map good -t mesh:4 -m auto --out nowhere/new.csv": "there is no folder nowhere",
    "map good -t mesh:4 -m sweep --set link.latency=1": "link.latency: expected objective makespan",
    "export map.csv --to cray --out empty": "empty: is a folder: expected a file to write",
    "export map.csv --to cary": "launcher 'cary' (did you mean cray?): expected one of openmpi",
    f"{FLOW} --steps 2": "steps 2: good has none: only a benchmark",
    "calibrate pairs.csv --out new.json": "--out new.json: expected a name ending in .toml",
    "export moved.csv --to slurm": "moved.csv names file:gone.graphml: cannot be read (No such f",
    "convert lu.S.4 --to simgrid --out new --mapping moved.csv": "-t (--topology) tells another",
    "run frist": "frist: no such file or shipped scenario (did you mean first?)",
    "run first --tasks 3": "--tasks: expected --slurm-array with it",
    "run first --slurm-array --share 0/4": "--slurm-array: expected neither --scheduler nor --sh",
    "run first --scheduler tcp://h:1 --workers 2": "--workers: expected no --scheduler with it",
    "list mapers": "Invalid value for 'what': 'mapers' is not one of",
    "generate dt --out new.npz": "unknown benchmark 'dt': expected one of lu, cg",
    "generate cg --ranks 12 --out new.npz": "CG on 12 ranks: expected a power of two",
    "generate ep --steps 3 --out new.npz": "EP with 3 time steps: it has none",
    "generate lu --flops 1e9 --out new.npz": "--flops: traffic has no computation: expected --out",
    "generate lu --flops 3Mb --out new.otf2": "unknown unit 'Mb'; expected flop/s, like 2 Gflop/s",
    "generate lu --flops -1 --out new.otf2": "LU at -1.0 flop/s: expected 0 or more",
    "generate lu --flops 1 --rate-from good --out new.otf2": "--rate-from: expected one of them",
    "generate mg --rate-from good --out new.otf2": "expected a whole run of mg, of any class",
    "generate lu --rate-from gone --out new.otf2": "gone: no such file",
    "generate lu --rate-from square.csv --out new.otf2": "only traffic",
    "generate torn --dims 8x8 --out new.npz": "did you mean 'tornado'",
    "generate tornado --out new.npz": "expected --dims, ranks per dimension, like 8x8",
    "generate tornado --dims 8y8 --out new.npz": "--dims 8y8: expected ranks per dimension",
    "generate stencil --out new.npz": "expected --dims like 12x11x8 and --stencil like 7pt",
    "generate stencil --dims 4x4 --stencil 7pt --out new.npz": "has 3 dimensions: 4x4 has 2",
    "generate stencil --dims 4x4 --stencil 5pt --periodic z --out new.npz": "periodic z: expected",
    "generate lu --stencil 5pt --out new.npz": "--stencil: lu has none: expected some of --class",
    "generate tornado --dims 4x4 --class C --out new.npz": "--class: tornado has none: expected",
    "generate stencil --dims 4x4 --ranks 16 --out new.npz": "--ranks: stencil has none: expected",
    "generate LU --bytes 9 --out new.npz": "--bytes: LU has none: expected some of --class",
    "info stencil:4x4": "expected DIMS,STENCIL",
    "info stencil:4x4,5p": "did you mean '5pt'?",
    "map lu.S.4 -t cluster:1*3+1*1 -m gropp --out new.csv": "nodes with 1 and 3 ranks",
    "generate spmv --out new.npz": "expected --matrix FILE",
    "generate lu --matrix square.csv --out new.npz": "--matrix: lu has none: expected some of --cl",
    "generate spmv --matrix gone.mtx --out new.npz": "gone.mtx: no such file",
    "generate spmv --matrix square.csv --out new.npz": "square.csv: cannot be read as a Matrix",
    "generate spmv --matrix square.csv --model rows --out new.npz": "'row-net', 'column-net'",
    "generate lu --class X --out new.npz": "X",
    "generate lu --ranks 0 --out new.npz": "--ranks",
    "generate lu --out new.abc": "unknown kind of traffic file",
    MAP.replace("mesh:4", "torus:0x4"): "torus:0x4",
    MAP.replace("mesh:4", "torus:4y4"): "torus:4y4",
    MAP.replace("mesh:4", "tours:4"): "did you mean torus?",
    MAP.replace("mesh:4", "mesh:3"): "4 ranks do not fit on mesh:3",
    MAP.replace("sweep", "swep"): "did you mean sweep?",
    MAP.replace("sweep", "bokhari(jmps=3)"): "did you mean jumps?",
    MAP.replace("sweep", "bokhari(jumps=x)"): "jumps=x: expected",
    MAP.replace("new.csv", "nowhere/new.csv"): "nowhere",
    MAP + " --seed -1": "--seed",
    MAP + " --initial map.csv": "sweep starts from no mapping",
    "evaluate lu.S.4 short.csv -t mesh:4": "short.csv",
    "evaluate lu.S.4 twice.csv -t mesh:4": "ranks 2, 3 on node 2: expected 1 at most",
    "evaluate lu.S.4 map.csv -t mesh:4 --convention x": "expected one of hopmap, maplib",
    "evaluate lu.S.4 gone.csv -t mesh:4": "gone.csv",
    "convert lu.S.4 --to simgird --out new": "did you mean 'simgrid'?",
    "convert lu.S.4 --to simgrid --out good": "--out good: expected a new folder",
    "convert lu.S.4 --to simgrid --out file": "--out file: expected a new folder",
    "convert lu.S.4 --to simgrid --out new -t mesh:4": "expected --mapping",
    "convert lu.S.4 --to simgrid --out new --zone torus": "--zone: expected --mapping FILE as well",
    "convert lu.S.4 --to simgrid --out new --mapping short.csv -t mesh:4": "short.csv",
    "convert lu.S.4 --to simgrid --out new --mapping map.csv --zone torus": "expected a torus",
    "convert pairs.csv --to simgrid --out new": "pairs.csv: bytes -3.0 in row 0",
    "simulate lu.S.4 map.csv -t mesh:4 --set link.bandwith=1": "did you mean link.bandwidth?",
    "simulate lu.S.4 map.csv -t mesh:4 --set link.bandwidth=1kg": "unknown unit 'kg'",
    "simulate lu.S.4 map.csv -t mesh:4 --engine x": "unknown engine 'x'",
    "simulate lu.S.4 map.csv -t mesh:4 --set speeds.toml": "speeds.toml: link.bandwidth: '10 GBs'",
    "run right.toml --set speeds.toml": "speeds.toml: link.bandwidth: '10 GBs'",
    "validate calls.csv -t mesh:4 --parameters gone.toml": "hopmap: gone.toml: cannot be read",
    "validate calls.csv -t mesh:4 --out new": "calls.csv: none of 1 calls can be simulated (bcst",
    "map map.csv -t mesh:4": "map.csv: a mapping, where a trace or traffic is expected",
    "info map.csv": "map.csv: a mapping, where a trace or traffic is expected",
    "map torus:4 -t lu.S.4": "torus:4: a network, where a trace or traffic is expected",
    "map lu.S.4 -t good": "good: a trace or traffic, where a network is expected",
    "simulate map.csv good": "map.csv: a mapping, where a trace or traffic is expected",
    "evaluate good torus:4": "torus:4: a network, where a mapping is expected",
    "explain lu.S.4 good": "good: a trace or traffic, where a mapping is expected",
    "advise map.csv -t mesh:4": "map.csv: a mapping, where a trace or traffic is expected",
    "export lu.S.4 --to slurm": "lu.S.4: a trace or traffic, where a mapping is expected",
    "evaluate lu.S.4 short.csv": "short.csv: does not name its topology",
    "header --dir file": "--dir file: is a file: expected a folder",
    "simulate nan.csv map.csv -t mesh:4": "nan",
    "simulate lu.S.4 map.csv -t mesh:4 --rounds 2": "rounds 2: only for traffic",
    "simulate lu.S.4 map.csv -t mesh:4 --set energy.node.idle=1J": "unknown unit 'J'",
    "simulate lu.S.4 map.csv -t mesh:4 --set energy.link.radio.static=1W": "unknown parameter",
    "export map.csv --to pbs": "launcher 'pbs': expected one of openmpi",
    "export short.csv --to slurm": "does not name its topology",
    "run wrong.toml": "did you mean seeds?",
    "run gone.toml": "gone.toml",
    "run right.toml --out file": "--out file: is a file: expected a folder",
    "run right.toml --out file/below": "--out file/below: file is a file: expected a folder",
    "report empty": "no results there",
    "mapp": "Did you mean 'map'",
    "info good --jsn": "--json",
}


@pytest.mark.parametrize("words", BAD)
def test_one_line_exit_2_and_nothing_written(here, words):
    before = everything(here)
    arguments = words.split(" ") if '"' not in words else words.split('"')
    for extra in ([], ["--json"]):
        result = CliRunner().invoke(app, [*arguments, *extra])
        assert result.exit_code == 2, result.output
        (line,) = result.stderr.splitlines()
        assert line.startswith("hopmap: ")
        assert BAD[words] in line
        assert "bug" not in line
        if extra:
            assert json.loads(result.stdout) == {"error": line.removeprefix("hopmap: ")}
        else:
            assert result.stdout == ""
    assert everything(here) == before


def test_a_command_that_would_do_nothing_asks_for_what_to_do(here):
    result = CliRunner().invoke(app, ["matrix", "good"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "expected --out FILE, --plot FILE or --json" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_line(here):
    Path("empty").chmod(0o500)
    result = CliRunner().invoke(app, ["matrix", "good", "--out", "empty/new.csv"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "Permission denied" in line


def test_what_exists_is_replaced_whole_or_not_at_all(here):
    CliRunner().invoke(app, ["matrix", "good", "--out", "map.csv"])
    assert Path("map.csv").read_text().startswith("src,dst,messages,bytes\n0,1,564,413040\n")
    CliRunner().invoke(app, ["matrix", "cut", "--out", "map.csv"])
    assert Path("map.csv").read_text().startswith("src,dst,messages,bytes\n0,1,564,413040\n")


def test_a_mistake_of_ours_is_called_one_and_debug_shows_it(here, monkeypatch):
    def broken(*_, **__):
        raise ValueError("shapes do not match")  # as numpy would

    monkeypatch.setattr(reading, "_read", broken)
    result = CliRunner().invoke(app, ["info", "good"])
    assert result.exit_code == 1
    assert "a bug in hopmap: ValueError: shapes do not match (HOPMAP_DEBUG=1" in result.stderr
    monkeypatch.setenv("HOPMAP_DEBUG", "1")
    result = CliRunner().invoke(app, ["info", "good"])
    assert isinstance(result.exception, ValueError)


def test_ctrl_c_is_one_line_and_130(here, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "_read", interrupted)
    result = CliRunner().invoke(app, ["matrix", "good", "--out", "new.npz", "--json"])
    assert result.exit_code == 130
    assert result.stderr == "hopmap: interrupted\n"
    assert json.loads(result.stdout) == {"error": "interrupted"}
    assert not Path("new.npz").exists()


def test_the_installed_command_does_the_same(here):
    """In a process of its own, for the entry point, the real streams and the exit code."""
    code = "from hopmap.scenarios.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "info", "nothing"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("hopmap: nothing: no such file")
    assert done.stderr.count("\n") == 1
    done = subprocess.run(
        [sys.executable, "-c", code, "info", "good", "--json"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["messages"] == 4520


def test_help_does_not_wait_for_the_compiler():
    code = "import sys; from hopmap.scenarios import cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"numba", "numpy", "pandas", "pyarrow", "matplotlib", "pydantic", "rich"}
