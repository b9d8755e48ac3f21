"""NAS MG: layouts, idle ranks on coarse levels, totals of recorded runs."""

import numpy as np
import pytest

from hopmap.traces import nas_traffic
from hopmap.traces.nas.mg import CLASSES, mg_problem
from support import about


def test_layouts():
    shapes = {ranks: mg_problem("D", ranks).p for ranks in (1, 2, 4, 8, 16, 32, 64, 128)}
    assert shapes == {
        1: (1, 1, 1),
        2: (1, 1, 2),
        4: (1, 2, 2),
        8: (2, 2, 2),
        16: (2, 2, 4),
        32: (2, 4, 4),
        64: (4, 4, 4),
        128: (4, 4, 8),
    }


def test_every_level_is_shared_out_whole():
    for ranks in [2, 16, 512, 4096]:
        for nas_class in CLASSES:
            with about(ranks, nas_class):
                p = mg_problem(nas_class, ranks)
                edges = 2 << np.arange(len(p.points))
                assert edges[-1] == p.n
                # Along an axis, all ranks of other coordinates see the same points.
                others = ranks // np.array(p.p)
                assert np.array_equal(p.points.sum(axis=2), np.outer(edges, others))
                assert np.array_equal(p.points.prod(axis=1).sum(axis=1), edges**3)


@pytest.mark.parametrize("ranks", [2, 16, 128, 1024])
def test_neighbours_are_mutual_and_have_points(ranks):
    p = mg_problem("S", ranks)
    for k, alive in enumerate(p.alive):
        for axis in range(3):
            up, down = p.up[k, axis], p.down[k, axis]
            assert np.array_equal(down[up], np.arange(ranks))
            assert alive[up[alive]].all()


@pytest.mark.parametrize("ranks", [2, 16, 128, 1024])
def test_those_that_get_points_lie_next_to_those_that_had_some(ranks):
    p = mg_problem("S", ranks)
    for k in range(1, len(p.alive)):
        gets = p.alive[k] & ~p.alive[k - 1]
        assert np.array_equal(gets, p.alive[k] & p.takes[k].any(axis=0))
        for axis in range(3):
            assert np.array_equal(
                np.sort(p.up[k, axis][p.gives[k, axis]]), np.flatnonzero(p.takes[k, axis])
            )


def test_totals_of_recorded_runs():
    assert nas_traffic("mg.S.16").messages.sum() == 6_704
    assert nas_traffic("mg.S.16").bytes.sum() == 3_890_944
    assert nas_traffic("mg.W.16").messages.sum() == 9_584


def test_one_rank_along_an_axis_is_its_own_neighbour():
    traffic = nas_traffic("mg.S.2")
    assert (traffic.src == traffic.dst).sum() == 2
    assert nas_traffic("mg.S.1").pairs == 0  # but alone it does without messages
