"""Runs that the tests of the explorer look at."""

import numpy as np
import pytest

import hopmap as hm
from hopmap.simulator import program_of
from hopmap.traces import Traffic
from hopmap.view.explorer import explore
from support import DATA
from support.archives import archives_read_here
from support.slow import slow

NETWORKS = {
    "torus": ("torus:4x2x2", DATA / "mg.S.16", None),
    "dragonfly": ("dragonfly:4x8x4", "lu.S.16", 2),
    "fat tree": ("fattree:4x4", "lu.S.16", 2),
}
SETTINGS = {"compute.scale": 0, "link.bandwidth": "1 GB/s"}


# Runs without messages, without time, without a network between their ranks.
STRANGE = {
    "one rank": (program_of("one", [[("compute", 1.0)]]), "torus:2", [0]),
    "no time": (program_of("idle", [[], []]), "torus:2", [1, 0]),
    "one node": (program_of("near", [[("send", 1, 9)], [("recv", 0, 9)]]), "torus:2*2", [1, 1]),
    "no bytes": (
        Traffic.from_pairs(4, [0, 1], [1, 2], [1, 1], [0, 0]),
        "fattree:2x2",
        [3, 2, 1, 0],
    ),
    "one switch": ("lu.S.8", "cluster:2*4", [0, 1] * 4),
    "links down": ("lu.S.8", hm.Machine("torus:4x2", failures="links=2"), np.arange(8)[::-1]),
    "some nodes": (
        *("lu.S.8", hm.Machine("dragonfly:2x4x2", nodelist="n[5-12]", names="n[0-71]")),
        np.arange(12, 4, -1),
    ),
}


def explored(kind):
    """Return machine, mapping and page of a random mapping."""
    spec, source, steps = NETWORKS[kind]
    workload, machine = hm.Workload(str(source), steps), hm.Machine(spec, SETTINGS)
    with archives_read_here():
        mapping = hm.map_ranks(workload, machine, "random", seed=3)
        return machine, mapping, explore(workload, machine, mapping, name="random")


@pytest.fixture(scope="session", params=["torus", *slow("dragonfly", "fat tree")])
def case(request):
    """Kind of network, and what `explored` returns."""
    return request.param, *explored(request.param)
