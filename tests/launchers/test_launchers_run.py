"""Launchers really started with the files that hopmap writes, on nodes that one machine plays.

mpirun reaches a node by ssh; a stand-in runs the command here, under the node's name where the
system allows that (a UTS namespace). So these tests show that a launcher understands the file and
puts every rank on the node and the core that it says; nothing of networks, which one machine does
not have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hopmap.api.launch_check import check_launch
from hopmap.api.machine import Machine
from hopmap.launchers.formats import (
    Launch,
    companions,
    export_mapping,
    get_launcher,
    notes,
    write_launch,
)
from hopmap.launchers.mapping_files import write_mapping
from hopmap.simulator import Parameters, program_of_traffic
from hopmap.simulator.export.simgrid import INDEX, write
from hopmap.topologies import torus
from hopmap.topologies.readers.node import read_node
from hopmap.traces import Traffic

HERE = Path(__file__).parent
CORES = min(2, len(os.sched_getaffinity(0)))
NETWORK = torus((2, 2), slots=CORES)
HOSTS = ["hopmap-a7", "hopmap-b", "hopmap-c", "hopmap-d9"]
STAND_IN = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done  # options of ssh
host=$1; shift
export HOPMAP_NODE="$host"
for able in "unshare --uts" "unshare --map-root-user --uts"; do
    if $able hostname "$host" 2>/dev/null; then
        exec $able sh -c "hostname $host; $*"
    fi
done
exec sh -c "$*"
"""
MAPPINGS = {
    "full": np.random.default_rng(5).permutation(np.repeat(np.arange(4), CORES)),
    "one rank a node": np.array([2, 0, 3, 1]),
    "a node empty, one half full": np.array([3, 0, 3, 1][:: 3 - CORES]),
}


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """The stand-in for ssh."""
    script = tmp_path_factory.mktemp("ssh") / "ssh"
    script.write_text(STAND_IN)
    script.chmod(0o755)
    return script


def output(*words, folder=None):
    """Lines that a command prints, or what went wrong."""
    allowed = {
        f"{package}_ALLOW_RUN_AS_ROOT{confirm}": "1"
        for package in ("OMPI", "PRTE")
        for confirm in ("", "_CONFIRM")
    }
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=60, cwd=folder,
        env=os.environ | allowed,
    )  # fmt: skip
    return done.stdout.splitlines() if done.returncode == 0 else done.stderr + done.stdout


@pytest.fixture(scope="module")
def openmpi(ssh):
    """The mpirun of Open MPI, its version, and the options that make it call the stand-in."""
    if shutil.which("mpirun") is None:
        pytest.skip("no MPI: no command mpirun")
    version = re.search(r"Open MPI\) (\d+)", "\n".join(output("mpirun", "--version")))
    if version is None:
        pytest.skip("mpirun is not Open MPI's")
    if int(version[1]) < 5:
        return ["mpirun", "--mca", "plm_rsh_agent", ssh], int(version[1])
    return ["mpirun", "--prtemca", "plm_ssh_agent", ssh], int(version[1])


@pytest.fixture(scope="module")
def where(openmpi, tmp_path_factory):
    """The program that says where its processes sit."""
    if shutil.which("mpicc") is None:
        pytest.skip("no MPI: no command mpicc")
    program = tmp_path_factory.mktemp("where") / "where"
    subprocess.run(["mpicc", "-Wall", "-Wextra", "-o", program, HERE / "where.c"], check=True)
    return program


def allocation(node_of=None):
    """Hosts with their slots, all or as many as there are ranks on each, as --host lists them."""
    slots = NETWORK.slots if node_of is None else np.bincount(node_of, minlength=4)
    return ",".join(f"{host}:{n}" for host, n in zip(HOSTS, slots, strict=True) if n)


