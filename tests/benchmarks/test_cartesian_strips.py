"""Strips that hang together, and what a snake costs."""

import numpy as np
import pytest
from cartesian_strips import apart, pieces, snake

from hopmap.mappers.cartesian.strips import squarest_strips_all


def test_a_node_at_two_corners_is_in_two_pieces():
    numbers = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    assert pieces(numbers, (2, 2), np.array([0, 0, 1, 1])) == 4
    assert pieces(numbers, (2, 2), np.array([0, 1, 0, 1])) == 2


def test_the_published_width_keeps_nodes_in_one_piece_and_the_narrower_not_always(capsys):
    """By the narrower one a node of 5 x 3 x 8 ranks is in two, with nodes of eight."""
    assert apart(7) == {"wider": 0, "narrower": 0}
    assert "carry=wider): in pieces in 0 of " in capsys.readouterr().out
    found = [
        pieces(squarest_strips_all((5, 3, 8), 8, carry), (5, 3, 8), np.arange(120) // 8)
        for carry in ("wider", "narrower")
    ]
    assert found[0] == 15 < found[1]


@pytest.mark.slow
def test_a_snake_costs_little(capsys):
    assert snake() == (38, 81)
    assert "1526, worst node 64" in capsys.readouterr().out
