"""Bad input: exit 2, exactly one line, nothing written."""

import json
import os
import shutil
from pathlib import Path

import pytest

from hopmap.cli.traces import reading
from support import DATA
from support.commands import COMPILING, invoke

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
    Path("zero.csv").write_text("src,dst,messages,bytes\n0,3,2,30\n")
    Path("source.csv").write_text("source,target\n0,1\n")
    Path("ragged.csv").write_text("src,dst,messages,bytes\n0,1,1,3\n0,2\n")
    Path("pingpong.csv").write_text("bytes,time_us,hops\n8,1,1\n64,2,1\n4096,9,1\n")
    columns = "collective,algorithm,buffer_bytes,median_ns\n"
    Path("misspelt.csv").write_text(columns.replace("rithm", "ritm") + "bcast,binomial,8,1\n")
    Path("strange.csv").write_text(columns + "bcast,binominal,8,1\n")
    Path("known.csv").write_text(columns + "bcast,binomial,8,1\n")
    Path("slots.txt").write_text("node0 slots=abc\nnode1\nnode2\nnode3\n")
    Path("plain.csv").write_text("bytes,time_us\n8,1\n64,2\n4096,9\n")
    Path("vary.toml").write_text(SCENARIO + '[vary]\n"link.latency" = ["1us"]\n')
    Path("ranges.toml").write_text('[ranges]\n"link.bandwith" = {factor = [0.5, 2]}\n')
    Path("ib.txt").write_text('Switch\t65 "S-1"\t# "leaf"\n[1]\t"H-2"\n')
    Path("places.txt").write_text("n0 0x10\nn1 x1c0\n")
    Path("graph.json").write_text('{"instances": [1]}')
    Path("cut.0.et").write_bytes(b"\x07\n\x051.0.0\x06\x08\x01\x18\x04\x28\x00\x30\x08")
    Path("nccl.xml").write_text("<system/>")
    return tmp_path


def everything(folder):
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


