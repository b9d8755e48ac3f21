"""hopmap calibrate: files of ping-pongs, and what the command writes."""

import json
import tomllib

import numpy as np
import pytest

from hopmap.simulator import program_of, simulate
from hopmap.simulator.parameters.pingpong_files import PingPongError, read_pingpong
from hopmap.simulator.parameters.settings import SettingError, configure, parse_settings
from hopmap.topologies import mesh
from support import about
from support.commands import invoke

OSU = """# OSU MPI Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
0                       1.10
1                       1.21
8                       1.22
1024                    1.95

"""
IMB = """#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.10         0.00
            1         1000         1.21         0.83
            8         1000         1.22         6.56
         1024         1000         1.95       525.13

#---------------------------------------------------
# Benchmarking PingPing
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         9.99         0.00
"""
CSV = "# my cluster\nsize,time\n0,1.10 us\n1 B,1.21 us\n8 B,1220 ns\n1 KiB,0.00195 ms\n"
BARE = "size,time\n0,1.10\n1,1.21\n8,1.22\n1024,1.95\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="pp.txt"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


@pytest.mark.parametrize("text", [OSU, IMB, CSV], ids=["osu", "imb", "csv"])
def test_three_formats_say_the_same(written, text):
    data = read_pingpong(written(text), hops=2)
    assert data.size.tolist() == [0, 1, 8, 1024]
    assert data.time == pytest.approx([1.10e-6, 1.21e-6, 1.22e-6, 1.95e-6])
    assert data.hops.tolist() == [2, 2, 2, 2]
    halved = read_pingpong(written(text), round_trip=True)
    assert halved.time.tolist() == (data.time / 2).tolist()


def test_the_pingpong_is_found_among_other_benchmarks(written):
    exchange = """# Benchmarking Sendrecv
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         9.10         9.20         9.15         0.00
"""
    data = read_pingpong(written(exchange + IMB))
    assert data.time == pytest.approx([1.10e-6, 1.21e-6, 1.22e-6, 1.95e-6])
    threads = OSU.replace("MPI Latency", "MPI-CUDA Multi-threaded Latency")
    assert read_pingpong(written(threads)).size.tolist() == [0, 1, 8, 1024]


def test_hops_are_read_where_there_is_a_column(written):
    data = read_pingpong(written("hops,bytes,time\n0,1,1us\n3,1,2us\n"))
    assert data.hops.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("head", "size", "time"),
    [
        ("bytes,time_us", 1, 1e-6),
        ("size_KiB,Latency (us)", 1024, 1e-6),
        ("bytes, t[usec]", 1, 1e-6),
        ("MiB,seconds", 2**20, 1),
        ("message_size_bytes,time-ms", 1, 1e-3),
    ],
)
def test_columns_say_their_units(written, head, size, time):
    data = read_pingpong(written(f"{head}\n0,2\n4,3\n8,5 ns\n"))
    assert data.size.tolist() == [0, 4 * size, 8 * size]
    assert data.time == pytest.approx([2 * time, 3 * time, 5e-9])


def test_an_option_says_the_units_that_a_file_does_not(written):
    file = written(BARE)
    data = read_pingpong(file, unit=("us", "B"))
    assert data.time == pytest.approx([1.10e-6, 1.21e-6, 1.22e-6, 1.95e-6])
    found = invoke(["calibrate", file, "--unit", "B", "--unit", "us", "--json"])
    assert [row["size"] for row in json.loads(found.stdout)["measurements"]] == [0, 1, 8, 1024]
    assert invoke(["calibrate", file, "--unit", "us"]).exit_code == 2  # sizes have none


@pytest.mark.parametrize(
    ("text", "units", "said"),
    [
        (BARE, ["parsec"], "unit 'parsec': expected one of times, like us, or of sizes, like KiB"),
        (BARE, ["us", "ms"], "units us and ms: expected one of them"),
        (BARE.replace("time", "time_s"), ["us"], "unit us: column 'time_s' has one"),
        (OSU, ["us"], "unit us: what osu_latency prints has units"),
        (IMB, ["B"], "unit B: what IMB-MPI1 PingPong prints has units"),
    ],
)
def test_a_unit_that_says_nothing_or_another_is_refused(written, text, units, said):
    with pytest.raises(PingPongError) as error:
        read_pingpong(written(text), unit=units)
    assert said in str(error.value)


