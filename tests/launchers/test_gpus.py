"""Nodes that are GPUs, in files of launchers that know hosts alone."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hopmap.launchers.formats import (
    TABLE,
    Launch,
    companions,
    export_mapping,
    get_launcher,
    notes,
    place_on_hosts,
    usage,
)
from hopmap.launchers.mapping_files import read_mapping
from hopmap.topologies import MappingError, topology_from_spec
from hopmap.topologies.readers.node import read_node
from support import about

NETWORK = topology_from_spec("names:h[0-2]-gpu[0-1]@fattree:2x3:1x2")
IN_ORDER, CROSSED = [4, 5, 0, 1], [5, 4, 0, 1]


def launch_of(name, node_of):
    launch = Launch(np.array(node_of), NETWORK, NETWORK.names, "ranks")
    return place_on_hosts(get_launcher(name), launch)


def test_no_launcher_that_names_hosts_takes_a_gpu_for_one(tmp_path):
    """Nor does its command or its second file; SimGrid's platform has the GPUs themselves."""
    for name in TABLE:
        form = get_launcher(name)
        if not form.named or name == "simgrid":
            continue
        with about(name):
            launch = launch_of(name, IN_ORDER)
            text = "\n".join(form.write(launch))
            assert {"h0", "h2"} <= set(re.findall(r"h\d", text)) or name in ("cray", "pals")
            said = [text, usage(form, launch), *companions(form, tmp_path / "r", launch).values()]
            assert not re.search(r"h\d-gpu", "".join(said))


def test_hosts_stand_once_for_each_of_their_ranks():
    for name, lines in [
        ("slurm", ["h2", "h2", "h0", "h0"]),
        ("mpijob", ["    h2", "    h2", "    h0", "    h0"]),
        ("likwid", ["# ranks on each: 2", "h2", "h0"]),
        ("openmpi", [f"rank {r}=h{h} slot={s}" for r, h, s in
                     [(0, 2, 0), (1, 2, 1), (2, 0, 0), (3, 0, 1)]]),
    ]:  # fmt: skip
        with about(name):
            text = export_mapping(name, np.array(IN_ORDER), NETWORK)
            assert text.splitlines()[-len(lines) :] == lines
            assert "# nodes: h0,h2\n" in text.replace("h[0,2]", "h0,h2")


@pytest.mark.parametrize("node_of", [IN_ORDER, CROSSED, [1, 3, 5]])
def test_the_comment_with_the_gpus_lets_files_be_read_back(tmp_path, node_of):
    for name in ("slurm", "mpijob", "openmpi", "intel", "prrte", "cray", "pals"):
        with about(name):
            (tmp_path / "file").write_text(export_mapping(name, np.array(node_of), NETWORK))
            assert read_mapping(tmp_path / "file", NETWORK).tolist() == node_of
    text = export_mapping("slurm", np.array(node_of), NETWORK)
    (tmp_path / "file").write_text(re.sub("# gpus: .", "# gpus: 0,0", text))
    with pytest.raises(MappingError, match=r"gpus: \d of them: expected one for each of"):
        read_mapping(tmp_path / "file", NETWORK)


def test_a_note_says_whether_ranks_get_their_gpus_by_their_numbers():
    slurm = get_launcher("slurm")
    assert notes(slurm, launch_of("slurm", IN_ORDER))[-1].endswith("local rank K is on GPU K")
    (*_, crossed) = notes(slurm, launch_of("slurm", CROSSED))
    assert "not every local rank K is on GPU K: let the program take the GPU" in crossed
    own = Launch(np.array(IN_ORDER), NETWORK, ["a", "b", "c", "d", "e", "f"])
    assert place_on_hosts(slurm, own) is own


def test_a_rankfile_does_not_name_another_gpu_than_the_mapping():
    launch = Launch(np.array(CROSSED), NETWORK, NETWORK.names, node=read_node("numa=2x4,gpu=2"))
    openmpi = get_launcher("openmpi")
    with pytest.raises(MappingError, match="openmpi: ranks of a host are not on its GPUs in order"):
        place_on_hosts(openmpi, launch)
    placed = place_on_hosts(openmpi, replace(launch, node_of=np.array(IN_ORDER)))
    assert openmpi.write(placed)[1].endswith("GPU 1")
