"""Links that jobs share."""

from __future__ import annotations

import numpy as np

from hopmap.simulator.jobs import SharedLinks, shared_links


def test_what_two_jobs_have_on_their_links_most_bytes_first_and_the_link_of_most():
    loads = np.array([[5, 3, 0, 1, 0], [1, 4, 9, 0, 0], [0, 2, 2, 2, 0], [0, 0, 0, 0, 7]])
    assert shared_links("abcd", loads) == [
        SharedLinks(("b", "c"), 2, (13, 4), 2, (9, 2)),
        SharedLinks(("a", "b"), 2, (8, 5), 1, (3, 4)),
        SharedLinks(("a", "c"), 2, (4, 4), 1, (3, 2)),
    ]