HUGE = "9" * 20
MAP = "map lu.S.4 -t mesh:4 -m sweep --out new.csv"
FLOW = "simulate good map.csv -t mesh:4 --engine flow"
RUN = "simulate lu.S.4 map.csv -t mesh:4"
TIT = "convert lu.S.4 --to simgrid --out new"
# What is wrong, and what the line has to name: the file, key or value, and what it was taken for.
BAD = {
    "simulate good map.csv -t mesh:4 --bins 9": "--bins --links",
    f"{FLOW} --tolerance 5": "--tolerance expected less than equal 1",
    f"{FLOW} --tolerance 0.1 --no-extrapolation": "--tolerance --no-extrapolation mutually",
    "view good --out new.html": "MAPPING TRACE results",
    "view good map.csv --variant slow --out new.html": "--variant requires RESULTS",
    "view good map.csv --regret map.csv --out new.html": "--regret map.csv robust candidates",
    "view good map.csv --set network.routing=adaptive --out new.html": "network.routing fixed",
    "view good map.csv --out none/new.html": "none/new.html folder",
    f"{MAP} --nodelist node[0-2]": "4 3 mesh:4",
    f"{MAP} --nodelist node[0-4]": "node4 mesh:4 node3",
    f"{MAP} --nodelist node[0-3] --hosts file": "hosts nodelist mutually",
    f"{FLOW} --links new.svg": "flow compiled",
    f"{FLOW} --otf2 empty/new --links new.txt": "--links new.txt .parquet",
    f"{FLOW} --perfetto none/new.json": "none/new.json folder",
    "simulate lu.E.4 map.csv -t mesh:4 --perfetto new.json": "new.json 5,000,000",
    "simulate good map.csv -t mesh:4 --engine simpy --otf2 file": "file folder",
    "matrix cut --out new.csv": "cut/traces/1.evt 5000",
    "matrix undefined --out new.npz": "undefined/traces.def",
    "matrix empty --out new.npz": "empty OTF2 .npz",
    "matrix text.otf2 --out new.npz": "text.otf2",
    "matrix text.txt --out new.npz": "text.txt .npz",
    "info nothing": "nothing",
    "info oblong.csv": "oblong.csv square",
    "info negative.csv": "negative.csv -4 row",
    "info nan.csv": "nan.csv row",
    "info pairs.csv": "pairs.csv bytes -3.0",
    "info dt.C.64": "dt.C.64 lu",
    "info lu.C.0": "LU 0",
    "info lu.X.4": "LU X",
    "matrix good --out new.xyz": "new.xyz .npz",
    "matrix good --out new.npz --collectives expnd": "--collectives expnd expand",
    "matrix good --out new.npz --set collective.bcast=linear": "collective.bcast --collectives",
    "matrix good --out new.npz --collectives expand --set link.latency=1s": "link.latency traffic",
    "matrix good --out new.npz --collectives expand --set collective.bcast=tree": "tree binomial",
    "matrix square.csv --out new.npz --collectives expand": "square.csv traffic",
    "matrix good --plot new.bmp": "--plot new.bmp .svg",
    "matrix good --out nowhere/new.csv": "nowhere/new.csv folder",
    "matrix good --out new.csv --plot nowhere/new.svg": "nowhere/new.svg folder",
    "matrix good --out empty": "empty folder file",
    "map good -t mesh:4 -m auto --out nowhere/new.csv": "nowhere/new.csv folder",
    "map good -t mesh:4 -m sweep --set link.latency=1us": "link.latency makespan",
    "export map.csv --to cray --out empty": "empty folder file",
    "export map.csv --to cary": "cary cray? openmpi",
    f"{FLOW} --steps 2": "steps good benchmark",
    "calibrate pairs.csv --out new.json": "--out new.json .toml",
    "export moved.csv --to slurm": "moved.csv file:gone.graphml -t",
    f"{TIT} --mapping moved.csv": "moved.csv file:gone.graphml -t",
    "run frist": "frist first?",
    "run first --tasks 3": "--tasks --slurm-array",
    "run first --slurm-array --shard 0/4": "--slurm-array --shard",
    "run first --scheduler tcp://h:1 --workers 2": "--workers --scheduler",
    "list mapers": "mapers mappers",
    "generate dt --out new.npz": "dt lu tornado",
    "generate cg --ranks 12 --out new.npz": "CG 12 power",
    "generate ep --steps 3 --out new.npz": "EP steps",
    "generate lu --flops 1e9 --out new.npz": "--flops --out X.otf2",
    "generate lu --flops 3Mb --out new.otf2": "--flops Mb Gflop/s",
    "generate lu --flops -1flop/s --out new.otf2": "LU -1.0 flop/s",
    "generate lu --flops 1 --rate-from good --out new.otf2": "--flops --rate-from",
    "generate mg --rate-from good --out new.otf2": "good mg",
    "generate lu --rate-from gone --out new.otf2": "gone",
    "generate lu --rate-from square.csv --out new.otf2": "square.csv traffic",
    "generate torn --dims 8x8 --out new.npz": "torn tornado?",
    "generate tornado --out new.npz": "--dims",
    "generate tornado --dims 8y8 --out new.npz": "--dims 8y8 8x8",
    "generate stencil --out new.npz": "--dims --stencil",
    "generate stencil --dims 4x4 --stencil 7pt --out new.npz": "7pt 3 4x4",
    "generate stencil --dims 4x4 --stencil 5pt --periodic z --out new.npz": "periodic z xy",
    "generate lu --stencil 5pt --out new.npz": "--stencil lu --class",
    "generate tornado --dims 4x4 --class C --out new.npz": "--class tornado --dims",
    "generate stencil --dims 4x4 --ranks 16 --out new.npz": "--ranks stencil --dims",
    "generate LU --bytes 9 --out new.npz": "--bytes LU --class",
    "info stencil:4x4": "4x4 DIMS,STENCIL",
    "info stencil:4x4,5p": "5p 5pt?",
    "map lu.S.4 -t cluster:1*3+1*1 -m gropp --out new.csv": "gropp 1 3 ranks",
    "generate spmv --out new.npz": "--matrix",
    "generate lu --matrix square.csv --out new.npz": "--matrix lu --class",
    "generate spmv --matrix gone.mtx --out new.npz": "gone.mtx",
    "generate spmv --matrix square.csv --out new.npz": "square.csv MatrixMarket",
    "generate spmv --matrix square.csv --model rows --out new.npz": "--model rows row-net",
    "generate lu --class X --out new.npz": "LU X",
    "generate lu --ranks 0 --out new.npz": "--ranks 1",
    "generate lu --out new.abc": "new.abc .npz",
    MAP.replace("mesh:4", "torus:0x4"): "torus:0x4",
    MAP.replace("mesh:4", "torus:4y4"): "torus:4y4",
    MAP.replace("mesh:4", "tours:4"): "tours:4 torus?",
    MAP.replace("mesh:4", "mesh:3"): "4 mesh:3 mesh:3*2",
    MAP.replace("sweep", "swep"): "swep sweep?",
    MAP.replace("sweep", "bokhari(jmps=3)"): "bokhari jmps jumps?",
    MAP.replace("sweep", "bokhari(jumps=x)"): "bokhari jumps=x int",
    MAP.replace("new.csv", "nowhere/new.csv"): "nowhere/new.csv folder",
    MAP + " --seed -1": "--seed 0 not -1",
    MAP + " --imbalance 3%": "--imbalance valid number not 3%",
    MAP + " --initial map.csv": "initial sweep",
    "evaluate lu.S.4 short.csv -t mesh:4": "short.csv 2 4",
    "evaluate lu.S.4 twice.csv -t mesh:4": "twice.csv 2 3 1",
    "evaluate lu.S.4 map.csv -t mesh:4 --convention x": "x maplib",
    "evaluate lu.S.4 gone.csv -t mesh:4": "gone.csv",
    "convert lu.S.4 --to simgird --out new": "simgird simgrid?",
    "convert lu.S.4 --to simgrid --out good --force": "--out good new",
    "convert lu.S.4 --to simgrid --out file": "file folder",
    f"{TIT} -t mesh:4": "--topology --mapping",
    f"{TIT} --zone torus": "--zone --mapping",
    f"{TIT} --mapping short.csv -t mesh:4": "short.csv 2 4",
    f"{TIT} --mapping map.csv --zone torus": "zone mesh:4 torus",
    "convert pairs.csv --to simgrid --out new": "pairs.csv bytes -3.0 row 0",
    f"{RUN} --set link.bandwith=1": "link.bandwith link.bandwidth?",
    f"{RUN} --set link.bandwidth=1kg": "link.bandwidth 1kg GB/s",
    f"{RUN} --set link.bandwidth=10": "link.bandwidth=10 unit 10GB/s",
    f"{RUN} --engine x": "x compiled",
    f"{RUN} --set speeds.toml": "speeds.toml link.bandwidth GBs",
    "run right.toml --set speeds.toml": "speeds.toml link.bandwidth GBs",
    "validate calls.csv -t mesh:4 --parameters gone.toml": "gone.toml",
    "validate calls.csv -t mesh:4 --out new": "calls.csv bcst",
    "map map.csv -t mesh:4": "map.csv mapping trace",
    "info map.csv": "map.csv mapping trace",
    "map torus:4 -t lu.S.4": "torus:4 network trace",
    "map lu.S.4 -t good": "good trace network",
    "simulate map.csv good": "map.csv mapping trace",
    "evaluate good torus:4": "torus:4 network mapping",
    "explain lu.S.4 good": "good trace mapping",
    "advise map.csv -t mesh:4": "map.csv mapping trace",
    "export lu.S.4 --to slurm": "lu.S.4 trace mapping",
    "evaluate lu.S.4 short.csv": "short.csv --topology",
    "header --dir file": "--dir file folder",
    "simulate nan.csv map.csv -t mesh:4": "nan.csv row",
    f"{RUN} --rounds 2": "rounds lu.S.4 traffic",
    f"{RUN} --set energy.node.idle=1J": "energy.node.idle 1J watts",
    f"{RUN} --set energy.link.radio.static=1W": "energy.link.radio.static energy.link.static?",
    "export map.csv --to pbs": "pbs openmpi",
    "check text.txt map.csv --nodelist n[1-4]": "text.txt no ranks 3 node7",
    "check text.txt map.csv": "mesh:4 names --nodelist",
    "check text.otf2 map.csv --nodelist n[1-4]": "text.otf2",
    "check --live map.csv --nodelist n[1-4]": "--live OMPI_COMM_WORLD_RANK SLURM_PROCID",
    "check map.csv": "LOG MAPPING --live",
    "export short.csv --to slurm": "short.csv --topology",
    "run wrong.toml": "wrong.toml seed seeds?",
    "run gone.toml": "gone.toml",
    "run right.toml --out file": "--out file folder",
    "run right.toml --out file/below": "--out file/below file folder",
    "report empty": "empty results",
    # numbers that no machine has
    f"generate lu --steps {HUGE} --out new.otf2": "LU 1 1,000,000",
    f"map lu.S.4 -t mesh:4 --steps {HUGE}": "LU 1 1,000,000",
    "matrix lu.S.4 --out new.csv --steps 9000000000000000000": "LU 1 1,000,000",
    f"simulate zero.csv map.csv --rounds {HUGE}": "rounds 1 1,000,000,000",
    f"simulate good map.csv --repeat {HUGE}": "repeat 6 1,000,000",
    f"simulate --job good,map.csv,repeat={HUGE} -t mesh:4": "repeat 1 1,000,000",
    f"robust lu.S.4 -t mesh:4 --samples {HUGE}": "samples 1 10,000",
    f"advise lu.S.4 -t mesh:4 --samples {HUGE}": "samples 1 10,000",
    f"generate uniform --dims 4x4 --bytes {HUGE} --out new.csv": "uniform 0 549,755,813,888",
    f"generate training --sizes layers={HUGE} --out new.npz": "training 1 1,000,000,000",
    "info cut.0.et": "cut.0.et message 2 byte 15 cut",
    "info training:sequence=6,cp=4": "sequence 6 cp 4",
    "map lu.S.4 -t file:ib.txt --out new.csv": "file:ib.txt line 2 switch",
    "map lu.S.4 -t file:places.txt --out new.csv": "file:places.txt line 2 address",
    "map lu.S.4 -t file:graph.json --out new.csv": "file:graph.json instance 0",
    "export map.csv --to openmpi --node nccl.xml": "nccl.xml cpu NCCL_TOPO_DUMP_FILEs",
    "info training:layers=1000000,hidden=1000000,batch=1000000": "bytes 1,152,921,504,606,846,976",
    f"info collective:allreduce=ring,16,{HUGE}MiB": "collective bytes 549,755,813,888",
    f"evaluate good map.csv --failures degraded=1 --seeds {HUGE}": "draws 1 10,000",
    f"export map.csv --to openmpi --threads {HUGE}": "threads 1 4,096",
    f"advise lu.S.4 -t mesh:4 --to openmpi --threads {HUGE}": "threads 1 4,096",
    f"{RUN} --set link.latency=1e300s": "link.latency 1e300s most 1000000",
    f"{RUN} --set link.bandwidth=1e-300B/s": "link.bandwidth 1e-300B/s least 0.001",
    f"{RUN} --set compute.scale=1e308": "compute.scale 1e308 most",
    # files and folders of another kind
    "run right.toml --out good": "--out good traces.otf2",
    "validate known.csv -t mesh:4 --out good": "--out good traces.otf2",
    "header --dir good": "--dir good traces.otf2",
    "map lu.S.4 -t mesh:4 --out new.svg": "new.svg figure map.csv",
    "export map.csv --to slurm --out new.png": "new.png figure map.csv",
    "generate lu --out new.txt": "new.txt .npz .otf2",
    "matrix zero.csv --out new.txt": "new.txt .npz .grf",
    "generate lu --rate-from map.csv --out new.otf2": "map.csv mapping trace",
    "info source.csv": "source.csv source src,dst,messages,bytes",
    "info ragged.csv": "ragged.csv columns src,dst,messages,bytes",
    "calibrate misspelt.csv -t mesh:4": "misspelt.csv algorithm",
    "calibrate strange.csv -t mesh:4": "strange.csv binominal binomial?",
    "calibrate known.csv -t mesh:4 --fit link.bandwith": "--fit link.bandwith link.bandwidth?",
    "calibrate known.csv -t mesh:4 --ranks 2": "known.csv more --ranks",
    "calibrate pingpong.csv known.csv": "ping-pongs collectives kind",
    "calibrate pingpong.csv --hops 3": "pingpong.csv hops 3",
    "calibrate plain.csv --hops 99999999999999": "plain.csv hops 0 10,000",
    "map lu.S.4 -t mesh:4 --hosts slots.txt": "slots.txt line 1 slots=abc node0:4",
    "robust lu.S.4 -t mesh:4 -c identity,gone.csv": "file:gone.csv file",
    "run vary.toml": "vary.toml [[vary]]",
    "robust lu.S.4 -t mesh:4 --ranges ranges.toml": "link.bandwith link.bandwidth?",
    # what would change nothing, or means nothing
    "matrix lu.S.4 --out new.csv --set link.bandwith=1": "link.bandwith link.bandwidth?",
    "evaluate good map.csv --failures node=1": "map.csv rank 1 node down",
    "export map.csv --to openmpi --set link.latency=1us": "--set",
    "robust lu.S.4 -t mesh:4 -c sweep,sweep": "sweep twice once",
    "map lu.S.4 -t mesh:4 --nodelist node[0-3,1]": "node1 twice once",
    "simulate good map.csv --background uniform:1GB/s": "good --job good,map.csv",
    "mapp": "mapp map?",
    "info good --jsn": "--jsn --json",
}