@pytest.mark.parametrize("name", MAPPINGS)
def test_open_mpi_places_every_rank_as_the_rankfile_says(openmpi, where, tmp_path, name):
    """On the node, and on a core of its own: the same slot is the same core on every node.

    The command is the one in the file's comment, Open MPI 4's or 5's.
    """
    mpirun, version = openmpi
    node_of, rankfile = MAPPINGS[name], tmp_path / "rankfile"
    text = export_mapping("openmpi", node_of, NETWORK, HOSTS, str(rankfile))
    rankfile.write_text(text)
    command = r"Open MPI 4: mpirun (.*)\)" if version < 5 else r"use it: mpirun (.*) \./a\.out"
    (options,) = re.findall(command, text)
    found = output(*mpirun, "--host", allocation(), *options.split(), where)
    assert isinstance(found, list), found
    said = {int(rank): rest for rank, *rest in map(str.split, found)}
    assert [said[rank][1] for rank in range(len(node_of))] == [HOSTS[node] for node in node_of]
    here = os.uname().nodename
    assert all(machine in (node, here) for machine, node, *_ in said.values())

    slots = map(int, re.findall(r"^rank .* slot=(\d+)$", text, flags=re.MULTILINE))
    bound: dict[int, set[str]] = {}
    for rank, slot in enumerate(slots):
        cpus = set(said[rank][2:])
        assert bound.setdefault(slot, cpus) == cpus
    assert sum(map(len, bound.values())) == len(set().union(*bound.values()))


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("launcher", ["prrte", "mpijob"])
def test_open_mpi_places_every_rank_as_a_list_of_hosts_says(
    openmpi, where, tmp_path, launcher, name
):
    """By its sequential mapper, with the options of the command in the file's comment."""
    mpirun, version = openmpi
    node_of, hostfile = MAPPINGS[name], tmp_path / "hostfile"
    text = export_mapping(launcher, node_of, NETWORK, HOSTS, str(hostfile))
    options = re.search(rf"(-np {len(node_of)}) ", text)[1]
    options += " --map-by seq" if version >= 5 else " --mca rmaps seq"
    if launcher == "mpijob":  # what is mounted is the hostfile alone
        text = pytest.importorskip("yaml").safe_load(text)["data"]["hostfile"]
    hostfile.write_text(text)
    found = output(*mpirun, "--hostfile", hostfile, *options.split(), where)
    assert isinstance(found, list), found
    said = {int(rank): rest for rank, *rest in map(str.split, found)}
    assert [said[rank][1] for rank in range(len(node_of))] == [HOSTS[node] for node in node_of]


