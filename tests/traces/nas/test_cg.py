"""NAS CG: the published matrix of MapLib's study, layouts, messages to oneself."""

import numpy as np
import pytest

from hopmap.traces import load_traffic, nas_traffic
from hopmap.traces.nas.cg import CLASSES, cg_problem
from support import about


def test_the_matrix_that_was_published_with_maplib_is_class_c(shared):
    folder = shared / "maplib" / "mapping-matters-commMatrices" / "cgCMatrices"
    published = load_traffic(folder / "comm_matrix.p2p.count.csv")  # and the sizes beside it
    assert nas_traffic("cg.C.64").same_as(published)


def test_published_totals():
    traffic = nas_traffic("cg.C.64")  # 1.28 million messages; 15,808 to oneself
    own = traffic.src == traffic.dst
    assert traffic.messages.sum() == 1_279_232
    assert traffic.messages[own].sum() == 15_808
    assert set(traffic.messages.tolist()) == {26 * 76, 79 * 76}
    assert nas_traffic("cg.W.16").messages.sum() == 47_104


@pytest.mark.parametrize(("ranks", "own"), [(2, 2), (4, 2), (8, 4), (16, 4), (32, 8), (64, 8)])
def test_ranks_on_the_diagonal_send_to_themselves(ranks, own):
    p, traffic = cg_problem("S", ranks), nas_traffic(f"cg.S.{ranks}")
    assert (traffic.src == traffic.dst).sum() == own
    assert (p.C, p.R) in {(p.R, p.R), (2 * p.R, p.R)}


def test_partners_are_each_others_and_pieces_add_up():
    for ranks in [1, 2, 4, 8, 64, 128, 1024]:
        for nas_class in CLASSES:
            with about(ranks, nas_class):
                p = cg_problem(nas_class, ranks)
                me = np.arange(ranks)
                for partner in (*p.partners, p.transpose):
                    assert np.array_equal(partner[partner], me)
                for partner in p.partners:
                    assert np.array_equal(partner // p.C, me // p.C)  # in the own row
                # Pieces of a column of ranks are the vector, as often as several ranks have one.
                copies = p.C // (p.C // p.R)
                assert p.lengths[-1].sum() == p.n * copies