def test_one_line_exit_2_and_nothing_written(here):
    """With --json an object as well, and without it nothing on stdout."""
    before = everything(here)
    for place, (words, named) in enumerate(BAD.items()):
        as_object = place % 8 > 0
        result = invoke([*words.split(), *["--json"] * as_object])
        assert result.exit_code == 2, (words, result.output)
        line = result.stderr.removeprefix(f"{COMPILING}\n")
        assert line.startswith("hopmap: "), (words, line)
        assert line.count("\n") == 1, (words, line)
        assert " bug " not in line, (words, line)
        said = {word.strip("():;,").rstrip(".") for word in line.replace("'", "").split()}
        assert set(named.split()) <= said, (words, line)
        answer = {"error": line.removeprefix("hopmap: ").rstrip()} if as_object else None
        assert (json.loads(result.stdout) if as_object else result.stdout or None) == answer, words
        assert everything(here) == before, words


def test_a_command_that_would_do_nothing_asks_for_what_to_do(here):
    result = invoke(["matrix", "good"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "expected --out FILE, --plot FILE or --json" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_line(here):
    Path("empty").chmod(0o500)
    result = invoke(["matrix", "good", "--out", "empty/new.csv"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "Permission denied" in line


def test_what_exists_is_replaced_whole_or_not_at_all(here):
    invoke(["matrix", "good", "--out", "map.csv", "--force"])
    assert Path("map.csv").read_text().startswith("src,dst,messages,bytes\n0,1,564,413040\n")
    invoke(["matrix", "cut", "--out", "map.csv", "--force"])
    assert Path("map.csv").read_text().startswith("src,dst,messages,bytes\n0,1,564,413040\n")


def test_a_mistake_of_ours_is_called_one_and_debug_shows_it(here, monkeypatch):
    def broken(*_, **__):
        raise ValueError("shapes do not match")  # as numpy would

    monkeypatch.setattr(reading, "_read", broken)
    result = invoke(["info", "good"])
    assert result.exit_code == 1
    assert "a bug in hopmap: ValueError: shapes do not match (HOPMAP_DEBUG=1" in result.stderr
    monkeypatch.setenv("HOPMAP_DEBUG", "1")
    result = invoke(["info", "good"])
    assert isinstance(result.exception, ValueError)


def test_ctrl_c_is_one_line_and_130(here, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "_read", interrupted)
    result = invoke(["matrix", "good", "--out", "new.npz", "--json"])
    assert result.exit_code == 130
    assert result.stderr == "hopmap: interrupted\n"
    assert json.loads(result.stdout) == {"error": "interrupted"}
    assert not Path("new.npz").exists()