def test_a_bad_file_is_one_line(written):
    for text, message in [
        ("", "no measurements: expected one of"),
        ("bytes,speed\n1,2\n", "line 1 is 'bytes,speed': expected a header like bytes,time_us"),
        ("bytes,time_MiB\n1,2\n", "line 1 is 'bytes,time_MiB': expected a header"),
        ("bytes,KiB\n1,2\n", "line 1 is 'bytes,KiB': expected a header"),
        ("bytes,time\n1,2 parsec\n", "line 2: '2 parsec': unknown unit"),
        (
            "bytes,time\n0,1 us\n8,267\n",
            "line 3: time 267 has no unit: name the column time_us, write 267us, or give --unit us",
        ),
        (
            "size,time_us\n8,267\n",
            "line 2: size 8 has no unit: name the column size_B, write 8B, or give --unit B",
        ),
        ("size,time\n1\n", "line 2: 1 cells: expected 2"),
        ("size,time\n1.5,1us\n", "line 2: size 1.5 has no unit"),
        ("bytes,time\n1.5,1us\n", "line 2: '1.5': expected whole bytes"),
        ("bytes,time,hops\n1,1us,far\n", "line 2: hops 'far': expected a whole number"),
        ("bytes,time\n1e300,1us\n", "expected a size of a message"),
        ("bytes,time\n-1e30,1us\n", "expected a size of a message"),
        (OSU.replace("1.22", "fast"), "line 6 is '8 fast'"),
        (OSU.replace("Latency Test", "Allreduce Latency Test"), "line 1 is '# OSU MPI Allreduce"),
        (OSU.replace("MPI Latency", "MPI_Put Latency"), "expected what osu_latency prints"),
        (OSU.replace("(us)", "(ns)"), "line 3 is '# Size Avg Latency(ns)'"),
        (IMB.replace("PingPong", "Exchange"), "'# Benchmarking PingPing': expected PingPong"),
        (
            "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec\n1 9 1 2 1.5 1\n",
            "line 1 is '#bytes #repetitions t_min[usec]",
        ),
        ("bytes,time\n1,1us\n2,1us\n3,0\n", "time 0.0 s of 3 bytes"),
        ("bytes,time\n1,1us\n2,1us\n", "2 sizes: expected at least 3"),
    ]:
        with about(text, message):
            result = invoke(["calibrate", str(written(text))])
            assert result.exit_code == 2
            assert message in result.stderr
            assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path, written):
    with pytest.raises(PingPongError, match="No such file"):
        read_pingpong(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    with pytest.raises(PingPongError, match="it is not text"):
        read_pingpong(tmp_path / "binary")


@pytest.mark.parametrize("text", [OSU, IMB, CSV], ids=["osu", "imb", "csv"])
def test_changed_files_are_read_or_refused(tmp_path, text):
    rng, file, refused = np.random.default_rng(0), tmp_path / "x", 0
    for _ in range(200):
        changed = bytearray(text.encode())
        begin = rng.integers(len(changed))
        changed[begin : begin + rng.integers(1, 4)] = rng.bytes(rng.integers(3))
        file.write_bytes(changed)
        try:
            read_pingpong(file)
        except PingPongError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20


@pytest.mark.usefixtures("drawn")
def test_what_is_written_simulates_to_what_was_measured(tmp_path, written):
    """From the file to parameters, from those to simulated times, on another line of nodes."""
    sizes = [0, *(2**k for k in range(21))]
    times = {
        (s, h): 1e-6 + (3 if s >= 4096 else 1) * (5e-7 + h * 2e-7) + s / 8e9
        for s in sizes
        for h in (1, 4)
    }
    rows = "".join(f"{s},{t!r},{h}\n" for (s, h), t in times.items())
    out, plot = tmp_path / "fit.toml", tmp_path / "fit.svg"
    done = invoke(
        [
            "calibrate",
            str(written("bytes,seconds,hops\n" + rows)),
            "--out",
            str(out),
            "--plot",
            str(plot),
        ]
    )
    assert done.exit_code == 0, done.output
    assert "eager limit: a break between 2,048 and 4,096 bytes" in done.output
    assert plot.read_text().startswith("<?xml")
    assert tomllib.loads(out.read_text())["parameters"]["eager_limit"] == 4096
    line, parameters = configure(mesh((5,)), parse_settings([str(out)]))
    for (size, hops), time in times.items():
        program = program_of(
            "ping-pong",
            [[("send", 1, size), ("recv", 1, size)], [("recv", 0, size), ("send", 0, size)]],
        )
        result = simulate(program, line, [0, hops], parameters=parameters, engine="simpy")
        assert result.makespan / 2 == pytest.approx(time, rel=1e-6)


def test_json_has_parameters_and_residuals(written):
    done = invoke(["calibrate", str(written(CSV)), "--json"])
    facts = json.loads(done.output)
    assert facts["proportioned"] == ["overhead", "ends", "link"]
    assert facts["break_between"] is None
    assert [row["size"] for row in facts["measurements"]] == [0, 1, 8, 1024]
    assert all(abs(row["fitted"] / row["time"] - 1) < 0.12 for row in facts["measurements"])


def test_errors_are_of_all_measurements_in_text_json_and_toml(written, tmp_path):
    rows = [(2**k, 1e6 / 1.427 if k == 20 else 2**k / 1000) for k in range(10, 24)]
    file = written("bytes,time_us\n" + "".join(f"{size},{1 + time}\n" for size, time in rows))
    done = invoke(["calibrate", file, "--out", tmp_path / "fit.toml"])
    said = [line for line in done.stdout.splitlines() if "error of the fit, over all 14" in line]
    assert len(said) == 1
    assert "; 1 of them left out of the fit as wild" in said[0]
    assert "predicted from the other sizes: error" in done.stdout
    assert f"# {said[0]}\n" in (tmp_path / "fit.toml").read_text()
    facts = json.loads(invoke(["calibrate", file, "--json"]).stdout)
    largest = max(abs(row["fitted"] / row["time"] - 1) for row in facts["measurements"])
    assert facts["max_error"] == pytest.approx(largest)
    assert f"{100 * largest:.3g} % at most" in said[0]
    assert len([row for row in facts["measurements"] if row["from_other_sizes"]]) == 14


def test_words_win_over_a_file_of_parameters(written):
    file = written('[parameters]\n"overhead.send" = 1e-6\n"eager_limit" = "8 KiB"\n', "p.toml")
    given = dict(parse_settings(["eager_limit=1", str(file)]))
    assert given == {"overhead.send": 1e-6, "eager_limit": "1"}
    for text, message in (
        ("", "no table"),
        ("[parameters", "as TOML"),
        ("[parameters]\ngap = true", "expected a number or a text"),
    ):
        with pytest.raises(SettingError, match=message):
            parse_settings([str(written(text, "bad.toml"))])
    with pytest.raises(SettingError, match="No such file"):
        parse_settings(["none.toml"])
