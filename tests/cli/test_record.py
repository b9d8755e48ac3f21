"""hopmap record as users type it: under each MPI that is installed, and its refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hopmap.cli import record
from support import ROOT
from support.commands import failed, hopmap, invoke
from support.real_mpi import ROOT_MAY, SAYS, installed
from support.recorded_runs import compiled, one_message


@pytest.fixture(scope="module", params=list(SAYS))
def mpi(request):
    return installed(request.param)


def launcher(mpi):
    crowded = ["--oversubscribe", "--bind-to", "none"] if "openmpi" in mpi.command("mpirun") else []
    return [mpi.command("mpirun"), *crowded, "-np", "2"]


def ran(folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "hopmap", "record", *map(str, words)],
        capture_output=True, text=True, cwd=folder, env=os.environ | ROOT_MAY,
    )  # fmt: skip


def test_a_program_that_aborts_leaves_an_archive_and_its_exit_code(mpi, tmp_path):
    program = compiled(mpi, "ending.c", tmp_path)
    done = ran(tmp_path, "--", *launcher(mpi), *program, "abort")
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines()[-1] == "written: recorded.otf2"
    assert "hopmap: ended without MPI_Finalize: rank 0 in MPI_Recv; what was" in done.stderr
    assert "hopmap: ended by MPI_Abort: rank 1" in done.stderr
    facts = json.loads(hopmap("info", tmp_path / "recorded.otf2", "--json"))
    assert (facts["ranks"], facts["messages"], facts["bytes"]) == (2, 5, 20)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ending", "recorded.otf2"]


def test_a_profile_and_a_batch_job_give_the_same_traffic(mpi, tmp_path):
    program = compiled(mpi, "ending.c", tmp_path)
    done = ran(tmp_path, "--profile", "--out", "a.csv", "--json", "--", *launcher(mpi), *program)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["messages"], facts["bytes"], facts["exit_code"]) == (5, 20, 0)
    assert facts["collectives"] == {"allreduce": [2, 8]}
    assert facts["missed"] == ["2 calls not recorded, as MPI_Pcontrol had switched recording off"]
    lines = ran(tmp_path, "--batch", "--out", "b.otf2", "--", *launcher(mpi), *program)
    job, merge = lines.stdout.splitlines()
    subprocess.run(job, shell=True, check=True, cwd=tmp_path, env=os.environ | ROOT_MAY)
    assert merge.startswith("hopmap record --merge ")
    assert ran(tmp_path, *merge.split()[2:]).returncode == 0
    csv = hopmap("matrix", tmp_path / "b.otf2", "--out", "-")
    assert csv == (tmp_path / "a.csv").read_text() == "src,dst,messages,bytes\n0,1,5,20\n"


@pytest.fixture
def halo(tmp_path, monkeypatch):
    """Words of a program of two ranks; its files are copied to where the recorder writes them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halo").mkdir()
    one_message(tmp_path / "halo")
    monkeypatch.setattr(
        record,
        "_with_library",
        lambda words, _, folder, __: ([*words, str(folder)], {}),
    )
    return ["--", "sh", "-c", 'touch ran; cp halo/* "$0"']


def test_the_exit_code_is_that_of_the_program(halo):
    done = invoke(["record", *halo[:3], f"{halo[3]}; exit 7"])
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (7, "written: recorded.otf2")


def otf2_of(folder):
    return sorted(each.name for each in folder.iterdir() if ".otf2" in each.name)


def test_a_second_recording_gets_the_next_number_and_the_first_is_as_it_was(halo, tmp_path):
    assert hopmap("record", *halo).endswith("written: recorded.otf2\n")
    before = {each: each.read_bytes() for each in tmp_path.glob("recorded.otf2/*.*")}
    assert hopmap("record", *halo).endswith("written: recorded-2.otf2\n")
    assert hopmap("record", "--out", "own.otf2", *halo).endswith("written: own.otf2\n")
    assert {each: each.read_bytes() for each in tmp_path.glob("recorded.otf2/*.*")} == before
    assert otf2_of(tmp_path) == ["own.otf2", "recorded-2.otf2", "recorded.otf2"]


def test_a_recording_is_not_replaced_and_that_is_said_before_the_program_is_run(halo, tmp_path):
    hopmap("record", "--out", "day.otf2", *halo)
    (tmp_path / "ran").unlink()
    (tmp_path / "counts.csv").touch()
    (tmp_path / "gone.otf2").symlink_to("elsewhere.otf2")
    for out, *more in (("day.otf2",), ("day.otf2", "--batch"), ("gone.otf2",)):
        said = failed("record", *more, "--out", out, *halo)
        assert f"--out {out}: exists: expected a new name" in said
    said = failed("record", "--profile", "--out", "counts.csv", *halo)
    assert "--out counts.csv: exists: expected a new name" in said
    assert not (tmp_path / "ran").exists()


