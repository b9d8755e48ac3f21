"""Runs that the tests of the explorer look at."""

import pytest

import hopmap as hm
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
