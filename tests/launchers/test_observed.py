"""Hosts of ranks in what launchers and programs print, and in the environment of a process."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.launchers.observed import read_environment, read_log, same_host
from hopmap.topologies import MappingError
from support import about
from support.slow import examples

# What was printed, cut to its lines; of a run with rank 1 on ha, ranks 0 and 2 on hb.
PRINTED = {
    "Open MPI 4.1.4, --display-map": """
 Data for JOB [9217,1] offset 0 Total slots allocated 6
 ========================   JOB MAP   ========================
 Data for node: hb\tNum slots: 2\tMax slots: 0\tNum procs: 2
 \tProcess OMPI jobid: [9217,1] App: 0 Process rank: 0 Bound: N/A
 \tProcess OMPI jobid: [9217,1] App: 0 Process rank: 2 Bound: N/A
 Data for node: ha\tNum slots: 2\tMax slots: 0\tNum procs: 1
 \tProcess OMPI jobid: [9217,1] App: 0 Process rank: 1 Bound: N/A
""",
    "Open MPI 5.0.11, --display map": """
Data for JOB prterun-vm-15176@1 offset 0 Total slots allocated 6
Data for node: hb\tState: 3\tFlags: DAEMON_LAUNCHED:MAPPED:SLOTS_GIVEN
        Daemon: [prterun-vm-15176@0,1]\tDaemon launched: True
        Data for proc: [prterun-vm-15176@1,0]
                Pid: 0\tLocal rank: 0\tNode rank: 0\tApp rank: 0
        Data for proc: [prterun-vm-15176@1,2]
                Pid: 0\tLocal rank: 1\tNode rank: 1\tApp rank: 2
Data for node: ha\tState: 3\tFlags: DAEMON_LAUNCHED:MAPPED:SLOTS_GIVEN
        Data for proc: [prterun-vm-15176@1,1]
                Pid: 0\tLocal rank: 0\tNode rank: 0\tApp rank: 1
""",
    "Open MPI 5.0.11, --report-bindings --output tag": """
[1,1]<stderr>: [ha:15240] Rank 1 bound to package[0][core:L0]
[1,2]<stderr>: [hb:15238] Rank 2 bound to package[0][core:L1]
[1,0]<stderr>: [hb:15238] Rank 0 bound to package[0][core:L0]
""",
    "Open MPI 4.1.4, --report-bindings": """
[hb:18561] MCW rank 0 bound to socket 0[core 0[hwt 0]]: [B/.]
[ha:18562] MCW rank 1 bound to socket 0[core 0[hwt 0]]: [B/.]
[hb:18561] MCW rank 2 is not bound (or bound to all available processors)
""",
    "Open MPI 4.1.4, --tag-output hostname": "[1,0]<stdout>:hb\n[1,2]<stdout>:hb\n[1,1]<stdout>:ha",
    "MPICH 5.0.2, -l hostname": "[2] hb\n[0] hb\n[1] ha\n",
    "srun -l, flux run --label-io": "0: hb\n 2: hb\n1: ha\n",
    "Intel MPI, I_MPI_DEBUG=4": """
[0] MPI startup(): Rank    Pid      Node name  Pin cpu
[0] MPI startup(): 0       3912     hb         {0,1}
[0] MPI startup(): 1       3913     ha         {0,1}
[0] MPI startup(): 2       3914     hb         {0,1}
""",
    "HPE, MPICH_RANK_REORDER_DISPLAY": """
[PE_0]: rank 0 is on hb; originally was on ha
[PE_0]: rank 1 is on ha; originally was on hb
[PE_0]: rank 2 is on hb; originally was on hb
""",
    "SimGrid 3.32, smpirun -map": "[rank 0] -> hb\n[rank 1] -> ha\n[rank 2] -> hb\n",
    "flux job taskmap --to=hosts": "hb: 0,2\nha: 1\n",
    "xthi": """
