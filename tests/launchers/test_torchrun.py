"""Ranks for torchrun: every process gets its own, and GPUs of a host are nodes of their own."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from hopmap.launchers.formats import Launch, companions, export_mapping, get_launcher, usage
from hopmap.launchers.mapping_files import read_mapping
from hopmap.topologies import MappingError, topology_from_spec

GPUS = topology_from_spec("names:host[0-1]-gpu[0-2]@fattree:3x2:1x3")


def text_of(network, node_of):
    text = export_mapping("torchrun", np.array(node_of), network)
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_line_has_the_ranks_of_a_host_by_local_rank():
    assert text_of(GPUS, [5, 4, 3, 0, 2, 1]) == ["host0 3,5,4", "host1 2,1,0"]
    assert text_of(topology_from_spec("mesh:3*2"), [2, 0, 0, 2]) == ["node0 1,2", "node2 0,3"]


def test_gpus_are_taken_by_their_names():
    network = topology_from_spec("names:host-gpu1,host-gpu0@mesh:2")
    assert text_of(network, [0, 1]) == ["host 1,0"]


def test_it_is_read_back(tmp_path):
    file = tmp_path / "ranks"
    file.write_text(export_mapping("torchrun", np.array([5, 4, 3, 0, 2, 1]), GPUS))
    assert read_mapping(file, GPUS).tolist() == [5, 4, 3, 0, 2, 1]
    file.write_text("host1 0,1\nhost0 3,2\n")
    assert read_mapping(file, GPUS).tolist() == [3, 4, 1, 0]
    file.write_text("host1 0,1\nhost0 3;2\n")
    with pytest.raises(MappingError, match=r"line 2 is 'host0 3;2': expected HOST RANK,RANK"):
        read_mapping(file, GPUS, form="torchrun")


@pytest.mark.parametrize("node_of", [[0, 1, 3], [1, 2], [0, 2, 3, 4]])
def test_what_torchrun_cannot_start_is_refused(node_of):
    with pytest.raises(MappingError, match="expected as many on every host"):
        text_of(GPUS, node_of)


def test_the_command_counts_hosts_and_their_processes():
    launch = Launch(np.array([5, 4, 3, 0, 2, 1]), GPUS, GPUS.names, "ranks")
    command = usage(get_launcher("torchrun"), launch)
    assert "--nnodes=2 --nproc-per-node=3" in command and "import ranks_torchrun" in command


def test_every_process_gets_its_rank(tmp_path):
    """As torchrun sets their environment: ranks host after host."""
    node_of = [5, 4, 3, 0, 2, 1]
    file = tmp_path / "ranks"
    file.write_text(export_mapping("torchrun", np.array(node_of), GPUS))
    launch = Launch(np.array(node_of), GPUS, GPUS.names)
    ((module, lines),) = companions(get_launcher("torchrun"), file, launch).items()
    module.write_text(lines)
    found = {}
    for node, local in np.ndindex(2, 3):
        told = {"GROUP_RANK": node, "LOCAL_RANK": local, "RANK": 3 * node + local, "WORLD_SIZE": 6}
        rank = _run(tmp_path, told)
        found[int(rank.stdout)] = 3 * node + local
    assert [found[rank] for rank in range(6)] == node_of
    few = _run(tmp_path, told | {"WORLD_SIZE": 4})
    assert few.returncode and "4 processes: expected 6" in few.stderr


def test_hosts_in_another_order_are_noticed(tmp_path):
    own = os.uname().nodename.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z][\w-]*", own):
        pytest.skip(f"this host is called {own}")
    (tmp_path / "ranks").write_text(f"other 0\n{own} 1\n")
    launch = Launch(np.arange(2), GPUS, GPUS.names)
    ((module, lines),) = companions(get_launcher("torchrun"), tmp_path / "ranks", launch).items()
    module.write_text(lines)
    told = {"LOCAL_RANK": 0, "WORLD_SIZE": 2}
    assert _run(tmp_path, told | {"GROUP_RANK": 1}).stdout == "1\n"
    wrong = _run(tmp_path, told | {"GROUP_RANK": 0})
    assert wrong.returncode and f"--node-rank 0 is {own}: expected other" in wrong.stderr


def _run(folder, told):
    program = "import os, ranks_torchrun; print(os.environ['RANK'])"
    given = {key: str(value) for key, value in told.items()}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
