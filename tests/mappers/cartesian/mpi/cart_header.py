"""What tests of hopmap_cart.h share: its codes of errors, and the same coordinates in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hopmap.mappers
from hopmap.mappers.cartesian.boxes import factorise_all, gropp_all, level_factors
from hopmap.mappers.cartesian.grid import all_row_major, crossing
from hopmap.mappers.cartesian.halvings import (
    dividing_mean,
    hyperplane_all,
    kd_tree_all,
    skewed_kd_tree_all,
)
from hopmap.mappers.cartesian.strips import squarest_strips_all, stencil_strips_all

HEADER = Path(hopmap.mappers.__file__).parent / "cartesian" / "mpi" / "hopmap_cart.h"
FLAGS = ["-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}"]
DIMS, INDEX, NODES = -1, -2, -3  # the header's codes
ALGORITHM, PROCESSES, WEIGHTS, LEVELS = -5, -6, -7, -8

# Coordinates of all indices, from dims, the ranks on each node, and the stencil.
EVERYONE = {
    "row_major": lambda dims, sizes, stencil: all_row_major(dims),
    "kd_tree": lambda dims, sizes, stencil: kd_tree_all(dims),
    "skewed_kd_tree": lambda dims, sizes, stencil: skewed_kd_tree_all(dims, stencil),
    "squarest_strips": lambda dims, sizes, stencil: squarest_strips_all(dims, max(sizes)),
    "squarest_strips(carry=narrower)": lambda dims, sizes, stencil: squarest_strips_all(
        dims, max(sizes), "narrower"
    ),
    "squarest_strips(path=snake)": lambda dims, sizes, stencil: squarest_strips_all(
        dims, max(sizes), path="snake"
    ),
    "stencil_strips": lambda dims, sizes, stencil: stencil_strips_all(
        dims, sum(sizes) // len(sizes), stencil
    ),
    "hyperplane": lambda dims, sizes, stencil: hyperplane_all(dims, dividing_mean(sizes), stencil),
    "gropp": lambda dims, sizes, stencil: gropp_all(dims, sizes[0]),
    "factorisation": lambda dims, sizes, stencil: factorise_all(
        level_factors(dims, (len(sizes), sizes[0]), crossing(stencil, None, len(dims)))
    ),
}
EQUAL = ("gropp", "factorisation")  # they take nodes of one size


def algorithms(sizes):
    """Those that take nodes of these sizes."""
    return [name for name in EVERYONE if name not in EQUAL or len(set(sizes)) == 1]


def line(*words):
    """Words and lists of numbers, as the C programs read them."""
    return " ".join(
        w if isinstance(w, str) else " ".join(map(str, np.ravel(w).astype(int))) for w in words
    )
