"""Ranks as Ray's actors: each is pinned to its host and knows its rank."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from hopmap.launchers.formats import Launch, companions, export_mapping, get_launcher
from hopmap.launchers.mapping_files import read_mapping
from hopmap.topologies import MappingError, topology_from_spec

NETWORK = topology_from_spec("names:n[1-3]@cluster:3*4")
NODE_OF = [2, 0, 0, 2, 2]

FAKE = """
from types import SimpleNamespace
names = {"n1.site": True, "n3": True, "n2": False}
def nodes():
    return [{"NodeManagerHostname": n, "Alive": alive, "NodeID": "id-" + n}
            for n, alive in names.items()]
"""
PINS = """
from collections import namedtuple
NodeAffinitySchedulingStrategy = namedtuple("Pinned", "node_id soft")
"""


def written(folder, node_of=NODE_OF, network=NETWORK):
    file = folder / "ranks"
    file.write_text(export_mapping("ray", np.array(node_of), network))
    launch = Launch(np.array(node_of), network, network.names)
    ((module, text),) = companions(get_launcher("ray"), file, launch).items()
    module.write_text(text)
    return file


def run(folder, program):
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout or done.stderr


def test_a_line_has_the_ranks_of_a_host_and_is_read_back(tmp_path):
    file = written(tmp_path)
    assert [line for line in file.read_text().splitlines() if line[0] != "#"] == [
        "n1 1,2", "n3 0,3,4"
    ]  # fmt: skip
    assert read_mapping(file, NETWORK).tolist() == NODE_OF


def test_an_actor_is_pinned_to_its_host_and_has_its_rank(tmp_path):
    """With a stand-in for Ray that knows two hosts, one by its full name."""
    (tmp_path / "ray" / "util").mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text(FAKE)
    (tmp_path / "ray" / "util" / "__init__.py").touch()
    (tmp_path / "ray" / "util" / "scheduling_strategies.py").write_text(PINS)
    written(tmp_path)
    program = (
        "from ranks_ray import *\nfor r in ranks:\n o = options(r, num_gpus=1)\n"
        " v = o['runtime_env']['env_vars']\n print(r, o['scheduling_strategy'].node_id, "
        "v['LOCAL_RANK'], v['LOCAL_WORLD_SIZE'], v['WORLD_SIZE'], o['num_gpus'])"
    )
    assert run(tmp_path, program).splitlines() == [
        "0 id-n3 0 3 5 1",
        "1 id-n1.site 0 2 5 1",
        "2 id-n1.site 1 2 5 1",
        "3 id-n3 1 3 5 1",
        "4 id-n3 2 3 5 1",
    ]
    written(tmp_path, [1])
    said = run(tmp_path, "import ranks_ray; ranks_ray.options(0)")
    assert "n2 is no node of this cluster: expected one of ['n1', 'n3']" in said


def test_the_gpu_of_an_actor_is_rays_choice():
    network = topology_from_spec("names:host[0-1]-gpu[0-2]@fattree:3x2:1x3")
    text = export_mapping("ray", np.array([5, 3, 0, 4]), network)
    assert text.splitlines()[-2:] == ["host0 2", "host1 1,3,0"]
    with pytest.raises(MappingError, match="ranks on GPUs 1 of host0: expected its first ones"):
        export_mapping("ray", np.array([1]), network)


@pytest.mark.slow
def test_ray_starts_the_actors_that_the_file_says(tmp_path):
    pytest.importorskip("ray", reason="needs Ray, which is in no extra")
    own = os.uname().nodename.partition(".")[0]
    if not re.fullmatch(r"[A-Za-z][\w-]*", own):
        pytest.skip(f"this host is called {own}")
    written(tmp_path, [0, 0], topology_from_spec(f"names:{own},other@cluster:2*2"))
    program = (
        "import os, ray\nfrom ranks_ray import options, ranks\nray.init(num_cpus=2)\n"
        "@ray.remote\nclass Worker:\n"
        "  def rank(self): return os.environ['RANK'], os.environ['LOCAL_RANK']\n"
        "workers = [Worker.options(**options(r)).remote() for r in ranks]\n"
        "print(ray.get([w.rank.remote() for w in workers]))"
    )
    assert run(tmp_path, program).splitlines()[-1] == "[('0', '0'), ('1', '1')]"
