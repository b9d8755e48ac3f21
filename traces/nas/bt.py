"""NAS BT (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with systems of 5x5 blocks along each axis; see `multipartition` for the
layout. A sweep sends a block and a vector for each point between two cells when it eliminates, a
vector when it substitutes, always in buffers for n div p + 1 points an edge. Checked message for
message against recorded runs.

Source: NPB 3.3-MPI, BT: bt.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""

from __future__ import annotations

from .multipartition import Solver, Work
from .multipartition_program import benchmark_of


def operations(n: int) -> float:
    """Floating-point operations of a time step, NPB's own count (bt.f, "mflops")."""
    return 3478.8 * n**3 - 17655.7 * n**2 + 28023.7 * n


BT = Solver(
    name="bt",
    classes={
        "S": (12, 60),
        "W": (24, 200),
        "A": (64, 200),
        "B": (102, 200),
        "C": (162, 200),
        "D": (408, 250),
        "E": (1020, 250),
    },
    bcasts=(4, 8, 12, 4, 4, 4),
    eliminate=(5 * 5 + 5) * 8,
    substitute=5 * 8,
    padded=True,
    tagged=True,
    waitall=False,
    operations=operations,
    # Counted in the loops of rhs.f and add.f; x_solve.f and solve_subs.f: 3,565 in all, against
    # 3,479 in the formula.
    work=Work(
        rhs=440 + 5,
        prepare=(0, 0, 0),
        eliminate=(990, 990, 990),
        substitute=(50, 50, 50),
        finish=(0, 0, 0),
    ),
)

BENCHMARK = benchmark_of(BT, __doc__)