def test_a_name_taken_while_the_program_runs_keeps_both(halo, tmp_path):
    """The recorded files stay, and the line says how they become an archive of another name."""
    done = invoke(["record", *halo[:3], halo[3].replace("touch ran", "mkdir recorded.otf2")])
    refused, kept = sorted(done.stderr.splitlines(), key=lambda line: "kept" in line)
    assert "recorded.otf2: exists: expected a new name" in refused
    raw = tmp_path / "recorded.otf2.raw"
    assert kept == f"hopmap: kept: {raw}: hopmap record --merge {raw} tries again"
    assert list((tmp_path / "recorded.otf2").iterdir()) == []
    assert hopmap(*kept.split()[4:7]).endswith("written: recorded-2.otf2\n")


def test_a_job_that_waits_has_its_name(halo, tmp_path):
    """Another that is prepared or recorded meanwhile gets the next."""
    merges = [hopmap("record", "--batch", *halo).splitlines()[1] for _ in range(2)]
    assert merges == [
        f"hopmap record --merge {tmp_path / name}.raw --out {name}"
        for name in ("recorded.otf2", "recorded-2.otf2")
    ]
    assert hopmap("record", *halo).endswith("written: recorded-3.otf2\n")
    said = failed("record", "--out", "recorded.otf2", *halo)
    assert "recorded.otf2.raw: of another recording" in said
    lines = hopmap("record", "--batch", "--out", "recorded.otf2", *halo)  # has not begun: the same
    assert lines.splitlines()[1].endswith("--out recorded.otf2")
    one_message(tmp_path / "recorded.otf2.raw")
    said = failed("record", "--batch", "--out", "recorded.otf2", *halo)
    assert "recorded.otf2.raw: of another recording" in said
    hopmap(*merges[0].split()[1:])
    assert "--out recorded.otf2: exists" in failed(*merges[0].split()[1:])


def test_what_cannot_be_recorded_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "expected a command behind --" in failed("record")
    assert "--out run.csv: expected a folder ending in .otf2" in failed(
        "record", "--out", "run.csv", "--", "mpirun", "true"
    )
    assert "--mpicc no_such_cc: no such command" in failed(
        "record", "--mpicc", "no_such_cc", "--", "true"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_program_without_mpi_is_said(mpi, tmp_path):
    done = ran(tmp_path, "--mpicc", mpi.command("mpicc"), "--", "true")
    assert done.returncode == 2
    assert "no recording in it: expected an MPI program" in done.stderr
    done = ran(tmp_path, "--mpicc", mpi.command("mpicc"), "--", "false")
    assert "false: ended with 1 before MPI_Init: nothing was recorded" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_sessions_alone_says_at_once_that_it_is_not_recorded(mpi, tmp_path):
    try:
        program = compiled(mpi, "sessions.c", tmp_path)
    except subprocess.CalledProcessError:
        pytest.skip("an MPI before MPI 4")
    done = ran(tmp_path, "--", *launcher(mpi), *program)
    assert done.returncode == 2
    first, *_, last = [line for line in done.stderr.splitlines() if "Sessions" in line]
    assert first.startswith("hopmap: MPI_Session_init: MPI Sessions alone are not recorded")
    assert last.endswith("MPI Sessions alone are not recorded: expected MPI_Init as well")
    assert done.stderr.count("MPI_Session_init") == 1  # of two processes


def test_the_lines_of_the_guide_do_what_it_says(tmp_path, monkeypatch):
    """Its mpicc and mpirun are Open MPI's."""
    mpi = installed("openmpi")
    page = (ROOT / "docs" / "how-to" / "record-a-trace.md").read_text(encoding="utf-8")
    block = re.search(r"runs it -->\n```\n(.*?)```", page, flags=re.DOTALL)
    assert block is not None
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("mpicc", "mpirun"):
        (commands / name).symlink_to(mpi.command(name))
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    before = f"{commands}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}"
    monkeypatch.setenv("PATH", before, prepend=os.pathsep)
    for part in ("\n" + block[1]).split("\n$ ")[1:]:
        command, _, printed = part.strip("\n").partition("\n")
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=os.environ | ROOT_MAY
        )
        assert done.returncode == 0, done.stderr
        assert not printed or done.stdout.strip() == printed.strip()