def test_a_launch_is_checked_in_place_and_by_what_it_printed(openmpi, tmp_path):
    """Of a hostfile that is used, and of one that the launcher is not given."""
    mpirun, version = openmpi
    node_of, hosts, mapping = MAPPINGS["one rank a node"], ",".join(HOSTS), tmp_path / "m.csv"
    write_mapping(mapping, node_of, NETWORK)
    (tmp_path / "hosts").write_text(export_mapping("prrte", node_of, NETWORK, HOSTS))
    sequential = ["--map-by", "seq"] if version >= 5 else ["--mca", "rmaps", "seq"]
    live = [sys.executable, "-m", "hopmap", "check", "--live", mapping, "--nodelist", hosts]
    found = output(*mpirun, "-np", 4, "--hostfile", tmp_path / "hosts", *sequential, *live)
    if os.uname().nodename in "".join(found):
        pytest.skip("no UTS namespaces: all nodes have one name")
    assert isinstance(found, list), found
    assert sorted(found)[0] == f"rank 0 of 4 on {HOSTS[2]}: as {mapping} has it"
    (tmp_path / "log").write_text("\n".join(found))
    assert check_launch(tmp_path / "log", mapping, Machine(nodelist=hosts)).obeyed

    shows = ["--display", "map"] if version >= 5 else ["--display-map"]
    printed = output(*mpirun, "-np", 4, "--host", hosts, *shows, "hostname")
    (tmp_path / "log").write_text("\n".join(printed))
    done = check_launch(tmp_path / "log", mapping, Machine(nodelist=hosts))
    assert not done.obeyed
    assert "ranks fill one host after the other" in done.hint


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_open_mpi_binds_to_the_cores_of_a_node_that_is_described(
    openmpi, tmp_path, monkeypatch, threads
):
    """On a node that hwloc makes up, of two NUMA domains in each of two packages."""
    mpirun, version = openmpi
    monkeypatch.setenv("HWLOC_SYNTHETIC", "pack:2 numa:2 core:8 pu:2")
    here = os.uname().nodename
    launch = Launch(
        np.zeros(32 // max(threads, 4), np.int64), torus((1,), slots=32), [here],
        threads=threads, node=read_node("numa=4x8"),
    )  # fmt: skip
    rankfile = tmp_path / "rankfile"
    rankfile.write_text(write_launch(get_launcher("openmpi"), launch))
    shows = ["--display-devel-map", "-rf", rankfile]
    if version >= 5:
        shows = ["--display", "map-devel", "--map-by", f"rankfile:file={rankfile}"]
    found = output(*mpirun, "--host", f"{here}:32", *shows, "true")
    assert isinstance(found, list), found
    bound = [line for line in found if line.strip().startswith("Binding:")]
    cores = [
        (int(first), int(last or first))
        for first, last in re.findall(r" slot=(\d+)(?:-(\d+))? #", rankfile.read_text())
    ]
    assert len(bound) == len(cores) == len(launch.node_of)
    for line, (first, last) in zip(bound, cores, strict=True):
        if version < 5:  # B for a thread that it is bound to, in brackets of the package's cores
            here_bound = [n for n, core in enumerate(re.findall(r"BB|\.\.", line)) if core == "BB"]
            assert here_bound == [*range(first, last + 1)]
        else:
            (numbers,) = re.findall(r"core:L([\d-]+)\]", line)
            assert numbers in (f"{first}-{last}", str(first))
            assert ("-" in numbers) == (last > first)


@pytest.mark.parametrize("name", ["block", "cyclic"])
def test_open_mpi_places_ranks_on_nodes_by_the_option_that_is_noted(openmpi, where, name):
    """Without a rankfile, on hosts in the order of the nodes' numbers."""
    node_of = np.repeat(np.arange(4), CORES)
    node_of = node_of if name == "block" else np.tile(np.arange(4), CORES)
    hosts = sorted(HOSTS)
    launch = Launch(node_of, NETWORK, hosts)
    note = notes(get_launcher("openmpi"), launch)[-1]
    (options,) = re.findall(r": mpirun (-n .*) \./a\.out$", note)
    slots = ",".join(f"{host}:{CORES}" for host in hosts)
    found = output(*openmpi[0], "--host", slots, *options.split(), where)
    assert isinstance(found, list), found
    said = {int(rank): rest for rank, *rest in map(str.split, found)}
    assert [said[rank][1] for rank in range(len(node_of))] == [hosts[node] for node in node_of]


@pytest.fixture(scope="module")
def mpi4py():
    """Skip where mpi4py is not installed or finds no MPI."""
    loads = [sys.executable, "-c", "from mpi4py import MPI"]
    if subprocess.run(loads, capture_output=True).returncode:
        pytest.skip("no mpi4py, or no MPI for it")


def reordered(openmpi, folder, node_of, *options):
    """Process, its rank in the snippet's communicator and its node, of processes of mpirun."""
    plan = folder / "plan.json"
    plan.write_text(export_mapping("json", node_of, NETWORK, HOSTS))
    launch = Launch(node_of, NETWORK, HOSTS)
    for path, text in companions(get_launcher("json"), plan, launch).items():
        path.write_text(text)
    program = "import os\nfrom plan_mpi4py import comm, world\n"
    program += "lines = world.gather(f'{world.rank} {comm.rank} {os.environ[\"HOPMAP_NODE\"]}')\n"
    program += "print('\\n'.join(lines or []), end='\\n' if lines else '')\n"
    (folder / "program.py").write_text(program)
    number = str(len(node_of))
    return output(
        *openmpi[0], "--host", allocation(node_of), "-np", number, *options,
        sys.executable, "program.py", folder=folder,
    )  # fmt: skip


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_lines_of_mpi4py_give_each_process_its_rank(openmpi, mpi4py, tmp_path, name):
    """Launched node after node, rank r of the new communicator is a process on r's node."""
    node_of = MAPPINGS[name]
    found = reordered(openmpi, tmp_path, node_of, "--map-by", "slot", "--bind-to", "none")
    assert isinstance(found, list), found
    said = {int(rank): (int(process), node) for process, rank, node in map(str.split, found)}
    assert [said[rank][1] for rank in range(len(node_of))] == [HOSTS[node] for node in node_of]
    assert [said[rank][0] for rank in np.argsort(node_of, kind="stable")] == sorted(
        process for process, _ in said.values()
    )


def test_processes_that_are_not_where_the_lines_expect_them_are_told(openmpi, mpi4py, tmp_path):
    if CORES < 2:
        pytest.skip("needs two cores")
    node_of = np.array([0, 0, 1])
    found = reordered(openmpi, tmp_path, node_of, "--map-by", "node", "--bind-to", "none")
    assert "nodes have not the processes that are expected" in found


@pytest.mark.parametrize("name", MAPPINGS)
def test_hydra_places_every_rank_as_the_machinefile_says(ssh, tmp_path, name):
    """The launcher of Intel MPI and of MPICH."""
    if shutil.which("mpiexec.hydra") is None:
        pytest.skip("no command mpiexec.hydra")
    node_of, machinefile = MAPPINGS[name], tmp_path / "machinefile"
    machinefile.write_text(export_mapping("intel", node_of, NETWORK, HOSTS))
    found = output(
        *("mpiexec.hydra", "-bootstrap", "ssh", "-bootstrap-exec", ssh),
        *("-machinefile", machinefile, "-n", len(node_of)),
        *("sh", "-c", "echo $PMI_RANK $HOPMAP_NODE"),
    )
    assert isinstance(found, list), found
    assert sorted(found) == [f"{rank} {HOSTS[node]}" for rank, node in enumerate(node_of)]


@pytest.mark.parametrize("name", MAPPINGS)
def test_simgrid_places_every_rank_as_the_hostfile_says(tmp_path, name):
    """On the platform that is written beside it, with the same names."""
    if shutil.which("smpirun") is None:
        pytest.skip("SimGrid not installed")
    node_of, hostfile = MAPPINGS[name], tmp_path / "hosts.txt"
    ranks = np.arange(len(node_of))
    ones = np.ones_like(ranks)
    ring = Traffic.from_pairs(len(ranks), ranks, np.roll(ranks, 1), ones, 1000 * ones)
    write(tmp_path / "tit", program_of_traffic(ring), Parameters(), None)
    hostfile.write_text(export_mapping("simgrid", node_of, NETWORK, HOSTS))
    launch = Launch(node_of, NETWORK, HOSTS)
    ((platform, text),) = companions(get_launcher("simgrid"), hostfile, launch).items()
    platform.write_text(text)
    done = subprocess.run(
        ["smpirun", "-map", "-hostfile", hostfile, "-platform", platform, "-replay", INDEX],
        capture_output=True, text=True, timeout=60, cwd=tmp_path / "tit", check=True,
    )  # fmt: skip
    placed = re.findall(r"\[rank (\d+)\] -> (\S+)", done.stderr + done.stdout)
    assert placed == [(str(rank), HOSTS[node]) for rank, node in enumerate(node_of)]