Hello from rank 0, thread 0, on hb. (core affinity = 0-63)
Hello from rank 0, thread 1, on hb. (core affinity = 0-63)
Hello from rank 2, thread 0, on hb. (core affinity = 64-127)
Hello from rank 1, thread 0, on ha. (core affinity = 0-63)
""",
    "a first program": """
Hello world from processor hb, rank 0 out of 3 processors
Hello world from processor ha, rank 1 out of 3 processors
Hello world from processor hb, rank 2 out of 3 processors
""",
    "another": """
Hello world: rank 0 of 3 running on hb
Hello world: rank 1 of 3 running on ha
Hello world: rank 2 of 3 running on hb
""",
    "hopmap check --live": """
rank 0 of 3 on hb: as m.csv has it
rank 1 of 3 on ha: m.csv has it on hb
rank 2 of 3 on hb: as m.csv has it
""",
    "echo $RANK $(hostname), among other lines": "12 iterations\n0 hb\nresidual 7\n1 ha\n2 hb\n",
    "host and rank": "hb 0\nha 1\nhb 2\n",
    "with a label": "[1,0]<stdout>: 0 hb\n[1,2]<stdout>: 2 hb\n[1,1]<stdout>: 1 ha\n",
}


@pytest.mark.parametrize("form", PRINTED)
def test_what_launchers_and_programs_print_is_read(form):
    assert read_log(PRINTED[form].splitlines(), "log", ["ha", "hb"]) == {0: "hb", 1: "ha", 2: "hb"}


def test_ranges_of_tasks_are_read():
    found = read_log(["fluke87: 0-2,5", "fluke88.site: 3-4"], "log")
    assert found == dict(enumerate(["fluke87"] * 3 + ["fluke88.site"] * 2 + ["fluke87"]))


def test_unknown_hosts_count_where_nothing_is_known():
    """Another machine than expected is an answer; a word of a program's output is not."""
    assert read_log(["0: a", "1: b"], "log", ["n1"]) == {0: "a", 1: "b"}
    assert read_log(["0: n1", "1: done"], "log", ["n1"]) == {0: "n1"}


def test_a_log_without_ranks_or_with_a_rank_twice_is_answered_in_one_line():
    for text, message in [
        ("", "log: no ranks with their hosts: expected lines like '3 node7'"),
        ("done in 3 s\n", "no ranks with their hosts"),
        ("rank 0 on a\nrank 0 on b\n", "log: line 2: rank 0 on b: line 1 has it on a"),
        ("a: 0-99999999\n", "no ranks with their hosts"),
    ]:
        with about(text), pytest.raises(MappingError, match=re.escape(message)) as error:
            read_log(text.splitlines(), "log")
        assert "\n" not in str(error.value)


@examples(300)
@given(st.text("0123 -,:;[]<>()rankonhstdouPM./\n\t", max_size=80))
def test_no_log_makes_the_reader_fail_but_by_saying_why(text):
    try:
        found = read_log(text.splitlines(), "log", ["host"])
    except MappingError as error:
        assert "\n" not in str(error)
    else:
        assert found and all(rank >= 0 and host for rank, host in found.items())


def test_a_host_may_lack_its_domain():
    assert same_host("n1", "n1.site")
    assert not same_host("n1", "n2.site")
    assert not same_host("n1.here", "n1.there")


def test_the_innermost_launcher_says_the_rank():
    """Of mpirun in a job of Slurm it is Open MPI's: Slurm's is the batch script's."""
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    for more, rank, ranks in [
        ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_RANK": "5"}, 5, 8),
        ({"PMI_RANK": "3", "PMI_SIZE": "4"}, 3, 4),
        ({"PALS_RANKID": "2"}, 2, None),
        ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2"}, 1, 2),
        ({}, 0, 1),
    ]:
        here = read_environment(slurm | more)
        assert (here.rank, here.ranks) == (rank, ranks)
    assert read_environment({"RANK": "6", "WORLD_SIZE": "7"}).rank == 6
    with pytest.raises(MappingError, match="--live: no rank of a launcher here: expected one of"):
        read_environment({"RANK": "x"})
